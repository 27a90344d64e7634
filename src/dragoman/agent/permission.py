"""A question of permission and its answer. Anything but a known yes, to an option that was offered, is a no."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.agent.tool import ToolCall
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.services import (
    CommandSubject,
    PermissionAnswer,
    PermissionOption,
    RequestPermission,
    Selected,
    ToolCallSubject,
)

YES_OR_NO: Final = (
    PermissionOption("allow_once", "Allow once", "allow_once"),
    PermissionOption("allow_always", "Always allow", "allow_always"),
    PermissionOption("reject_once", "Reject", "reject_once"),
    PermissionOption("reject_always", "Always reject", "reject_always"),
)
Subject = ToolCallSubject | CommandSubject | UnsetType


class Permission:
    """The user's answer, and who gave it. Truthy exactly when it is a known yes."""

    def __init__(self, option: PermissionOption | None, identity: Identity = LOCAL) -> None:
        self.option: Final = option
        self.identity: Final = identity

    def __bool__(self) -> bool:
        return self.option is not None and self.option.kind in ("allow_once", "allow_always")

    @property
    def always(self) -> bool:
        """Whether the answer is meant for the future too."""
        return self.option is not None and self.option.kind in ("allow_always", "reject_always")


def check_options(options: Sequence[PermissionOption]) -> None:
    """An answer must mean exactly one of them."""
    if not options:
        raise UsageError("a permission needs at least one option to choose from")
    if len({option.option_id for option in options}) < len(options):
        raise UsageError("the options of a permission need different ids: an answer must mean one of them")


def subject_of(tool: ToolCall | None, command: str | None, cwd: str) -> Subject:
    """What is asked about: a call as it is shown now, or a command."""
    if tool is not None:
        return ToolCallSubject(tool.opening)
    return UNSET if command is None else CommandSubject(command, cwd)


def chosen(reply: Reply, request: RequestPermission) -> PermissionOption | None:
    """The option that the answer names, if it was offered."""
    if not isinstance(reply, PermissionAnswer) or not isinstance(reply.outcome, Selected):
        return None
    named = [option for option in request.options if option.option_id == reply.outcome.option_id]
    return named[0] if len(named) == 1 else None

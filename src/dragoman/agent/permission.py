"""A question of permission and its answer. Anything but a known yes, to an option that was offered, is a no.

"Always" is offered where the session can keep it (`remembered`), and says how far it reaches.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.agent.checks import check_fields, check_known, check_list, check_optional_text, check_text
from dragoman.agent.remembered_permissions import AnswerKey, Subject, answer_key
from dragoman.agent.tool import ToolCall
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.services import (
    CommandSubject,
    PermissionAnswer,
    PermissionKind,
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
ALWAYS: Final = ("allow_always", "reject_always")
_OPTION: Final = 'PermissionOption("yes", "Allow", "allow_once")'


class Permission:
    """The user's answer, and who gave it. Truthy exactly when it is a known yes.

    `remembered`: it was given to an earlier question of this session, and the user was not asked now.
    """

    def __init__(
        self, option: PermissionOption | None, identity: Identity = LOCAL, *, remembered: bool = False
    ) -> None:
        self.option: Final = option
        self.identity: Final = identity
        self.remembered: Final = remembered

    def __bool__(self) -> bool:
        return self.option is not None and self.option.kind in ("allow_once", "allow_always")

    @property
    def always(self) -> bool:
        """Whether the answer is meant for the future too."""
        return self.option is not None and self.option.kind in ALWAYS


def options_for(key: AnswerKey | None) -> list[PermissionOption]:
    """Return what the user can answer. "Always" says what it covers, and is not offered where nothing is remembered."""
    if key is None:
        return [option for option in YES_OR_NO if option.kind not in ALWAYS]
    what = f"“{key.name}”" if key.by_author else "exactly this"
    return [
        replace(option, name=f"{option.name} {what} for this session") if option.kind in ALWAYS else option
        for option in YES_OR_NO
    ]


def check_question(
    title: object, tool: object, command: object, description: str | UnsetType | None, remember: object
) -> None:
    """Raise `UsageError` for arguments of `ask_permission` that make no question."""
    check_text(title, "a question", 'session.ask_permission("Run make?", command="make")')
    if tool is not None and not isinstance(tool, ToolCall):
        raise UsageError(f"tool is a call that is shown, not {tool!r}: write `async with session.tool(...) as call`")
    if isinstance(tool, ToolCall):
        tool.check_open()
    check_optional_text(description, "the description of a question", 'ask_permission(..., description="why")')
    if command is not None:
        check_text(command, "a command", 'session.ask_permission("Run make?", command="make")')
    if remember is not None:
        check_text(remember, "remember", 'session.ask_permission("Test?", remember="npm test")')


def check_options(options: Sequence[PermissionOption]) -> list[PermissionOption]:
    """Raise `UsageError` unless an answer can mean exactly one of these options."""
    for option in options:
        if not isinstance(option, PermissionOption):
            raise UsageError(f"an option is a PermissionOption, not {option!r}: write `{_OPTION}`")
        check_known(option.kind, "the kind of a PermissionOption", get_args(PermissionKind))
    checked_options = [check_fields(option, _OPTION) for option in options]
    if not options:
        raise UsageError("a permission needs at least one option to choose from")
    if len({option.option_id for option in options}) < len(options):
        raise UsageError("the options of a permission need different ids: an answer must mean one of them")
    return checked_options


class PermissionQuestion(NamedTuple):
    """What is sent, and what an "always" to it covers; None: nothing but this one question."""

    request: RequestPermission
    key: AnswerKey | None


def question(
    session_id: str,
    title: str,
    subject: Subject,
    *,
    tool: ToolCall | None,
    description: str | UnsetType,
    options: Sequence[PermissionOption] | None,
    remember: str | None,
    shared: bool,
) -> PermissionQuestion:
    """Return the question as it is to be asked. `shared`: check_list users may answer, so no answer is remembered."""
    keeps = not shared and (options is None or remember is not None)
    key = answer_key(title, description, subject, tool, remember) if keeps else None
    choices = options_for(key) if options is None else check_list(options, "options", f"options=[{_OPTION}]")
    choices = check_options(choices)
    return PermissionQuestion(RequestPermission(session_id, title, choices, description, subject), key)


def subject_of(tool: ToolCall | None, command: str | None, cwd: str) -> Subject:
    """Return what is asked about: a call as it is shown now, or a command."""
    if tool is not None and command is not None:
        raise UsageError("a question is about one thing: give ask_permission tool=… or command=…, not both")
    if tool is not None:
        return ToolCallSubject(tool.opening)
    return UNSET if command is None else CommandSubject(command, cwd)


def chosen(reply: Reply, request: RequestPermission) -> PermissionOption | None:
    """The option that the answer names, if it was offered."""
    if not isinstance(reply, PermissionAnswer) or not isinstance(reply.outcome, Selected):
        return None
    named = [option for option in request.options if option.option_id == reply.outcome.option_id]
    return named[0] if len(named) == 1 else None

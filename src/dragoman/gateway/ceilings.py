"""What each token may reach through this server: the stricter of what the server and what the token says.

The gateway sends its own agent with every request who asks and within which limits (`vocabulary.identity`), and takes
the same out of whatever a client sends. What can be judged without an agent is judged here, for every agent: folders,
MCP servers that are programs, and logging in or out. Modes are known to our own agent only.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, RequestFailed
from dragoman.gateway.token_types import TokenIdentity, TokenLimits
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Extension, Reply, Request
from dragoman.vocabulary.events import AnyEvent, OptionsChanged
from dragoman.vocabulary.identity import LOCAL, Identity, Needs
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, ChoiceGroup, Option, Select

# Who asks where the gateway itself does: it repeats what a client was allowed before.
OPERATOR: Final = LOCAL

# Methods that set the keys and the addresses of an agent's models.
_PROVIDERS: Final = "providers/"

Shown = TypeVar("Shown", bound=Reply | AnyEvent)


class AgentModes(NamedTuple):
    """What is known of the modes of an agent that believes identities.

    `allowed` has those that are open to an identity, `nearest` the one that takes the place of another for it, and
    `may_answer` tells whether a yes of it counts for a question.
    """

    allowed: Callable[[Identity], Sequence[str]]
    nearest: Callable[[str, Identity], str]
    may_answer: Callable[[Identity, Needs], bool]


class Ceilings:
    """The limits of one server and its tokens. Without `modes` the agent is not our own, and its modes are unknown."""

    def __init__(self, server: TokenLimits | None = None, modes: AgentModes | None = None) -> None:
        self.server: Final = server or TokenLimits()
        self._modes = modes

    @property
    def trusted(self) -> bool:
        """Return whether the agent is sent who asks, and believes it: it is our own."""
        return self._modes is not None

    def identity(self, token_identity: TokenIdentity) -> Identity:
        """Return who a client is, for the agent."""
        token, server = token_identity.limits, self.server
        # A client without a token is a program of the server's own user: nothing is gained by confining it here.
        free = token_identity.may("admin") or not token_identity.token
        return Identity(
            token_identity.principal if token_identity.token else None,
            token_identity.token or None,
            # Both are passed on, because only the agent knows the order of its modes; it takes the strictest.
            tuple(mode for mode in (server.max_mode, token.max_mode) if mode),
            tuple(roots for roots in (server.workspaces, token.workspaces) if roots),
            confined=not (free or token.allow_unconfined),
            brings_programs=free or token.allow_mcp_programs,
            admin=token_identity.may("admin"),
        )

    def first_folder(self, wanted: str, token_identity: TokenIdentity) -> str:
        """Return the folder to offer to a person first: the wanted one, or one that the token may open."""
        identity = self.identity(token_identity)
        folders = [wanted, *(folder for folders in reversed(identity.workspaces) for folder in folders)]
        return next((folder for folder in folders if identity.may_open(os.path.realpath(folder))), wanted)

    def check_hello(self, token_identity: TokenIdentity) -> None:
        """Raise `RequestFailed` for a token whose limits this server's agent cannot keep."""
        if self._modes is None and token_identity.limits.max_mode:
            raise RequestFailed(
                INVALID_REQUEST,
                f"The token {token_identity.token!r} has a highest mode, and the agent of this server knows no such "
                "modes; use a token without --max-mode here",
                {"reason": "scope"},
            )

    def check(self, request: Request, identity: Identity) -> None:
        """Raise `RequestFailed` for what this identity may not ask of any agent."""
        match request:
            case ask.NewSession() | ask.ResumeSession() | ask.ForkSession():
                # An MCP server that is a program runs as the server's user before any permission is asked for.
                identity.check_programs(request.mcp_servers or ())
                if identity.workspaces:
                    for folder in (request.cwd, *(request.additional_directories or ())):
                        _check_folder(folder, identity)
            case ask.Login():
                identity.check_admin("log in")
            case ask.Logout():
                identity.check_admin("log out")
            # They change keys and addresses for every principal of this agent.
            case Extension() if request.method.startswith(_PROVIDERS):
                identity.check_admin(f"use {request.method}")
            case _:
                pass

    def may_answer(self, identity: Identity, needs: Needs | None) -> bool:
        """Return whether a question that needs so much is put to this identity."""
        return needs is None or self._modes is None or self._modes.may_answer(identity, needs)

    def shown(self, word: Shown, identity: Identity) -> Shown:
        """Return a reply or an event as this identity sees it: of the modes, those that are open to it."""
        if self._modes is None or not isinstance(word, (ask.SessionOpened, ask.OptionsSet, OptionsChanged)):
            return word
        options = word.config_options
        # The most frequent case, without a copy: options come with every turn.
        if not options or not (identity.confined or identity.max_modes):
            return word
        return replace(word, config_options=[self._narrowed(option, identity, self._modes) for option in options])

    def _narrowed(self, option: Option, identity: Identity, modes: AgentModes) -> Option:
        if not isinstance(option, Select) or option.category != MODE_CATEGORY:
            return option
        allowed = modes.allowed(identity)
        choices: list[Choice | ChoiceGroup] = [choice for choice in option.choices() if choice.value in allowed]
        return replace(option, options=choices, current_value=modes.nearest(option.current_value, identity))


def _check_folder(folder: str, identity: Identity) -> None:
    """Raise `RequestFailed` for a folder that is not in the workspaces, or that an agent which runs in another folder
    could take for another one."""
    if not folder.startswith("/") or "\0" in folder:
        raise RequestFailed(INVALID_PARAMS, f"{folder!r} is no absolute path of a folder")
    # By where it leads: a link in an allowed folder to another one is that other one.
    identity.check_folder(folder, os.path.realpath(folder))

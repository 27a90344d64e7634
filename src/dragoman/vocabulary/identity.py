"""Own `Identity`: who sends a request and what it may reach, sent by a gateway to its agent with every request.

It travels in `_meta` of a request, and of the answer to a question. A gateway removes it from whatever a client sends
and puts its own there; an agent believes it only on a link that was opened as trusted. So it says the same in one
process and, later, between machines.

A value that is missing where one is expected is `Identity()`, which may do the least. Ceilings are lists and all of
them hold: two identities are joined by putting their lists together, and nothing here has to know an order of modes.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, RequestFailed
from dragoman.vocabulary.asking import Extension, ExtensionNote
from dragoman.vocabulary.requests import McpAcp, McpHttp, McpServer, McpSse, McpStdio
from dragoman.vocabulary.word import Meta, Word

IDENTITY: Final = "dragoman/identity"
# What a question needs of those who answer it, put there by the agent for its gateway.
NEEDS: Final = "dragoman/needs"

_OURS: Final = frozenset({IDENTITY, NEEDS})
_SCOPE: Final = {"reason": "scope"}

AnyWord = TypeVar("AnyWord", bound=Word)


class Identity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A principal, the name of its token, and the token's limits.

    - `max_modes`: names of modes; none that reaches further than any of these may be used.
    - `workspaces`: lists of real paths; a folder has to be inside one path of every list.
    - `confined`: only modes that confine, and what would leave the confinement is refused.
    - `brings_programs`: MCP servers that are programs may come with a request.
    - `admin`: may log in and out.
    """

    principal: str | None = None
    token: str | None = None
    max_modes: tuple[str, ...] = ()
    workspaces: tuple[tuple[str, ...], ...] = ()
    confined: bool = True
    brings_programs: bool = False
    admin: bool = False

    def may_open(self, real: str) -> bool:
        """Return whether a folder, by its real path, is inside the workspaces."""
        return all(any(_is_inside(real, root) for root in roots) for roots in self.workspaces)

    @property
    def subject(self) -> str:
        """How a sentence about it begins."""
        return f"The token {self.token!r}" if self.token else "This connection"

    def check_programs(self, servers: Iterable[McpServer]) -> None:
        """Refuse MCP servers that are, or could be, programs of this machine, where it may bring none."""
        if self.brings_programs:
            return
        for server in servers:
            if not isinstance(server, (McpHttp, McpSse, McpAcp)):
                name = server.name if isinstance(server, McpStdio) else server.kind
                raise RequestFailed(
                    INVALID_PARAMS,
                    f"{self.subject} may not bring MCP servers that are programs, as {name!r} is; "
                    "they come from the configuration of the server's operator",
                )

    def check_admin(self, wish: str) -> None:
        """Refuse what concerns the server's own keys."""
        if not self.admin:
            raise RequestFailed(INVALID_REQUEST, f"{self.subject} may not {wish}: that needs the scope admin", _SCOPE)

    def check_folder(self, folder: str, real: str) -> None:
        """Refuse a folder that does not lead into the workspaces; `real` is where it leads."""
        if not self.may_open(real):
            where = " and in ".join(", ".join(roots) for roots in self.workspaces)
            raise RequestFailed(INVALID_PARAMS, f"{self.subject} may not open {folder}; it may open folders in {where}")

    def joined(self, other: "Identity") -> "Identity":
        """Return this identity, within the limits of both."""
        if other == self:
            return self
        return replace(
            self,
            max_modes=(*self.max_modes, *other.max_modes),
            workspaces=(*self.workspaces, *other.workspaces),
            confined=self.confined or other.confined,
            brings_programs=self.brings_programs and other.brings_programs,
            admin=self.admin and other.admin,
        )


# The user at this machine, who started us: no token, no limit.
LOCAL: Final = Identity(confined=False, brings_programs=True, admin=True)


class Needs(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the identity that says yes has to be allowed: this mode, and to `leave` its confinement."""

    mode: str
    leave: bool = False


def identity_in(word: Word) -> Identity:
    """Return the identity that a trusted peer has put there; the least, where none can be read."""
    value = word.meta.get(IDENTITY) if isinstance(word.meta, Mapping) else None
    try:
        return Identity() if value is None else msgspec.convert(value, Identity)
    except msgspec.ValidationError:
        return Identity()


def needs_in(word: Word) -> Needs | None:
    """Return what a question needs; None if it does not say."""
    value = word.meta.get(NEEDS) if isinstance(word.meta, Mapping) else None
    try:
        return None if value is None else msgspec.convert(value, Needs)
    except msgspec.ValidationError:
        return Needs("", leave=True)  # no mode is called so: it is answered by those without limits


def with_identity(word: AnyWord, identity: Identity) -> AnyWord:
    """Return the value with this identity in its `_meta`, in place of any other."""
    return _with(word, IDENTITY, msgspec.to_builtins(identity))


def with_needs(word: AnyWord, needs: Needs) -> AnyWord:
    """Return the value with these needs in its `_meta`, in place of any others."""
    return _with(word, NEEDS, msgspec.to_builtins(needs))


def without_ours(word: AnyWord) -> AnyWord:
    """Return the value without the `_meta` keys that only a gateway and its agent may send to each other."""
    if isinstance(word, (Extension, ExtensionNote)) and isinstance(word.params, dict):
        meta = word.params.get("_meta")
        if isinstance(meta, dict) and not _OURS.isdisjoint(meta):
            word = replace(word, params={**word.params, "_meta": _others(meta)})
    if not isinstance(word.meta, Mapping) or _OURS.isdisjoint(word.meta):
        return word
    return replace(word, meta=_others(word.meta))


def _others(meta: Meta) -> dict[str, object]:
    return {key: value for key, value in meta.items() if key not in _OURS}


def _with(word: AnyWord, key: str, value: object) -> AnyWord:
    known = word.meta if isinstance(word.meta, Mapping) else {}
    return replace(word, meta={**known, key: value})


def _is_inside(path: str, folder: str) -> bool:
    return (path.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")

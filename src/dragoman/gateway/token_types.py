"""What a token is and what it may do: values that the guard, the token file and the command line share. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from dragoman.errors import UsageError

Scope = Literal["read", "prompt", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "prompt", "admin")


class TokenLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token may reach, beside its scopes; the default is what a token gets if its maker says nothing.

    - `max_mode`: no mode that reaches further; empty: every mode that is open to its scopes.
    - `workspaces`: real paths of the only folders it may open sessions in; none: every folder.
    - `allow_unconfined`: without `admin` too, it may use every mode and answer questions about leaving a confinement.
    - `allow_mcp_programs`: without `admin` too, it may bring MCP servers that are programs.
    """

    max_mode: str = ""
    workspaces: tuple[str, ...] = ()
    allow_unconfined: bool = False
    allow_mcp_programs: bool = False


class SessionShare(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one session that the token of a share link reaches, and nothing else: it may be read, and only while it is
    the owner's. `made_by` is the digest of the token or grant that made the link: the link ends when that is revoked.
    `label` is the owner's name for it."""

    session: str
    owner: str
    made_by: str = ""
    label: str = ""


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a token: never the token itself. Times are seconds since 1970; 0: not known, or never. `share`:
    it is that of a share link. A release that does not know the field takes such a token for one of a principal without
    sessions."""

    name: str
    principal: str
    scopes: tuple[Scope, ...]
    digest: str
    limits: TokenLimits = TokenLimits()
    created: float = 0
    expires: float = 0
    share: SessionShare | None = None


class TokenIdentity(NamedTuple):
    """The token a request was admitted by, and what it may do. `digest` identifies it, since another token may get the
    same name later. `cookie` is the digest of the login cookie that stood for the token; empty: the token itself was
    sent. `token` is its name; empty: the request needed none. `is_granted`: it is no token of ours, the OpenID issuer
    vouches for it. `node` names the node of the cluster that passes requests of its own clients on, each with the
    client's identity in it; empty: it is a client. `share`: it reaches this one session, to read it, and nothing
    else."""

    token: str
    principal: str
    scopes: tuple[Scope, ...]
    cookie: str = ""
    digest: str = ""
    limits: TokenLimits = TokenLimits()
    is_granted: bool = False
    node: str = ""
    share: SessionShare | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def covers(self, other: "TokenIdentity") -> bool:
        """Return whether this may do whatever `other` may do."""
        # Scopes are a set, limits have no order that is worth comparing: the same limits, or none at all with `admin`.
        if not set(other.scopes) <= set(self.scopes) or self.share != other.share:
            return False
        return self.limits in (other.limits, _NO_LIMITS if self.may("admin") else None)


# Compared by value, so a token file that writes the defaults out is the same.
_NO_LIMITS: Final = TokenLimits()


class Unsure(UsageError):
    """The tokens cannot be read now, so it is not known which are valid."""


def digest_of(token: bytes) -> str:
    """Return what is stored of a token. It has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(token).hexdigest()


def scopes_of(text: str) -> tuple[Scope, ...]:
    """Return the scopes that a command line names, as in `read,prompt`. Raise `ValueError` for a wrong one."""
    named: Mapping[str, Scope] = {scope: scope for scope in SCOPES}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in named:
            raise ValueError(f"there is no scope {name!r}; there are {', '.join(SCOPES)}")
    if not names:
        raise ValueError(f"name at least one scope of {', '.join(SCOPES)}")
    return tuple(named[name] for name in dict.fromkeys(names))

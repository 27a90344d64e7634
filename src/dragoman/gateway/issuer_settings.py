"""Which OpenID issuer a server believes, and what a person of it may do here. Pure.

A person becomes a principal by one claim, and gets scopes by another; what no rule names gets `default_scopes`. The
principal begins with `oidc:`, so that no name that is chosen at the issuer is that of a token's principal.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dragoman.errors import DragomanError
from dragoman.gateway.token_types import SCOPES, Scope

PRINCIPAL_PREFIX: Final = "oidc:"
# OpenID Connect Core 2: a `sub` has at most 255 characters.
_PRINCIPAL_CHARACTERS: Final = 255
# Groups of one person that are looked at; directories of companies give some hundreds.
_VALUES: Final = 1000


class NotAccepted(DragomanError):
    """A token or a login of the issuer does not count here. The text is for the client, and begins as "it has …"."""


class IssuerAway(DragomanError):
    """The issuer cannot be asked now, or what it says is none; nothing of it is believed until it can."""


class IssuerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator of a server has set.

    - `audiences`: of tokens that programs send; without any it is `client_id`, which is always that of a login.
    - `scope_claim`: a claim, or one inside of others as in `realm_access.roles`; its values are the keys of `scopes`.
    - `request`: the OAuth scopes that a login asks for.
    """

    issuer: str
    client_id: str
    client_secret: str = ""
    audiences: tuple[str, ...] = ()
    principal_claim: str = "sub"
    scope_claim: str = "groups"
    scopes: Mapping[str, tuple[Scope, ...]] = {}
    default_scopes: tuple[Scope, ...] = ("read",)
    request: tuple[str, ...] = ("openid", "profile", "email")
    ca_file: str = ""

    def __repr__(self) -> str:  # never the secret
        return f"<IssuerSettings {self.issuer} {self.client_id}>"

    def principal(self, claims: Mapping[str, object]) -> str:
        """Return the principal of verified claims. Raise `NotAccepted` where the claim cannot name one."""
        value = claims.get(self.principal_claim)
        if not isinstance(value, str) or not 0 < len(value) <= _PRINCIPAL_CHARACTERS or not value.isprintable():
            raise NotAccepted(f"it has no claim {self.principal_claim!r} that can name a principal")
        # Anyone can write any address into an account; only the issuer's word makes it theirs (OpenID Connect 5.7).
        if self.principal_claim == "email" and claims.get("email_verified") is not True:
            raise NotAccepted("its issuer has not verified the e-mail address")
        return PRINCIPAL_PREFIX + value

    def granted(self, claims: Mapping[str, object]) -> tuple[Scope, ...]:
        """Return the scopes of verified claims: those of every rule that holds; else the default, which may be none."""
        # Compared to the letter: groups whose names differ in case alone are two at most issuers.
        rules = [self.scopes[value] for value in _values(claims, self.scope_claim) if value in self.scopes]
        if not rules:
            return self.default_scopes
        # In our order, and each once: identities are compared by what they may do.
        named = {scope for rule in rules for scope in rule}
        return tuple(scope for scope in SCOPES if scope in named)


def _values(claims: Mapping[str, object], name: str) -> Sequence[str]:
    """Return the texts of a claim: a list, or words as in `scope`. A claim of another form is none."""
    found = claims.get(name)
    # A name with dots may be that of one claim: namespaces of claims are written as addresses.
    if name not in claims:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    # As OAuth writes its `scope` (RFC 6749 3.3); a single group is often a text as well.
    if isinstance(found, str):
        found = found.split()
    return [value for value in found[:_VALUES] if isinstance(value, str)] if isinstance(found, list) else []

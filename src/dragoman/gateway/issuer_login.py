"""Let people of an OpenID issuer in: programs by a token of it with each request, the page by a login with it.

The page's way (authorization code with PKCE, OpenID Connect Core 3.1, RFC 7636, RFC 9700 2.1):

1. `start` gives the page an address of the issuer and a *binding*, which stays in the tab's storage.
2. The issuer sends the browser back to our page with a code and the `state` it was given.
3. The page hands both in with its binding; `finish` exchanges the code and reads the ID token.

Nothing is kept here between 1 and 3, so no flood can fill a table: the state is sealed with a key of the servers and
with the binding, and the verifier and the nonce are derived from it. A link with the code of an attacker has no binding
in the victim's tab, and a stolen code has no verifier.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from dragoman.gateway.issuer import Issuer
from dragoman.gateway.issuer_jwt import end_of, head_of, is_like_jwt, verified_claims
from dragoman.gateway.issuer_settings import NotAccepted
from dragoman.gateway.shared_state import SharedGrants
from dragoman.gateway.token_types import Token, digest_of

# The page that the issuer sends browsers back to.
CALLBACK: Final = "/login/oidc"
# A person finds a password, a telephone and the way back.
STATE_SECONDS: Final = 600
# A login ends after so long, and the issuer is asked again who its people are.
LOGIN_SECONDS: Final = 12 * 3600.0
# A program's token counts for so long without another look, however long it says.
BEARER_SECONDS: Final = 24 * 3600.0
_CODE_CHARACTERS: Final = 4096


class LoginStart(NamedTuple):
    """Where a browser goes to log in, and what the page keeps meanwhile."""

    url: str
    binding: str


class LoginReturn(msgspec.Struct, frozen=True):
    """What the page has when the browser comes back. `issuer` is empty where the issuer does not say it (RFC 9207)."""

    code: str
    state: str
    binding: str
    issuer: str = msgspec.field(name="iss", default="")


class IssuerLogin:
    """Logins and tokens of one issuer; what they may do is in `grants`."""

    def __init__(self, issuer: Issuer, grants: SharedGrants) -> None:
        self.issuer: Final = issuer
        self._grants = grants

    def __repr__(self) -> str:
        return f"<IssuerLogin {self.issuer!r} {self._grants!r}>"

    async def admit(self, shown: bytes) -> None:
        """Make the grant of a bearer token, if it has the form of the issuer's and has none yet. Raise `NotAccepted`,
        `IssuerAway`."""
        digest = digest_of(shown)
        if not is_like_jwt(shown) or self._grants.find_bearer(digest) is not None:
            return
        settings = self.issuer.settings
        key_id, claims = await self._claims(shown.decode("latin-1"), settings.audiences or (settings.client_id,))
        await self._grants.add(self._token(claims, digest, end_of(claims, BEARER_SECONDS)), key_id)

    async def start(self, origin: str) -> LoginStart:
        """Begin a login of the page of this origin. Raise `IssuerAway`."""
        document, settings = await self.issuer.document(), self.issuer.settings
        seal = _Seal(await self._grants.secret())
        # The page keeps it where pages of other origins, and other tabs, cannot read it.
        binding = secrets.token_urlsafe(32)
        state = seal.state(f"{secrets.token_urlsafe(16)}.{int(time.time())}", binding, origin)
        challenge = hashlib.sha256(seal.derived("verifier", state).encode()).digest()
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": origin + CALLBACK,
            "scope": " ".join(settings.request),
            "state": state,
            "nonce": seal.derived("nonce", state),
            "code_challenge": _base64url(challenge),
            "code_challenge_method": "S256",
        }
        # An address with a query of its own keeps it (RFC 6749 3.1).
        joint = "&" if "?" in document.authorization_endpoint else "?"
        return LoginStart(document.authorization_endpoint + joint + urlencode(query), binding)

    async def finish(self, origin: str, came_back: LoginReturn) -> Token:
        """Return the grant of a person who comes back from the issuer. Raise `NotAccepted`, `IssuerAway`."""
        code, state = came_back.code, came_back.state
        seal = _Seal(await self._grants.secret())
        nonce_and_time, _, _ = state.rpartition(".")
        # Checked before the issuer is asked anything: what was not begun here costs nothing.
        if not _is_same(seal.state(nonce_and_time, came_back.binding, origin), state):
            raise NotAccepted("it was not begun in this tab, or the server has been restarted since")
        if time.time() - int(nonce_and_time.rpartition(".")[2]) > STATE_SECONDS:
            raise NotAccepted("it has taken too long")
        document, settings = await self.issuer.document(), self.issuer.settings
        # A code of another issuer that the browser has been mixed up with is not sent to ours (RFC 9207 2.4).
        must_say = document.authorization_response_iss_parameter_supported
        if (came_back.issuer or must_say) and came_back.issuer != settings.issuer:
            raise NotAccepted("it is of another issuer")
        if not 0 < len(code) <= _CODE_CHARACTERS:
            raise NotAccepted("it has no code")
        id_token = await self.issuer.id_token(code, seal.derived("verifier", state), origin + CALLBACK)
        _, claims = await self._claims(id_token, (settings.client_id,))
        self._check_login(claims, seal.derived("nonce", state))
        # Of its own: an ID token is no secret everywhere, and as a bearer token it would be another grant.
        token = self._token(claims, digest_of(secrets.token_bytes(32)), time.time() + LOGIN_SECONDS)
        await self._grants.add(token, is_login=True)
        return token

    async def _claims(self, token: str, audiences: tuple[str, ...]) -> tuple[str | None, Mapping[str, Any]]:
        head = head_of(token)
        key = await self.issuer.key(head)
        return head.key_id, verified_claims(token, key, self.issuer.settings.issuer, audiences)

    def _check_login(self, claims: Mapping[str, Any], made_for: str) -> None:
        """Raise `NotAccepted` if an ID token was not made for this very login (OpenID Connect Core 3.1.3.7)."""
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not _is_same(made_for, nonce):
            raise NotAccepted("it was made for another login")
        audience, party = claims["aud"], claims.get("azp")
        several = isinstance(audience, list) and len(audience) > 1
        if (several or party is not None) and party != self.issuer.settings.client_id:
            raise NotAccepted("it is for another audience")

    def _token(self, claims: Mapping[str, Any], digest: str, expires: float) -> Token:
        settings = self.issuer.settings
        principal, scopes = settings.principal(claims), settings.granted(claims)
        if not scopes:
            raise NotAccepted("nothing here is granted to it; ask who runs this server")
        # Named as its principal: any other name at the issuer is chosen by the person, and could be another's.
        return Token(principal, principal, scopes, digest, expires=expires)


class _Seal(NamedTuple):
    """Makes what only the servers that have this key can make."""

    secret: bytes

    def state(self, begin: str, binding: str, origin: str) -> str:
        return f"{begin}.{self.derived('state', begin, binding, origin)}"

    def derived(self, purpose: str, *parts: str) -> str:
        """Return what is made of `parts`, in 43 characters."""
        # Parts are joined by their length, so that no two lists of them are the same text.
        text = "".join(f"{len(part)}:{part}" for part in (purpose, *parts))
        return _base64url(hmac.digest(self.secret, text.encode("utf-8", "surrogatepass"), "sha256"))


def _is_same(ours: str, shown: str) -> bool:
    # JSON may have half a character, which UTF-8 has not.
    return hmac.compare_digest(ours.encode(), shown.encode("utf-8", "surrogatepass"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

"""The OpenID issuer, asked over the network: where its pages are, its keys, and what a code is worth.

Nothing it sends is believed before it was bounded, and nothing is asked of it more often than `REFETCH_SECONDS` because
of what clients send: a flood of tokens with made-up keys costs it, and us, one look. Its document and its keys are
fetched together, at intervals and when a key is missing. While it is away the last ones count for `STALE_SECONDS`.

OpenID Connect Discovery 4, RFC 7517, RFC 6749 4.1.3.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from dragoman.gateway.host_check import is_loopback
from dragoman.gateway.issuer_jwt import JwtHead, key_for
from dragoman.gateway.issuer_settings import IssuerAway, IssuerSettings, NotAccepted
from dragoman.host.tls import verify_for

if TYPE_CHECKING:
    import httpx2
    from jwt import PyJWK

# For the whole of one answer; an issuer that takes longer is away.
ANSWER_SECONDS: Final = 5.0
# Real documents have 5 KiB, real sets of keys 10 KiB.
ANSWER_BYTES: Final = 256 * 1024
KEYS: Final = 100
# An issuer shows a new key some time before it signs with it, and an old one some time after.
REFETCH_SECONDS: Final = 10.0
FRESH_SECONDS: Final = 600.0
STALE_SECONDS: Final = 3600.0

_Kind = TypeVar("_Kind")
_Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]


class IssuerDocument(msgspec.Struct, frozen=True):
    """What an issuer says of itself, as far as it is used here."""

    # Fields that are not read here may be anything: issuers add their own, and none of them can change these.
    issuer: str
    authorization_endpoint: _Url
    token_endpoint: _Url
    jwks_uri: _Url
    # Without the field it is this one (OpenID Connect Discovery 3).
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(msgspec.Struct):
    keys: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=KEYS)]


class _TokenReply(msgspec.Struct):
    id_token: str


class Issuer:
    """One issuer. `report` is called with a sentence for the operator; `on_keys` with the names of its keys when they
    were fetched. `clock` is one that cannot be set back."""

    def __init__(
        self,
        settings: IssuerSettings,
        report: Callable[[str], object],
        on_keys: Callable[[Sequence[object]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings: Final = settings
        self._report = report
        self._on_keys = on_keys
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None
        self._document: IssuerDocument | None = None
        self._keys: Sequence[Mapping[str, Any]] = ()
        self._fetched_at = self._asked_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        # What the operator was told last: the same is not told every ten seconds.
        self._reported = ""

    def __repr__(self) -> str:
        return f"<Issuer {self.settings.issuer} keys={len(self._keys)}>"

    async def document(self) -> IssuerDocument:
        """Return what the issuer says of itself. Raise `IssuerAway`."""
        # Waited for only where nothing is known that still counts: a look at intervals keeps that from happening.
        if self._is_stale():
            await self._refetch()
        # A fetch that has failed leaves what was known, so both are looked at again.
        if self._document is None or self._is_stale():
            raise IssuerAway("The issuer of logins does not answer as it should. Try again later.")
        return self._document

    async def key(self, head: JwtHead) -> "PyJWK":
        """Return the key that a token with this head is verified by, asking the issuer again for one that is not known.
        Raise `NotAccepted` where it has no such key, `IssuerAway` where it cannot be asked."""
        await self.document()
        found = key_for(head, self._keys)
        # The issuer may have begun to sign with another key since the last look.
        if found is None:
            await self._refetch()
            found = key_for(head, self._keys)
        if found is None:
            raise NotAccepted("its key is none of its issuer's")
        return found

    async def id_token(self, code: str, verifier: str, redirect_uri: str) -> str:
        """Return the ID token that the issuer gives for the code of a login. Raise `NotAccepted`, `IssuerAway`."""
        document, settings = await self.document(), self.settings
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form |= {"client_id": settings.client_id, "code_verifier": verifier}
        headers = {}
        if settings.client_secret and "client_secret_basic" in document.token_endpoint_auth_methods_supported:
            # Quoted on their own, since either may have a colon (RFC 6749 2.3.1).
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["authorization"] = f"Basic {_base64(pair)}"
        elif settings.client_secret:
            form["client_secret"] = settings.client_secret
        status, body = await self._ask("POST", document.token_endpoint, form, headers)
        # RFC 6749 5.2: every refusal is another status, and its words are for the operator of the issuer.
        if status != 200:
            self._report(f"it answered {status} to the code of a login: is the client's secret right?")
            raise NotAccepted("its issuer does not confirm it")
        try:
            return msgspec.json.decode(body, type=_TokenReply).id_token
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._report("its answer to the code of a login has no ID token")
            raise NotAccepted("its issuer does not say who it is") from None

    async def keep_fresh(self) -> None:
        """Fetch the document and the keys at intervals, for as long as the server runs."""
        while True:
            await self._refetch()
            # Sooner where that has failed: what is known counts for an hour only.
            is_fresh = self._clock() - self._fetched_at < FRESH_SECONDS
            await asyncio.sleep(FRESH_SECONDS if is_fresh else FRESH_SECONDS / 10)

    async def close(self) -> None:
        """Close the connections to the issuer."""
        # A fetch that waits for a slow issuer would hold the stop of the server up.
        if self._fetching is not None:
            self._fetching.cancel()
        if self._client is not None:
            await self._client.aclose()

    # -- fetching -----------------------------------------------------------------------------------------------------

    def _is_stale(self) -> bool:
        return self._clock() - self._fetched_at > STALE_SECONDS

    async def _refetch(self) -> None:
        """Fetch anew, unless that was tried just now; wait for a fetch that runs."""
        if self._fetching is None:
            if self._clock() - self._asked_at < REFETCH_SECONDS:
                return
            self._asked_at = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
        # Shielded: a client that hangs up must not cancel the fetch that others wait for.
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            document = await self._fetch_document()
            keys = _decoded(await self._get(document.jwks_uri), _KeySet, "set of keys").keys
            # Both or none: keys of one issuer and pages of another would be worse than old ones.
            self._document, self._keys, self._fetched_at = document, keys, self._clock()
            self._on_keys([key.get("kid") for key in keys])
            self._reported = ""
        except IssuerAway as away:
            if str(away) != self._reported:
                self._report(str(away))
            self._reported = str(away)
        finally:
            self._fetching = None

    async def _fetch_document(self) -> IssuerDocument:
        url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        document = _decoded(await self._get(url), IssuerDocument, "description")
        # Exactly as it was set: another spelling is another issuer (OpenID Connect Discovery 4.3).
        if document.issuer != self.settings.issuer:
            raise IssuerAway("it calls itself otherwise; --oidc-issuer has to be that name, to the last slash")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not is_safe_address(getattr(document, name), plain=self.settings.issuer.startswith("http:")):
                raise IssuerAway(f"its {name} is no address with https")
        return document

    async def _get(self, url: str) -> bytes:
        status, body = await self._ask("GET", url)
        if status != 200:
            raise IssuerAway(f"it answered {status} for {url}")
        return body

    async def _ask(
        self, method: str, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer, within bounds of time and size. Raise `IssuerAway`."""
        import httpx2

        if self._client is None:
            # In a thread: the list of authorities takes tens of milliseconds to read.
            verify = await asyncio.to_thread(verify_for, self.settings.issuer, self.settings.ca_file)
            # A redirect would lead the secret, and us, to an address that was not judged.
            self._client = httpx2.AsyncClient(verify=verify, timeout=ANSWER_SECONDS, follow_redirects=False)
        asked = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                self._client.stream(method, url, data=form, headers=asked) as response,
            ):
                # Not unpacked: a packed body can be a thousand times larger than what came.
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > ANSWER_BYTES:
                        raise IssuerAway(f"it answered with more than {ANSWER_BYTES} bytes")
                return response.status_code, bytes(body)
        except TimeoutError:
            raise IssuerAway(f"it did not answer within {ANSWER_SECONDS:g} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise IssuerAway(f"it cannot be asked ({type(error).__name__})") from None


def is_safe_address(url: str, *, plain: bool) -> bool:
    """Return whether an address of the issuer can be asked: https, or with `plain` http of this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    # A name before an `@` would be sent as a password; what does not print could look like another address in the log.
    if not host or parts.username is not None or parts.fragment or not url.isascii() or not url.isprintable():
        return False
    return parts.scheme == "https" or (plain and parts.scheme == "http" and is_loopback(host))


def _decoded(body: bytes, kind: "type[_Kind]", what: str) -> "_Kind":
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IssuerAway(f"its {what} cannot be read") from None


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()

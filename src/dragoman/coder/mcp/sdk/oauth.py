"""Logins at servers behind a URL, by the SDK's OAuth client: discovery, registration, PKCE, tokens.

Two ways to use it. `KeptLoginAuth` is for sessions: it sends the kept token, renews one that has expired or was
refused, and raises `LoginNeeded` where only a person helps; it never registers and never asks. `NewLoginAuth` goes
the whole way with a browser (`new_login`). Where the SDK (2.4) falls short: it forgets when kept tokens expire and
where they are renewed, does not renew one that was refused before its time, and holds one lock during each request.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError, TokenStorage
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import LATEST_PROTOCOL_VERSION
from msgspec.structs import replace

from dragoman.coder.mcp.callback import LoginCallback
from dragoman.coder.mcp.logins import LoginFailed, LoginNeeded, McpLogin, McpLoginFile
from dragoman.coder.mcp.sdk.guarded_client import guarded_client
from dragoman.coder.mcp.server_text import one_line
from dragoman.host.address import URL_CHARACTERS
from dragoman.version import VERSION

ShowUrl = Callable[[str, LoginCallback], Awaitable[None]]
"""Show the page of a login to the user; `LoginFailed` if the user does not want it."""

_TEMPORARY: Final = 500
_ERROR_CHARACTERS: Final = 300
_REVOKE_SECONDS: Final = 10.0


class ClientChoice(NamedTuple):
    """What the user says about the client: an id that the server's operator has given out, its secret, scopes."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    port: int = 0


class _KeptTokens(TokenStorage):
    """What the SDK keeps, in our file; with what it forgets: when tokens expire, and who renews them."""

    def __init__(self, file: McpLoginFile) -> None:
        self.file: Final = file
        self.provider: OAuthClientProvider

    async def get_tokens(self) -> OAuthToken | None:
        return None  # `load` sets them with what belongs to them

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context
        self.file.write(
            McpLogin(
                url=self.file.url,
                client=_json(context.client_info),
                tokens=_json(tokens),
                expires_at=context.token_expiry_time,
                metadata=_json(context.oauth_metadata),
                resource=_json(context.protected_resource_metadata),
            )
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        # Kept with the tokens: a registration that no login came of is of no use.
        pass

    def load(self) -> McpLogin | None:
        """Give the SDK what is kept, if anything, and return it. `LoginFailed` if the file cannot be used."""
        login, context = self.file.read(), self.provider.context
        context.clear_tokens()
        context.client_info = None
        if login is None:
            return None
        try:
            context.client_info = _model(OAuthClientInformationFull, login.client)
            context.current_tokens = _model(OAuthToken, login.tokens)
            context.oauth_metadata = _model(OAuthMetadata, login.metadata)
            context.protected_resource_metadata = _model(ProtectedResourceMetadata, login.resource)
        except ValueError:  # that of pydantic is one
            raise LoginFailed("has a kept login that cannot be read; log in again") from None
        context.token_expiry_time = login.expires_at
        if context.protected_resource_metadata is not None:
            context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
        return login


class KeptLoginAuth(OAuthClientProvider):
    """Sends the kept token of one server, and renews it. Raises `LoginNeeded` where a person has to log in."""

    def __init__(self, url: str, file: McpLoginFile) -> None:
        self._kept = _KeptTokens(file)
        super().__init__(url, _client_metadata("http://127.0.0.1/"), self._kept)
        self._kept.provider = self

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        self.context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        token = await self._token()
        for _ in range(2):
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            response = yield request
            if response.status_code == httpx2.codes.FORBIDDEN:
                if extract_field_from_www_auth(response, "error") == "insufficient_scope":
                    raise LoginNeeded("needs a login with more rights")
                return
            if response.status_code != httpx2.codes.UNAUTHORIZED:
                return
            renewed = await self._token(refused=token) if token else ""
            if not renewed:
                break
            token = renewed
        raise LoginNeeded("needs a new login: it refuses the kept one" if token else "needs a login")

    async def _token(self, refused: str = "") -> str:
        """Return a token that can be used, renewed if need be; empty: there is none. `refused` is one that cannot."""
        async with self.context.lock:
            self._kept.load()
            if self._is_usable(refused) or not self.context.can_refresh_token():
                return self._bearer(refused)
            async with self._kept.file.lock():
                self._kept.load()  # another process may have renewed it
                if not self._is_usable(refused):
                    await self._renew()
                return self._bearer(refused)

    def _is_usable(self, refused: str) -> bool:
        return self.context.is_token_valid() and bool(self._bearer(refused))

    def _bearer(self, refused: str) -> str:
        """Return the present token, even one that has expired by our clock; the server decides. Empty: none."""
        tokens = self.context.current_tokens
        return tokens.access_token if tokens is not None and tokens.access_token != refused else ""

    async def _renew(self) -> None:
        """Get new tokens for the refresh token. One that is refused is deleted; any other trouble leaves it."""
        request = await self._refresh_token()
        try:
            async with guarded_client(self.context.server_url) as client:
                response = await client.send(request)
        except (httpx2.HTTPError, httpx2.StreamError):
            raise LoginFailed("has a login that cannot be renewed now: its server cannot be reached") from None
        if response.status_code >= _TEMPORARY or response.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            raise LoginFailed(f"has a login that cannot be renewed now (HTTP status {response.status_code})")
        if not await self._handle_refresh_response(response):
            kept = self._kept.file.read()
            if kept is not None:
                self._kept.file.write(replace(kept, tokens=None, expires_at=None))
            raise LoginNeeded("needs a new login: the kept one has ended")


class NewLoginAuth(OAuthClientProvider):
    """Logs in with the user's browser, on the first request that the server refuses."""

    def __init__(
        self, url: str, file: McpLoginFile, choice: ClientChoice, show: ShowUrl, callback: LoginCallback, seconds: float
    ) -> None:
        self._kept = _KeptTokens(file)
        self._show = show
        self._callback = callback
        self._seconds = seconds
        metadata = _client_metadata(callback.url, choice.scope)
        super().__init__(url, metadata, self._kept, self._show_page, self._wait)
        self._kept.provider = self
        self._choice = choice

    async def _initialize(self) -> None:
        """Use the client of the last login, if its callback has the same address; never its tokens."""
        known = self._kept.load()
        self.context.clear_tokens()
        self.context.oauth_metadata = self.context.protected_resource_metadata = self.context.auth_server_url = None
        if self._choice.client_id:
            self.context.client_info = _given_client(self._choice, self._callback.url)
        elif known is None or self._callback.url not in _redirects(self.context.client_info):
            self.context.client_info = None
        self._initialized = True

    async def _show_page(self, url: str) -> None:
        parts = urlsplit(url)
        own = urlsplit(self.context.server_url)
        if parts.scheme not in ("https", own.scheme) or not parts.netloc or "@" in parts.netloc:
            raise LoginFailed("names a page for the login that is no web page")
        if len(url) > URL_CHARACTERS or not url.isprintable() or not url.isascii():
            raise LoginFailed("names a page for the login that has no proper address")
        self._callback.expect(parse_qs(parts.query).get("state", [""])[-1])
        await self._show(url, self._callback)

    async def _wait(self) -> AuthorizationCodeResult:
        answer = await self._callback.wait(self._seconds)
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)


async def new_login(url: str, file: McpLoginFile, show: ShowUrl, seconds: float, choice: ClientChoice) -> bool:
    """Log in, and keep what comes of it. `show` gets the page for the user's browser; wait for it `seconds` at most.

    False: the server wants no login. `LoginFailed` says why there is none.
    """
    async with _callback(file, choice) as callback:
        auth = NewLoginAuth(url, file, choice, show, callback, seconds)
        try:
            async with guarded_client(url, auth=auth) as client:
                response = await client.post(url, json=_HELLO, headers=_HEADERS)
        except LoginFailed:
            raise
        except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
            raise LoginFailed(f"cannot be logged in to: {one_line(str(error), _ERROR_CHARACTERS)}") from None
        except httpx2.TimeoutException:
            raise LoginFailed("did not answer in time") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise LoginFailed(f"cannot be logged in to: {one_line(str(error), _ERROR_CHARACTERS)}") from None
        except ValueError:
            raise LoginFailed("has a login that is described in no way we can read") from None
        if auth.context.current_tokens is None:
            return False
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            file.remove()
            raise LoginFailed("refuses the token that its own authorization server has given")
        return True


async def revoke_login(url: str, file: McpLoginFile) -> bool:
    """Delete a kept login, and have its server revoke the tokens (RFC 7009). Return whether the server said yes.

    It is deleted whatever the server says. `LoginFailed` if the file cannot be used or deleted.
    """
    kept = _KeptTokens(file)
    provider = kept.provider = OAuthClientProvider(url, _client_metadata("http://127.0.0.1/"), kept)
    try:
        kept.load()
        with suppress(httpx2.HTTPError, httpx2.StreamError, LoginFailed, OAuthTokenError):
            return await _revoke(provider, url)
        return False
    finally:
        file.remove()


async def _revoke(provider: OAuthClientProvider, url: str) -> bool:
    context = provider.context
    tokens, metadata = context.current_tokens, context.oauth_metadata
    if tokens is None or metadata is None or metadata.revocation_endpoint is None or context.client_info is None:
        return False
    given = [("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token)]
    revoked = True
    async with guarded_client(url, seconds=_REVOKE_SECONDS) as client:
        for kind, token in given:
            if token:
                data = {"token": token, "token_type_hint": kind, "client_id": context.client_info.client_id}
                data, headers = context.prepare_token_auth(data, {})
                # The SDK's own server wants the field, which RFC 7009 does not have, even if it is empty.
                data.setdefault("client_secret", context.client_info.client_secret or "")
                response = await client.post(str(metadata.revocation_endpoint), data=data, headers=headers)
                revoked = revoked and response.status_code == httpx2.codes.OK
    return revoked


def _callback(file: McpLoginFile, choice: ClientChoice) -> LoginCallback:
    """Return a callback at the address that was registered last, if that port is free."""
    port = choice.port
    if not port and not choice.client_id:
        with suppress(LoginFailed, ValueError):
            kept = file.read()
            redirects = _redirects(_model(OAuthClientInformationFull, kept.client)) if kept else []
            port = next((found for one in redirects if (found := urlsplit(one).port)), 0)
        if port and not _is_free(port):
            port = 0
    return LoginCallback(port)


def _is_free(port: int) -> bool:
    import socket

    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _client_metadata(redirect: str, scope: str = "") -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Dragoman",
            "software_id": "dragoman",
            "software_version": VERSION,
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"scope": scope} if scope else {}),
        }
    )


def _given_client(choice: ClientChoice, redirect: str) -> OAuthClientInformationFull:
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": choice.client_id,
            "client_secret": choice.client_secret or None,
            "redirect_uris": [redirect],
            "token_endpoint_auth_method": "client_secret_post" if choice.client_secret else "none",
        }
    )


def _redirects(client: OAuthClientInformationFull | None) -> list[str]:
    return [str(one) for one in client.redirect_uris or ()] if client is not None else []


def _json(model: Any) -> dict[str, Any] | None:
    """Return one of the SDK's models as it is kept."""
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _model(kind: Any, fields: dict[str, Any] | None) -> Any:
    """Return what is kept as one of the SDK's models; `ValueError` if it is none."""
    return None if fields is None else kind.model_validate(fields)


# The first words of a session, as a server that wants a login refuses them.
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "dragoman", "version": VERSION},
    },
}
_HEADERS: Final = {"Accept": "application/json, text/event-stream"}

"""An MCP server behind a login: the official SDK's server, with its authorization server beside it, on loopback.

`Issuer` is the provider that the SDK asks for clients, codes and tokens; a test looks into it and changes what it says.
"""

import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.asgi_server import on_loopback

SCOPE = "tools"


class Issuer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives a code and tokens to every client, and remembers all of it."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refresh_tokens: dict[str, RefreshToken] = {}
        self.params: list[AuthorizationParams] = []
        self.seconds = 3600
        self.refreshed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.params.append(params)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return f"{params.redirect_uri}?{urlencode({'code': code.code, 'state': params.state or ''})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh_tokens.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        if self.refresh_tokens.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)
        self.refresh_tokens.pop(token.token, None)

    def revoke_all(self, *, refresh_too: bool = True) -> None:
        """Take back what was given out."""
        self.tokens.clear()
        if refresh_too:
            self.refresh_tokens.clear()

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=int(time.time()) + 3600, resource=resource
        )
        self.refresh_tokens[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=self.seconds,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )


class LoginServer:
    """The server with its `issuer`, at `url`. `requests` are the paths that were asked for, with their method."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.issuer = Issuer()
        self.requests: list[str] = []
        self.answers: dict[str, ASGIApp] = {}  # other answers than the SDK's, by path
        origin = url.removesuffix("/mcp")
        server = MCPServer(
            "behind-login",
            auth_server_provider=self.issuer,
            auth=AuthSettings.model_validate(
                {
                    "issuer_url": origin,
                    "resource_server_url": url,
                    "required_scopes": [SCOPE],
                    "validate_token_resource": True,
                    "client_registration_options": ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE]),
                    "revocation_options": RevocationOptions(enabled=True),
                }
            ),
        )

        @server.tool()
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        self._app = server.streamable_http_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.requests.append(f"{scope['method']} {scope['path']}")
            other: Any = self.answers.get(scope["path"])
            if other is not None:
                await other(scope, receive, send)
                return
        await self._app(scope, receive, send)


@asynccontextmanager
async def login_server() -> AsyncIterator[LoginServer]:
    """A server that wants a login, on a port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = LoginServer(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    async with on_loopback(app, listener):
        yield app

"""The console for people, at `/`: its files, and how a token becomes a login.

| request | answer |
|---|---|
| GET `/`, `/console/NAME` | 200, a file; without a login, since it holds no data |
| POST `/login` with a token | 200, who it is; one half of the login is the cookie, the other one `pageKey` |
| POST `/me` with both halves | 200, who it is |
| POST `/logout` with both halves | 204; the login is over, and so are its connections; what they began goes on |

`issuer_pages` has the login with an OpenID issuer. All POSTs want our own header. A login and a logout are answered
when they are on disk. The page itself is a client like any other: it speaks ACP at `/acp`.
"""

import gzip
import hashlib
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.console_api.requests import owner
from dragoman.gateway.console_api.shares import shared_session
from dragoman.gateway.guard import Guard
from dragoman.gateway.headers import Headers, has_our_header, value_of
from dragoman.gateway.http_replies import Handle, RouteEndpoint, Stop, answer
from dragoman.gateway.hub import Hub
from dragoman.gateway.issuer_login import CALLBACK, IssuerLogin
from dragoman.gateway.issuer_pages import IssuerPages
from dragoman.gateway.streaming import Receive, Send
from dragoman.gateway.token_types import TokenIdentity
from dragoman.version import VERSION

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import Scope

_KINDS: Final = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
# Nothing but our own files runs or is fetched, and no text becomes markup: the last two make that the browser's rule.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
).encode()
_SAFE: Final = [
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


# What Vite names by its content: such a file never changes.
_HASHED: Final = re.compile(r"-[\w-]{8}\.\w+$")
_NOT_BUILT: Final = b"""<!doctype html><html lang="en"><title>Dragoman</title>
<p>The console is not built. In a checkout, <code>./dev setup</code> builds it; agents are served all the same."""


class _File(NamedTuple):
    body: bytes
    kind: bytes
    tag: bytes
    cache_control: bytes


class Pages:
    """The routes of the page. `folder` is the folder it offers for a new session; None: the current directory.
    `issuer` is who people can log in with, beside a token."""

    def __init__(
        self,
        hubs: Mapping[str, Hub],
        ceilings: Ceilings,
        guard: Guard,
        folder: str | None = None,
        issuer: IssuerLogin | None = None,
    ) -> None:
        self._hubs = hubs
        self._ceilings = ceilings
        self._guard = guard
        self._folder = os.getcwd() if folder is None else folder
        # Read once, at the start: no path of a request ever reaches the file system.
        self._files = dict(_read_files())
        self._issuer = IssuerPages(issuer, next(iter(hubs.values())).monitor, self._log_in)
        if issuer is not None:
            self._files[CALLBACK] = self._files["/"]

    def is_open(self, path: str) -> bool:
        """Return whether a path is a file of the page, or begins a login: both are served without one."""
        return path in self._files or path in self._issuer.posts

    def routes(self) -> "list[BaseRoute]":
        """Return the routes of the page and of its login."""
        from starlette.routing import Route

        posts = {"/login": self._login, "/me": self._me, "/logout": self._logout, **self._issuer.posts}
        return [
            *(Route(path, RouteEndpoint(self._file, "GET, HEAD")) for path in self._files),
            *(Route(path, RouteEndpoint(_of_our_page(handle), "POST")) for path, handle in posts.items()),
        ]

    async def _file(self, scope: "Scope", receive: Receive, send: Send) -> None:
        file = self._files[scope["path"]]
        headers = [
            (b"etag", file.tag),
            (b"cache-control", file.cache_control),
            (b"vary", b"accept-encoding"),
            *_SAFE,
            (b"x-content-type-options", b"nosniff"),
        ]
        status, body = 304, b""
        # The tag is the hash of the content, so a page of an older release is never mixed with files of a newer one.
        if value_of(scope["headers"], b"if-none-match") != file.tag.decode():
            content = file.body
            if "gzip" in (value_of(scope["headers"], b"accept-encoding") or ""):
                content = _packed(content)
                headers.append((b"content-encoding", b"gzip"))
            status, body = 200, content if scope["method"] == "GET" else b""
            headers += [(b"content-type", file.kind), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _login(self, scope: "Scope", receive: Receive, send: Send) -> None:
        token_identity: TokenIdentity = scope["identity"]
        # A login must not make another one: it would outlive the first, and could not be ended by its owner.
        if token_identity.cookie:
            raise Stop(400, "Show the token: Authorization: Bearer TOKEN.")
        await self._log_in(token_identity, scope, send)

    async def _log_in(self, token_identity: TokenIdentity, scope: "Scope", send: Send) -> None:
        """Answer with a new login of a token that was shown, or of a person whom the issuer has named."""
        halves = await self._guard.log_in(token_identity)
        if halves is None:
            raise Stop(401, "A valid token is needed.")
        # On disk before the browser has it: a login that the server forgets with a restart would look like a theft.
        await self._guard.logins.save()
        is_share = token_identity.share is not None
        cookie = self._guard.cookies.header(halves.cookie, secure=_is_secure(scope), is_share=is_share)
        about = await self._about(token_identity, pageKey=halves.page_key)
        await answer(send, 200, about, [(b"set-cookie", cookie), *_SAFE])

    async def _me(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await answer(send, 200, await self._about(scope["identity"]), _SAFE)

    async def _logout(self, scope: "Scope", receive: Receive, send: Send) -> None:
        token_identity: TokenIdentity = scope["identity"]
        if token_identity.cookie:
            # First in memory, so that no request comes in during the write; the connections last, because each has to
            # wait for its link.
            await self._guard.logins.end(token_identity.cookie)
            await self._guard.logins.save()
            for hub in self._hubs.values():
                for client_side in list(hub.connections.values()):
                    if client_side.connection.token_identity.cookie == token_identity.cookie:
                        await hub.connections.close(client_side, with_work=False)
        is_share = token_identity.share is not None
        gone = self._guard.cookies.header("", secure=_is_secure(scope), is_share=is_share)
        await answer(send, 204, b"", [(b"set-cookie", gone), *_SAFE])

    async def _about(self, token_identity: TokenIdentity, **more: str) -> bytes:
        if token_identity.share is not None:
            # Of the server and its owner nothing: a link is for people who are not known.
            share = await shared_session(self._hubs, token_identity)
            return msgspec.json.encode({"name": "", "scopes": token_identity.scopes, "share": share} | more)
        folder = self._ceilings.first_folder(self._folder, token_identity)
        me: dict[str, object] = {
            "name": token_identity.token,
            "scopes": token_identity.scopes,
            "folder": folder,
            "version": VERSION,
            "principal": token_identity.principal,
            # Whether it may change tokens: a token with limits of its own may not.
            "administers": owner(token_identity),
        }
        if len(self._hubs) > 1:
            me["agents"] = list(self._hubs)
        return msgspec.json.encode(me | more)


def _of_our_page(handle: Handle) -> Handle:
    """Return the same for requests of our own page alone: a form of another can send a POST, but not this header."""

    async def checked(scope: "Scope", receive: Receive, send: Send) -> None:
        if not has_our_header(scope["headers"]):
            raise Stop(403, "The header X-Dragoman: 1 is missing.")
        await handle(scope, receive, send)

    return checked


@cache
def _read_files() -> dict[str, _File]:
    """Return every file of the console, by its path on the server."""
    found: dict[str, _File] = {}
    folder = files("dragoman.gateway").joinpath("console")
    for file in folder.iterdir() if folder.is_dir() else ():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/console/{file.name}"
            found[path] = _file_of(file.read_bytes(), kind, is_hashed=_HASHED.search(file.name) is not None)
    if "/" not in found:
        found["/"] = _file_of(_NOT_BUILT, _KINDS["html"], is_hashed=False)
    return found


def _file_of(body: bytes, kind: bytes, *, is_hashed: bool) -> _File:
    cache_control = b"public, max-age=31536000, immutable" if is_hashed else b"no-cache"
    return _File(body, kind, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode(), cache_control)


@cache
def _packed(body: bytes) -> bytes:
    """Return the same by gzip: when it is first asked for, since most files of a console are fetched by few."""
    return gzip.compress(body, 9, mtime=0)


def _is_secure(scope: "Scope") -> bool:
    """Return whether the browser speaks TLS, to us or to a proxy before us."""
    headers: Headers = scope["headers"]
    # Behind a proxy our own socket is plain; what the browser speaks is in its `Origin`, which the guard has checked.
    return scope["scheme"] == "https" or (value_of(headers, b"origin") or "").startswith("https://")

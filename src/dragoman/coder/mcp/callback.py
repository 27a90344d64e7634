"""Receive the answer of an authorization server: one request of the user's browser to this machine (RFC 8252).

Promise: it listens on 127.0.0.1 only and for one login; a request without the `state` of this login changes nothing,
so no other page or program can end or hijack it. What comes is bounded in size, count and time, and nothing of it is
sent back: the page in the browser is fixed text.
"""

import asyncio
import hmac
from contextlib import suppress
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from dragoman.coder.mcp.logins import LoginFailed
from dragoman.coder.mcp.server_text import one_line

PATH: Final = "/callback"
# A code and a state; a browser sends some kilobytes of headers.
_HEAD_BYTES: Final = 32 * 1024
_HEAD_SECONDS: Final = 10.0
_CONNECTIONS: Final = 32
_REASON_CHARACTERS: Final = 300
_PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>Dragoman</title>"
    "<body style='font:1.1em sans-serif;margin:4em'><h1>{title}</h1><p>{text}</p>"
)
_DONE: Final = ("200 OK", _PAGE.format(title="Logged in", text="You can close this page and go back."))
_REFUSED: Final = (
    "200 OK",
    _PAGE.format(title="Not logged in", text="It was refused. You can close this page."),
)
_STRANGE: Final = ("400 Bad Request", _PAGE.format(title="Not for this login", text="Nothing was changed."))


class CallbackAnswer(NamedTuple):
    """The code for tokens, and who says so (RFC 9207), if told."""

    code: str
    state: str
    issuer: str | None


class LoginCallback:
    """A server for one answer, while its block is entered. `port` 0: any that is free."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._state = ""
        self._answer: asyncio.Future[CallbackAnswer]
        self._server: asyncio.Server
        self._open = 0

    def __repr__(self) -> str:
        return f"<LoginCallback {self.url}>"

    async def __aenter__(self) -> Self:
        self._answer = asyncio.get_running_loop().create_future()
        # `OSError` where the port is taken.
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._answer.cancel()
        if self._answer.done() and not self._answer.cancelled():
            self._answer.exception()  # one that was not waited for is no bug
        self._server.close()

    @property
    def url(self) -> str:
        """The address that the browser is sent to."""
        return f"http://127.0.0.1:{self._port}{PATH}"

    def expect(self, state: str) -> None:
        """Accept an answer with this `state`, and no other."""
        self._state = state

    async def wait(self, seconds: float) -> CallbackAnswer:
        """Wait for the answer. Raises `LoginFailed` when it is a refusal, and after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        except TimeoutError:
            raise LoginFailed(f"was not logged in to within {seconds:g} s") from None

    def receive(self, target: str) -> bool:
        """Take an answer: the path and query of a request, or the whole address from a browser. False: it is none."""
        try:
            parts = urlsplit(target.strip())
            fields = {name: values[0] for name, values in parse_qs(parts.query, max_num_fields=32).items()}
        except ValueError:
            return False
        state = fields.get("state", "")
        if parts.path != PATH or not self._state or not hmac.compare_digest(state.encode(), self._state.encode()):
            return False
        if self._answer.done():
            return True
        if fields.get("code"):
            self._answer.set_result(CallbackAnswer(fields["code"], state, fields.get("iss")))
        else:
            said = [fields[key] for key in ("error", "error_description") if fields.get(key)]
            reason = one_line(": ".join(said), _REASON_CHARACTERS) or "no code"
            self._answer.set_exception(LoginFailed(f"refused the login: {reason}"))
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _CONNECTIONS:
                with suppress(TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
                    async with asyncio.timeout(_HEAD_SECONDS):
                        await self._answer_one(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            self._open -= 1
            writer.close()

    async def _answer_one(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        words = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
        is_ours = len(words) == 3 and words[0] == "GET" and self.receive(words[1])
        is_refusal = is_ours and self._answer.done() and self._answer.exception() is not None
        status, page = _REFUSED if is_refusal else _DONE if is_ours else _STRANGE
        body = page.encode()
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; "
            "style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()

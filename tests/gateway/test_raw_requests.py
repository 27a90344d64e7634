"""Requests that no client library sends, on a bare socket: each gets a coded refusal, and nothing more."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway import Served, counting, gateway

from .test_hostile_requests import raw, status

pytestmark = pytest.mark.anyio

BODY = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
# Between the token and the end of the head. PORT is the server's, TOKEN its token.
REQUESTS = {
    "a line that goes on below": b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX-A: a\r\n b\r\n\r\n",
    "a folded token": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer\r\n TOKEN\r\n\r\n",
    "line feeds alone": b"POST /acp HTTP/1.1\nHost: 127.0.0.1:PORT\nContent-Length: 2\n\n{}",
    "a NUL in a header": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX-A: a\0b\r\n\r\n",
    "a NUL in the path": b"GET /acp\0 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "a NUL in the host": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\0.evil\r\n\r\n",
    "a carriage return in a header": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX-A: a\rb\r\n\r\n",
    "a name with a blank": b"GET /acp HTTP/1.1\r\nHost : 127.0.0.1:PORT\r\n\r\n",
    "a header without a colon": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nnothing\r\n\r\n",
    "no version": b"GET /acp\r\n\r\n",
    "version 0.9": b"GET /acp HTTP/0.9\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "version 9.9": b"GET /acp HTTP/9.9\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "an address as the target": b"GET http://evil.example/acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n",
    "a length with a plus": b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: +2\r\n\r\n{}",
    "a length of 10^30": b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n",
    "a chunk of 2^64": b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"FFFFFFFFFFFFFFFFF\r\n",
    "two tokens": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer x\r\n"
    b"Authorization: Bearer TOKEN\r\n\r\n",
    "a forwarded token": b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
    b"X-Forwarded-Authorization: Bearer TOKEN\r\n\r\n",
}
# These are HTTP, and show no token that counts; the others are none.
REFUSED_BY_US = {"line feeds alone", "an address as the target", "a chunk of 2^64", "two tokens", "a forwarded token"}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with gateway(counting(1), tmp_path) as running:
        yield running


@pytest.mark.parametrize("what", REQUESTS)
async def test_it_is_refused_with_a_code_and_the_next_one_is_served(served: Served, what: str) -> None:
    request = REQUESTS[what].replace(b"PORT", str(served.server.port).encode()).replace(b"TOKEN", served.token.encode())
    answer, _ = await raw(served, request)
    assert status(answer) == (401 if what in REFUSED_BY_US else 400)
    assert b"Traceback" not in answer
    assert served.token.encode() not in answer
    assert served.hub.connections == {}
    whole = (
        f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:{served.server.port}\r\nAuthorization: Bearer {served.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    answer, _ = await raw(served, whole.encode() + BODY)
    assert status(answer) == 200
    assert served.bugs == []

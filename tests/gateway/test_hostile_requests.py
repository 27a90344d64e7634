"""Hostile requests against the real server: tokens, hosts, origins, methods, ids, headers, bodies, sockets, streams."""

import asyncio
import hashlib
import os
import statistics
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agent.agent import Agent
from dragoman.cli.main import main
from dragoman.gateway import endpoint, http_replies
from dragoman.gateway.connection import GatewayConnection
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.replay_buffer import StreamBatch, StreamMessage
from dragoman.gateway.streaming import events
from dragoman.gateway.token_types import SCOPES, Token, TokenIdentity, digest_of
from dragoman.sse import EventReader
from tests.support.gateway import Served, counting, gateway, http_client, raw_http
from tests.support.guards import ImmediateGuard
from tests.support.messages import hello, prompt, texts
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with gateway(counting(3), tmp_path) as running:
        yield running


async def raw(
    served: Served, data: bytes, *, wait: float = 30.0, close: bool = False, sought: bytes = b""
) -> tuple[bytes, bool]:
    """What comes back on a bare socket, up to something where that is named, and whether the server closed it, where
    that is waited for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    answer, closed = b"", False
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(wait):
            while piece := await reader.read(65536):
                answer += piece
                if (sought and sought in answer) or (not close and b"\r\n\r\n" in answer and _is_whole(answer)):
                    return answer, False
            closed = True
    except (TimeoutError, ConnectionError) as error:
        closed = isinstance(error, ConnectionError)
    finally:
        writer.close()
    return answer, closed


def _is_whole(answer: bytes) -> bool:
    top, _, body = answer.partition(b"\r\n\r\n")
    lengths = [line for line in top.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(lengths) and len(body) >= int(lengths[0].partition(b":")[2])


def head(served: Served, method: str = "GET", path: str = "/acp", host: str | None = None, *more: str) -> bytes:
    named = f"127.0.0.1:{served.server.port}" if host is None else host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {named}", f"Authorization: Bearer {served.token}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def post(served: Served, body: bytes, *more: str) -> bytes:
    kind = "Content-Type: application/json"
    return head(served, "POST", "/acp", None, kind, f"Content-Length: {len(body)}", *more) + body


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer x"},
        {"Authorization": "Bearer " + "x" * 43},
        {"Authorization": "Bearer " + "x" * 5000},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"Authorization": "{token}"},
        {"X-Token": "{token}"},
    ],
)
async def test_no_token_or_a_wrong_one_is_401(served: Served, headers: dict[str, str]) -> None:
    sent = {name: value.replace("{token}", served.token) for name, value in headers.items()}
    async with http_client() as client:
        for method in ("GET", "POST", "DELETE"):
            response = await client.request(method, served.http, headers=sent)
            assert response.status_code == 401
            assert served.token not in response.text


@pytest.mark.requirement("K1")
async def test_a_token_in_the_query_counts_for_nothing(served: Served) -> None:
    async with http_client() as client:
        for name in ("token", "access_token", "authorization"):
            assert (await client.get(served.http, params={name: served.token})).status_code == 401


@pytest.mark.requirement("K1")
def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(one: str, other: str) -> bool:
        compared.append(one)
        return one == other

    monkeypatch.setattr("dragoman.gateway.guard.hmac.compare_digest", compare)
    tokens = [Token(f"t{n}", "p", SCOPES, digest_of(b"secret%d" % n)) for n in range(5)]
    keeper = ImmediateGuard(lambda: tokens, ["localhost"], 1, time.monotonic)
    assert isinstance(keeper.authenticate([(b"authorization", b"Bearer secret0")], "a"), TokenIdentity)
    assert compared == [token.digest for token in tokens]  # the first fits, and all are looked at


@pytest.mark.requirement("K1")
def test_a_guessing_address_is_held_back_and_others_are_not() -> None:
    now = [0.0]
    tokens = [Token("t", "p", SCOPES, digest_of(b"right"))]
    keeper = ImmediateGuard(lambda: tokens, ["localhost"], 1, lambda: now[0])
    statuses = {keeper.authenticate([(b"authorization", b"Bearer no")], "evil") for _ in range(100)}
    assert {refusal.status for refusal in statuses if isinstance(refusal, Refusal)} == {401, 429}
    for address in ("good", "evil"):  # they may be behind one proxy
        assert isinstance(keeper.authenticate([(b"authorization", b"Bearer right")], address), TokenIdentity)
    now[0] += 60
    again = keeper.authenticate([(b"authorization", b"Bearer no")], "evil")
    assert isinstance(again, Refusal) and again.status == 401


@pytest.mark.requirement("K2")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil:{port}",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1:1",
        "127.0.0.1:{port}x",
        "127.0.0.1:99999",
        "user@127.0.0.1:{port}",
        "0.0.0.0:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "127.1:{port}",
        "2130706433:{port}",
    ],
)
async def test_another_host_is_421_before_the_body_is_read(served: Served, host: str) -> None:
    named = host.replace("{port}", str(served.server.port))
    answer, _ = await raw(served, head(served, "POST", "/acp", named, "Content-Length: 1000000"))
    assert status(answer) == 421


@pytest.mark.requirement("K2")
async def test_a_missing_host_is_421_and_two_are_400(served: Served) -> None:
    ours = f"Host: 127.0.0.1:{served.server.port}"
    cases: list[tuple[list[str], int]] = [
        ([], 421),
        ([ours, ours], 400),
        ([ours, "Host: evil.example"], 400),
        (["Host:"], 421),
    ]
    for hosts, code in cases:
        lines = ["GET /acp HTTP/1.1", *hosts, f"Authorization: Bearer {served.token}"]
        answer, _ = await raw(served, ("\r\n".join(lines) + "\r\n\r\n").encode())
        assert (hosts, status(answer)) == (hosts, code)


@pytest.mark.requirement("K3")
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
async def test_another_origin_is_403(served: Served, origin: str) -> None:
    headers = served.headers | {"Origin": origin.replace("{port}", str(served.server.port))}
    async with http_client() as client:
        for method, more in (
            ("POST", {"Content-Type": "application/json"}),
            ("GET", {"Accept": "text/event-stream", "Acp-Connection-Id": "x"}),
            ("DELETE", {}),
        ):
            assert (await client.request(method, served.http, headers=headers | more)).status_code == 403
        ours = served.headers | {"Origin": f"http://127.0.0.1:{served.server.port}"}
        assert (await client.get(served.http, headers=ours)).status_code == 406


@pytest.mark.requirement("K4")
async def test_a_simple_cross_site_post_is_not_dispatched(served: Served) -> None:
    async with http_client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            body = msgspec.json.encode(hello(1))
            answer = await client.post(served.http, headers=served.headers | {"Content-Type": kind}, content=body)
            assert answer.status_code == 415
            page = {"Content-Type": kind, "Origin": "http://evil.example"}
            assert (await client.post(served.http, headers=page, content=body)).status_code == 403
    assert served.hub.monitor.counts["connections"] == 0


@pytest.mark.requirement("K5")
async def test_a_preflight_gets_no_permission(served: Served) -> None:
    async with http_client() as client:
        asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        for headers in (asks, asks | served.headers):
            answer = await client.options(served.http, headers=headers)
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.requirement("K6")
async def test_a_name_that_was_made_to_point_here_is_refused(served: Served) -> None:
    """What a browser sends after a rebinding: our address, their name."""
    for host in (f"rebind.example:{served.server.port}", f"127.0.0.1.nip.example:{served.server.port}"):
        answer, _ = await raw(served, head(served, "POST", "/acp", host, f"Origin: http://{host}"))
        assert status(answer) == 421


@pytest.mark.requirement("K7")
async def test_a_cookie_is_no_token(served: Served) -> None:
    async with http_client() as client:
        for name in ("token", "session", "Authorization"):
            answer = await client.get(served.http, headers={"Cookie": f"{name}={served.token}"})
            assert answer.status_code == 401


@pytest.mark.requirement("K8")
def test_other_addresses_are_not_served_without_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        assert main(["serve", "--port", "1", "--host", host]) == 2
        assert "dragoman tokens create NAME" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


@pytest.mark.requirement("K9")
@pytest.mark.parametrize(
    "target",
    [
        *["TRACE /acp", "CONNECT /acp", "BREW /acp", "GET //acp", "GET /acp/", "GET /../etc/passwd"],
        *["GET /%2e%2e/etc/passwd", "GET /acp/..%2f..%2fetc/passwd", "GET /ACP", "GET /static/x", "BREW /"],
        "OPTIONS *",
        *["GET /console", "GET /console/", "GET /console/../server.py", "GET /console/..%2fserver.py"],
        "POST /console/icon.svg",
    ],
)
async def test_odd_methods_and_paths_get_404_or_405_and_no_file(served: Served, target: str) -> None:
    method, path = target.split(" ")
    answer, _ = await raw(served, head(served, method, path))
    assert b"root:" not in answer
    assert status(answer) == (404 if method in ("GET", "OPTIONS") else 405)


@pytest.mark.requirement("K10")
async def test_a_connection_of_another_and_an_unknown_one_are_404_alike(served: Served) -> None:
    other = served.token_of("other")
    async with raw_http(served) as mine:
        session_id = await mine.session()
        deleted = await _a_deleted_connection(served)
        answers = []
        async with http_client() as client:
            for connection in (mine.connection, "0" * 32, deleted):
                for method, more in (("GET", {"Accept": "text/event-stream"}), ("DELETE", {}), ("POST", {})):
                    headers = {"Authorization": f"Bearer {other}", "Acp-Connection-Id": connection} | more
                    body = msgspec.json.encode(prompt(2, session_id)) if method == "POST" else b""
                    headers |= {"Content-Type": "application/json", "Acp-Session-Id": session_id}
                    answers.append(await client.request(method, served.http, headers=headers, content=body))
        assert {(answer.status_code, answer.text) for answer in answers} == {
            (404, '{"error":"There is no such connection."}')
        }
        assert mine.connection in served.hub.connections


async def _a_deleted_connection(served: Served) -> str:
    async with raw_http(served) as raw:
        await raw.client.delete(served.http, headers=served.headers | {"Acp-Connection-Id": raw.connection})
        return raw.connection


@pytest.mark.requirement("K11")
async def test_ids_have_128_bits_and_no_pattern() -> None:
    count = 2_000
    ids = {GatewayConnection("http", TokenIdentity("t", "p", SCOPES)).id for _ in range(count)}
    assert len(ids) == count
    bits = [sum(int(id, 16) >> bit & 1 for id in ids) / count for bit in range(128)]
    assert all(0.43 < share < 0.57 for share in bits)
    assert statistics.fmean(bits) == pytest.approx(0.5, abs=0.005)


@pytest.mark.requirement("K12")
async def test_a_stream_has_one_reader(served: Served) -> None:
    other = served.token_of("other")
    async with raw_http(served) as mine, raw_http(served, token=other) as theirs:
        session_id = await mine.session()
        assert await mine.open(session_id) == 409
        assert await theirs.open(session_id) == 404


@pytest.mark.requirement("K13")
async def test_an_answer_on_the_wrong_connection_is_refused(tmp_path: Path) -> None:
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say(f"allowed {bool(await session.ask_permission('May I?'))}")

    async with gateway(agent, tmp_path) as served:
        other = served.token_of("other")
        async with raw_http(served) as mine, raw_http(served) as second, raw_http(served, token=other) as theirs:
            session_id = await mine.session()
            await mine.post(prompt(2, session_id), session_id)
            await until(lambda: [m for m in mine.heard if m.get("method") == "session/request_permission"])
            question = next(m for m in mine.heard if m.get("method") == "session/request_permission")
            option = question["params"]["options"][0]["optionId"]
            yes = {"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}}
            for wrong in (second, theirs):
                assert (await wrong.post(yes, session_id)).status_code == 400
            assert served.hub.sessions[session_id].is_running
            await mine.post(yes, session_id)
            await until(lambda: texts(mine.heard) == ["allowed True"])


@pytest.mark.requirement("K14")
async def test_the_token_is_nowhere_behind_the_gateway(tmp_path: Path) -> None:
    frames: list[bytes] = []
    agent = counting(1)
    serve = agent.serve

    async def traced(transport: Any) -> None:
        await serve(transport, trace=lambda _, frame: frames.append(frame))

    agent.serve = traced  # type: ignore[assignment, method-assign]
    async with gateway(agent, tmp_path) as served, raw_http(served) as mine:
        session_id = await mine.session()
        await mine.post(prompt(2, session_id), session_id)
        await mine.answer(2)
        everything = b"".join(frames) + repr(dict(os.environ)).encode()
        for file in tmp_path.rglob("*"):
            everything += file.read_bytes() if file.is_file() else b""
        assert b"session/new" in everything
        assert served.token.encode() not in everything
        assert hashlib.sha256(served.token.encode()).hexdigest().encode() in everything


@pytest.mark.requirement("K15")
async def test_large_and_many_headers_are_431(served: Served) -> None:
    for more in (["X: " + "a" * 1_000_000], ["X: a"] * 10_000, ["X: " + "a" * 40_000], [f"X{n}: a" for n in range(90)]):
        answer, _ = await raw(served, head(served, "GET", "/acp", None, *more))
        # The server closes while we still write: the system may then drop the reply to what is too large.
        assert (status(answer) if answer else 431) == (406 if len(more) == 90 else 431)


@pytest.mark.requirement("K15")
async def test_slow_headers_are_closed_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.gateway import server

    monkeypatch.setattr(server, "_HEADER_MILLISECONDS", 500)
    async with gateway(counting(1), tmp_path) as served:
        patience = 8  # less than the usual deadline
        answer, closed = await raw(served, b"GET /acp HTTP/1.1\r\nHo", wait=patience, close=True)
        assert closed
        assert answer == b""


@pytest.mark.requirement("K15")
async def test_a_slow_body_is_408(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_replies, "BODY_SECONDS", 0.3)
    data = head(served, "POST", "/acp", None, "Content-Type: application/json", "Content-Length: 100") + b"{"
    answer, _ = await raw(served, data)
    assert status(answer) == 408


@pytest.mark.requirement("K16")
@pytest.mark.parametrize(("over", "expected"), [(-1, 200), (0, 200), (1, 413)])
async def test_bodies_at_the_limit(served: Served, monkeypatch: pytest.MonkeyPatch, over: int, expected: int) -> None:
    monkeypatch.setattr(endpoint, "BODY_BYTES", 100_000)
    body = msgspec.json.encode(hello(1))
    body += b" " * (100_000 + over - len(body))
    async with http_client() as client:
        kind = served.headers | {"Content-Type": "application/json"}
        assert (await client.post(served.http, headers=kind, content=body)).status_code == expected

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 10_000):
                yield body[at : at + 10_000]

        assert (await client.post(served.http, headers=kind, content=pieces())).status_code == expected  # chunked


@pytest.mark.requirement("K16")
async def test_the_largest_body_is_refused_without_being_read(served: Served) -> None:
    length = f"Content-Length: {endpoint.BODY_BYTES + 1}"
    answer, _ = await raw(served, head(served, "POST", "/acp", None, "Content-Type: application/json", length))
    assert status(answer) == 413


@pytest.mark.requirement("K16")
@pytest.mark.parametrize(
    ("more", "body"),
    [
        (["Content-Length: 4", "Transfer-Encoding: chunked"], b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 4"], b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["Content-Length: 4", "Content-Length: 5"], b"{}  GET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["Content-Length: -1"], b"{}"),
        (["Content-Length: 1x"], b"{}"),
        (["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"2\r\n{}X\r\n0\r\n\r\n"),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
    ],
)
async def test_smuggling_is_refused_and_no_second_request_is_seen(served: Served, more: list[str], body: bytes) -> None:
    data = head(served, "POST", "/acp", None, "Content-Type: application/json", *more) + body
    answer, closed = await raw(served, data, close=True)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"ok"' not in answer
    assert closed
    assert status(answer) == 400


UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")


def masked(opcode: int, payload: bytes, *, first: int = 0x80, mask: bool = True) -> bytes:
    """A WebSocket frame, right or wrong."""
    size = len(payload)
    length = bytes([size]) if size < 126 else bytes([126]) + struct.pack(">H", size)
    key = b"\x01\x02\x03\x04"
    if not mask:
        return bytes([first | opcode]) + length + payload
    body = bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))
    return bytes([first | opcode, length[0] | 0x80]) + length[1:] + key + body


@pytest.mark.requirement("K17")
@pytest.mark.parametrize(
    "frames",
    {
        "unmasked": masked(1, b"{}", mask=False),
        "reserved-bit": masked(1, b"{}", first=0xC0),
        "reserved-opcode": masked(3, b"{}"),
        "bad-utf-8": masked(1, b"\xff\xfe"),
        "long-ping": masked(9, b"x" * 126),
        "fragmented-ping": masked(9, b"x", first=0),
        "stray-continuation": masked(0, b"x"),
        "close-with-one-byte": masked(8, b"x"),
    }.items(),
    ids=lambda item: item[0],
)
async def test_a_frame_that_may_not_be_ends_the_socket(served: Served, frames: tuple[str, bytes]) -> None:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    answer, closed = await raw(served, head(served, "GET", "/acp", None, *UPGRADE, key) + frames[1], close=True)
    assert answer.startswith(b"HTTP/1.1 101")
    assert closed
    async with http_client() as client:
        assert (await client.get(served.http.replace("/acp", "/health"))).status_code == 200


@pytest.mark.requirement("K17")
async def test_fragments_and_pings_by_the_thousand_do_no_harm(served: Served) -> None:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    text = msgspec.json.encode(hello(1))
    pieces = [text[at : at + 1] for at in range(len(text))] + [b" "] * 10_000
    data = masked(1, pieces[0], first=0) + b"".join(masked(0, piece, first=0) for piece in pieces[1:-1])
    data += masked(9, b"") * 5_000 + masked(0, pieces[-1])
    said = b'"protocolVersion":1'
    answer, _ = await raw(served, head(served, "GET", "/acp", None, *UPGRADE, key) + data, sought=said)
    assert said in answer


@pytest.mark.requirement("K18")
async def test_reconnect_storm(served: Served) -> None:
    """A hundred times the same stream, one after the other and at once; the session is still there."""
    async with raw_http(served) as mine:
        session_id = await mine.session()
        await mine.post(prompt(2, session_id), session_id)
        await mine.answer(2)
        for _ in range(4):
            statuses = await asyncio.gather(*(_open_and_go(mine, session_id) for _ in range(25)))
            assert set(statuses) == {200}
        mine.heard.clear()
        mine._tasks.pop(session_id, None)
        assert await mine.open(session_id, after="0") == 200
        await until(lambda: texts(mine.heard) == ["0 ", "1 ", "2 "])


async def _open_and_go(raw: Any, session_id: str) -> int:
    headers = raw._headers | {"Accept": "text/event-stream", "Acp-Connection-Id": raw.connection}
    headers |= {"Acp-Session-Id": session_id, "Last-Event-ID": "0"}
    async with raw.client.stream("GET", raw.served.http, headers=headers) as response:
        code: int = response.status_code
        return code


@pytest.mark.requirement("K19")
def test_line_breaks_never_break_an_event() -> None:
    nasty = msgspec.json.encode({"text": "a\nb\r\nc\u2028d\u0085e\0\ndata: {}\n\nid: 7\n\n"})
    assert b"\n" not in nasty
    large = b'"' + b"x" * (16 * 1024 * 1024) + b'"'
    stream = events(StreamBatch(0, [StreamMessage(1, nasty), StreamMessage(2, large), StreamMessage(3, b"{}")]))
    reader = EventReader()
    found = [event for at in range(0, len(stream), 65_537) for event in reader.feed(stream[at : at + 65_537])]
    assert found == [("1", nasty), ("2", large), ("3", b"{}")]


@pytest.mark.requirement("K19")
@pytest.mark.parametrize("garbage", ["x", "-1", "99999999999999999999", "1e3", "\u0661", "", "0x1", "999"])
async def test_garbage_for_last_event_id_is_ignored_where_gaps_are_told(served: Served, garbage: str) -> None:
    async with raw_http(served) as mine:
        mine._headers["Dragoman-Resume"] = "gaps"
        session_id = await mine.session()
        await mine.drop(session_id)
        await until(lambda: served.hub.connections[mine.connection].connection.readers == 1)
        try:
            garbage.encode("ascii")
        except UnicodeEncodeError:
            garbage = "%d9%a1"
        assert await mine.open(session_id, after=garbage) == 200
        await mine.post(prompt(2, session_id), session_id)
        await mine.answer(2)
        assert texts(mine.heard) == ["0 ", "1 ", "2 "]


@pytest.mark.requirement("K20")
async def test_errors_tell_nothing_of_us(served: Served) -> None:
    async with http_client() as client:
        for method, path in (
            ("GET", "/acp"),
            ("GET", "/nothing"),
            ("PUT", "/acp"),
            ("POST", "/acp"),
            ("POST", "/health"),
        ):
            for headers in ({}, served.headers):
                answer = await client.request(method, served.http.replace("/acp", path), headers=headers)
                assert 400 <= answer.status_code < 500
                assert list(answer.json()) == ["error"]
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["cache-control"] == "no-store"
                shown = answer.text + repr(answer.headers.raw)
                for secret in ("Traceback", "/src/", ".py", "python", "starlette", "2.8", str(Path.home())):
                    assert secret not in shown

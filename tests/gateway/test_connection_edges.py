"""The edge of a real server: what hostile or unlucky clients do to it, and what it does to them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from websockets.asyncio.client import connect

from dragoman.agent.agent import Agent
from dragoman.errors import INVALID_REQUEST, PARSE_ERROR
from dragoman.gateway import connection, endpoint, guard, http_replies, hub, login_store, session_streams, token_store
from dragoman.gateway.connection import Full, GatewayConnection
from dragoman.gateway.envelope import peek
from dragoman.gateway.replay_buffer import GONE, REPLACED
from dragoman.gateway.token_types import SCOPES, TokenIdentity
from tests.support.gateway import Served, counting, gateway, http_client, raw_http
from tests.support.messages import hello, prompt, texts
from tests.support.waiting import settled, until

from .sockets import hear, opening, say, session

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024
WIDE = "[" + "[]," * 5_300_000 + "[]]"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at every few seconds is looked at at once."""
    monkeypatch.setattr(hub, "_SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(token_store, "_CHECK_SECONDS", 0.0)


async def ended(peer: Any) -> int:
    """The code that a socket is closed with."""
    async with asyncio.timeout(30):
        await peer.wait_closed()
    code: int = peer.close_code
    return code


# -- who is in -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("soon")
async def test_a_token_that_is_made_anew_does_not_keep_the_old_ones_connections(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as kept:
        old = served._replace(token=served.token_of("phone", ("read", "prompt")))
        async with opening(old) as peer:
            await session(peer, 1)
            assert served.tokens.revoke("phone")
            served.token_of("phone", ("read",))
            await ended(peer)
        await session(kept, 1)
        assert len(served.hub.connections) == 1


@pytest.mark.usefixtures("soon")
async def test_a_token_that_expires_ends_its_connections_as_a_revoked_one_does(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as kept:
        short = served.tokens.make("phone", ("read", "prompt"), expires=time.time() + 3600)
        async with opening(served._replace(token=short)) as peer:
            await session(peer, 1)
            served.tokens._clock = lambda: time.time() + 3600
            await ended(peer)
        await session(kept, 1)
        assert len(served.hub.connections) == 1


@pytest.mark.usefixtures("soon")
async def test_tokens_that_cannot_be_read_for_a_moment_end_no_connection(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer:
        _, session_id = await session(peer, 1)
        served.tokens.path.chmod(0o644)
        async with http_client() as client:
            refused = await client.post(served.http, headers=served.headers)
        assert (refused.status_code, refused.json()["error"][:27]) == (503, "The tokens cannot be read n")
        await say(peer, prompt(2, session_id))
        assert (await hear(peer, 2))[0]["result"]["stopReason"] == "end_turn"
        served.tokens.path.chmod(0o600)
        async with opening(served) as another:
            await session(another, 1)


async def cookie_of(served: Served, client: httpx2.AsyncClient) -> dict[str, str]:
    """Log in; the headers of the page from then on."""
    base = served.http.removesuffix("/acp")
    ours = {"Origin": base, "X-Dragoman": "1"}
    answer = await client.post(f"{base}/login", headers=ours | served.headers)
    client.cookies.clear()
    halves = {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Dragoman-Page-Key": answer.json()["pageKey"]}
    return ours | halves


async def test_logging_out_ends_the_streams_of_sessions_too_and_not_the_work(tmp_path: Path) -> None:
    going_on = asyncio.Event()
    async with gateway(counting(2, going_on.wait), tmp_path) as served, raw_http(served, greet=False) as raw:
        raw._headers = await cookie_of(served, raw.client)
        await raw.hello(1)
        await raw.open()
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: texts(raw.heard) == ["0 "])
        gone = await raw.client.post(served.http.replace("/acp", "/logout"), headers=raw._headers)
        assert gone.status_code == 204
        assert served.hub.connections == {}
        assert served.hub.sessions[session_id].is_running
        going_on.set()
        await until(lambda: not served.hub.sessions or not served.hub.sessions[session_id].is_running)
        assert texts(raw.heard) == ["0 "]


@pytest.mark.usefixtures("soon")
async def test_a_cookie_that_is_over_ends_its_socket_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(counting(1), tmp_path) as served, http_client() as client, opening(served) as kept:
        shown = await cookie_of(served, client)
        async with connect(served.ws, additional_headers=shown, proxy=None) as peer:
            await session(peer, 1)
            monkeypatch.setattr(login_store, "LIFE_SECONDS", 0.0)
            await ended(peer)
        await session(kept, 1)


async def test_a_connection_that_ends_while_a_session_is_looked_for_is_not_found(tmp_path: Path) -> None:
    looking, found = asyncio.Event(), asyncio.Event()

    async def folder_of(session_id: str) -> str:
        looking.set()
        await found.wait()
        return str(tmp_path)

    async with gateway(counting(1), tmp_path, folder_of=folder_of) as served, raw_http(served) as raw:
        opened = asyncio.create_task(raw.open("some session"))
        await looking.wait()
        named = served.headers | {"Acp-Connection-Id": raw.connection}
        assert (await raw.client.delete(served.http, headers=named)).status_code == 202
        found.set()
        assert await opened == 404


# -- what a message may be -------------------------------------------------------------------------------------------


async def test_a_message_of_millions_of_values_is_refused_and_holds_nothing_up(tmp_path: Path) -> None:
    body = f'{{"jsonrpc":"2.0","id":7,"method":"_x/y","params":{{"a":{WIDE}}}}}'
    assert len(body) < endpoint.BODY_BYTES
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer, raw_http(served) as raw:
        await session(peer, 1)
        began = time.process_time()
        await peer.send([body[start : start + MIB] for start in range(0, len(body), MIB)])
        refusal, _ = await hear(peer, None)  # type: ignore[arg-type]
        assert refusal["error"]["code"] == INVALID_REQUEST
        posted = {"Acp-Connection-Id": raw.connection, "Content-Type": "application/json"} | served.headers
        answer = await raw.client.post(served.http, headers=posted, content=body)
        assert (answer.status_code, answer.json()["error"]) == (413, "The message has more than 50000 values.")
        assert time.process_time() - began < 1.5  # client and server; decoding one of them takes longer
        await say(peer, {"id": 9, "method": "session/list", "params": {}})
        assert "result" in (await hear(peer, 9))[0]


def test_the_session_of_the_header_is_put_in_without_reading_the_rest() -> None:
    body = b'{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"a":[%b0],"b":"\\u00e9"}}' % (
        b"0.5," * 4_000_000
    )
    began = time.process_time()
    spliced, message = endpoint._with_session(body, peek(body), 's "1"', must_be_named=True)
    assert time.process_time() - began < 0.5
    assert message == peek(spliced)
    assert (message.id, message.method, message.session_id) == (5, "session/prompt", 's "1"')
    assert b'"b":"\\u00e9"' in spliced


@pytest.mark.parametrize("params", [b"null", b"[1]", b'"x"', None])
def test_params_that_are_no_object_become_one(params: bytes | None) -> None:
    more = b"" if params is None else b',"params":' + params
    body = b'{"jsonrpc":"2.0","id":5,"method":"session/prompt"%b}' % more
    spliced, _ = endpoint._with_session(body, peek(body), "s", must_be_named=True)
    assert msgspec.json.decode(spliced)["params"] == {"sessionId": "s"}


async def test_a_frame_that_is_another_framing_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer:
        for frame in ("Content-Length: 200", "  Content-Length: 100000000", "hello"):
            await peer.send(frame)
            assert msgspec.json.decode(await peer.recv())["error"]["code"] == PARSE_ERROR
        await session(peer, 1)
        assert served.bugs == []


# -- what arrives, and once ------------------------------------------------------------------------------------------


class Heard:
    """The agent's side of a connection."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.frames.append(data)

    def writable(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...


def connected(kind: connection.Kind) -> tuple[GatewayConnection, Heard]:
    made, heard = GatewayConnection(kind, TokenIdentity("t", "p", SCOPES)), Heard()
    made.start(heard)
    return made, heard


async def test_a_socket_that_was_replaced_while_its_message_waited_is_not_heard() -> None:
    made, heard = connected("websocket")
    old = made.main.read(None)
    await made.feed(b"{1}", reader=old)
    made.pause_reading()
    waiting = asyncio.create_task(made.feed(b"{2}", reader=old))
    await settled()
    assert made.received == 1  # it has not arrived
    new = made.main.read(1)
    assert old.code == REPLACED
    made.resume_reading()
    await waiting
    await made.feed(b"{2}", reader=old)
    assert (made.received, heard.frames) == (1, [b"{1}\n"])
    await made.feed(b"{2}", reader=new)
    assert (made.received, heard.frames) == (2, [b"{1}\n", b"{2}\n"])


async def test_what_could_not_be_handed_on_has_not_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_READ_SECONDS", 0.01)
    made, heard = connected("http")
    made.pause_reading()
    with pytest.raises(Full):
        await made.feed(b"{}", number=3)
    given_up = asyncio.create_task(made.feed(b"{}", number=3))
    await settled()
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert (made.received, heard.frames) == (0, [])
    made.resume_reading()
    for number in (3, 3, 2, 4):
        await made.feed(b"{%d}" % number, number=number)
    assert (made.received, heard.frames) == (4, [b"{3}\n", b"{4}\n"])


async def test_a_message_on_a_socket_that_was_replaced_is_not_heard_though_it_still_hangs_there(
    tmp_path: Path,
) -> None:
    agent = Agent("loud")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for _ in range(400):
            await session.say("x" * 100_000)

    async with gateway(agent, tmp_path) as served:
        deaf = connect(served.ws, additional_headers=served.headers, compression=None, proxy=None, max_queue=1)
        async with deaf as old:
            made, session_id = await session(old, 1)
            await say(old, prompt(2, session_id))
            buffer = served.hub.connections[made].connection.main
            await until(lambda: buffer.is_behind)  # it is not read: our writing to it hangs
            async with opening(served, Acp_Connection_Id=made, Last_Event_ID="2") as new:
                note = msgspec.json.decode(await new.recv())
                assert note["params"] == {"received": 3}
                await say(old, {"id": 77, "method": "session/list", "params": {}})
                await say(new, {"id": 78, "method": "session/list", "params": {}})
                _, before = await hear(new, 78)
                assert [message for message in before if message.get("id") == 77] == []
                assert served.hub.connections[made].connection.received == 4
            old.transport.abort()


# -- how much --------------------------------------------------------------------------------------------------------


async def test_a_connection_lives_through_more_sessions_than_it_has_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_streams, "STREAMS", 3)
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        for id in range(0, 40, 4):
            session_id = await raw.session(id + 1)
            posted = await raw.post(prompt(id + 2, session_id), session_id)
            assert posted.status_code == 202, posted.text
            await raw.answer(id + 2)
            closing = {"id": id + 3, "method": "session/close", "params": {"sessionId": session_id}}
            assert (await raw.post(closing, session_id)).status_code == 202
            await until(lambda: not served.hub.sessions)
        assert len(served.hub.connections[raw.connection].connection.streams._by_session) <= 3


async def test_a_stream_that_is_made_anew_goes_on_counting_and_says_what_is_gone() -> None:
    made, _ = connected("http")
    made.streams.is_open = lambda session_id: False
    buffer = made.streams.of_session("s")
    for frame in (b"1", b"2", b"3"):
        buffer.append(frame)
    assert len(buffer.next_batch(buffer.read(None)).messages) == 3
    buffer.append(b"4")  # this one was not read
    made.streams.remove("s")
    again = made.streams.of_session("s")
    again.append(b"5")
    for after, missed in ((4, 0), (2, 2), (None, 1)):
        batch = again.next_batch(again.read(after))
        again._given = 3
        assert (batch.missed, [message.number for message in batch.messages]) == (missed, [5])


async def test_which_stream_is_let_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_streams, "STREAMS", 3)
    made, _ = connected("http")
    made.streams.is_open = lambda session_id: session_id == "open"
    for name in ("open", "read", "over"):
        made.streams.of_session(name).append(b"unread")
    made.streams.of_session("read").read(None)
    made.streams.of_session("new").append(b"unread")
    assert list(made.streams._by_session) == ["open", "read", "new"]
    reader = made.streams.of_session("read").reader
    made.streams.of_session("new").read(None)
    # where nothing else is left, one that is over is let go though it is read
    made.streams.of_session("newer").read(None)
    assert list(made.streams._by_session) == ["open", "new", "newer"]
    assert reader is not None and reader.code == GONE
    made.streams.is_open = lambda session_id: True
    with pytest.raises(Full):
        made.streams.of_session("newest")


async def begun(served: Served, size: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A POST whose body does not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    head = f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.token}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {size + 1}\r\n\r\n".encode() + b" " * size)
    await writer.drain()
    return reader, writer


async def test_bodies_of_one_principal_under_way_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_replies, "BODIES_EACH_BYTES", 2 * MIB)
    async with gateway(counting(1), tmp_path) as served, opening(served) as watching:
        budgets = served.server._app._endpoints[""]._bodies._budgets
        held = budgets.of("default")
        _, first = await begun(served, 3 * MIB // 2)
        await until(lambda: held.used == 3 * MIB // 2)
        reader, second = await begun(served, MIB)
        async with asyncio.timeout(30):
            assert (await reader.readline()).split()[1] == b"503"
        assert held.used == 3 * MIB // 2
        other = served._replace(token=served.token_of("other"))
        _, third = await begun(other, 3 * MIB // 2)  # another one's are counted for themselves
        await until(lambda: budgets.of("other").used == 3 * MIB // 2)
        for writer in (first, second, third):
            writer.close()
        await until(lambda: held.used == 0)
        await session(watching, 1)


async def test_a_client_that_sends_too_much_on_a_socket_is_read_slowly_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MESSAGE_RATE", 50.0)
    monkeypatch.setattr(guard, "MESSAGE_BURST", 5.0)
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer:
        began = time.monotonic()
        await say(peer, hello(1))
        for id in range(1, 30):
            await say(peer, {"id": id, "method": "session/list", "params": {}})
        for id in range(30):
            assert "result" in (await hear(peer, id))[0]
        assert time.monotonic() - began > 0.4


async def test_what_streams_hold_is_given_back(tmp_path: Path) -> None:
    async with gateway(counting(50), tmp_path) as served:
        held = served.hub.connections.budgets.of("default")
        async with raw_http(served) as raw:
            session_id = await raw.session()
            await raw.post(prompt(2, session_id), session_id)
            await raw.answer(2)
            buffers = served.hub.connections.buffers()
            assert held.used == sum(buffer.size for buffer in buffers) > 0
            await raw.client.delete(served.http, headers=served.headers | {"Acp-Connection-Id": raw.connection})
        await until(lambda: not served.hub.connections)
        assert (held.used, held._members) == (0, 0)

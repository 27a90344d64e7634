"""Slow readers and floods of connections harm only themselves; what a replay buffer keeps."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import connections, replay_buffer, streaming
from dragoman.gateway.replay_buffer import BUFFER_BYTES, LAG, TOO_SLOW, ReplayBuffer
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from tests.support.gateway import Served, counting, gateway, http_client, raw_http
from tests.support.messages import hello, prompt, texts
from tests.support.waiting import until

from .sockets import hear, opening, say, session

pytestmark = pytest.mark.anyio
PIECE = "x" * 10_000
_DEAF = 5


def shouting(count: int) -> Agent:
    """An agent that says much."""
    agent = Agent("shouting")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for _ in range(count):
            await session.say(PIECE)

    return agent


async def test_a_window_keeps_the_newest_messages_within_its_bound_and_says_the_gap() -> None:
    kept = ReplayBuffer(lambda: None, limit=100_000)
    for number in range(100):
        kept.append(b"%04d" % number + b"x" * 10_000)
    assert kept.size <= 100_000
    batch = kept.next_batch(kept.read(3))
    assert batch.missed == 100 - 9 - 3
    assert [message.number for message in batch.messages] == [92, 93, 94, 95, 96, 97]
    kept.append(b"y" * 500_000)  # larger than everything: it is kept alone
    last = kept.next_batch(kept.read(100))
    assert (last.missed, [len(message.frame) for message in last.messages]) == (0, [500_000])


async def test_a_client_that_comes_back_gets_every_message_once() -> None:
    kept = ReplayBuffer(lambda: None)
    for number in range(10):
        kept.append(b"%d" % number)
    for after in range(11):
        batch = kept.next_batch(kept.read(after))
        assert [message.frame for message in batch.messages] == [b"%d" % number for number in range(after, 10)]
    assert kept.next_batch(kept.read(None)).messages == []  # from where the last one was


async def test_a_reader_that_is_behind_is_waited_for_and_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far more than a window and all buffers, to a reader who rests: the agent waits, and no client is dropped."""
    monkeypatch.setattr(replay_buffer, "STALL_SECONDS", 600.0)
    count = 8 * BUFFER_BYTES // len(PIECE)
    async with gateway(shouting(count), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        raw.reads.clear()
        await raw.post(prompt(2, session_id), session_id)
        kept = served.hub.connections[raw.connection].connection.streams._by_session[session_id]
        said = 0
        async with asyncio.timeout(50):
            while not (kept.is_behind and kept.last == said):  # the sockets on the way take some more, and only they
                said = kept.last
                await asyncio.sleep(0.01)
        assert said < count  # the agent waits
        assert served.hub.sessions[session_id].is_running
        raw.reads.set()
        await raw.answer(2)
        assert len("".join(texts(raw.heard))) == count * len(PIECE)
        assert not [m for m in raw.heard if m.get("method") == "_dragoman/gap"]


class Deaf:
    """A client on a bare socket that opens its session's stream and then reads nothing."""

    def __init__(self, served: Served, raw: Any) -> None:
        self._served = served
        self._raw = raw
        self.writer: asyncio.StreamWriter

    async def open(self, session_id: str) -> None:
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self._served.server.port, limit=1024)
        lines = ["GET /acp HTTP/1.1", f"Host: 127.0.0.1:{self._served.server.port}", "Accept: text/event-stream"]
        lines += [f"Authorization: Bearer {self._served.token}", f"Acp-Connection-Id: {self._raw.connection}"]
        lines += [f"Acp-Session-Id: {session_id}"]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await reader.readuntil(b"\r\n\r\n")
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]


@pytest.mark.requirement("D6")
async def test_a_reader_that_stops_is_ended_with_a_code_and_can_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_buffer, "STALL_SECONDS", 0.2)
    count = 6 * BUFFER_BYTES // len(PIECE)
    async with gateway(shouting(count), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session(stream=False)
        deaf = Deaf(served, raw)
        await deaf.open(session_id)
        kept = served.hub.connections[raw.connection].connection.streams._by_session[session_id]
        reader = kept.reader
        assert reader is not None
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: reader.code)
        assert reader.code == TOO_SLOW
        await until(lambda: not served.hub.sessions[session_id].is_running)  # the turn went on without it
        assert kept.size <= BUFFER_BYTES
        assert await raw.open(session_id, after="3") == 409
        raw._headers["Dragoman-Resume"] = "gaps"
        assert await raw.open(session_id, after="3") == 200
        await raw.answer(2)
        gaps = [m["params"]["missed"] for m in raw.heard if m.get("method") == "_dragoman/gap"]
        assert len(gaps) == 1  # said, not hidden
        numbers = [int(id) for id, _ in raw.by_stream[session_id]]
        assert numbers == list(range(3 + gaps[0], kept.last + 1))
        deaf.writer.close()


@pytest.mark.requirement("D6")
async def test_a_websocket_that_stops_reading_is_ended_and_can_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_buffer, "STALL_SECONDS", 0.2)
    monkeypatch.setattr(streaming, "_LAST_SECONDS", 0.1)
    async with gateway(shouting(6 * BUFFER_BYTES // len(PIECE)), tmp_path) as served:
        async with opening(served) as socket:
            connection_id, session_id = await session(socket, 1)
            socket.transport.pause_reading()
            await say(socket, prompt(2, session_id))
            reader = served.hub.connections[connection_id].connection.main.reader
            assert reader is not None
            await until(lambda: reader.code)
            assert reader.code == TOO_SLOW
            await until(lambda: not served.hub.sessions[session_id].is_running)
            socket.transport.abort()
        async with opening(served, Acp_Connection_Id=connection_id, Last_Event_ID="2") as socket:
            answer, before = await hear(socket, 2)
            assert answer["result"]["stopReason"] == "end_turn"
            assert [m["method"] for m in before[:2]] == ["_dragoman/resumed", "_dragoman/gap"]


@pytest.mark.requirement("D5", "D6")
async def test_slow_readers_cost_a_healthy_one_little(tmp_path: Path) -> None:
    """Streams that are not read, each full; a healthy client's turn and `/health` do not wait for them."""
    count = BUFFER_BYTES // LAG // len(PIECE)
    agent = shouting(2 * count)
    agent.command("count", "say a little")(counting(50)._core.prompt_handler)  # type: ignore[arg-type]
    async with gateway(agent, tmp_path) as served, raw_http(served) as healthy:
        session_id = await healthy.session()
        deaf: list[Deaf] = []
        async with http_client() as client:
            for _ in range(_DEAF):
                deaf.append(await _clogged(served, client))
            async with asyncio.timeout(replay_buffer.STALL_SECONDS / 2):
                await healthy.post(prompt(100, session_id, "/count"), session_id)
                await healthy.answer(100)
                assert (await client.get(served.http.replace("/acp", "/health"))).status_code == 200
        held = sum(
            kept.size for one in served.hub.connections.values() for kept in one.connection.streams._by_session.values()
        )
        assert held <= (_DEAF + 1) * BUFFER_BYTES
        for one in deaf:
            one.writer.close()


async def _clogged(served: Served, client: httpx2.AsyncClient) -> Deaf:
    from tests.support.gateway import RawHttp

    raw = RawHttp(served, client)
    await raw.hello(1)
    assert await raw.open() == 200
    await raw.post({"id": 1, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}})
    session_id = (await raw.answer(1))["result"]["sessionId"]
    deaf = Deaf(served, raw)
    await deaf.open(session_id)
    await raw.post(prompt(2, session_id), session_id)
    await raw.drop()
    return deaf


@pytest.mark.requirement("D7")
@pytest.mark.parametrize("count", [50, pytest.param(5_000, marks=pytest.mark.slow)])
async def test_connections_that_come_and_go_leave_nothing(tmp_path: Path, count: int) -> None:
    async with gateway(counting(1), tmp_path) as served:
        await _come_and_go(served, 10)
        descriptors = len(os.listdir("/proc/self/fd"))
        await _come_and_go(served, count)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 5)
        assert not served.hub.connections
        await until(lambda: not served.hub.agents)


async def _come_and_go(served: Served, count: int) -> None:
    async with http_client() as client:
        for _ in range(count):
            answer = await client.post(served.http, json=hello(1), headers=served.headers)
            if answer.status_code == 429:
                continue
            named = served.headers | {"Acp-Connection-Id": answer.headers["acp-connection-id"]}
            while (await client.delete(served.http, headers=named)).status_code == 429:
                pass  # until it is heard


@pytest.mark.requirement("D7")
async def test_too_many_connections_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(connections, "CONNECTIONS", 3)
    async with gateway(counting(1), tmp_path) as served, http_client() as client:
        answers = [await client.post(served.http, json=hello(1), headers=served.headers) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 503, 503]


@pytest.mark.requirement("D7")
async def test_too_many_requests_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.gateway import guard

    monkeypatch.setattr(guard, "BURST", 10.0)
    monkeypatch.setattr(guard, "RATE", 0.1)
    async with gateway(counting(1), tmp_path) as served, http_client() as client:
        answers = [await client.get(served.http, headers=served.headers) for _ in range(12)]
        assert [answer.status_code for answer in answers] == [406] * 10 + [429] * 2


async def test_a_stream_that_is_never_opened_is_waited_for_and_then_not_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_buffer, "STALL_SECONDS", 1.0)
    agent = counting(1)
    known, finished = asyncio.Event(), asyncio.Event()

    @agent.session_opened
    async def opened(session: Any) -> None:
        async def shout() -> None:
            await known.wait()
            for _ in range(3 * BUFFER_BYTES // len(PIECE)):
                await session._core.sink.send_event(session.id, AgentMessageChunk(Text(PIECE)))
            finished.set()

        shouts.append(asyncio.create_task(shout()))

    shouts: list[asyncio.Task[None]] = []
    async with gateway(agent, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session(stream=False)
        known.set()
        kept = served.hub.connections[raw.connection].connection.streams.of_session(session_id)
        await until(lambda: kept.is_behind)
        assert not finished.is_set()
        async with asyncio.timeout(50):
            await finished.wait()

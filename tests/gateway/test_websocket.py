"""WebSocket on the real server, with an independent client underneath."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dragoman.gateway import connections
from tests.support.gateway import counting, gateway
from tests.support.messages import Message, hello, prompt, texts
from tests.support.versions import both_versions
from tests.support.waiting import until

from .sockets import hear, opening, say, session

pytestmark = pytest.mark.anyio


@both_versions
async def test_a_turn_over_a_websocket(version: int, tmp_path: Path) -> None:
    async with gateway(counting(20), tmp_path) as served, opening(served) as socket:
        _, session_id = await session(socket, version)
        await say(socket, prompt(2, session_id))
        _, before = await hear(socket, 2)
        while version == 2 and len(texts(before)) < 20:
            before.append(msgspec.json.decode(await socket.recv()))
        assert texts(before) == [f"{number} " for number in range(20)]


async def test_binary_frames_say_nothing_and_bad_ones_are_answered(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as socket:
        await socket.send(msgspec.json.encode(hello(1)))  # binary
        await socket.send("{")
        assert msgspec.json.decode(await socket.recv())["error"]["code"] == -32700
        await say(socket, hello(1))
        assert (await hear(socket, 0))[0]["result"]["protocolVersion"] == 1


async def test_the_upgrade_needs_a_token_and_our_own_origin(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        with pytest.raises(InvalidStatus) as refused:
            await connect(served.ws, proxy=None)
        assert refused.value.response.status_code == 401
        for origin in ("http://evil.example", "null", "http://localhost.evil", "http://127.0.0.1:1"):
            with pytest.raises(InvalidStatus) as refused:
                await opening(served, Origin=origin)
            assert refused.value.response.status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            await opening(served, Acp_Connection_Id="0" * 32)
        assert refused.value.response.status_code == 404
        assert not served.hub.connections


async def test_a_dropped_socket_is_resumed_behind_the_last_message(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def pause() -> None:
        await go_on.wait()

    async with gateway(counting(3, pause), tmp_path) as served:
        async with opening(served) as socket:
            connection, session_id = await session(socket, 1)
            await say(socket, prompt(2, session_id))
            heard = [msgspec.json.decode(await socket.recv())]
            while not texts(heard):
                heard.append(msgspec.json.decode(await socket.recv()))
            socket.transport.abort()
        await until(lambda: not served.hub.connections[connection].connection.readers)
        go_on.set()
        await until(lambda: not served.hub.sessions[session_id].is_running)  # the turn went on without a client
        # Two messages were heard of the session/new exchange, and those of the turn.
        async with opening(served, Acp_Connection_Id=connection, Last_Event_ID=str(2 + len(heard))) as socket:
            resumed = msgspec.json.decode(await socket.recv())
            assert resumed["method"] == "_dragoman/resumed"
            assert resumed["params"] == {"received": 3}
            answer, before = await hear(socket, 2)
            assert texts(heard + before) == ["0 ", "1 ", "2 "]
            assert answer["result"]["stopReason"] == "end_turn"


async def test_a_goodbye_ends_the_connection_and_its_work_and_a_drop_does_not(tmp_path: Path) -> None:
    async def for_ever() -> None:
        await asyncio.sleep(60)

    async with gateway(counting(9, for_ever), tmp_path) as served:
        async with opening(served) as socket:
            connection, session_id = await session(socket, 1)
            await say(socket, prompt(2, session_id))
            await socket.recv()
            socket.transport.abort()
        await until(lambda: not served.hub.connections[connection].connection.readers)
        assert served.hub.sessions[session_id].is_running
        async with opening(served, Acp_Connection_Id=connection) as socket:
            await socket.recv()
            await socket.close(1000)
        await until(lambda: connection not in served.hub.connections)
        await until(lambda: not served.hub.sessions)


async def test_a_giant_message_ends_the_connection_and_nothing_else(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as healthy:
        await session(healthy, 1)
        async with opening(served) as socket:
            with suppress(ConnectionClosed, ConnectionError):
                await socket.send("x" * (17 * 1024 * 1024))  # one frame: more than the server takes
            async with asyncio.timeout(30):
                await socket.wait_closed()
        await say(healthy, {"id": 7, "method": "session/list", "params": {}})
        assert "result" in (await hear(healthy, 7))[0]


@both_versions
async def test_what_is_said_of_a_session_comes_behind_the_answer_that_names_it(version: int, tmp_path: Path) -> None:
    agent = counting(1)

    @agent.session_opened
    async def opened(opened: Any) -> None:
        for word in ("so ", "soon"):
            await opened.say(word)

    async with gateway(agent, tmp_path) as served, opening(served) as socket:
        await say(socket, hello(version))
        await hear(socket, 0)
        for id in range(1, 6):
            await say(socket, {"id": id, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            _, before = await hear(socket, id)
            assert before == []
            updates: list[Message] = []
            while "".join(texts(updates)) != "so soon":
                updates.append(msgspec.json.decode(await socket.recv()))


async def test_what_is_said_while_the_server_stops_is_heard_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: a client that reads nothing is not waited for, and here that is soon."""
    monkeypatch.setattr(connections, "_LAST_CHECKS", 40)
    go_on = asyncio.Event()
    count = 2000  # many in one write, each a frame of its own
    async with gateway(counting(count, go_on.wait), tmp_path) as served, opening(served) as socket:
        _, session_id = await session(socket, 1)
        await say(socket, prompt(2, session_id))
        await until(lambda: served.hub.sessions[session_id].is_running)
        stopping = asyncio.create_task(served.server.stop(50))
        await until(lambda: served.hub.is_stopping)
        go_on.set()
        _, before = await hear(socket, 2)
        assert texts(before) == [f"{number} " for number in range(count)]
        await stopping

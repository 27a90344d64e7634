"""Streams are resumed in the words of the durable-resumable draft, exactly or not at all."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection

from dragoman.agent.agent import Agent
from dragoman.gateway import resuming, socket_endpoint
from dragoman.gateway.resuming import with_cursor
from tests.support.gateway import RawHttp, Served, counting, gateway, raw_http
from tests.support.messages import Message, hello, prompt, texts, updates
from tests.support.waiting import until

from .sockets import hear, opening, say, session

pytestmark = pytest.mark.anyio
both_versions = pytest.mark.parametrize("version", [1, 2])


def asking() -> Agent:
    """An agent whose turn has text, a tool call, a question and a plan."""
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say("one ")
        async with session.tool("work", kind="edit") as tool:
            allowed = await session.ask_permission("May I?", tool=tool)
            await session.say(f"allowed {bool(allowed)} ")
        await session.plan(["one"])
        await session.say("two ")

    return agent


def cursor_of(message: Message) -> str:
    """The cursor of a message, from wherever it stands."""
    for place in (message.get("params"), message):
        if isinstance(place, dict) and "acp/cursor" in place.get("_meta", {}):
            return str(place["_meta"]["acp/cursor"])
    return ""


def kind_of(message: Message) -> str:
    """A message without the ids that chance has made."""
    update = message.get("params", {}).get("update", {})
    state = update.get("state", "") or update.get("content", {}) if isinstance(update.get("content", {}), dict) else ""
    return f"{message.get('method', 'answer')} {update.get('sessionUpdate', '')} {state} {cursor_of(message)}"


def answer_to(message: Message) -> Message | None:
    if message.get("method") != "session/request_permission":
        return None
    option = message["params"]["options"][0]["optionId"]
    return {"id": message["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}}


def is_over(message: Message, version: int) -> bool:
    if version == 1:
        return message.get("id") == 2 and "result" in message
    return bool(message.get("params", {}).get("update", {}).get("stopReason"))


# -- what is advertised, and what a message carries ------------------------------------------------------------------


@both_versions
async def test_initialize_says_how_long_a_stream_can_be_resumed(version: int, tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served, greet=False) as raw:
        result = (await raw.hello(version))["result"]
        capabilities = result["agentCapabilities" if version == 1 else "capabilities"]
        assert capabilities["transport"] == {"resumable": {"retentionMessages": 1024, "retentionSeconds": 600}}
        async with opening(served) as socket:
            await say(socket, hello(version))
            result = (await hear(socket, 0))[0]["result"]
            assert result["agentCapabilities" if version == 1 else "capabilities"]["transport"]["resumable"]


@both_versions
async def test_every_message_of_a_stream_has_its_cursor_as_id_and_in_meta(version: int, tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: any(is_over(message, version) for message in raw.heard))
        events = [event for stream in raw.by_stream.values() for event in stream]
        assert len(events) > 4
        assert all(id == cursor_of(message) != "" for id, message in events)


async def test_a_client_of_ours_is_sent_no_cursors(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served, Dragoman_Resume="gaps") as socket:
        await say(socket, hello(1))
        answer, _ = await hear(socket, 0)
        assert cursor_of(answer) == ""


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{}}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{},"_meta":{"acp/cursor":"7"}}}',
        ),
        (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","_meta":{"a":1},"update":{}}}',
            (
                b'{"jsonrpc":"2.0","method":"session/update",'
                b'"params":{"sessionId":"s","_meta":{"a":1,"acp/cursor":"7"},"update":{}}}'
            ),
        ),
        (b'{"id":1,"result":{}}', b'{"id":1,"result":{},"_meta":{"acp/cursor":"7"}}'),
        (b'{"method":"x","params":{"_meta":null}}', b'{"method":"x","params":{"_meta":{"acp/cursor":"7"}}}'),
        (b'{"id":1,"result":null}', b'{"id":1,"result":null,"_meta":{"acp/cursor":"7"}}'),
        (b'{"id":1,"error":{"code":1}}', b'{"id":1,"error":{"code":1},"_meta":{"acp/cursor":"7"}}'),
        (b'{"method":"$/x"}', b'{"method":"$/x","_meta":{"acp/cursor":"7"}}'),
    ],
)
def test_a_cursor_stands_in_the_meta_that_a_message_has(frame: bytes, expected: bytes) -> None:
    assert with_cursor(b"7", frame) == expected


# -- a drop at every message -----------------------------------------------------------------------------------------


async def http_turn(served: Served, version: int, at: int) -> list[str]:
    """The events of a session's stream, dropped and resumed after event `at`."""
    async with raw_http(served, version) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        answered = 0

        def events() -> list[tuple[str, Message]]:
            return [event for event in raw.by_stream.get(session_id, []) if cursor_of(event[1])]

        seen = 0
        while not any(is_over(message, version) for _, message in events()[:seen]):
            seen += 1
            await until(partial(_has, events, seen))
            if seen == at:
                # What came in the same write is not processed yet: it comes again, the same.
                await raw.drop(session_id)
                del raw.by_stream[session_id][raw.by_stream[session_id].index(events()[at - 1]) + 1 :]
                assert await raw.open(session_id, after=events()[-1][0]) == 200
            message = events()[seen - 1][1]
            reply = answer_to(message)
            if reply is not None:
                answered += 1
                await raw.post(reply, session_id)
        assert answered == 1
        return [kind_of(message) for _, message in events()[:seen]]


def _has(events: Callable[[], list[Any]], count: int) -> bool:
    return len(events()) >= count


async def socket_turn(served: Served, version: int, at: int) -> list[str]:
    """The messages of a WebSocket, dropped and resumed after message `at` of the turn."""
    heard: list[Message] = []
    socket = await opening(served)
    connection, session_id = await session(socket, version)
    await say(socket, prompt(2, session_id))
    while not any(is_over(message, version) for message in heard):
        message = msgspec.json.decode(await socket.recv())
        if not cursor_of(message):
            continue
        heard.append(message)
        if len(heard) == at:
            socket.transport.abort()
            socket = await opening(served)
            params = {"connectionId": connection, "cursor": cursor_of(message)}
            await say(socket, {"method": "stream/resume", "params": params})
        reply = answer_to(message)
        if reply is not None:
            await say(socket, reply)
    await socket.close(1000)
    return [kind_of(message) for message in heard]


@pytest.mark.requirement("K18")
@pytest.mark.parametrize(
    ("turn", "version"),
    [
        (http_turn, 1),
        (socket_turn, 2),
        pytest.param(http_turn, 2, marks=pytest.mark.slow),
        pytest.param(socket_turn, 1, marks=pytest.mark.slow),
    ],
)
async def test_a_drop_at_every_message_changes_nothing_in_the_words_of_the_draft(
    turn: Callable[[Served, int, int], Any], version: int, tmp_path: Path
) -> None:
    async with gateway(asking(), tmp_path) as served:
        whole = await turn(served, version, 0)
        assert len(whole) > 6
        for at in range(1, len(whole)):
            assert await turn(served, version, at) == whole, f"dropped after message {at}"


# -- what cannot be resumed is refused -------------------------------------------------------------------------------


async def finished_turn(raw: RawHttp) -> str:
    session_id = await raw.session()
    await raw.post(prompt(2, session_id), session_id)
    await raw.answer(2)
    await raw.drop(session_id)
    await until(lambda: raw.served.hub.connections[raw.connection].connection.readers == 1)
    return session_id


@pytest.mark.requirement("K19")
@pytest.mark.parametrize("cursor", ["x", "-1", "99999999999999999999", "1e3", "%d9%a1", "0x1", "999"])
async def test_an_unknown_cursor_is_409_and_opens_no_stream(cursor: str, tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path) as served, raw_http(served) as raw:
        session_id = await finished_turn(raw)
        buffer = served.hub.connections[raw.connection].connection.streams.of_session(session_id)
        assert await raw.open(session_id, after=cursor) == 409
        assert buffer.reader is None
        assert await raw.open(session_id, after="1") == 200


async def test_a_cursor_that_is_no_longer_held_is_409_and_a_gap_for_a_client_of_ours(tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path) as served, raw_http(served) as raw:
        session_id = await finished_turn(raw)
        buffer = served.hub.connections[raw.connection].connection.streams.of_session(session_id)
        buffer._evict(1)
        assert await raw.open(session_id, after="1") == 409
        raw._headers["Dragoman-Resume"] = "gaps"
        raw.heard.clear()
        assert await raw.open(session_id, after="1") == 200
        await until(lambda: raw.heard)
        assert raw.heard[0] == {"jsonrpc": "2.0", "method": "_dragoman/gap", "params": {"missed": buffer.last - 2}}


async def test_a_connection_or_session_that_is_gone_is_409_for_a_cursor_and_404_without(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        assert await raw.open("nothing", after="1") == 409
        assert await raw.open("nothing") == 404
        connection, raw.connection = raw.connection, "0" * 32
        assert await raw.open(after="1") == 409
        assert await raw.open() == 404
        raw.connection = connection


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"connectionId": "0" * 32, "cursor": "1"}, "unknown_connection"),
        ({"cursor": "99"}, "unknown_cursor"),
        ({"cursor": "x"}, "unknown_cursor"),
        ({"cursor": True}, "unknown_cursor"),
        ({"cursors": {"": "2", "s": "-1"}}, "unknown_cursor"),
        ({}, "unknown_cursor"),
        ({"cursor": "1"}, "expired"),
    ],
)
async def test_a_refused_websocket_is_told_why_and_is_a_new_connection(
    params: Message, reason: str, tmp_path: Path
) -> None:
    async with gateway(counting(3), tmp_path) as served:
        async with opening(served) as socket:
            connection, session_id = await session(socket, 1)
            await say(socket, prompt(2, session_id))
            await hear(socket, 2)
            socket.transport.abort()
        buffer = served.hub.connections[connection].connection.main
        await until(lambda: buffer.reader is None)
        buffer._evict(1)
        asked = {"connectionId": connection, **params}
        async with opening(served) as socket:
            await say(socket, {"id": 9, "method": "stream/resume", "params": asked})
            failed = msgspec.json.decode(await socket.recv())
            assert failed["method"] == "stream/resume_failed"
            assert failed["params"]["reason"] == reason
            refusal, before = await hear(socket, 9)
            assert refusal["error"]["data"] == {"reason": reason}
            assert before == []
            assert buffer.reader is None
            other, _ = await session(socket, 1)  # it goes on, as a new connection
            assert other != connection
            await say(socket, {"id": 2, "method": "session/load", "params": {"sessionId": session_id, "cwd": "/"}})


async def test_a_connection_of_another_principal_is_unknown(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as socket:
        connection, _ = await session(socket, 1)
        other = served.token_of("other")
        async with opening(served, Authorization=f"Bearer {other}") as thief:
            params = {"connectionId": connection, "cursor": "1"}
            await say(thief, {"method": "stream/resume", "params": params})
            failed = msgspec.json.decode(await thief.recv())
            assert failed["params"] == {"reason": "unknown_connection", "connectionId": connection}
        assert served.hub.connections[connection].connection.readers == 1


# -- what a resumed client learns ------------------------------------------------------------------------------------


async def test_the_state_comes_behind_what_was_missed_and_before_what_is_new(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with gateway(counting(2, go_on.wait), tmp_path) as served, raw_http(served, 2) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: texts(raw.heard) == ["0 "])
        await raw.drop(session_id)
        number = next(id for id, message in raw.by_stream[session_id] if texts([message]))
        raw.by_stream.clear()
        assert await raw.open(session_id, after=str(int(number) - 1)) == 200
        await until(lambda: len(raw.by_stream.get(session_id, [])) == 2)
        go_on.set()
        await until(lambda: updates(raw.heard)[-1] == "idle")
        found = [(id, kinds) for id, message in raw.by_stream[session_id] if (kinds := updates([message]))]
        assert found[:3] == [
            (number, ["agent_message_chunk"]),
            (found[1][0], ["running"]),
            (str(int(number) + 1), ["agent_message_chunk"]),
        ]
        # An `id` would move the position of a client that reads it.
        assert found[1][0] in ("", number)
        state = [message for _, message in raw.by_stream[session_id]][1]
        assert cursor_of(state) == ""


async def test_a_client_that_missed_nothing_learns_how_its_turn_has_ended(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        async with opening(served) as socket:
            connection, session_id = await session(socket, 2)
            await say(socket, prompt(2, session_id))
            heard: list[Message] = []
            while "idle" not in updates(heard):
                heard.append(msgspec.json.decode(await socket.recv()))
            socket.transport.abort()
        async with opening(served, Acp_Connection_Id=connection) as socket:
            params = {"cursor": cursor_of(heard[-1])}
            await say(socket, {"id": "r", "method": "stream/resume", "params": params})
            answer, state = [msgspec.json.decode(await socket.recv()) for _ in range(2)]
            meta = {"acp/turnState": {"state": "idle"}, "dragoman/received": 3}
            assert answer == {"jsonrpc": "2.0", "id": "r", "result": {"_meta": meta}}
            assert state["params"]["update"]["stopReason"] == "end_turn"
            await say(socket, prompt(3, session_id))
            assert "result" in (await hear(socket, 3))[0]


async def test_each_session_of_a_websocket_has_its_own_cursor(tmp_path: Path) -> None:
    async with gateway(counting(2), tmp_path) as served:
        async with opening(served) as socket:
            connection, first = await session(socket, 1)
            await say(socket, {"id": 7, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            second = (await hear(socket, 7))[0]["result"]["sessionId"]
            heard = await turns_of(socket, first, second)
            socket.transport.abort()
        said = {one: [m for m in heard if texts([m]) and m["params"]["sessionId"] == one] for one in (first, second)}
        last = max(int(cursor_of(message)) for message in heard)
        # Of the first session the client has one piece, of the other all; and all of the connection's own.
        cursors = {first: cursor_of(said[first][0]), second: cursor_of(said[second][-1]), "": str(last)}
        async with opening(served) as socket:
            params = {"connectionId": connection, "cursors": cursors}
            await say(socket, {"method": "stream/resume", "params": params})
            again: list[Message] = []
            while said[first][-1] not in again:
                again.append(msgspec.json.decode(await socket.recv()))
            assert [m for m in again if texts([m])] == said[first][1:]
            listed = [{"sessionId": one, "cursor": cursors[one]} for one in (first, second)]
            assert resuming.resume_request_in(
                msgspec.json.encode({"method": "stream/resume", "params": {"cursors": listed}})
            ) == resuming.ResumeRequest(msgspec.UNSET, "", {one: int(cursors[one]) for one in (first, second)})


async def turns_of(socket: ClientConnection, first: str, second: str) -> list[Message]:
    """All that comes of a turn in each of two sessions, one after the other."""
    heard: list[Message] = []
    for id, session_id in ((2, first), (3, second)):
        await say(socket, prompt(id, session_id))
        answer, before = await hear(socket, id)
        heard += [*before, answer]
    return heard


async def test_a_socket_that_names_a_connection_and_no_cursor_goes_on_where_its_last_reader_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_endpoint, "_FIRST_FRAME_SECONDS", 0.05)
    async with gateway(counting(1), tmp_path) as served:
        async with opening(served) as socket:
            connection, session_id = await session(socket, 1)
            socket.transport.abort()
        async with opening(served, Acp_Connection_Id=connection) as socket:
            assert msgspec.json.decode(await socket.recv())["method"] == "_dragoman/resumed"
            await say(socket, prompt(2, session_id))
            _, before = await hear(socket, 2)
            assert texts(before) == ["0 "]
            socket.transport.abort()
        async with opening(served, Acp_Connection_Id=connection) as socket:
            # Its first frame is another message: that is received, and not lost with the wait for a cursor.
            await say(socket, {"id": 4, "method": "session/list", "params": {}})
            assert "result" in (await hear(socket, 4))[0]

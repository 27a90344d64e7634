"""elephant.ai's HTTP on the real server: statuses, the one stream, drops and returns, permission."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import elephant as paths
from dragoman.gateway import elephant_stream
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import counting, gateway, http_client
from tests.support.messages import hello, prompt
from tests.support.waiting import until

from .elephants import NO, YES, elephant

pytestmark = pytest.mark.anyio


def asking() -> Agent:
    """An agent that does something only if it may."""
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        async with session.tool("work", kind="edit") as tool:
            allowed = await session.ask_permission("May I?", tool=tool)
        await session.say(f"allowed {bool(allowed)}")

    return agent


def stepping(steps: asyncio.Semaphore, count: int) -> Agent:
    """An agent that says a number for each step it is given."""
    return counting(count, steps.acquire)


@pytest.mark.requirement("8.3.2")
async def test_everything_comes_on_the_stream_and_a_post_has_a_status_and_nothing_else(tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path, elephant=True) as served, elephant(served) as client:
        await client.open()
        await until(lambda: client.bytes == b": connected\n\n")
        async with http_client() as bare:
            for message, status in ((hello(1), 202), ({"jsonrpc": "2.0", "method": "session/cancel"}, 202)):
                posted = await bare.post(client.url("rpc"), json=message)
                assert (posted.status_code, posted.content) == (status, b"")
        greeted = await client.answer(0)
        assert sorted(greeted["result"]) == ["agentCapabilities", "agentInfo", "authMethods", "protocolVersion"]
        session_id = await client.session()
        assert await client.prompt(session_id) == 202
        assert (await client.answer(2))["result"] == {"stopReason": "end_turn"}
        updates = [m["params"]["update"]["sessionUpdate"] for m in client.heard if "params" in m]
        assert updates == ["user_message_chunk", *["agent_message_chunk"] * 3]
        assert client.heard[-1] == await client.answer(2)


@pytest.mark.requirement("8.3.3")
async def test_all_sessions_of_a_client_are_on_its_one_stream(tmp_path: Path) -> None:
    async with gateway(counting(2), tmp_path, elephant=True) as served, elephant(served) as client:
        sessions = [await client.begin(), await client.session(10), await client.session(11)]
        for number, session_id in enumerate(sessions):
            await client.prompt(session_id, 20 + number)
        for number in range(len(sessions)):
            await client.answer(20 + number)
        told = {m["params"]["sessionId"] for m in client.heard if m.get("method") == "session/update"}
        assert told == set(sessions)
        assert len(client.texts) == 6


async def test_an_answer_may_be_asked_for_before_the_stream_is_there(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        assert await client.post(hello(1)) == 202
        await until(lambda: any(client_side.link.version for client_side in served.hub.connections.values()))
        await client.open()
        assert (await client.answer(0))["result"]["protocolVersion"] == 1


@pytest.mark.requirement("8.3.2")
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "rpc", b"", 400),
        ("POST", "rpc?client_id=", b"{}", 400),
        ("POST", "rpc?client_id=%20", b"{}", 400),
        ("POST", "rpc?client=x", b"{}", 400),
        ("POST", "rpc?client_id=a&client_id=b", b"{}", 400),
        ("POST", "rpc?client_id=" + "x" * 10_000, b"{}", 400),
        ("POST", "rpc?client_id=%ff%fe", b"{}", 400),
        ("POST", "rpc?client_id=%00", b"{}", 400),
        ("POST", "rpc?client_id=a%0d%0ab", b"{}", 400),
        ("POST", "rpc?client_id=x" + "&a=b" * 100, b"{}", 400),
        ("GET", "sse", b"", 400),
        ("GET", "sse?client_id=" + "x" * 10_000, b"", 400),
        ("GET", "sse?client_id=%ff", b"", 400),
        ("GET", "rpc?client_id=x", b"", 405),
        ("PUT", "rpc?client_id=x", b"{}", 405),
        ("DELETE", "rpc?client_id=x", b"", 405),
        ("POST", "sse?client_id=x", b"{}", 405),
        ("HEAD", "sse?client_id=x", b"", 405),
        ("DELETE", "sse?client_id=x", b"", 405),
        ("POST", "rpc?client_id=x", b"", 400),
        ("POST", "rpc?client_id=x", b"{", 400),
        ("POST", "rpc?client_id=x", b"\xff", 400),
        ("POST", "rpc?client_id=x", b"7", 400),
        ("POST", "rpc?client_id=x", b"{}", 400),
        ("POST", "rpc?client_id=x", b'{"jsonrpc":"2.0","id":1,"result":{}}', 400),
        ("POST", "rpc?client_id=x", b"[]", 501),
    ],
)
async def test_statuses(method: str, path: str, body: bytes, status: int, tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, http_client() as client:
        response = await client.request(method, f"{served.http}/{path}", content=body)
        assert response.status_code == status
        if method != "HEAD":
            assert list(response.json()) == ["error"]
        if status == 405:
            assert response.headers["allow"] == ("POST" if path.startswith("rpc") else "GET")
        assert not served.hub.connections  # a client in error is not kept


@pytest.mark.requirement("8.3.2")
async def test_a_body_over_4_mib_is_413_said_or_not_and_one_of_4_mib_is_read(tmp_path: Path) -> None:
    async def pieces() -> Any:
        for _ in range(5):
            yield b" " * (1024 * 1024)

    async with gateway(counting(1), tmp_path, elephant=True) as served, http_client() as client:
        url = f"{served.http}/rpc?client_id=x"
        assert (await client.post(url, content=pieces())).status_code == 413
        for over, status in ((1, 413), (5_000_000, 413), (0, 202)):
            body = b'{"jsonrpc":"2.0","method":"_x"}'.ljust(paths.BODY_BYTES + over)
            assert (await client.post(url, content=body)).status_code == status


async def test_half_a_message_is_none(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        whole = msgspec.json.encode({"jsonrpc": "2.0", **prompt(9, session_id)})
        head = f"POST /acp/rpc?client_id={client.id} HTTP/1.1\r\nHost: 127.0.0.1:{served.server.port}\r\n"
        for length in (f"Content-Length: {len(whole)}", "Transfer-Encoding: chunked"):
            _, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            size = f"{len(whole):x}\r\n" if "chunked" in length else ""
            writer.write(f"{head}{length}\r\n\r\n{size}".encode() + whole[:-5])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        await client.prompt(session_id)
        await client.answer(2)
        assert client.texts == ["0 "]
        assert served.hub.monitor.counts["turns"] == 1


async def test_without_the_option_the_paths_are_not_there(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, elephant(served, token=served.token) as client:
        assert await client.post(hello(1)) == 404
    async with gateway(counting(1), tmp_path / "other") as served, elephant(served) as client:
        assert await client.post(hello(1)) == 401


async def test_a_silent_stream_is_pinged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert elephant_stream.PING_SECONDS == 5
    monkeypatch.setattr(elephant_stream, "PING_SECONDS", 0.05)
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        await client.open()
        await until(lambda: client.bytes.count(b": ping\n\n") >= 2)
        assert client.bytes.startswith(b": connected\n\n: ping\n\n")


async def test_what_comes_before_initialize_is_refused_on_the_stream(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        await client.open()
        assert (await client.ask(5, "session/new", cwd="/", mcpServers=[]))["error"]["code"] == -32600


# -- permission ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "allowed"),
    [
        ({"result": YES}, True),
        ({"result": NO}, False),
        ({"result": {"outcome": {"outcome": "cancelled"}}}, False),
        ({"result": {"outcome": {"outcome": "selected", "optionId": "allow_always"}}}, False),
        ({"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}, False),
        ({"result": {"outcome": {"outcome": "allowed", "optionId": "allow_once"}}}, False),
        ({"result": {}}, False),
        ({"result": None}, False),
        ({"error": {"code": -32603, "message": "no"}}, False),
    ],
)
async def test_a_permission_goes_round_and_only_a_yes_is_one(
    reply: dict[str, Any], allowed: bool, tmp_path: Path
) -> None:
    async with gateway(asking(), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        question = await client.question()
        assert [option["optionId"] for option in question["params"]["options"]] == ["allow_once", "reject_once"]
        assert await client.post({"id": question["id"], **reply}) == 204
        await client.answer(2)
        assert client.texts == [f"allowed {allowed}"]


async def test_an_answer_counts_for_the_client_that_was_asked_and_for_no_other(tmp_path: Path) -> None:
    async with (
        gateway(asking(), tmp_path, elephant=True) as served,
        elephant(served) as client,
        elephant(served, "another") as other,
        elephant(served, client.id, served.token) as with_token,
    ):
        session_id = await client.begin()
        for stranger in (other, with_token):
            await stranger.begin()
        await client.prompt(session_id)
        question = await client.question()
        yes = {"id": question["id"], "result": YES}
        for stranger in (other, with_token):
            assert await stranger.post(yes) == 400
        assert await client.post({"id": 4711, "result": YES}) == 400
        assert await client.post({**yes, "result": NO}) == 204
        await client.answer(2)
        assert client.texts == ["allowed False"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("reply", "said"), [(YES, "allowed True"), (NO, "allowed False")])
async def test_whatever_version_the_agent_speaks_a_yes_is_one_and_a_no_is_none(
    version: int, reply: dict[str, Any], said: str, tmp_path: Path
) -> None:
    async with (
        gateway(asking(), tmp_path, elephant=True, versions=(version,)) as served,
        elephant(served) as client,
    ):
        session_id = await client.begin()
        await client.prompt(session_id)
        question = await client.question()
        await client.post({"id": question["id"], "result": reply})
        assert (await client.answer(2))["result"] == {"stopReason": "end_turn"}
        assert client.texts == [said]
        updates = [m["params"]["update"] for m in client.heard if m.get("method") == "session/update"]
        assert updates[0] == {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"}}


async def test_a_question_without_a_stream_waits_for_one(tmp_path: Path) -> None:
    async with gateway(asking(), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.drop()
        await client.prompt(session_id)
        await until(lambda: served.hub.sessions[session_id].is_running)
        await client.open()
        question = await client.question()
        assert await client.post({"id": question["id"], "result": YES}) == 204
        await client.answer(2)
        assert client.texts == ["allowed True"]


async def test_a_question_to_which_no_client_comes_back_is_a_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.open_questions.ALONE_SECONDS", 0.1)
    async with gateway(asking(), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        question = await client.question()
        await client.drop()
        await until(lambda: not served.hub.sessions[session_id].is_running)
        assert await client.post({"id": question["id"], "result": YES}) == 204  # too late
        await client.open()
        await client.answer(2)
        assert client.texts == ["allowed False"]


async def test_a_cancel_ends_a_turn_that_waits_for_an_answer(tmp_path: Path) -> None:
    async with gateway(asking(), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        question = await client.question()
        assert await client.post({"method": "session/cancel", "params": {"sessionId": session_id}}) == 202
        assert await client.post({"id": question["id"], "result": {"outcome": {"outcome": "cancelled"}}}) == 204
        assert (await client.answer(2))["result"] == {"stopReason": "cancelled"}
        assert client.texts == []


# -- drops and returns -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("8.3.2")
async def test_a_second_stream_of_one_client_ends_the_first_and_goes_on_in_its_place(tmp_path: Path) -> None:
    steps = asyncio.Semaphore(0)
    async with gateway(stepping(steps, 6), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        first = client._streams[0]
        await client.prompt(session_id)
        await until(lambda: len(client.texts) == 1)
        async with elephant(served, client.id) as again:
            await again.open()
            async with asyncio.timeout(30):
                await first  # it was ended, and not broken off
            assert client.bytes.endswith(b": ended 4009\n\n")
            for _ in range(6):
                steps.release()
            await again.answer(2)
            assert again.texts == ["1 ", "2 ", "3 ", "4 ", "5 "]
        assert client.texts == ["0 "]


async def test_of_many_streams_at_once_one_is_left_and_nothing_is_lost(tmp_path: Path) -> None:
    steps = asyncio.Semaphore(0)
    async with gateway(stepping(steps, 30), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        for _ in range(15):
            steps.release()
            steps.release()
            await client.open()
        await client.answer(2)
        assert sorted(client.texts, key=int) == [f"{number} " for number in range(30)]
        await until(lambda: sum(not task.done() for task in client._streams) == 1)
        (client_side,) = served.hub.connections.values()
        assert client_side.connection.readers == 1


async def test_a_turn_goes_on_without_a_stream_and_what_was_said_meanwhile_waits(tmp_path: Path) -> None:
    steps = asyncio.Semaphore(0)
    async with gateway(stepping(steps, 5), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        await until(lambda: len(client.texts) == 1)
        await client.drop()
        (client_side,) = served.hub.connections.values()
        await until(lambda: not client_side.connection.readers)
        for _ in range(5):
            steps.release()
        await until(lambda: not served.hub.sessions[session_id].is_running)
        await client.open()
        assert (await client.answer(2))["result"] == {"stopReason": "end_turn"}
        assert client.texts == ["0 ", "1 ", "2 ", "3 ", "4 "]


async def test_one_that_names_the_last_event_it_has_gets_exactly_what_is_behind_it(tmp_path: Path) -> None:
    async with gateway(counting(5), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        await client.answer(2)
        everything, ids = list(client.heard), list(client.ids)
        for at in (1, 3, len(ids) - 1):
            await client.drop()
            client.heard.clear()
            await client.open(after=ids[at - 1])
            await until(lambda: client.heard[-1:] == everything[-1:])
            assert client.heard == everything[at:]


@pytest.mark.parametrize("after", ["1", "x.1", ".", "00000000.2", "9" * 100])
async def test_an_event_of_no_stream_of_ours_is_as_good_as_none(after: str, tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.drop()
        before = len(client.heard)
        await client.open(after=after)
        await client.prompt(session_id)
        await client.answer(2)
        assert [m.get("id") for m in client.heard[before:] if "method" not in m] == [2]


async def test_past_what_waits_the_oldest_go_first_and_the_gap_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "HELD_BYTES", 20_000)
    async with gateway(counting(1_000), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.drop()
        (client_side,) = served.hub.connections.values()
        await until(lambda: not client_side.connection.readers)
        await client.prompt(session_id)
        await until(lambda: served.hub.sessions[session_id].idle.is_set() and client_side.connection.main.last > 1_000)
        assert client_side.connection.main.size <= 20_000
        before = len(client.heard)
        await client.open()
        await client.answer(2)
        first, *rest = client.heard[before:]
        assert first["method"] == "_dragoman/gap"
        assert first["params"]["missed"] + len(rest) == 1_002  # the prompt said again, the numbers, the end
        assert client.texts == [f"{number} " for number in range(1_000 - len(rest) + 1, 1_000)]


async def test_initialize_said_again_begins_anew_on_the_same_stream(tmp_path: Path) -> None:
    agent = Agent("stored", store=SqliteStore(tmp_path / "store"))
    waits = asyncio.Event()

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say("one ")
        await waits.wait()
        await session.say("two")

    async with gateway(agent, tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        await until(lambda: client.texts == ["one "])
        client.heard.clear()
        assert await client.post(hello(1)) == 202  # as a client that was started again
        assert (await client.answer(0))["result"]["protocolVersion"] == 1
        assert len(served.hub.connections) == 1
        waits.set()  # what the old one had begun goes on
        await until(lambda: session_id not in served.hub.sessions or not served.hub.sessions[session_id].is_running)
        assert [m for m in client.heard if "params" in m] == []
        loaded = await client.ask(1, "session/load", sessionId=session_id, cwd=os.getcwd(), mcpServers=[])
        assert "error" not in loaded
        assert "".join(client.texts) == "one two"


# -- bounds ----------------------------------------------------------------------------------------------------------


async def test_past_the_most_clients_the_one_alone_for_longest_gives_way_and_readers_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CLIENTS", 3)
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served, "reads") as reads:
        session_id = await reads.begin()
        async with http_client() as bare:
            for number in range(20):
                url = f"{served.http}/rpc?client_id=c{number}"
                assert (await bare.post(url, json=hello(1))).status_code == 202
                await until(lambda: len(served.hub.connections) <= 3)
        await reads.prompt(session_id)
        await reads.answer(2)
        async with elephant(served, "two") as two, elephant(served, "three") as three, elephant(served, "four") as four:
            await two.open()
            await three.open()
            assert await four.post(hello(1)) == 503


@pytest.mark.usefixtures("_often_swept")
async def test_a_client_that_is_gone_for_good_is_forgotten(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.drop()
        (connection,) = served.hub.connections
        await served.forget(connection)
        await client.open()
        assert await client.prompt(session_id, 7) == 202
        assert (await client.answer(7))["error"]["code"] == -32600  # it has to say who it is again


async def test_a_reader_that_does_not_read_costs_what_waits_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.replay_buffer.STALL_SECONDS", 0.2)
    agent = Agent("loud")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for _ in range(600):
            await session.say("x" * 20_000)

    async with gateway(agent, tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        client.reads.clear()
        await client.prompt(session_id)
        (client_side,) = served.hub.connections.values()
        await until(lambda: client_side.connection.main.reader is None)  # it was let go
        assert client_side.connection.main.size <= paths.HELD_BYTES
        await until(lambda: not served.hub.sessions[session_id].is_running)  # no client is waited for
        assert client_side.connection.main.size <= paths.HELD_BYTES
        client.reads.set()
        await client.drop()
        await client.open()
        await client.answer(2)
        assert any(m.get("method") == "_dragoman/gap" for m in client.heard)


async def test_a_stream_says_the_last_words_of_an_agent_that_is_gone(tmp_path: Path) -> None:
    agent = Agent("mortal")
    transports: list[Any] = []
    serve = agent.serve

    async def kept(transport: Any) -> None:
        transports.append(transport)
        await serve(transport)

    agent.serve = kept  # type: ignore[assignment, method-assign]

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say("so")
        await asyncio.sleep(60)

    async with gateway(agent, tmp_path, elephant=True) as served, elephant(served) as client:
        session_id = await client.begin()
        await client.prompt(session_id)
        await until(lambda: client.texts == ["so"])
        await transports[0].close()
        gone = {"code": -32603, "message": "The agent is gone"}
        assert await client.answer(2) == {"jsonrpc": "2.0", "id": 2, "error": gone}


async def test_what_was_said_right_before_the_end_of_a_connection_is_said(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        await client.begin()
        (client_side,) = served.hub.connections.values()
        client_side.connection.main.append(b'{"jsonrpc":"2.0","method":"_last"}')
        client_side.connection.main.close(1001)
        async with asyncio.timeout(30):
            await client._streams[0]
        assert client.heard[-1]["method"] == "_last"
        assert client.bytes.endswith(b": ended 1001\n\n")


async def test_a_stop_ends_the_stream(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served) as client:
        await client.begin()
        async with asyncio.timeout(5):
            await served.server.stop(0.1)
            await asyncio.gather(*client._streams)
        assert client.bytes.endswith(b": ended 1001\n\n")


async def test_a_request_in_the_document_s_words_is_all_there_is(tmp_path: Path) -> None:
    """What this dialect has no word for is no method here, also for one with a token of everything."""
    async with gateway(counting(1), tmp_path, elephant=True) as served, elephant(served, token=served.token) as client:
        session_id = await client.begin()
        for number, method in enumerate(
            ("session/list", "session/delete", "session/fork", "session/set_config_option")
        ):
            assert (await client.ask(30 + number, method, sessionId=session_id))["error"]["code"] == -32601
        assert await client.post(prompt(2, "x" * 300)) == 400

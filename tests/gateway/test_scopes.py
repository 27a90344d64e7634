"""What a token may do: who may only read starts, stops and decides nothing, by whatever way it asks."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway import client_side
from tests.support.gateway import RawHttp, counting, gateway, raw_http
from tests.support.messages import Message, hello, prompt, texts
from tests.support.waiting import until

from .counters import counters, heard, loaded, loading, noted, opened
from .sockets import hear, opening, say

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SERVER = {"name": "x", "command": "/bin/sh", "args": ["-c", "id"], "env": []}
HOSTILE: dict[str, Any] = {
    "mcpServers": [SERVER],
    "additionalDirectories": ["/etc"],
    "cwd": "/tmp",
    "_meta": {"systemPrompt": "obey"},
}


async def closed(raw: RawHttp, session_id: str, id: int = 90) -> None:
    await raw.post({"id": id, "method": "session/close", "params": {"sessionId": session_id}}, session_id)
    assert "result" in await raw.answer(id)


@pytest.mark.parametrize("renames", [True, False])
async def test_a_reader_starts_no_servers_when_it_opens_a_session(renames: bool, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=renames), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served) as raw:
            session_id = await raw.session()
            await closed(raw, session_id)
        async with raw_http(served, token=watcher) as reader:
            assert "result" in await loaded(reader, session_id, **HOSTILE)
            assert texts(reader.heard) == ["an old story"]
            (asked,) = opened(agent)
            # The folder is the one it was made in.
            assert asked == {"sessionId": "0", "cwd": str(Path.cwd()), "mcpServers": []}
            assert served.hub.sessions[session_id].resume_request is None


async def test_a_reader_of_an_open_session_has_it_opened_as_it_was(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served) as raw, raw_http(served, token=watcher) as reader:
            session_id = await raw.session()
            mine: dict[str, Any] = {"cwd": "/", "mcpServers": [SERVER | {"name": "mine"}]}
            assert "result" in await loaded(raw, session_id, 5, **mine)
            assert "result" in await loaded(reader, session_id, 6, **HOSTILE)
            assert opened(agent) == [{"sessionId": "0", **mine}] * 2
            (agent_side,) = [agent_side for agent_side in served.hub.agents if agent_side.sessions]
            resting = agent_side.stop_process()
            assert resting is not None
            await asyncio.shield(resting)
            assert "later" in await heard(raw, session_id, "later", 7)
            assert opened(agent) == [{"sessionId": "0", **mine}] * 3


async def test_a_client_that_may_prompt_gets_its_servers_though_a_reader_was_first(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, token=watcher) as reader, raw_http(served) as raw:
            session_id = await raw.session()
            await closed(raw, session_id)
            assert "result" in await loaded(reader, session_id, 5)
            assert "result" in await loaded(raw, session_id, 6, mcpServers=[SERVER])
            assert noted(agent, "closed") == ["0", "0"]  # else the agent would not start them
            assert [params["mcpServers"] for params in opened(agent)] == [[], [SERVER]]
            assert served.hub.sessions[session_id].resume_request is not None


async def test_a_reader_opens_no_session_whose_folder_is_unknown(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served:
        auditor = served.token_of("auditor", ("read", "admin"))
        async with raw_http(served, token=auditor) as reader, raw_http(served) as raw:
            refused = (await loaded(reader, "z"))["error"]["message"]
            assert refused == "A token that may prompt has to open this session first"
            assert opened(agent) == []
            assert "result" in await loaded(raw, "z")


READER_MAY_NOT: list[Message] = [
    {"method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {"method": "session/fork", "params": {"cwd": "/", "mcpServers": []}},
    {"method": "session/set_config_option", "params": {"configId": "a", "value": "b"}},
    {"method": "session/set_mode", "params": {"modeId": "a"}},
    {"method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "hi"}]}},
    {"method": "session/close", "params": {}},
    {"method": "session/delete", "params": {}},
    {"method": "authenticate", "params": {"methodId": "a"}},
    {"method": "logout", "params": {}},
    {"method": "_own/method", "params": {}},
]


async def test_a_reader_may_ask_for_nothing_that_is_not_listed(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served) as raw, raw_http(served, token=watcher) as reader:
            session_id = await raw.session()
            unknown = []
            for id, message in enumerate(READER_MAY_NOT, 10):
                named = message["params"] if message["method"] == "session/new" else {"sessionId": session_id}
                await reader.post(message | {"id": id, "params": message["params"] | named}, session_id)
                error = (await reader.answer(id))["error"]
                if error.get("data") != {"reason": "scope"}:
                    unknown.append((message["method"], error["code"]))
            # What the agent does not offer is refused before the scope is looked at.
            assert unknown == [(name, -32601) for name in ("session/fork", "session/delete", "authenticate", "logout")]
            assert session_id in served.hub.sessions


async def test_what_a_reader_says_of_itself_makes_no_agent_ask_it(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, token=watcher, greet=False) as reader:
            greeting = hello(1)
            can = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
            greeting["params"] |= {"clientCapabilities": can, "_meta": {"a": 1}}
            assert (await reader.post(greeting)).status_code == 200
            (said,) = [json.loads(line) for line in noted(agent, "clients")]
            fs = said["clientCapabilities"].get("fs", {})
            assert not any((*fs.values(), said["clientCapabilities"].get("terminal"), said.get("_meta")))
            assert not said["clientCapabilities"].get("elicitation")


async def test_a_permission_of_an_unknown_session_is_no_readers_to_give(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    async with gateway(counters(agent, renames=True), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, token=watcher) as reader, raw_http(served) as raw:
            session_id = await raw.session()
            await closed(raw, session_id)
            assert "result" in await loaded(reader, session_id)  # its agent is the reader's
            reader_back = served.hub.sessions[session_id].agent_side
            assert "result" in await loaded(raw, session_id, 6)
            assert served.hub.sessions[session_id].agent_side is reader_back
            said = await heard(raw, session_id, "ask a-sub-agent", 7)
            assert "reject_once" in said
            assert not [m for m in reader.heard if "id" in m and "method" in m]


async def test_a_question_about_a_readers_request_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_side, "hello_to_read", lambda hello: hello)  # the agent would not ask at all
    agent = tmp_path / "elicit"
    async with gateway(counters(agent), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, token=watcher, greet=False) as reader, raw_http(served) as raw:
            session_id = await raw.session()
            await closed(raw, session_id)
            greeting = hello(1)
            greeting["params"]["clientCapabilities"] = {"elicitation": {"form": {}}}
            reader.connection = (await reader.post(greeting)).headers["Acp-Connection-Id"]
            assert await reader.open() == 200
            assert "result" in await loaded(reader, session_id)
            assert [json.loads(line)["action"] for line in noted(agent, "elicited")] == ["cancel"]
            assert not [m for m in reader.heard if "id" in m and "method" in m]


async def test_a_client_that_opened_it_and_has_left_gives_no_permission(tmp_path: Path) -> None:
    async with gateway(counters(tmp_path / "agent"), tmp_path) as served, raw_http(served) as stays:
        async with raw_http(served) as leaves:
            session_id = await leaves.session()
            assert "result" in await loaded(stays, session_id)
            headers = served.headers | {"Acp-Connection-Id": leaves.connection}
            assert (await leaves.client.delete(served.http, headers=headers)).status_code == 202
        assert "reject_once" in await heard(stays, session_id, "ask a-sub-agent", 7)


async def test_a_token_that_may_neither_read_nor_prompt_sees_no_session(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        collector = served.token_of("collector", ("admin",), principal="default")
        async with raw_http(served, token=collector, greet=False) as admin:
            answer = (await admin.post(hello(1))).json()
            assert answer["error"]["data"] == {"reason": "scope"}
            assert len(served.hub.connections) == 1
            admin.connection = raw.connection
            assert await admin.open(session_id) == 404
            metrics = await admin.client.get(
                served.http.replace("/acp", "/metrics"), headers={"Authorization": f"Bearer {collector}"}
            )
            assert metrics.status_code == 200


async def test_a_connection_is_nobodys_who_may_do_less(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served) as raw, raw_http(served, token=watcher) as reader:
            session_id = await raw.session()
            own, reader.connection = reader.connection, raw.connection
            assert (await reader.post(prompt(2, session_id), session_id)).status_code == 404
            assert await reader.open(session_id) == 404
            # A client that may do more can go on with what it began with less; it gains nothing there.
            raw.connection = own
            await raw.post({"id": 8, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            assert (await reader.answer(8))["error"]["data"] == {"reason": "scope"}


async def test_nor_is_one_on_a_websocket(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, opening(served) as socket:
        watcher = served.token_of("watcher", ("read",), principal="default")
        await say(socket, hello(1))
        connection = (await hear(socket, 0))[0]["result"]["connectionId"]
        with pytest.raises(Exception, match="404"):
            async with opening(served._replace(token=watcher), Acp_Connection_Id=connection, Last_Event_ID="0"):
                pass


@pytest.mark.usefixtures("_often_swept")
async def test_a_reader_that_leaves_stops_no_work(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def pause() -> Any:
        await go_on.wait()

    async with gateway(counting(2, pause), tmp_path) as served:
        watcher = served.token_of("watcher", ("read",), principal="default")
        async with raw_http(served, token=watcher) as reader:
            async with raw_http(served) as raw:
                session_id = await raw.session()
                await raw.post(prompt(2, session_id), session_id)
                await until(lambda: texts(raw.heard) == ["0 "])
                assert await reader.open(session_id) == 200
            await served.forget(raw.connection)
            headers = {"Authorization": f"Bearer {watcher}", "Acp-Connection-Id": reader.connection}
            assert (await reader.client.delete(served.http, headers=headers)).status_code == 202
            assert served.hub.sessions[session_id].is_running
            go_on.set()
            await until(lambda: session_id not in served.hub.sessions)


async def test_loading_names_the_session_it_wants(tmp_path: Path) -> None:
    """A foreign id, one of the agent's own, and one that never was, are the same nothing."""
    async with gateway(counters(tmp_path / "agent", renames=True), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        async with raw_http(served, token=served.token_of("bob", ("read", "prompt"))) as bob:
            answers = []
            for id, name in enumerate((session_id, "0", "z", "never"), 10):
                await bob.post(loading(name, id), name)
                answers.append((await bob.answer(id))["error"])
            assert {answer["message"] for answer in answers} == {"Session not found"}
            assert {answer["code"] for answer in answers} == {-32002}

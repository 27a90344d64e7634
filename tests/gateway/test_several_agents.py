"""Several agents behind one server: chosen by path, by header or on the page; each with sessions of its own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Agent, Session, connect
from dragoman.errors import RequestFailed
from dragoman.gateway import connections
from dragoman.gateway.session_streams import Full
from dragoman.transports.remote import transport_for
from tests.support import rogue_agent
from tests.support.command import call
from tests.support.gateway import Served, free_port, gateway, http_client
from tests.support.gateway_process import serving
from tests.support.messages import hello
from tests.support.rogue_agent import text

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def named(name: str) -> Agent:
    """An agent that says its name."""
    agent = Agent(name)

    @agent.prompt
    async def reply(session: Session, prompt: object) -> None:
        await session.say(name)

    return agent


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Served]:
    async with gateway(named("main"), folder, beside={"other": named("other")}) as served:
        yield served


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize(("path", "answering"), [("/acp", "main"), ("/acp/main", "main"), ("/acp/other", "other")])
async def test_the_path_chooses_the_agent(tmp_path: Path, scheme: str, path: str, answering: str) -> None:
    async with two(tmp_path) as served:
        url = f"{scheme}://127.0.0.1:{served.server.port}{path}"
        async with connect(transport_for(url, served.token)) as client:
            session = await client.new_session(tmp_path)
            assert (await session.ask("who are you?")).text == answering


async def test_a_header_chooses_the_agent_and_the_connection_stays_with_it(tmp_path: Path) -> None:
    async with two(tmp_path) as served, http_client() as client:
        headers = served.headers | {"Dragoman-Agent": "other"}
        greeted = await client.post(served.http, json={"jsonrpc": "2.0", **hello(2)}, headers=headers)
        assert greeted.json()["result"]["info"]["name"] == "other"
        opened = greeted.headers["Acp-Connection-Id"]
        assert (opened in served.server.hubs["other"].connections, opened in served.hub.connections) == (True, False)
        again = served.headers | {"Acp-Connection-Id": opened}
        note = {"jsonrpc": "2.0", "method": "session/list", "id": 2, "params": {}}
        assert (await client.post(served.http, json=note, headers=again)).status_code == 202
        wrong = again | {"Dragoman-Agent": "main"}
        assert (await client.post(served.http, json=note, headers=wrong)).status_code == 404
        unknown = served.headers | {"Dragoman-Agent": "third"}
        refused = await client.post(served.http, json={"jsonrpc": "2.0", **hello(2)}, headers=unknown)
        assert (refused.status_code, refused.json()) == (404, {"error": "There is no such agent here."})


async def test_an_agent_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with two(tmp_path) as served, http_client() as client:
        answer = await client.post(f"{served.http}/third", json={"jsonrpc": "2.0", **hello(1)}, headers=served.headers)
        assert answer.status_code == 404
        without = await client.post(f"{served.http}/other", json={"jsonrpc": "2.0", **hello(1)})
        assert without.status_code == 401


async def test_a_connection_of_one_agent_is_none_of_another(tmp_path: Path) -> None:
    async with two(tmp_path) as served, http_client() as client:
        greeted = await client.post(f"{served.http}/other", json={"jsonrpc": "2.0", **hello(1)}, headers=served.headers)
        headers = served.headers | {"Acp-Connection-Id": greeted.headers["Acp-Connection-Id"]}
        note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
        assert (await client.post(f"{served.http}/main", json=note, headers=headers)).status_code == 404


async def test_sessions_of_one_agent_are_unknown_to_the_other(tmp_path: Path) -> None:
    async with two(tmp_path) as served:
        other = connect(transport_for(f"{served.ws}/other", served.token))
        async with connect(transport_for(served.ws, served.token)) as mine, other as theirs:
            session = await mine.new_session(tmp_path)
            with pytest.raises(RequestFailed):
                await theirs.resume_session(session.id, tmp_path)


async def test_the_limits_of_connections_hold_for_all_agents_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_EACH", 1)
    async with two(tmp_path) as served:
        async with connect(transport_for(served.ws, served.token)):
            (client_side,) = served.hub.connections.values()
            with pytest.raises(Full):
                served.server.hubs["other"].connections.open("websocket", client_side.connection.token_identity)
        assert served.server.hubs["other"].connections.budgets is served.hub.connections.budgets


async def test_metrics_count_all_agents_and_the_end_closes_them_all(tmp_path: Path) -> None:
    async with two(tmp_path) as served, http_client() as client:
        other = connect(transport_for(f"{served.ws}/other", served.token))
        async with connect(transport_for(served.ws, served.token)) as mine, other as theirs:
            for one in (mine, theirs):
                await one.new_session(tmp_path)
            found = await client.get(f"http://127.0.0.1:{served.server.port}/metrics", headers=served.headers)
            lines = found.text.splitlines()
            assert "dragoman_connections 2.0" in lines
            assert "dragoman_sessions 2.0" in lines
            await served.server.stop(0)
            # What the clients learn of it depends on whether they try again before the port is closed.
            assert [(hub.is_stopping, len(hub.connections)) for hub in served.server.hubs.values()] == [(True, 0)] * 2


async def test_who_is_logged_in_is_told_the_agents(tmp_path: Path) -> None:
    async with two(tmp_path) as served, http_client() as client:
        me = await client.post(
            f"http://127.0.0.1:{served.server.port}/me", headers=served.headers | {"X-Dragoman": "1"}
        )
        assert me.json()["agents"] == ["main", "other"]


# -- the command -------------------------------------------------------------------------------------------------------


def configured(home: Path, **answers: str) -> None:
    home.mkdir()
    servers = {}
    for name, answer in answers.items():
        (home.parent / name.replace("/", "")).mkdir()
        command = rogue_agent.written(home.parent / name.replace("/", ""), text(answer))
        servers[name] = {"command": command[0], "args": command[1:]}
    (home / "acp.json").write_text(json.dumps({"servers": servers}))


async def test_one_command_serves_our_own_agent_and_others(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    configured(home, first="I am the first.", second="I am the second.")
    script = ["--model", f"script:{home / 'script.json'}"]
    agents = ["--agent", "first", "--agent", "second", "--agent", "dragoman"]
    async with serving(home, port, {"turns": [{"steps": [{"say": "I am ours."}]}]}, *script, *agents) as server:
        for path, words in (("", "I am the first."), ("/second", "I am the second."), ("/dragoman", "I am ours.")):
            async with connect(transport_for(f"ws://127.0.0.1:{port}/acp{path}", server.token)) as client:
                assert (await (await client.new_session(tmp_path)).ask("hi")).text == words


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("a", "a"), "--agent names an agent twice"),
        (("a", "b/c"), "'b/c' cannot be part of an address"),
        (("a", "rpc"), "with --elephant, /acp/rpc is a path of elephant.ai's"),
    ],
)
def test_agents_that_cannot_be_told_apart_are_refused(tmp_path: Path, names: tuple[str, str], complaint: str) -> None:
    configured(tmp_path / "home", **dict.fromkeys(names, "x"))
    words = [word for name in names for word in ("--agent", name)]
    done = call("serve", "--elephant", *words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))
    assert (done.code, complaint in done.error) == (2, True)

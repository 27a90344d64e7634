"""Steering through the gateway: a client of either version steers a turn of an agent of either, in its own name."""

from functools import partial
from pathlib import Path

import pytest

from dragoman.gateway.agent_source import AgentSource, in_process
from dragoman.gateway.ceilings import AgentModes, Ceilings
from dragoman.vocabulary.hello import TerminalAuth
from tests.agent.test_steering import Listener, outcome, steer
from tests.support.gateway import gateway, raw_http
from tests.support.messages import hello, prompt, texts, updates
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("client", "agent"), [(1, 1), (1, 2), (2, 1), (2, 2)])
async def test_a_running_turn_is_steered_and_a_new_one_begun(client: int, agent: int, tmp_path: Path) -> None:
    listener = Listener()
    async with gateway(listener.agent, tmp_path, versions=(agent,)) as served, raw_http(served, client) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id, "wait"), session_id)
        await until(lambda: texts(raw.heard) == ["<wait>"])
        await raw.post(steer(3, session_id), session_id)
        await listener.until_queued()
        listener.go_on.set()
        assert outcome(await raw.answer(3)) == {"outcome": "injected"}
        await until(lambda: texts(raw.heard) == ["<wait>", "+more"])
        if client == 1:
            assert (await raw.answer(2))["result"] == {"stopReason": "end_turn"}
            assert "user_message_chunk" not in updates(raw.heard)


@pytest.mark.requirement("ED6")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_agent_knows_in_whose_name_a_turn_is_steered(version: int, tmp_path: Path) -> None:
    listener = Listener()
    modes = AgentModes(lambda identity: [], lambda mode, identity: mode, lambda identity, needs: True)
    bugs: list[Exception] = []
    source = AgentSource(in_process(partial(listener.agent.serve, trusted=True), bugs.append))
    bobs = gateway(source, tmp_path, ceilings=Ceilings(modes=modes))
    async with bobs as served, raw_http(served, version, token=served.token_of("bob", principal="robert")) as raw:
        session_id = await raw.session()
        await raw.post(steer(2, session_id), session_id)
        assert outcome(await raw.answer(2)) == {"outcome": "startedNewTurn"}
        await until(lambda: texts(raw.heard) == ["<more>"])
    assert [(one.principal, one.token) for one in listener.identities] == [("robert", "bob")]
    assert bugs == []


@pytest.mark.requirement("ED6")
async def test_a_token_that_may_only_read_steers_nothing(tmp_path: Path) -> None:
    listener = Listener()
    async with gateway(listener.agent, tmp_path) as served, raw_http(served, 1) as raw:
        session_id = await raw.session()
        async with raw_http(served, 1, token=served.token_of("eye", ("read",), "")) as reader:
            await reader.post(steer(2, session_id))
            assert (await reader.answer(2))["error"]["data"] == {"reason": "scope"}
    assert listener.sessions == []


async def test_a_remote_client_is_sent_no_command_line_of_the_servers_machine(tmp_path: Path) -> None:
    login = TerminalAuth("t", "T", meta={"terminal-auth": {"command": "/bin/agent"}})
    agent = Listener(auth_methods=[login]).agent
    asked = hello(1)
    asked["params"]["clientCapabilities"] = {"_meta": {"terminal-auth": True}, "auth": {"terminal": True}}
    async with gateway(agent, tmp_path) as served, raw_http(served, 1, greet=False) as raw:
        answer = (await raw.post(asked)).json()
    assert [sorted(method) for method in answer["result"]["authMethods"]] == [["id", "name", "type"]]

"""Dialects by their names, and both ends of each on one wire."""

import asyncio
from pathlib import Path

import pytest

from dragoman.agent.agent import Agent, agent_core
from dragoman.client.connect import connect
from dragoman.dialects.vendors.named import NAMES, load_dialect
from dragoman.errors import UsageError
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import pair
from dragoman.vocabulary.events import AgentMessageChunk, Idle
from tests.dialects.vendor_agents import an_agent

MODULES = [name for name in NAMES if name not in ("v1", "v2")]


@pytest.mark.parametrize("name", ["", "v3", "Agentao", "klingon"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    for make in (lambda: Agent("a", dialect=name), lambda: connect(["x"], dialect=name), lambda: load_dialect(name)):
        with pytest.raises(UsageError) as caught:
            make()
        assert "iac-code, elephant, agentao, simse" in str(caught.value)


@pytest.mark.parametrize(("name", "spoken"), [("v1", (1,)), ("v2", (2,))])
def test_the_name_of_a_version_pins_it(name: str, spoken: tuple[int, ...]) -> None:
    agent = Agent("a", dialect=name)
    assert (agent_core(agent).versions, agent_core(agent).dialect) == (spoken, "")


@pytest.mark.parametrize("name", MODULES)
async def test_both_ends_of_a_dialect_understand_each_other(tmp_path: Path, name: str) -> None:
    agent = an_agent(name, tmp_path)
    async with asyncio.timeout(30), pair(agent, dialect=name) as client:
        conversation = await client.new_session(str(tmp_path))
        heard = [event async for event in conversation.prompt("hello there")]
        assert "".join(event.text for event in heard if isinstance(event, AgentMessageChunk)) == "hello there"
        assert isinstance(heard[-1], Idle)
        assert heard[-1].stop_reason == "end_turn"
        assert client.dialect == name
    store = agent_core(agent).open_store()
    assert isinstance(store, SqliteStore)
    await store.close()


@pytest.mark.requirement("L6")
@pytest.mark.parametrize("name", ["iac-code", "elephant", "agentao"])
async def test_an_ordinary_client_understands_each_of_them(tmp_path: Path, name: str) -> None:
    """What a dialect adds or leaves out does not keep a client of version 1 from a turn."""
    agent = an_agent(name, tmp_path)
    async with asyncio.timeout(30), pair(agent) as client:
        conversation = await client.new_session(str(tmp_path))
        heard = [event async for event in conversation.prompt("hello there")]
        assert "".join(event.text for event in heard if isinstance(event, AgentMessageChunk)) == "hello there"
    store = agent_core(agent).open_store()
    assert isinstance(store, SqliteStore)
    await store.close()

"""Sessions of another agent than ours: they are where they were made, and nowhere else."""

import json
import sys
from pathlib import Path

import pytest

from dragoman.errors import NODE_AWAY, RequestFailed
from tests.support.cluster import Cluster, cluster, says
from tests.support.needs import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

# It opens any session, as an agent may whose folder all machines share, and says which process it is.
AGENT = """
import os
from dragoman import Agent
from dragoman.store.sqlite import SqliteStore

agent = Agent("foreign", store=SqliteStore(os.environ["SESSIONS"]))

@agent.prompt
async def reply(session, prompt):
    await session.say(f"process {os.getpid()}")

agent.run()
"""


async def foreign_node(nodes: Cluster, name: str) -> None:
    """Start a node that serves another agent."""
    program = nodes.folder / "agent.py"
    program.write_text(AGENT)
    (nodes.folder / name).mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(ROOT / "src"), "SESSIONS": str(nodes.folder / "sessions")}
    entry = {"command": sys.executable, "args": [str(program)], "env": environment}
    (nodes.folder / name / "acp.json").write_text(json.dumps({"servers": {"foreign": entry}}))
    await nodes.node(name, says("unused"), "--agent", "foreign")


@pytest.mark.requirement("CL12")
async def test_a_session_of_another_agent_has_one_process_whichever_node_is_asked(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        for name in "ab":
            await foreign_node(nodes, name)
        async with nodes.client("a") as near, nodes.client("b") as far:
            session = await near.new_session(tmp_path)
            process = (await session.ask("who?")).text
            there = await far.load_session(session.id, tmp_path)
            assert (await there.ask("who?")).text == process


@pytest.mark.requirement("CL12")
async def test_a_session_of_another_agent_whose_node_is_away_takes_no_prompt(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        for name in "ab":
            await foreign_node(nodes, name)
        async with nodes.client("a") as near:
            session = await near.new_session(tmp_path)
            await session.ask("who?")
            await nodes.kill("a")
        async with nodes.client("b") as far:
            with pytest.raises(RequestFailed) as refused:
                await far.load_session(session.id, tmp_path)
            assert refused.value.code == NODE_AWAY

"""The registry: agents by name, their states, restarts within bounds, errors that stay visible."""

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import registry as registry_module
from dragoman.client.known_agents import KNOWN
from dragoman.client.registry import AgentRegistry
from dragoman.client.registry_file import RegistryFileInvalid
from dragoman.client.workspace import Workspace
from dragoman.errors import AgentFailed, LinkClosed, StartFailed, TimedOut, UsageError
from dragoman.host.launch_names import Launch
from dragoman.host.scripts import named_files
from dragoman.host.trust import trust
from dragoman.vocabulary.services import Elicit
from tests.support.machine import lives
from tests.support.rough_command import rough

pytestmark = pytest.mark.anyio


def written(home: Path, **servers: Any) -> AgentRegistry:
    home.mkdir(exist_ok=True)
    (home / "acp.json").write_text(json.dumps({"servers": servers}))
    return AgentRegistry.read(home, environment=os.environ)


def server(*manners: str, **fields: Any) -> dict[str, Any]:
    command, *args = rough(*manners)
    return {"command": command, "args": args, **fields}


@pytest.fixture(autouse=True)
async def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Restarts that wait a hundredth as long; how long they would have waited."""
    waited: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await real(seconds / 100)

    monkeypatch.setattr(registry_module, "_sleep", sleep)
    return waited


async def test_an_agent_is_connected_to_by_its_name(tmp_path: Path) -> None:
    registry = written(tmp_path, mine=server())
    assert (registry.status("mine").state, registry.status("mine").installed) == ("configured", True)
    async with registry.connect("mine") as client:
        assert registry.status("mine").state == "ready"
        session = await client.new_session(tmp_path)
        assert (await session.ask("go")).text == "done"
    assert registry.status("mine").state == "stopped"


async def test_environment_and_folder_come_from_the_entry(tmp_path: Path) -> None:
    script = "import os, sys; sys.stderr.write(f\"{os.getcwd()} {os.environ['GIVEN']} {sys.argv[1]}\"); sys.exit(3)"
    entry = {"command": sys.executable, "args": ["-c", script, "${WORD}"], "env": {"GIVEN": "<$WORD>"}, "cwd": "sub"}
    (tmp_path / "sub").mkdir()
    (tmp_path / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    registry = AgentRegistry.read(tmp_path, environment={**os.environ, "WORD": "w"})
    with pytest.raises(LinkClosed):
        async with registry.connect("mine"):
            pass
    assert registry.status("mine").stderr_tail == f"{tmp_path / 'sub'} <w> w"


@pytest.mark.parametrize(
    ("capabilities", "files", "rest"),
    [
        ({}, [True, True], {"terminal", "elicitation"}),
        ({"fs": False}, [False, False], {"terminal", "elicitation"}),
        ({"fs": {"readTextFile": False}, "terminal": False}, [False, True], {"elicitation"}),
        ({"elicitation": False}, [True, True], {"terminal"}),
    ],
)
async def test_an_agent_is_offered_what_its_entry_says(
    tmp_path: Path, capabilities: dict[str, Any], files: list[bool], rest: set[str]
) -> None:
    async def fill(request: Elicit) -> None:
        return None

    registry = written(tmp_path, mine=server("lent", capabilities=capabilities))
    async with Workspace([tmp_path], environment=os.environ) as workspace:
        async with registry.connect("mine", elicitation=fill, **workspace.callbacks()) as client:
            said = (await (await client.new_session(tmp_path)).ask("go")).text
        kept = await registry.client("mine", elicitation=fill, **workspace.callbacks())
        again = (await (await kept.new_session(tmp_path)).ask("go")).text
        await registry.close()
    offered = json.loads(said.removesuffix("done"))
    fs = offered.get("fs") or {}
    assert [fs.get("readTextFile", False), fs.get("writeTextFile", False)] == files
    assert {key for key in ("terminal", "elicitation") if offered.get(key)} == rest
    assert again == said


async def test_known_agents_are_there_and_say_how_to_get_them(tmp_path: Path) -> None:
    registry = AgentRegistry.read(tmp_path, environment={"PATH": str(tmp_path)})
    assert set(KNOWN) <= set(registry.names())
    assert registry.status("gemini").installed is False
    with pytest.raises(StartFailed, match=r"gemini is not installed\. Install it with: npm install"):
        registry.connect("gemini")


async def test_an_unknown_name_and_a_missing_variable_are_named(tmp_path: Path) -> None:
    registry = written(tmp_path, mine=server(env={"KEY": "$NO_SUCH_VARIABLE"}))
    with pytest.raises(UsageError, match=r"there is no agent 'gemnii'; there are claude, "):
        registry.connect("gemnii")
    with pytest.raises(UsageError, match="NO_SUCH_VARIABLE, which is not set"):
        registry.connect("mine")


async def test_a_projects_agents_come_after_trust_and_win_over_the_users(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    written(home, mine=server(description="ours"))
    project.mkdir()
    (project / "acp.json").write_text(json.dumps({"servers": {"mine": server(description="theirs")}}))
    assert AgentRegistry.read(home, environment=os.environ, folder=project).entry("mine").description == "ours"
    trust(home / "trust.json", project)
    assert AgentRegistry.read(home, environment=os.environ, folder=project).entry("mine").description == "theirs"


async def test_a_projects_agent_is_looked_at_again_before_every_start(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "agent.sh").write_text(f"#!/bin/sh\nexec {shlex.join(rough())}\n")
    (project / "agent.sh").chmod(0o755)
    (project / "acp.json").write_text('{"servers": {"theirs": {"command": "./agent.sh"}}}')
    trust(home / "trust.json", project, named=named_files(str(project), [Launch("./agent.sh")], os.environ))
    async with AgentRegistry.read(home, environment=os.environ, folder=project) as registry:
        assert (await registry.client("theirs")).state == "ready"
        await registry.stop("theirs")
        with (project / "agent.sh").open("a") as script:
            script.write("# changed\n")
        with pytest.raises(StartFailed, match=r"theirs is not started: .*agent\.sh has changed since it was trusted"):
            registry.connect("theirs")
        with pytest.raises(StartFailed, match=r"agent\.sh has changed"):
            registry.check_trust("theirs")


@pytest.mark.parametrize(("dialect", "version"), [("v1", 1), ("agentao", 1), ("simse", 1)])
async def test_a_dialect_pins_what_is_spoken(tmp_path: Path, dialect: str, version: int) -> None:
    registry = written(tmp_path, mine=server(dialect=dialect))
    async with registry.connect("mine") as client:
        assert client.protocol_version == version


async def test_a_file_with_a_mistake_is_no_fleet(tmp_path: Path) -> None:
    (tmp_path / "acp.json").write_text("{")
    with pytest.raises(RegistryFileInvalid, match="line 1"):
        AgentRegistry.read(tmp_path, environment=os.environ)


async def test_timeouts_come_from_the_entry(tmp_path: Path) -> None:
    registry = written(tmp_path, dumb=server("dumb", startupTimeoutMs=300), mute=server("mute", timeoutMs=300))
    with pytest.raises(TimedOut, match=r"initialize within 0\.3 s"):
        async with registry.connect("dumb"):
            pass
    async with registry.connect("mute") as client:
        with pytest.raises(TimedOut, match=r"ListSessions within 0\.3 s"):
            await client.list_sessions()


# -- the registry's own connections -----------------------------------------------------------------------------------


async def test_a_kept_connection_is_started_once(tmp_path: Path) -> None:
    async with written(tmp_path, mine=server()) as registry:
        first, second = await asyncio.gather(registry.client("mine"), registry.client("mine"))
        assert first is second
        assert registry.status("mine").state == "ready"
        pid = _pid(first)
    assert not lives(pid)


async def test_an_agent_that_died_is_started_again_so_often_as_allowed(tmp_path: Path, quick: list[float]) -> None:
    async with written(tmp_path, mine=server("dies", maxRecoverableRestarts=2)) as registry:
        for restarts in range(3):
            client = await registry.client("mine")
            assert (registry.status("mine").state, registry.status("mine").restarts) == ("ready", restarts)
            session = await client.new_session(tmp_path)
            with pytest.raises(LinkClosed):
                await session.ask("go")
            assert registry.status("mine").state == "failed"
        with pytest.raises(AgentFailed, match=r"(?s)has failed 3 times.*exited with code 7.*I cannot go on"):
            await registry.client("mine")
        status = registry.status("mine")
        assert (status.state, quick) == ("failed", [0.5, 1.0])
        assert "exited with code 7" in status.last_error
        assert status.stderr_tail == "I cannot go on\n"
        # A stop by hand forgives everything.
        await registry.stop("mine")
        await registry.client("mine")
        assert (registry.status("mine").state, registry.status("mine").restarts) == ("ready", 0)


async def test_an_agent_that_never_starts_is_not_tried_for_ever(tmp_path: Path, quick: list[float]) -> None:
    async with written(tmp_path, mine=server("stillborn")) as registry:
        with pytest.raises(AgentFailed, match=r"(?s)has failed 4 times.*no configuration found"):
            await registry.client("mine")
        assert quick == [0.5, 1.0, 2.0]
        assert registry.status("mine").state == "failed"
        with pytest.raises(AgentFailed):
            await registry.client("mine")
        assert quick == [0.5, 1.0, 2.0]  # no further try


async def test_starting_all_is_held_up_by_none(tmp_path: Path) -> None:
    servers = {
        "good": server(),
        "bad": server("stillborn", maxRecoverableRestarts=0),
        "missing": {"command": "no-such-program"},
        "later": server(autoStart=False),
    }
    async with written(tmp_path, **servers) as registry:
        failed = await registry.start()
        assert sorted(failed) == ["bad", "missing"]
        states = {name: registry.status(name).state for name in servers}
        assert states == {"good": "ready", "bad": "failed", "missing": "failed", "later": "configured"}


async def test_health_is_a_hello(tmp_path: Path) -> None:
    registry = written(tmp_path, good=server(), bad=server("stillborn"))
    await registry.check("good", seconds=60)
    with pytest.raises(LinkClosed):
        await registry.check("bad", seconds=60)
    assert (registry.status("good").state, registry.status("bad").state) == ("ready", "failed")
    assert registry.status("bad").stderr_tail == "no configuration found\n"


def _pid(client: Any) -> int:
    pid: int = client._connection._child.pid
    return pid

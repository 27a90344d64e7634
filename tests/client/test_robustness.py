"""What real agents do, and a client has to survive: real processes that misbehave."""

import asyncio
import json
import os
import re
import shlex
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman import limits
from dragoman.client.connect import Client, connect
from dragoman.client.conversation import Conversation
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.errors import LinkClosed
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent
from tests.support.machine import lives
from tests.support.rough_command import rough
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


async def says(client: Client, folder: Path, text: str = "go") -> str:
    session = await client.new_session(folder)
    return (await session.ask(text)).text


async def test_noise_on_stdout_is_reported_and_skipped(tmp_path: Path) -> None:
    noise: list[str] = []
    async with connect(rough("noise"), on_noise=noise.append) as client:
        assert await says(client, tmp_path) == "done"
    assert len(noise) >= 8


async def test_a_flood_on_stderr_holds_nothing_up_and_its_end_is_kept(tmp_path: Path) -> None:
    async with connect(rough("flood")) as client:
        assert await says(client, tmp_path) == "done"
        assert client.stderr_tail().endswith("x\nlast words\n")
        assert len(client.stderr_tail()) == 64 * 1024
    assert client.stderr_tail().endswith("x\nlast words\n")


async def test_an_agent_that_echoes_any_version_is_taken_by_its_shape(tmp_path: Path) -> None:
    async with connect(rough("echo")) as client:
        assert client.protocol_version == 1
        assert await says(client, tmp_path) == "done"


async def test_updates_before_the_answer_to_session_new_are_kept(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    def hear(conversation: Conversation, event: AnyEvent) -> None:
        if isinstance(event, AgentMessageChunk):
            told.append((conversation.id, event.text))

    async with connect(rough("early"), on_event=hear) as client:
        session = await client.new_session(tmp_path)
        assert told == [(session.id, "early ")]
        assert (await session.ask("go")).text == "done"


async def test_a_story_told_on_resume_is_not_part_of_the_next_turn(tmp_path: Path) -> None:
    told: list[AnyEvent] = []
    async with connect(rough("replay"), on_event=lambda _, event: told.append(event)) as client:
        session = await client.resume_session("old", tmp_path)
        assert (await session.ask("go")).text == "done"
    assert [event.text for event in told if isinstance(event, AgentMessageChunk)] == ["an old story "]


@pytest.mark.requirement("B8")
async def test_unknown_methods_are_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with connect(rough("extension")) as client:
        assert await says(client, tmp_path) == "[-32601, -32601] done"


@pytest.mark.requirement("C11", "F10")
async def test_sessions_that_were_never_opened_get_nothing(tmp_path: Path) -> None:
    asked: list[Any] = []
    noise: list[str] = []

    async def permission(request: Any) -> str:
        asked.append(request)
        return "yes"

    async with Workspace(["/"], environment=os.environ) as workspace:
        settings: dict[str, Any] = {**workspace.callbacks(), "permission": permission, "on_noise": noise.append}
        async with connect(rough("stranger"), **settings) as client:
            assert await says(client, tmp_path) == "[-32002, -32002] done"
    assert asked == []
    assert noise == ["a request for a session that was never opened"] * 2


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("manner", ["label", "bare"])
@pytest.mark.parametrize("level", ["read", "edit"])
async def test_a_command_that_is_called_reading_is_asked_about(tmp_path: Path, manner: str, level: Any) -> None:
    """With `bare` the agent asks by the id of a call it has told of before."""
    permissions = PermissionHandler(PermissionPolicy(level), [tmp_path])
    async with connect(rough(manner), cwd=str(tmp_path), permission=permissions) as client:
        answer, _, rest = (await says(client, tmp_path)).rpartition(" ")
    assert rest == "done"
    assert json.loads(answer) == {
        "_meta": {"dragoman/reason": "it runs a command, and there is no user to ask"},
        "outcome": {"outcome": "selected", "optionId": "no"},
    }
    assert permissions.denied == 1


async def test_an_agent_that_dies_in_a_turn_says_how(tmp_path: Path) -> None:
    async with connect(rough("dies")) as client:
        session = await client.new_session(tmp_path)
        with pytest.raises(LinkClosed, match=r"(?s)exited with code 7.*I cannot go on"):
            await session.ask("go")
        assert client.state == "failed"


async def stopped_in(command: Sequence[str], folder: Path, *, wrappers: int = 0) -> float:
    """The seconds until nothing is left of a deaf agent that has a child, nor of what is around it."""
    async with connect(command) as client:
        assert await says(client, folder) == "done"
        child = int(re.findall(r"child (\d+)", client.stderr_tail())[0])
        every = {child, *_descendants(_pid(client))}
        assert len(every) == wrappers + 2
        assert lives(child)
        began = time.monotonic()
    assert [pid for pid in every if lives(pid)] == []
    return time.monotonic() - began


@pytest.mark.slow  # on a machine that does nothing else: a promise in seconds
async def test_an_agent_that_ignores_everything_is_gone_within_two_seconds(tmp_path: Path) -> None:
    assert await stopped_in(rough("deaf", "child"), tmp_path) < 2


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_nothing_is_left_of_an_agent_that_ignores_everything(
    tmp_path: Path, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not behind wrappers either."""
    assert limits.CHILD_EXIT_SECONDS + limits.CHILD_TERM_SECONDS < 2
    monkeypatch.setattr(limits, "CHILD_EXIT_SECONDS", 0.05)
    monkeypatch.setattr(limits, "CHILD_TERM_SECONDS", 0.1)
    command: Sequence[str] = rough("deaf", "child")
    for _ in range(depth):
        command = ["sh", "-c", f"{shlex.join(command)}; true"]  # what follows keeps the shell from becoming it
    await stopped_in(command, tmp_path, wrappers=depth)


async def test_twenty_agents_come_and_go_without_a_trace(tmp_path: Path) -> None:
    async def one(number: int) -> str:
        async with connect(rough("child" if number % 10 == 0 else "")) as client:
            pids.append(_pid(client))
            said = await says(client, tmp_path)
            pids.extend(int(pid) for pid in re.findall(r"child (\d+)", client.stderr_tail()))
            return said

    pids: list[int] = []
    others = set(threading.enumerate())
    async with connect(rough()) as warm:  # whatever is made once, is made now
        await says(warm, tmp_path)
    await until(lambda: not _threads(others), "the threads of the first one are gone")
    descriptors = len(os.listdir("/proc/self/fd"))
    room = asyncio.Semaphore(10)

    async def in_turn(number: int) -> str:
        async with room:
            return await one(number)

    assert await asyncio.gather(*map(in_turn, range(20))) == ["done"] * 20
    assert len(pids) == 22
    assert [pid for pid in pids if lives(pid)] == []
    await until(lambda: not _threads(others), "a thread that has said its last word is gone a moment later")
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def _threads(others: set[threading.Thread]) -> list[str]:
    """Threads of ours that were not there before."""
    return [thread.name for thread in set(threading.enumerate()) - others if thread.name.startswith("dragoman")]


def _pid(client: Client) -> int:
    assert client._connection._child is not None
    return client._connection._child.pid


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found

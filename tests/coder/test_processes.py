"""What the agent has started dies with it, and a call runs once: kills, signals, wrappers, servers that misbehave.

Processes alone are in `tests/host/test_process.py` and `test_guardian.py`, kills in `tests/cli/test_kills.py`,
leaving in `tests/cli/test_leaving.py`, model endpoints in `tests/coder/models/test_provider_failures.py`.
"""

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder import session as coding_session
from dragoman.coder.models.contract import ModelFailed, ModelRequest, TextDelta, ToolCallRequested
from dragoman.vocabulary.events import (
    AnyEvent,
    Notice,
    TerminalUpdate,
)
from dragoman.vocabulary.requests import McpStdio
from dragoman.vocabulary.tools import Cancellable
from tests.coder.marked_agent import SECONDS, agent, guardians
from tests.support.editor import DRAGOMAN, HELLO, Editor, Message, turns
from tests.support.machine import marked
from tests.support.mcp_servers import raw
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.waiting import wait_until
from tests.support.whole_agent import events_of, until_server, whole


@pytest.mark.requirement("E7")
async def test_a_call_before_a_failure_runs_once(tmp_path: Path) -> None:
    """The stream breaks behind a call, again and again."""

    class Breaks(RecordingModel):
        tries = 0

        async def respond(self, inquiry: ModelRequest) -> Any:
            if inquiry.items and type(inquiry.items[-1]).__name__ == "ContextToolResult":
                yield TextDelta("done")
                return
            self.tries += 1
            yield ToolCallRequested("bash", {"command": "echo x >> log"})
            if self.tries < 3:
                raise ModelFailed("network", "It broke")

    async with whole(tmp_path, Breaks([]).make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert (tmp_path / "log").read_text() == "x\n"
    assert len([event for event in events if isinstance(event, Notice)]) == 2


TREES = {
    "children": "sh -c 'sleep 1000 & sleep 1000'",
    "double fork": "(setsid sleep 1000 &) ; sleep 1000",
    "deaf": "trap '' TERM HUP INT; sleep 1000; sleep 1000",
    "holds its pipes": "setsid sh -c 'trap \"\" TERM; sleep 1000' & exec 3>&1; sleep 1000",
    "deaf daemon": "setsid bash -c 'trap \"\" TERM HUP; (sleep 1000 &) ; sleep 1000' & sleep 1000",
}


def running(editor: Editor, mark: str, at_least: int = 2) -> None:
    """A turn with a command that has started what it starts."""
    editor.open()
    editor.send({"id": 70, "method": "session/prompt", "params": editor.words("go")})
    wait_until(lambda: len(set(marked(mark)) - {editor.process.pid}) > at_least)
    wait_until(lambda: all(map(_listens, guardians(mark))))


def _listens(guardian: int) -> bool:
    """Whether it has begun its work: it ignores what would end it."""
    try:
        status = Path(f"/proc/{guardian}/status").read_text()
    except OSError:
        return True
    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)


LEFT = [(mode, name) for mode in ("full", "workspace-write") for name in TREES]
QUICKLY = [("full", "deaf daemon"), ("workspace-write", "deaf daemon")]


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    ("mode", "name"), [one if one in QUICKLY else pytest.param(*one, marks=pytest.mark.slow) for one in LEFT]
)
def test_the_end_of_stdin_ends_everything_a_tool_has_started(tmp_path: Path, mode: str, name: str) -> None:
    """Within two seconds, exit code 0; also a tree that forks twice and is deaf to SIGTERM."""
    command = TREES[name]
    if mode == "workspace-write":
        need("bwrap")
    with agent(tmp_path, bash(command), mode=mode) as (editor, mark):
        if mode == "full":
            running(editor, mark)
        else:
            editor.open()
            editor.send({"id": 70, "method": "session/prompt", "params": editor.words("go")})
            wait_until(lambda: len(set(marked(mark)) - {editor.process.pid}) >= 2)
        code, _, errors = editor.leave()
        assert (code, errors) == (0, b"")
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)


PHASES: dict[str, tuple[list[Any], str, str]] = {
    "idle": ([{"say": "."}], "full", ""),
    "model": ([{"say": "up"}, {"say": "never", "delay_ms": 60_000}], "full", "up"),
    "tool": ([bash("echo up; sleep 1000")], "full", "up"),
    "permission": ([bash("sleep 1000")], "ask", "session/request_permission"),
    "search": ([call("glob", pattern="**/*"), {"say": "up"}, bash("sleep 1000 & echo up; wait")], "full", "up"),
    "helper": ([call("agent", prompt="x", description="up", name="a")], "full", "up"),
}


SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
# Each phase once, each signal twice; all of them in the slow lane.
SIGNALLED = [
    pytest.param(number, code, phase, marks=[] if row % 3 == column else [pytest.mark.slow])
    for row, phase in enumerate(PHASES)
    for column, (number, code) in enumerate(SIGNALS)
]


@pytest.mark.requirement("E9")
@pytest.mark.parametrize(("number", "code", "phase"), SIGNALLED)
def test_a_signal_ends_it_cleanly_in_every_phase(tmp_path: Path, phase: str, number: signal.Signals, code: int) -> None:
    steps, mode, sign = PHASES[phase]
    work = tmp_path / "work"
    work.mkdir()
    script: Any = turns(steps)
    script["agents"] = {"a": {"turns": [{"steps": [bash("sleep 1000")]}]}}
    mark = f"MARK_OF_A_TEST={tmp_path}"
    with Editor(tmp_path, script, "--mode", mode, env=dict([mark.split("=")])) as editor:
        editor.folder = work
        editor.open()
        if sign:
            editor.send({"id": 70, "method": "session/prompt", "params": editor.words("go")})
            while sign not in json.dumps(editor.read()):
                pass
        editor.process.send_signal(number)
        assert editor.process.wait(SECONDS) == code
        _, _, errors = editor.leave()
        assert errors == b""
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)


@pytest.mark.requirement("E9")
@pytest.mark.parametrize("phase", [pytest.param("model", marks=pytest.mark.slow), "tool", "permission"])
def test_a_broken_pipe_is_a_client_that_has_gone(tmp_path: Path, phase: str) -> None:
    """SIGPIPE, and writing without a reader."""
    known: dict[str, list[Any]] = {
        "model": [{"say": "up"}, {"say": "x", "repeat": 100_000, "delay_ms": 1}],
        "tool": [bash("echo up; while sleep 0.02; do echo more; done")],
        "permission": [bash("sleep 1000")],
    }
    steps = known[phase]
    sign = "session/request_permission" if phase == "permission" else "up"
    with agent(tmp_path, *steps, mode="ask" if phase == "permission" else "full") as (editor, mark):
        editor.open()
        editor.send({"id": 70, "method": "session/prompt", "params": editor.words("go")})
        while sign not in json.dumps(editor.read()):
            pass
        editor.process.send_signal(signal.SIGPIPE)
        editor.stdout.close()
        if phase == "permission":
            editor.stdin.close()
        assert editor.process.wait(SECONDS) == 0
        editor.left = True
        assert editor.stderr.read() == b""
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)


TWO = "sleep 1000 & setsid sleep 1000 & wait"


@pytest.mark.requirement("E10")
def test_what_a_killed_agent_had_started_dies(tmp_path: Path) -> None:
    """Kill -9, with a command that is free; in all forms they are in `test_kills.py`."""
    with closing_by_force_agent(tmp_path, bash(TWO), mode="full") as (editor, mark):
        killed(editor, mark)


@pytest.mark.requirement("E10")
def test_what_a_killed_sandbox_had_started_dies_and_what_it_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    """A view of the workspace may be large."""
    need("bwrap")
    views = tmp_path / "home" / "views"
    with closing_by_force_agent(tmp_path, call("sandbox_bash", command=TWO), mode="sandbox") as (editor, mark):
        killed(editor, mark)
    assert len(list(views.iterdir())) == 1
    with agent(tmp_path, call("sandbox_bash", command="true"), mode="sandbox") as (editor, _):
        editor.open().prompt("go")
    assert list(views.iterdir()) == []


def killed(editor: Editor, mark: str) -> None:
    """While its command runs; of what it had started nothing is left."""
    running(editor, mark)
    editor.process.kill()
    editor.process.wait()
    wait_until(lambda: marked(mark) == [], seconds=SECONDS)


@contextmanager
def closing_by_force_agent(folder: Path, *steps: Any, mode: str) -> Iterator[tuple[Editor, str]]:
    with agent(folder, *steps, mode=mode) as (editor, mark):
        try:
            yield editor, mark
        finally:
            editor.left = True


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("command", TREES.values(), ids=TREES.keys())
async def test_a_cancelled_command_is_dead_with_all_it_started(tmp_path: Path, command: str) -> None:
    """Though it forked twice, left the session, is deaf, and holds its pipes."""
    from tests.support import whole_agent

    mark = f"MARK_OF_A_TEST_{os.getpid()}={tmp_path}"
    environment = dict([mark.split("=")])
    whole_agent.ENVIRONMENT.update(environment)
    try:
        async with whole(tmp_path, RecordingModel([bash(command)]).make, mode="full-access") as (_, session):
            turn = session.prompt("go")
            async for event in turn:
                if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                    await asyncio.to_thread(wait_until, lambda: len(marked(mark)) >= 2)
                    began = time.monotonic()
                    await turn.cancel()
            assert time.monotonic() - began < SECONDS
            assert marked(mark) == []
    finally:
        for name in environment:
            del whole_agent.ENVIRONMENT[name]
    assert turn.stop_reason == "cancelled"


@pytest.mark.requirement("E12")
def test_a_wrapper_that_is_dropped_leaves_no_process(tmp_path: Path) -> None:
    """Sh, in it a sh, in it the agent, in it a command; the pipes are closed, the wrapper is killed."""
    (tmp_path / "script.json").write_text(json.dumps(turns([bash("sleep 1000 & sleep 1000")])))
    inner = " ".join([*DRAGOMAN, "acp", "--mode", "full", "--model", f"script:{tmp_path}/script.json"])
    mark = f"MARK_OF_A_TEST={tmp_path}"
    env = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home"), **dict([mark.split("=")])}
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", f"sh -c '{inner}; true'; true"], stdin=pipe, stdout=pipe, env=env) as wrapper:
        assert wrapper.stdin is not None
        assert wrapper.stdout is not None

        def send(message: Message) -> None:
            assert wrapper.stdin is not None
            wrapper.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            wrapper.stdin.flush()

        send({"id": 1, "method": "initialize", "params": HELLO[1]})
        wrapper.stdout.readline()
        send({"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}})
        session = json.loads(wrapper.stdout.readline())["result"]["sessionId"]
        prompt = [{"type": "text", "text": "go"}]
        send({"id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}})
        wait_until(lambda: len(marked(mark)) >= 6)
        wrapper.stdin.close()
        wrapper.stdout.close()
        wrapper.kill()
        wait_until(lambda: marked(mark) == [], seconds=SECONDS)


async def cycles(folder: Path, count: int) -> None:
    """Commands that are started and cancelled; nothing stays: no descriptor, no thread, no zombie."""
    model = RecordingModel([bash("echo up; sleep 1000")])
    async with whole(folder, model.make, mode="full-access") as (_, session):

        async def once() -> None:
            turn = session.prompt("go")
            async for event in turn:
                if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                    await turn.cancel()
            assert turn.stop_reason == "cancelled"

        for _ in range(5):
            await once()
        await fill_thread_pool()
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        for _ in range(count):
            await once()
        after = len(os.listdir("/proc/self/fd")), threading.active_count()
        assert after[0] <= before[0] + 1
        assert after[1] <= before[1] + 1
        assert zombies() == []


async def fill_thread_pool() -> None:
    """Start every thread that `asyncio.to_thread` may ever start: a pool that grows by need is no leak."""
    size = min(32, (os.cpu_count() or 1) + 4)
    together = threading.Barrier(size)
    await asyncio.gather(*(asyncio.to_thread(together.wait, SECONDS) for _ in range(size)))


def zombies() -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(int(name))
    return found


@pytest.mark.requirement("E13")
async def test_starting_and_cancelling_leaves_nothing(tmp_path: Path) -> None:
    """Bounded; thousands in the slow lane."""
    await cycles(tmp_path, 15)


@pytest.mark.requirement("E13")
@pytest.mark.slow
async def test_thousands_of_starts_and_cancels_leave_nothing(tmp_path: Path) -> None:
    await cycles(tmp_path, 5_000)


BAD_SERVERS = [
    "dies at start",
    "exits on initialize",
    "dies after listing",
    "mute",
    "garbage",
    "noisy",
    "silent",
    "dies",
]


@pytest.mark.requirement("E14")
async def test_bad_servers_are_told_of_once_and_the_session_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once, in one session."""
    monkeypatch.setattr(coding_session, "SERVERS_SECONDS", 0.1)
    servers = [raw(name, tmp_path / "trace", name.replace(" ", "-")) for name in BAD_SERVERS]
    servers.append(McpStdio("missing", "/nonexistent/server", []))
    outside: list[AnyEvent] = []
    model = RecordingModel(apart([bash("echo hi"), call("mcp__noisy__act"), call("mcp__dies__act")]))
    hear: dict[str, Any] = {"on_event": lambda conversation, event: outside.append(event)}
    began = time.monotonic()
    async with whole(tmp_path, model.make, mode="full-access", mcp_servers=servers, **hear) as (_, session):
        assert time.monotonic() - began < 5  # a mute server has more time than that
        heard = await until_server("noisy: connected", session)
        heard += await until_server("dies: connected", session)
        heard += await events_of(session)
    assert model.results[0] == "hi\n"
    assert "still here" in model.results[1]
    notices = [str(event.title) for event in [*heard, *outside] if isinstance(event, Notice)]
    for name in ("dies-at-start", "exits-on-initialize", "missing"):
        assert len([notice for notice in notices if name in notice]) <= 1, notices
    assert all(len(notice) < 5_000 for notice in notices)

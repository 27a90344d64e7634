"""Whatever handlers, stores and threads do, a process is gone two seconds after its input ended or a signal came."""

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import cast

import pytest

from tests.agent.test_process import SECONDS, hear_until, noticed, say
from tests.support.fork_server.client import Forked, fork_server
from tests.support.messages import Message, hello, prompt

HOW = ["EOF", "SIGTERM", "SIGINT"]
PROGRAM = """
import asyncio, os, sys, threading, time
from dragoman import Agent
from dragoman.store.sqlite import SqliteStore
store = {store}
agent = Agent("x", store=store)

@agent.prompt
async def work(session, prompt):
{prompt}

@agent.session_closed
async def closed(session):
{closed}

agent.run()
"""
IGNORE = """
while True:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
"""
# Also what the interpreter throws into a coroutine that it collects.
SWALLOW = """
while True:
    try:
        await asyncio.sleep(1)
    except BaseException:
        pass
"""
# The garbage collector is called once more, as any program may that goes on after its agent.
AFTERWARDS = """
import atexit, gc
atexit.register(print, "at exit", file=sys.stderr)
gc.collect()
print("after the agent", file=sys.stderr)
sys.exit(7)
"""
BACKTRACK = "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"


class Case:
    """What the handlers of one agent do. `shuts_down`: in an interpreter that shuts down, which a fork does not."""

    def __init__(
        self, prompt: str = "", closed: str = "", *, stored: bool = False, sessions: int = 1, shuts_down: bool = False
    ) -> None:
        # Said on stderr, because a handler that blocks the loop keeps its own words from leaving.
        self.prompt = f'print("begun", file=sys.stderr, flush=True)\n{textwrap.dedent(prompt)}'
        self.closed = f"pass\n{textwrap.dedent(closed)}"
        self.stored = stored
        self.sessions = sessions
        self.shuts_down = shuts_down

    def source(self, folder: Path) -> str:
        parts = {name: textwrap.indent(getattr(self, name), "    ") for name in ("prompt", "closed")}
        return PROGRAM.format(store=f"SqliteStore({str(folder)!r})" if self.stored else None, **parts)


CASES = {
    "both ignore their end": Case(IGNORE, IGNORE),
    "swallows every exception": Case(SWALLOW, shuts_down=True),
    "swallows every exception when closed": Case("", SWALLOW, shuts_down=True),
    "leaves a task behind that swallows every exception": Case(
        f"async def poll():{textwrap.indent(SWALLOW, '    ')}\nsession.memory['task'] = asyncio.create_task(poll())",
        shuts_down=True,
    ),
    "leaves a generator behind that swallows every exception": Case(
        f"""
async def forever():
    try:
        yield 1
    finally:{textwrap.indent(SWALLOW, "        ")}
generator = session.memory['generator'] = forever()
await anext(generator)
""",
        shuts_down=True,
    ),
    "blocks the loop": Case("time.sleep(60)"),
    "is busy": Case("while True: pass"),
    "blocks a thread": Case("await asyncio.to_thread(time.sleep, 60)"),
    "blocks a thread of its own pool": Case(
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor().submit(time.sleep, 60)"
    ),
    "leaves a thread behind": Case("threading.Thread(target=time.sleep, args=(60,)).start()"),
    "hangs when closed": Case("await asyncio.sleep(60)", "await asyncio.sleep(60)"),
    "blocks when closed": Case("", "time.sleep(60)"),
    "blocks when cancelled": Case(
        """
        try:
            await asyncio.sleep(60)
        finally:
            time.sleep(60)
        """
    ),
    "cleans up for ever in a generator": Case(
        """
        async def forever():
            try:
                yield 1
            finally:
                await asyncio.sleep(60)
        async for _ in forever():
            await asyncio.sleep(60)
        """
    ),
    "a store that hangs": Case("store._engine.put(lambda: time.sleep(60))", stored=True),
    "a store that hangs in a turn": Case(
        "store._engine.put(lambda: time.sleep(60))\nawait session.say('more')\nawait asyncio.sleep(60)", stored=True
    ),
    "many sessions": Case("await asyncio.sleep(60)", IGNORE, sessions=200),
    "many sessions that take their time": Case("", "time.sleep(0.05)", sessions=200),
    "hangs at exit": Case("import atexit\natexit.register(time.sleep, 60)"),
}
ONCE = [(name, HOW[number % 3]) for number, name in enumerate(CASES)]


def started(case: Case, folder: Path, afterwards: str = "") -> Forked:
    source = case.source(folder) + afterwards
    if case.shuts_down:  # a Popen has everything that is used of a Forked here
        return cast(Forked, Popen([sys.executable, "-c", source], stdin=PIPE, stdout=PIPE, stderr=PIPE))
    return fork_server().child(source)


@contextmanager
def begun(case: Case, folder: Path, version: int = 1, afterwards: str = "") -> Iterator[tuple[Forked, str]]:
    """A process in whose last session a prompt handler has begun."""
    with started(case, folder, afterwards) as process:
        try:
            say(process, hello(version))
            for id in range(1, case.sessions + 1):
                params: Message = {"cwd": os.getcwd(), "mcpServers": []}
                say(process, {"id": id, "method": "session/new", "params": params})
                opened = hear_until(process, lambda message, id=id: message.get("id") == id)
            session_id = opened["result"]["sessionId"]
            say(process, prompt(1000, session_id))
            assert process.stderr.readline() == b"begun\n"
            yield process, session_id
        finally:
            process.kill()


def end(process: Forked, how: str) -> float:
    """End a process, and give the seconds that took. Fails for another exit code, or where it takes too long."""
    began = time.monotonic()
    if how == "EOF":
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[how])
    assert process.wait(timeout=SECONDS) == {"EOF": 0, "SIGTERM": 143, "SIGINT": 130}[how]
    return time.monotonic() - began


@pytest.mark.parametrize(("name", "how"), ONCE)
def test_a_process_ends_whatever_its_handlers_do(name: str, how: str, tmp_path: Path) -> None:
    with begun(CASES[name], tmp_path) as (process, _):
        end(process, how)
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CASES)
def test_a_process_ends_within_two_seconds_whatever_its_handlers_do(name: str, how: str, tmp_path: Path) -> None:
    with begun(CASES[name], tmp_path) as (process, _):
        assert end(process, how) < 2.3  # the promise, and a moment for a busy machine


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_process_whose_handler_never_leaves_a_regular_expression(how: str, tmp_path: Path) -> None:
    with begun(Case(BACKTRACK), tmp_path) as (process, _):
        end(process, how)


def test_a_program_goes_on_after_an_agent_whose_task_swallows_every_exception(tmp_path: Path) -> None:
    case = CASES["leaves a task behind that swallows every exception"]
    with begun(case, tmp_path, afterwards=AFTERWARDS) as (process, _):
        hear_until(process, lambda message: message.get("id") == 1000)
        process.stdin.close()
        assert process.wait(timeout=SECONDS) == 7
        assert process.stderr.read() == b"after the agent\nat exit\n"


@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_a_process_ends_that_is_flooded(how: str, tmp_path: Path) -> None:
    """What is written goes on until the pipe breaks."""
    flood = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}).encode() + b"\n"
        for id in range(2000)
    )
    with begun(Case("await asyncio.sleep(60)"), tmp_path) as (process, _):
        if how == "EOF":
            process.stdin.write(flood)
        else:
            process.send_signal(signal.SIGTERM)
            with pytest.raises(BrokenPipeError):
                write_for_ever(process, flood)
        with suppress(BrokenPipeError):
            process.stdin.close()
        assert process.wait(timeout=SECONDS) == {"EOF": 0, "SIGTERM": 143}[how]


def write_for_ever(process: Forked, data: bytes) -> None:
    while True:
        process.stdin.write(data)
        process.stdin.flush()


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_client_saw_is_there_after_a_process_that_had_to_be_ended(version: int, tmp_path: Path) -> None:
    later = """
def block():
    print("blocked", file=sys.stderr, flush=True)
    time.sleep(60)
asyncio.get_running_loop().call_later(0.1, block)
await asyncio.sleep(60)
"""
    blocks = Case(f"await session.say('first')\nawait session.say(' and more')\n{later}", stored=True)
    with begun(blocks, tmp_path, version) as (process, session_id):
        hear_until(process, lambda message: "and more" in str(message))
        assert process.stderr.readline() == b"blocked\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=SECONDS) == 143
    with fork_server().child(blocks.source(tmp_path)) as process:
        say(process, hello(1))
        params = {"sessionId": session_id, "cwd": os.getcwd(), "mcpServers": []}
        say(process, {"id": 1, "method": "session/load", "params": params})
        assert "first and more" in str(hear_until(process, lambda message: "first" in str(message)))
        assert "result" in hear_until(process, lambda message: message.get("id") == 1)
        process.stdin.close()
        assert process.wait(timeout=SECONDS) == 0


def test_a_second_signal_ends_a_process_whose_loop_is_blocked(tmp_path: Path) -> None:
    with begun(CASES["is busy"], tmp_path) as (process, _):
        process.send_signal(signal.SIGTERM)
        noticed(process.pid)  # two signals in one instant are one signal
        process.send_signal(signal.SIGTERM)
        # One that is ended by the guard says 143.
        assert process.wait(timeout=SECONDS) == -signal.SIGTERM


def test_a_signal_that_the_author_handles_ends_nothing(tmp_path: Path) -> None:
    alarm = """
    import signal
    signal.signal(signal.SIGALRM, lambda *_: print("alarm", file=sys.stderr, flush=True))
    signal.raise_signal(signal.SIGALRM)
    """
    with begun(Case(alarm), tmp_path) as (process, _):
        assert process.stderr.readline() == b"alarm\n"
        ended = hear_until(process, lambda message: message.get("id") == 1000)
        assert ended["result"] == {"stopReason": "end_turn"}
        say(process, {"id": 1001, "method": "session/list", "params": {}})
        assert "result" in hear_until(process, lambda message: message.get("id") == 1001)
        end(process, "EOF")


def test_a_signal_ends_a_process_whose_author_has_given_the_loop_a_signal_handler(tmp_path: Path) -> None:
    handler = """
    import signal
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print, "dump")
    await session.say("healthy")
    """
    with begun(Case(handler), tmp_path) as (process, _):
        hear_until(process, lambda message: message.get("id") == 1000)
        end(process, "SIGTERM")


def test_a_pool_that_is_idle_keeps_no_program_from_going_on_after_its_agent(tmp_path: Path) -> None:
    pool = """
    from concurrent.futures import ThreadPoolExecutor
    pool = globals()["pool"] = ThreadPoolExecutor()  # without a name it would end with the handler
    await asyncio.get_running_loop().run_in_executor(pool, time.sleep, 0)
    """
    source = Case(pool).source(tmp_path) + 'print("and goes on", file=sys.stderr, flush=True)\n'
    with fork_server().child(source) as process:
        say(process, hello(1))
        say(process, {"id": 1, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}})
        session_id = hear_until(process, lambda message: message.get("id") == 1)["result"]["sessionId"]
        say(process, prompt(2, session_id))
        hear_until(process, lambda message: message.get("id") == 2)
        end(process, "EOF")
        assert process.stderr.read() == b"begun\nand goes on\n"

"""An agent as a process: EOF and signals end it in two seconds, whatever its handlers do."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fork_server.client import Forked, fork_server
from tests.support.messages import Message, hello, prompt

# Longer than anything takes on a busy machine; the handlers below sleep longer still, and are never waited for.
SECONDS = 30
HANDLERS = {
    "sleeps": """
        await session.say("begun")
        await asyncio.sleep(60)
        """,
    "ignores": """
        await session.say("begun")
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
        """,
    "blocks a thread": """
        await session.say("begun")
        await asyncio.to_thread(time.sleep, 60)
        """,
    "prints": """
        print("not protocol")
        os.system("echo nor this")
        sys.stdout.write("nor that\\n")
        await session.say("a\\nb\\r\\nc")
        """,
}


def test_a_person_at_a_terminal_is_told_who_is_waited_for() -> None:
    ours, theirs = os.openpty()
    source = "from dragoman import Agent\nagent = Agent('x')\n@agent.prompt\nasync def work(s, p): ...\nagent.run()"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        assert process.stdout and process.stderr
        assert process.stderr.readline() == b"x: waiting for an ACP client on stdin\n"
        os.close(ours)  # the terminal is gone
        assert process.stdout.read() == b""


@contextmanager
def agent_process(handler: str) -> Iterator[Forked]:
    body = textwrap.indent(textwrap.dedent(HANDLERS[handler]), "    ")
    source = (
        "import asyncio, os, sys, time\nfrom dragoman import Agent\nagent = Agent('x')\n"
        f"@agent.prompt\nasync def work(session, prompt):\n{body}\nagent.run()\nprint('after', file=sys.stderr)\n"
    )
    with fork_server().child(source) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: Forked, *messages: Message) -> None:
    process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n" for m in messages))
    process.stdin.flush()


def hear_until(process: Forked, found: Any) -> Message:
    for line in process.stdout:
        message: Message = json.loads(line)
        if found(message):
            return message
    raise AssertionError("the agent went away")


def begin(process: Forked, version: int) -> None:
    """Open a session, prompt, and wait until the handler runs."""
    new = {"id": 1, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}}
    say(process, hello(version), new)
    session_id = hear_until(process, lambda m: m.get("id") == 1)["result"]["sessionId"]
    say(process, prompt(2, session_id))


def is_cancelled(message: Message) -> bool:
    return "cancelled" in str(message.get("result", message.get("params")))


HOW = ["EOF", "SIGTERM", "SIGINT"]
WORK = [("sleeps", 1), ("sleeps", 2), ("ignores", 1), ("blocks a thread", 1)]
SOME = [("sleeps", 1, "EOF"), ("sleeps", 2, "SIGTERM"), ("ignores", 1, "SIGINT")]
SOME += [("blocks a thread", 1, "EOF"), ("blocks a thread", 1, "SIGTERM")]


@pytest.mark.parametrize(("handler", "version", "how"), SOME)
def test_a_process_ends_and_its_turn_as_cancelled(handler: str, version: int, how: str) -> None:
    assert seconds_to_end(handler, version, how) < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("handler", "version"), WORK)
def test_a_process_ends_within_two_seconds_and_its_turn_as_cancelled(handler: str, version: int, how: str) -> None:
    assert seconds_to_end(handler, version, how) < 2.5  # the promise, and half a second for a busy machine


def seconds_to_end(handler: str, version: int, how: str) -> float:
    """A process with a turn is ended; how long that took."""
    with agent_process(handler) as process:
        begin(process, version)
        hear_until(process, lambda m: "begun" in str(m))
        began = time.monotonic()
        if how == "EOF":
            process.stdin.close()
        else:
            process.send_signal(signal.Signals[how])
        hear_until(process, is_cancelled)
        assert process.wait(timeout=SECONDS) == {"EOF": 0, "SIGTERM": 143, "SIGINT": 130}[how]
        taken = time.monotonic() - began
        errors = process.stderr.read().decode()
        assert "Traceback" not in errors and ("after" in errors) == (how == "EOF")
        return taken


@pytest.mark.requirement("A14", "A16")
def test_stdout_carries_protocol_lines_and_nothing_else() -> None:
    with agent_process("prints") as process:
        begin(process, 1)
        said = hear_until(process, lambda m: "agent_message_chunk" in str(m))
        assert said["params"]["update"]["content"]["text"] == "a\nb\r\nc"
        hear_until(process, lambda m: m.get("id") == 2)
        process.stdin.close()
        assert process.stdout.read() == b""
        errors = process.stderr.read().decode()
        assert "not protocol" in errors and "nor this" in errors and "nor that" in errors
        assert process.wait(timeout=SECONDS) == 0


@pytest.mark.requirement("A15")
def test_input_that_ends_in_mid_message_is_not_dispatched_and_ends_the_process_cleanly() -> None:
    with agent_process("sleeps") as process:
        say(process, hello(1))
        hear_until(process, lambda m: m.get("id") == 0)
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"session/new","par')
        process.stdin.close()
        assert (process.stdout.read(), process.wait(timeout=SECONDS)) == (b"", 0)


def test_a_second_signal_ends_a_process_at_once() -> None:
    with agent_process("ignores") as process:
        begin(process, 1)
        hear_until(process, lambda m: "begun" in str(m))
        process.send_signal(signal.SIGTERM)
        noticed(process.pid)  # two signals in one instant are one signal
        process.send_signal(signal.SIGTERM)
        # One that ends in its own time says 143.
        assert process.wait(timeout=SECONDS) == -signal.SIGTERM


def noticed(pid: int) -> None:
    """Until the first signal has been heard: then the process does not catch them any more."""
    deadline = time.monotonic() + SECONDS
    while int(re.findall(r"SigCgt:\t(\w+)", Path(f"/proc/{pid}/status").read_text())[0], 16) >> signal.SIGTERM - 1 & 1:
        assert time.monotonic() < deadline
        time.sleep(0.002)  # between two looks at the process

"""The first moment of an agent process: a plain `initialize` is answered early, and nothing else is any different."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fork_server.client import Forked, fork_server
from tests.support.messages import hello

# What it does runs when asyncio is first imported: that is after the answer, and before the loop.
HOOK = """
import os, signal, sys, time
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "asyncio":
            sys.meta_path.remove(self)
            {hook}
sys.meta_path.insert(0, Hook())
"""
PROGRAM = """
import os, sys, threading
from dragoman import Agent
agent = Agent("early", version="1")
@agent.prompt
async def work(session, prompt):
    await session.say("yes")
@agent.extension("_ping")
async def ping(params):
    return params
{run}
print("after", file=sys.stderr)
"""
PIPE = subprocess.PIPE
# Longer than anything takes on a busy machine.
SECONDS = 30


def message(id: object, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


HELLO = {version: json.dumps({"jsonrpc": "2.0", **hello(version)}).encode() for version in (1, 2)}
PING = message(7, "_ping", a=1)


def block(payload: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)


@contextmanager
def agent_process(
    run: str = "agent.run()", *, hook: str = "", **pipes: Any
) -> Iterator["subprocess.Popen[bytes] | Forked"]:
    """Started where there is a hook, for which everything is yet to be imported; else forked."""
    process: subprocess.Popen[bytes] | Forked
    if hook:
        source = HOOK.format(hook=hook) + PROGRAM.format(run=run)
        process = subprocess.Popen([sys.executable, "-c", source], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    else:
        process = fork_server().child(PROGRAM.format(run=run), **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def waiting_for_input(pid: int) -> None:
    """Until the process catches signals and sleeps."""
    bit = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if int(status["SigCgt"], 16) & bit and status["State"].startswith("S"):
            return
        time.sleep(0.005)  # between two looks at the process, which does not report that it waits
    raise AssertionError("the agent never waited for its input")


@pytest.mark.parametrize("version", [1, 2])
def test_initialize_is_answered_before_the_event_loop_is_imported(version: int) -> None:
    with agent_process(hook="os._exit(9)") as process:
        out, errors = process.communicate(HELLO[version] + b"\n", timeout=SECONDS)
        assert (process.returncode, errors) == (9, b"")
        assert json.loads(out)["result"]["protocolVersion"] == version


def test_importing_what_an_author_needs_loads_no_event_loop() -> None:
    names = "import sys, dragoman.agent.session; from dragoman import Agent; from dragoman.vocabulary import options"
    code = (
        f"{names}; sys.exit(bool({{'asyncio', 'socket', 'ssl', 'dragoman.link', 'dragoman.wire'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Everything a client may begin with. What is said must be the same, early or not.
OPENINGS = {
    "a line": [HELLO[1] + b"\n", PING + b"\n"],
    "a line of version 2": [HELLO[2] + b"\n", PING + b"\n"],
    "a byte order mark": [b"\xef\xbb\xbf" + HELLO[1] + b"\n", PING + b"\n"],
    "blank lines and CRLF": [b"\r\n\n" + HELLO[1] + b"\r\n", PING + b"\r\n"],
    "content-length": [block(HELLO[1]), block(PING)],
    "content-length, two in one": [block(HELLO[1]) + block(PING)],
    "content-length, one and a half": [block(HELLO[1]) + block(PING)[:9], block(PING)[9:]],
    "two lines in one": [HELLO[1] + b"\n" + PING + b"\n"],
    "a line and a half": [HELLO[1] + b"\n" + PING[:20], PING[20:] + b"\n"],
    "half a line": [HELLO[1][:20], HELLO[1][20:] + b"\n", PING + b"\n"],
    "garbage first": [b"hello?\n", HELLO[1] + b"\n", PING + b"\n"],
    "something else first": [PING + b"\n", HELLO[1] + b"\n", PING + b"\n"],
    "a notification first": [b'{"jsonrpc":"2.0","method":"session/cancel"}\n', HELLO[1] + b"\n", PING + b"\n"],
    "no version": [message(1, "initialize") + b"\n", HELLO[1] + b"\n", PING + b"\n"],
    "a version nobody speaks": [message(1, "initialize", protocolVersion=0) + b"\n", HELLO[1] + b"\n"],
    "twice": [HELLO[1] + b"\n", HELLO[1] + b"\n", PING + b"\n"],
    "an id that is text": [message("ü", "initialize", protocolVersion=1) + b"\n", PING + b"\n"],
    "an id that is null": [message(None, "initialize", protocolVersion=1) + b"\n", PING + b"\n"],
    "an id that is neither": [b'{"jsonrpc":"2.0","id":1.5,"method":"initialize"}\n', HELLO[1] + b"\n"],
    "no newline at the end": [HELLO[1]],
    "nothing": [],
}


@pytest.mark.parametrize("opening", OPENINGS)
def test_what_is_said_is_the_same_as_without_the_early_answer(opening: str) -> None:
    early, late = (
        answers(run, OPENINGS[opening]) for run in ("agent.run()", "agent.run(trace=lambda direction, frame: None)")
    )
    assert early == late
    assert early[1:] == (b"after\n", 0)


def answers(run: str, pieces: list[bytes]) -> tuple[bytes, bytes, int]:
    """Stdout, stderr and the exit code of an agent that is told these pieces, one after the other."""
    with fork_server().child(PROGRAM.format(run=run)) as agent:
        for piece in pieces:
            waiting_for_input(agent.pid)
            agent.stdin.write(piece)
            agent.stdin.flush()
            # It has read the piece, and waits for the next one.
            deadline = time.monotonic() + SECONDS
            while _unread(agent.stdin.fileno()) and time.monotonic() < deadline:
                time.sleep(0.002)  # between two looks at the pipe
        agent.stdin.close()
        out, errors = agent.stdout.read(), agent.stderr.read()
    lines = b"".join(line for line in errors.splitlines(keepends=True) if not line.startswith(b"dragoman: skipped"))
    return out, lines, agent.wait()


def _unread(fd: int) -> int:
    import array
    import fcntl
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_ends_an_agent_that_received_nothing(name: str, code: int) -> None:
    with agent_process() as process:
        waiting_for_input(process.pid)
        process.send_signal(signal.Signals[name])
        assert process.wait(timeout=SECONDS) == code
        assert process.stderr is not None and process.stderr.read() == b""


def test_a_signal_between_the_answer_and_the_loop_is_not_lost() -> None:
    with agent_process(hook="os.kill(os.getpid(), signal.SIGTERM)") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(HELLO[1] + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        assert process.wait(timeout=SECONDS) == 143


def test_a_second_signal_ends_it_at_once_even_then() -> None:
    # Between the two it sleeps in the agent's own process, so that they are two signals and not one that is pending.
    twice = "[os.kill(os.getpid(), signal.SIGTERM) or time.sleep(0.05) for _ in 'ab']"
    with agent_process(hook=twice) as process:
        assert process.stdin is not None
        process.stdin.write(HELLO[1] + b"\n")
        process.stdin.flush()
        assert process.wait(timeout=SECONDS) == -signal.SIGTERM


def test_sockets_as_clients_in_javascript_give_them() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, agent_process(stdin=theirs, stdout=theirs) as process:
        theirs.close()
        for id, sent in ((0, HELLO[1]), (7, PING)):
            ours.sendall(sent + b"\n")
            assert json.loads(ours.makefile().readline())["id"] == id
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(timeout=SECONDS) == 0


def test_a_file_and_nothing_at_all_as_input(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HELLO[1] + b"\n")
    with (tmp_path / "in").open("rb") as file, agent_process(stdin=file) as process:
        out, _ = process.communicate(timeout=SECONDS)
        assert (json.loads(out)["id"], process.returncode) == (0, 0)
    with agent_process(stdin=subprocess.DEVNULL) as process:
        assert (process.communicate(timeout=SECONDS)[0], process.returncode) == (b"", 0)
    with agent_process("os.close(0); agent.run()", stdin=subprocess.DEVNULL) as process:
        assert (process.communicate(timeout=SECONDS)[0], process.returncode) == (b"", 0)


def test_a_terminal_that_says_its_end_once() -> None:
    leader, terminal = os.openpty()
    with agent_process(stdin=terminal) as process:
        os.close(terminal)
        waiting_for_input(process.pid)
        os.write(leader, b"\x04")
        assert process.wait(timeout=SECONDS) == 0
    os.close(leader)


def test_a_client_that_is_gone_before_the_answer() -> None:
    with agent_process() as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write(HELLO[1] + b"\n")
        process.stdin.flush()
        assert process.wait(timeout=SECONDS) == 0
        assert process.stderr.read() == b"after\n"


def test_an_output_that_is_full_delays_the_answer_and_loses_nothing() -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    filling = 0
    try:
        while True:
            filling += os.write(writes, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(writes, True)
    with agent_process(stdout=writes) as process:
        os.close(writes)
        assert process.stdin is not None
        process.stdin.write(HELLO[1] + b"\n")
        process.stdin.flush()
        waiting_for_input(process.pid)
        with os.fdopen(reads, "rb") as output:
            assert output.read(filling) == b"x" * filling
            assert json.loads(output.readline())["id"] == 0


def test_an_answer_larger_than_a_pipe_takes_at_once_comes_whole() -> None:
    run = "agent._core.info = type(agent._core.info)('n' * 300_000, '1'); agent.run()"
    with agent_process(run) as process:
        out, _ = process.communicate(HELLO[1] + b"\n", timeout=SECONDS)
        assert len(json.loads(out)["result"]["agentInfo"]["name"]) == 300_000


def test_a_hello_that_fails_is_answered_and_reported() -> None:
    with agent_process("agent._core.hello = lambda: 1 / 0; agent.run()") as process:
        out, errors = process.communicate(HELLO[1] + b"\n", timeout=SECONDS)
        assert json.loads(out)["error"] == {"code": -32603, "message": "Internal error"}
        assert errors.count(b"ZeroDivisionError") == 1


def test_outside_the_main_thread() -> None:
    run = "thread = threading.Thread(target=agent.run); thread.start(); thread.join()"
    with agent_process(run) as process:
        out, errors = process.communicate(HELLO[1] + b"\n" + PING + b"\n", timeout=SECONDS)
        assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 7]
        assert (errors, process.returncode) == (b"after\n", 0)


def test_a_trace_sees_the_first_frames_too() -> None:
    run = "agent.run(trace=lambda direction, frame: print(direction, len(frame), file=sys.stderr))"
    with agent_process(run) as process:
        out, errors = process.communicate(HELLO[1] + b"\n", timeout=SECONDS)
        assert errors.decode().splitlines() == [f"in {len(HELLO[1])}", f"out {len(out) - 1}", "after"]

"""How `dragoman acp` ends: when the editor leaves, in whatever way, and when it is told to."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.editor import DRAGOMAN, HELLO, PATIENCE_SECONDS, Editor, memory, turns
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.versions import both_versions, slow

WAIT = turns([{"say": "wait"}, {"say": "never", "delay_ms": 60_000}])
FLOOD = turns([{"say": "x"}], [{"say": "x" * 1000, "repeat": 10_000_000}])
# In which it should leave: only one that waits for something takes longer.
SECONDS = 15.0
MIB = 1024


@pytest.mark.requirement("E8")
@both_versions
def test_the_end_of_stdin_ends_the_agent_in_the_middle_of_a_turn(version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, WAIT, version=version) as editor:
        editor.open().begin()
        start = time.monotonic()
        code, out, errors = editor.leave()
        assert time.monotonic() - start < SECONDS
        assert (code, out.count(b'"cancelled"'), out.count(b"\n"), errors) == (0, 1, 1, b"")


def test_an_editor_that_leaves_while_it_is_to_write_a_file_gets_no_traceback(tmp_path: Path) -> None:
    write = {"call": "write_file", "input": {"path": "a.txt", "content": "x"}}
    with Editor(tmp_path, turns([write, {"say": "Done."}]), "--mode", "workspace-write") as editor:
        editor.open(clientCapabilities={"fs": {"readTextFile": False, "writeTextFile": True}})
        editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
        while editor.read().get("method") != "fs/write_text_file":
            pass
        code, _, errors = editor.leave()
    assert (code, errors) == (0, b"")


@pytest.mark.parametrize("stage", ["before initialize", "in the middle of a message"])
def test_the_end_of_stdin_is_no_error(stage: str, tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        if stage == "in the middle of a message":
            editor.open()
            editor.write(b'{"jsonrpc": "2.0", "id": 7, "meth')
        assert editor.leave() == (0, b"", b"")


def test_what_was_asked_before_the_end_of_stdin_is_answered(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        editor.send({"id": 1, "method": "initialize", "params": HELLO[1]})
        editor.send({"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
        code, out, errors = editor.leave()
    answered = [message["id"] for message in map(json.loads, out.splitlines()) if "id" in message]
    assert (code, answered, errors) == (0, [1, 2], b"")


@pytest.mark.parametrize(
    ("version", "number", "code"),
    [
        (1, signal.SIGTERM, 143),
        pytest.param(1, signal.SIGINT, 130, marks=slow),
        (1, signal.SIGHUP, 129),
        pytest.param(2, signal.SIGTERM, 143, marks=slow),
        (2, signal.SIGINT, 130),
        pytest.param(2, signal.SIGHUP, 129, marks=slow),
    ],
)
def test_a_signal_ends_the_turn_then_the_agent(number: signal.Signals, code: int, version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, WAIT, version=version) as editor:
        editor.open().begin()
        start = time.monotonic()
        editor.process.send_signal(number)
        assert editor.process.wait(SECONDS) == code
        assert time.monotonic() - start < SECONDS
        _, out, errors = editor.leave()
        assert (out.count(b'"cancelled"'), out.count(b"\n"), errors) == (1, 1, b"")


@pytest.mark.requirement("E9")
@slow
@both_versions
@pytest.mark.parametrize("number", [None, signal.SIGTERM], ids=["stdin", "SIGTERM"])
def test_it_leaves_within_two_seconds(number: signal.Signals | None, version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, WAIT, version=version) as editor:
        editor.open().begin()
        if number is None:
            editor.stdin.close()
        else:
            editor.process.send_signal(number)
        editor.process.wait(2)
        editor.left = True


def test_an_editor_that_closed_our_stdout_is_gone(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "x", "repeat": 1000, "delay_ms": 10}])) as editor:
        editor.open().begin()
        editor.stdout.close()
        assert editor.process.wait(SECONDS) == 0  # stdin is still open
        assert editor.leave() == (0, b"", b"")


@pytest.mark.requirement("D1")
def test_an_editor_that_never_reads_costs_little_and_can_still_leave(tmp_path: Path) -> None:
    with Editor(tmp_path, FLOOD) as editor:
        editor.open().prompt()  # what works on prompts is loaded by the first one
        before = memory(editor)
        editor.begin()
        settled(lambda: memory(editor, "VmRSS"))
        assert memory(editor) - before < 10 * MIB
        start = time.monotonic()
        editor.stdin.close()
        assert editor.process.wait(PATIENCE_SECONDS) == 0  # though our stdout is still full
        assert time.monotonic() - start < SECONDS
        editor.left = True


def test_an_editor_that_does_not_read_can_still_cancel(tmp_path: Path) -> None:
    with Editor(tmp_path, FLOOD) as editor:
        editor.open().prompt()
        editor.begin()
        settled(lambda: memory(editor, "VmRSS"))
        editor.send({"method": "session/cancel", "params": {"sessionId": editor.session}})
        while "method" in (message := editor.read()):
            pass
        assert message["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    "streams", ["</dev/null", "</dev/null >&-", "</dev/null 2>&-", "<&- >&- 2>&-", "</dev/null >/dev/full"]
)
def test_odd_streams_give_no_traceback(streams: str, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"steps": []}]}')
    command = f'exec "$@" {streams}'
    given = ["sh", "-c", command, "sh", *DRAGOMAN, "acp", "--model", f"script:{script}"]
    done = subprocess.run(given, capture_output=True, timeout=40, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_full_device_as_stdout_ends_the_agent_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"steps": []}]}')
    hello = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n'
    with open("/dev/full", "wb") as full:
        process = fork_server().child(MAIN, "acp", "--model", f"script:{script}", stdout=full)
    assert process.communicate(hello, timeout=40)[1] == b""
    assert process.returncode == 0


# -- sizes ---------------------------------------------------------------------------------------------------------


@slow  # in memory it is in `tests/link`
@pytest.mark.parametrize("headers", [False, True], ids=["lines", "content-length"])
def test_sixty_mebibytes_are_heard_and_sixty_five_are_refused_without_being_kept(headers: bool, tmp_path: Path) -> None:
    with Editor(tmp_path, headers=headers) as editor:
        editor.open().prompt()
        before = memory(editor)
        editor.send_body(prompt(editor, 65 << 20))
        refused = editor.read()
        assert refused == {
            "id": None,
            "error": {"code": -32600, "message": "Message too large", "data": {"limit": 64 << 20}},
        }
        assert memory(editor) - before < (64 + 8) * MIB
        editor.send_body(prompt(editor, 60 << 20))
        while "method" in (message := editor.read()):
            pass
        assert message == {"id": 99, "result": {"stopReason": "end_turn"}}


def prompt(editor: Editor, size: int) -> bytes:
    """A prompt of so many letters."""
    message = {"jsonrpc": "2.0", "id": 99, "method": "session/prompt", "params": editor.words("LETTERS")}
    return json.dumps(message).encode().replace(b"LETTERS", b"x" * size)


def settled(value: Callable[[], int]) -> None:
    """Wait until a number has not changed for a while: what was to fill is full."""
    last, same = value(), 0
    while same < 5:
        time.sleep(0.02)
        now = value()
        last, same = now, same + 1 if now == last else 0

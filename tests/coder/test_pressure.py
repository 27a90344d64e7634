"""Floods, bombs and machines that are short of something, against the real agent or the whole agent in memory.

Floods and deadlines of one command are in `test_tools.py`, searching in `tests/host/test_search.py`.
"""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Audio, Image
from tests.coder.marked_agent import SECONDS, agent, cpu_seconds, guardians
from tests.support.conversation import conversation
from tests.support.editor import Editor, Message, closing_by_force, memory, turns
from tests.support.machine import marked
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.waiting import wait_until
from tests.support.whole_agent import events_of, whole

MIB = 1024  # of what /proc tells in KiB


def flooded(folder: Path, *commands: str, **more: Any) -> tuple[list[Message], int, int]:
    """What a client hears of commands that flood; what the agent needed for them, and what it left on disk."""
    with agent(folder, *apart(bash(command, **more) for command in commands)) as (editor, _):
        editor.open().prompt("/help")
        before = memory(editor)
        heard = editor.prompt("go")
        needed = memory(editor) - before
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return heard, needed, disk


@pytest.mark.requirement("D8", "D9")
def test_commands_that_flood_cost_little(tmp_path: Path) -> None:
    """Zeros, one line, tiny lines: memory, disk and updates are bounded."""
    zeros, one_line, tiny_lines = (
        "head -c 100M /dev/zero",
        "head -c 60M /dev/zero | tr '\\0' x",
        "yes | head -n 1000000",
    )
    heard, needed, disk = flooded(tmp_path, zeros, one_line, tiny_lines)
    assert str(heard).count("'status': 'completed'") == 3
    assert len(heard) < 10_000
    assert needed < 40 * MIB
    assert disk < 32 << 20
    assert heard[-1] == {"result": {"stopReason": "end_turn"}}


@pytest.mark.requirement("D8", "D9")
@pytest.mark.slow
@pytest.mark.parametrize("command", ["yes", "cat /dev/zero", "tr '\\0' x < /dev/zero"])
def test_a_command_that_floods_for_a_minute_costs_little(tmp_path: Path, command: str) -> None:
    """Tens of gigabytes, until its deadline."""
    heard, needed, disk = flooded(tmp_path, command, timeout=60)
    assert "ended by SIGKILL" in json.dumps(heard)
    assert len(heard) < 10_000
    assert needed < 40 * MIB
    assert disk < 32 << 20


@pytest.mark.requirement("D8")
def test_a_flood_does_not_hold_up_a_cancel(tmp_path: Path) -> None:
    """While a command prints as fast as it can."""
    with agent(tmp_path, bash("yes")) as (editor, mark):
        editor.open()
        editor.send({"id": 70, "method": "session/prompt", "params": editor.words("go")})
        while "y\\ny" not in json.dumps(editor.read()):
            pass
        began = time.monotonic()
        editor.send({"method": "session/cancel", "params": {"sessionId": editor.session}})
        while editor.read().get("id") != 70:
            pass
        assert time.monotonic() - began < SECONDS
        wait_until(lambda: set(marked(mark)) - {editor.process.pid} - guardians(mark) == set(), seconds=SECONDS)


def small_deltas(folder: Path, count: int) -> float:
    letters = "abcdefghij"
    steps = [{"say": letter, "repeat": count // 10} for letter in letters]
    with agent(folder, *steps) as (editor, _):
        editor.open().prompt("/help")
        before = memory(editor)
        began = time.monotonic()
        heard = editor.prompt("go")
        took = time.monotonic() - began
        assert memory(editor) - before < 100 * MIB
    said = "".join(
        update["content"]["text"] for update in heard if update.get("sessionUpdate") == "agent_message_chunk"
    )
    assert said == "".join(letter * (count // 10) for letter in letters)
    return took


@pytest.mark.requirement("D10")
def test_small_deltas_arrive_in_order(tmp_path: Path) -> None:
    """Bounded; a million in the slow lane."""
    small_deltas(tmp_path, 5_000)


@pytest.mark.requirement("D10")
@pytest.mark.slow
def test_a_million_deltas_arrive_in_order(tmp_path: Path) -> None:
    assert small_deltas(tmp_path, 1_000_000) < 120


@pytest.mark.requirement("D11")
@pytest.mark.parametrize("how", ["declared", "actual"])
def test_a_gigabyte_is_refused_by_what_it_says_and_by_what_it_is(tmp_path: Path, how: str) -> None:
    """A picture in a message of a gibibyte: refused, not kept, and the agent goes on."""
    with closing_by_force(Editor(tmp_path, headers=how == "declared")) as editor:
        editor.open().prompt()
        before = memory(editor)
        head = b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"image"'
        head += b',"mimeType":"image/png","data":"'
        if how == "declared":
            editor.write(b"Content-Length: %d\r\n\r\n%b" % (1 << 30, head))
        else:
            editor.write(head)
            for _ in range(100):
                editor.write(b"A" * (1 << 20))
            editor.write(b'"}]}}\n')
        assert editor.read()["error"]["code"] == -32600
        assert memory(editor) - before < (64 + 8) * MIB


@pytest.mark.requirement("D11")
async def test_a_picture_that_no_model_takes_is_refused(tmp_path: Path) -> None:
    """What fits in a message may still be too large for a model."""
    large = base64.b64encode(bytes(6 * 1024 * 1024)).decode()
    model = RecordingModel([{"say": "."}])
    async with whole(tmp_path, model.make) as (_, session):
        for block in (Image(large, "image/png"), Audio(large, "audio/wav")):
            with pytest.raises(RequestFailed, match=r"prompt\[0\]: the (image|audio) has 6,291,456 bytes"):
                await session.prompt([block]).read()
        await session.prompt([Image("iVBORw0KGgo=", "image/png")]).read()
    assert [type(block) for block in conversation(model.prompts)[0].content] == [Image]  # type: ignore[union-attr]


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    ("version", "count"),
    [(1, 300_000), *(pytest.param(version, 1_000_000, marks=pytest.mark.slow) for version in (1, 2))],
)
def test_a_prompt_of_a_million_blocks_is_refused(tmp_path: Path, version: int, count: int) -> None:
    """Within a second of work; ten thousand links are a prompt, of which some are read."""
    with Editor(tmp_path, version=version) as editor:
        editor.open().prompt()
        before = cpu_seconds(editor)
        block = '{"type":"text","text":"x"}'
        params = f'{{"sessionId":"{editor.session}","prompt":[{",".join([block] * count)}]}}'
        editor.write(f'{{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{params}}}\n'.encode())
        assert editor.read()["error"]["code"] == -32602
        assert cpu_seconds(editor) - before < 1.5
        before = cpu_seconds(editor)
        links = [{"type": "resource_link", "name": "x", "uri": f"file://{tmp_path}/script.json"}] * 10_000
        words = editor.words
        editor.words = lambda text: {**words(text), "prompt": links}  # type: ignore[method-assign]
        editor.prompt()
        assert cpu_seconds(editor) - before < 1.5


@pytest.mark.requirement("D12")
async def test_bombs_in_a_search_end_soon(tmp_path: Path) -> None:
    """Ten thousand braces, and expressions that take for ever."""
    (tmp_path / "a").write_text("a" * 50_000 + "b\n")
    steps = [
        call("glob", pattern="{a,b}" * 10_000),
        call("glob", pattern="{" * 10_000),
        call("glob", pattern="**/" * 3_000 + "*"),
        call("grep", pattern="(a+)+$"),
        call("grep", pattern="(a|a)*c"),
        call("grep", pattern="((((a{1,100}){1,100}){1,100}){1,100})"),
        call("grep", pattern="x", glob="{a,b}" * 10_000),
    ]
    model = RecordingModel(apart(steps))
    began = time.monotonic()
    async with whole(tmp_path, model.make, mode="read-only") as (_, session):
        await events_of(session)
    assert time.monotonic() - began < 30
    assert len(model.results) == len(steps)
    assert "The tool failed." not in model.results


@contextmanager
def poor(folder: Path, script: Any, **limits: int) -> Iterator[Editor]:
    """A real agent with less than it would like."""
    command = "; ".join(f"ulimit -S -H {flag} {value}" for flag, value in limits.items())
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/bash\n{command.replace("_", "-")}\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    executable, sys.executable = sys.executable, str(wrapper)
    try:
        editor = Editor(folder, script, "--mode", "full")
    finally:
        sys.executable = executable
    with editor:
        yield editor


@pytest.mark.requirement("D13")
def test_few_descriptors_give_failures_and_no_end(tmp_path: Path) -> None:
    """Sixty-four of them. What fails is told, and it works again."""
    reads = [call("read_file", path="script.json", end_line=number + 1) for number in range(60)]
    runs = [bash(f"echo {number}") for number in range(20)]
    script = turns([*reads, {"say": "."}, *runs, call("write_file", path="w", content="x")], [{"say": "back"}])
    with poor(tmp_path, script, _n=64) as editor:
        editor.open()
        sessions = [editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})[-1] for _ in range(30)]
        assert all("sessionId" in one.get("result", {}) or "error" in one for one in sessions)
        for one in sessions:
            if "result" in one:
                editor.ask("session/close", {"sessionId": one["result"]["sessionId"]})
        editor.commands = []
        heard = editor.prompt("go")
        assert "stopReason" in json.dumps(heard[-1]) or "error" in heard[-1]
        assert editor.prompt("again")[-1] == {"result": {"stopReason": "end_turn"}}
        code, _, errors = editor.leave()
        assert code == 0
        assert b"Traceback" not in errors


@pytest.mark.requirement("D13")
def test_little_memory_gives_failures_and_no_end(tmp_path: Path) -> None:
    """256 MiB of addresses. A prompt that does not fit is refused with a code, and the next one works."""
    script = turns([bash("head -c 100M /dev/zero"), {"say": "."}, call("grep", pattern="x")], [{"say": "back"}])
    with poor(tmp_path, script, _v=256 * 1024) as editor:
        editor.open()
        assert editor.prompt("go")[-1] == {"result": {"stopReason": "end_turn"}}
        editor.send({"id": 70, "method": "session/prompt", "params": editor.words("x" * (60 << 20))})
        while "method" in (message := editor.read()):
            pass
        assert message["id"] in (70, None)
        assert message.get("result") == {"stopReason": "end_turn"} or message["error"]["code"] in (-32600, -32603)
        assert editor.prompt("again")[-1] == {"result": {"stopReason": "end_turn"}}


@pytest.mark.requirement("D13")
@pytest.mark.slow
def test_a_busy_machine_slows_it_and_breaks_nothing(tmp_path: Path) -> None:
    """Every core is taken."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with agent(tmp_path, *apart([bash("echo hi"), call("write_file", path="a", content="x")])) as (editor, _):
            editor.open()
            began = time.monotonic()
            assert editor.prompt("go")[-1] == {"result": {"stopReason": "end_turn"}}
            assert time.monotonic() - began < 20
    finally:
        for one in busy:
            one.kill()
            one.wait()

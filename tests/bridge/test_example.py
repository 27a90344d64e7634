"""The bridge as a program between two others: an editor of one version, an agent of the other."""

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import connect
from dragoman.vocabulary.events import ToolCallUpdate
from tests.support.content_length import ABSURD, announced, block
from tests.support.fork_server.client import fork_server
from tests.support.messages import Message, hello

BRIDGE = [sys.executable, str(Path(__file__).parent.parent.parent / "examples" / "bridge.py")]


@pytest.mark.parametrize(("editor", "agent"), [(1, 2), (2, 1)])
async def test_a_turn_with_a_tool_call_crosses_versions(editor: int, agent: int, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    command = [*fork_server().dragoman(), "acp", "--model", "demo", "--protocol", str(agent)]
    async with connect([*BRIDGE, *command], protocol=editor) as client:
        session = await client.new_session(str(tmp_path))
        told = [event async for event in session.prompt("read notes.txt")]
    (end,) = [event.status for event in told if isinstance(event, ToolCallUpdate)][-1:]
    assert end == "completed"
    assert "remember the milk" in str(told)


@pytest.mark.parametrize("reads", ["one read", "two reads"])
def test_a_length_that_cannot_be_skipped_is_refused_and_ends_the_bridge_with_a_reason(reads: str) -> None:
    listed: Message = {"id": 7, "method": "session/list", "params": {}}
    command = [*BRIDGE, *fork_server().dragoman(), "acp", "--model", "demo", "--protocol", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as bridge:
        assert bridge.stdin and bridge.stdout and bridge.stderr
        bridge.stdin.write(block(hello(1)) + (block(listed) + announced(ABSURD[0]) if reads == "one read" else b""))
        bridge.stdin.flush()
        out = bridge.stdout.readline()  # the header of the first answer
        if reads == "two reads":
            bridge.stdin.write(block(listed) + announced(ABSURD[0]))
            bridge.stdin.flush()
        out += bridge.stdout.read()
        errors = bridge.stderr.read().decode()
    assert (out.count(b'"id":0,"result"'), out.count(b'"id":7,"result"')) == (1, 1)
    assert out.count(b'"id":null,"error":{"code":-32600,"message":"Message too large"') == 1
    assert (bridge.returncode, errors.startswith("bridge: the connection was ended: a message of more than")) == (
        1,
        True,
    )

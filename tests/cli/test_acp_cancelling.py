"""`dragoman acp`: a turn is cancelled once in every phase, and leaving ends its work."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.acp_messages import PROMISED, SECONDS, ends, open_another, until
from tests.support.editor import HELLO, Editor, Message, turns
from tests.support.versions import both_versions
from tests.support.waiting import wait_until

in_time = pytest.mark.parametrize(
    "seconds", [pytest.param(SECONDS, id="at all"), pytest.param(PROMISED, id="in time", marks=pytest.mark.slow)]
)


def shows(text: str) -> Callable[[Message], bool]:
    return lambda message: text in json.dumps(message)


SLEEP = [{"call": "bash", "input": {"command": "echo awake; sleep 1000"}}]
PHASES: dict[str, tuple[str, list[Any], str]] = {
    "model": ("full", [{"say": "awake"}, {"say": "never", "delay_ms": 600_000}], "awake"),
    "tool": ("full", SLEEP, "echo awake; sleep 1000"),
    "permission": ("ask", SLEEP, "session/request_permission"),
}


@pytest.mark.requirement("C6", "C7")
@in_time
@both_versions
def test_a_turn_is_cancelled_once_in_every_phase(version: int, seconds: float, tmp_path: Path) -> None:
    rounds = [(phase, cancels) for cancels in (1, 1000) for phase in PHASES]
    script = turns(*(turn for phase, _ in rounds for turn in (PHASES[phase][1], [{"say": "after"}])))
    with Editor(tmp_path, script, version=version) as editor:
        editor.open()
        for phase, cancels in rounds:
            mode, _, sign = PHASES[phase]
            editor.ask("session/set_config_option", {"sessionId": editor.session, "configId": "mode", "value": mode})
            heard = cancelled_and_prompted_again(editor, sign, cancels, seconds)
            assert ends(heard) == ["cancelled", "end_turn"], (phase, cancels)
            assert shows("after")(heard[-2])


def cancelled_and_prompted_again(editor: Editor, sign: str, cancels: int, seconds: float) -> list[Message]:
    """What was heard of a turn that is cancelled so many times when it shows the sign, and of the next one."""
    cancel = {"method": "session/cancel", "params": {"sessionId": editor.session}}
    editor.send(cancel)  # before: no turn, no effect
    editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
    heard = until(editor, shows(sign))
    began = time.monotonic()
    for _ in range(cancels):
        editor.send(cancel)
    heard += until(editor, lambda message: bool(ends([message])))
    assert time.monotonic() - began < seconds
    editor.send(cancel)  # after: no effect either
    # An answer to a question that was withdrawn is late, and nothing.
    for message in heard:
        if message.get("method") == "session/request_permission":
            chosen = {"outcome": "selected", "optionId": "allow_once"}
            editor.send({"id": message["id"], "result": {"outcome": chosen}})
    heard += (answer := editor.ask("session/prompt", editor.words("again")))
    assert "error" not in answer[-1], answer
    heard += until(editor, lambda message: bool(ends([message]))) if not ends(answer) else []
    return heard


@pytest.mark.requirement("C8")
@in_time
@both_versions
def test_leaving_in_mid_turn_ends_the_work_and_the_session_can_be_resumed(
    version: int, seconds: float, tmp_path: Path
) -> None:
    steps = [{"call": "bash", "input": {"command": "echo $$ > pid; setsid sleep 1000 & sleep 1000"}}]
    mark = {"PROOF_OF_LEAVING": str(tmp_path)}
    with Editor(tmp_path, turns(steps), "--mode", "full", version=version, env=mark) as editor:
        closed = editor.open().session
        shell = at_work(editor)
        began = time.monotonic()
        editor.send({"id": 100, "method": "session/close", "params": {"sessionId": closed}})
        heard = until(editor, lambda message: message.get("id") == 100)
        assert (ends(heard), heard[-1]["result"]) == (["cancelled"], {})
        gone(editor, shell)
        assert time.monotonic() - began < seconds

        left = editor.session = open_another(editor)
        shell = at_work(editor)
        began = time.monotonic()
        assert editor.leave()[0] == 0
        gone(editor, shell)
        assert time.monotonic() - began < seconds
    with Editor(tmp_path, version=version) as again:
        again.result("initialize", HELLO[version])
        for again.session in (closed, left):
            where = {"sessionId": again.session, "cwd": str(tmp_path), "mcpServers": []}
            assert "result" in again.ask("session/resume", where)[-1]
            assert shows("Hello.")(again.prompt()[-2])


def at_work(editor: Editor) -> int:
    """A turn whose command runs; the process of its shell."""
    file = editor.folder / "pid"
    file.unlink(missing_ok=True)
    editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def gone(editor: Editor, shell: int) -> None:
    """The shell and everything that it has started."""
    wait_until(lambda: living_of(editor.folder, but=editor.process.pid) == [])
    assert not Path(f"/proc/{shell}").exists()


def living_of(folder: Path, but: int) -> list[int]:
    """Processes that our agent has started: bash and its children, not its guardian."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            is_ours = f"PROOF_OF_LEAVING={folder}".encode() in Path(f"/proc/{name}/environ").read_bytes()
            if is_ours and int(name) != but and b"guardian" not in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found

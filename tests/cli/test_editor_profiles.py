"""What `dragoman acp` sends to an editor that declares more than the schema, and to one that declares nothing."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import HELLO, Editor, turns

COMMAND = [{"call": "bash", "input": {"command": "echo one; exit 3"}}, {"say": "done"}]


def calls(folder: Path, meta: Any, *options: str) -> list[Any]:
    """The updates of the one call of a turn that runs a command."""
    with Editor(folder, turns(COMMAND), *options) as editor:
        editor.open(clientCapabilities={"_meta": meta})
        said = editor.prompt()
    return [update for update in said if str(update.get("sessionUpdate")).startswith("tool_call")]


@pytest.mark.requirement("ED1")
def test_a_command_is_live_from_its_announcement_to_its_exit(tmp_path: Path) -> None:
    found = calls(tmp_path, {"terminal_output": True}, "--mode", "full-access")
    call = found[0]["toolCallId"]
    assert [update["_meta"] for update in found if "_meta" in update] == [
        {"terminal_info": {"terminal_id": call}},
        {"terminal_output": {"terminal_id": call, "data": "one\n"}},
        {"terminal_exit": {"terminal_id": call, "exit_code": 3, "signal": None}},
    ]
    shows = [update["content"] for update in found if "content" in update]
    assert shows[-1] == [{"type": "terminal", "terminalId": call}]
    assert found[0]["sessionUpdate"] == "tool_call"
    assert found[-1]["status"] == "failed"


@pytest.mark.requirement("ED4")
def test_an_editor_that_declares_nothing_is_sent_text_and_no_meta(tmp_path: Path) -> None:
    found = calls(tmp_path, {}, "--mode", "full-access")
    assert [update["_meta"] for update in found if "_meta" in update] == []
    (item,) = found[-1]["content"]
    assert item["content"]["text"].endswith("one\n\n[exit code 3]")


@pytest.mark.requirement("ED3")
def test_the_command_line_of_the_login_is_one_that_can_be_run(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        hello = editor.result("initialize", {**HELLO[1], "clientCapabilities": {"_meta": {"terminal-auth": True}}})
    (method,) = [method for method in hello["authMethods"] if method.get("type") == "terminal"]
    line = method["_meta"]["terminal-auth"]
    assert sorted(line) == ["args", "command", "label"]
    shown = subprocess.run(
        [line["command"], *line["args"], "--help"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (shown.returncode, "login" in shown.stdout) == (0, True)


@pytest.mark.requirement("ED3")
@pytest.mark.parametrize("capabilities", [{}, {"auth": {"terminal": True}}])
def test_an_editor_that_declares_nothing_is_sent_no_command_line(tmp_path: Path, capabilities: Any) -> None:
    with Editor(tmp_path) as editor:
        hello = editor.result("initialize", {**HELLO[1], "clientCapabilities": capabilities})
    assert "terminal-auth" not in json.dumps(hello)

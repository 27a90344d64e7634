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
        {"terminal_info": {"terminal_id": call, "cwd": str(tmp_path)}},
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


AIR = {"diffPatch", "rawInputRendering", "agentFileChangeReport", "sessionIndex"}
WRITES = [
    {"call": "write_file", "input": {"path": "new.txt", "content": "new\n"}},
    {"call": "edit_file", "input": {"path": "old.txt", "old_string": "two", "new_string": "2"}},
    {"say": "done"},
]


def air(*names: str) -> Any:
    return {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": sorted(names)}}}}


@pytest.mark.requirement("ED9", "ED10", "ED11")
def test_air_is_sent_patches_and_told_which_files_a_turn_has_changed(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("one\ntwo\nthree\n")
    asked = {"jetbrains": {"air": {"agentFileChangeReportRequest": {"version": 1, "requestId": "r"}}}}
    with Editor(tmp_path, turns(WRITES), "--mode", "full-access") as editor:
        editor.open(clientCapabilities=air(*AIR))
        heard = editor.ask("session/prompt", {**editor.words("hi"), "_meta": asked})
    updates = [message["params"]["update"] for message in heard[:-1]]
    calls = [update for update in updates if update["sessionUpdate"] == "tool_call"]
    assert [call["rawInput"] for call in calls] == [{"path": "new.txt"}, {"path": "old.txt"}]
    shown = [item for call in calls for item in call["content"]]
    assert [(item["oldText"], item["newText"]) for item in shown] == [(None, "")] * 2
    patches = [item["_meta"]["jetbrains"]["air"]["diffPatch"]["text"] for item in shown]
    assert [patch[patch.index("@@") :] for patch in patches] == [
        "@@ -0,0 +1 @@\n+new\n",
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    ]
    report = updates[-1]["_meta"]["jetbrains"]["air"]["agentFileChangeReport"]
    assert report["paths"] == [str(tmp_path / "new.txt"), str(tmp_path / "old.txt")]


@pytest.mark.requirement("ED12")
def test_air_renames_a_session_that_is_open_and_one_that_is_not(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        editor.open(clientCapabilities=air(*AIR))
        editor.prompt("hi")
        update, answer = editor.ask("_session/rename", {"sessionId": editor.session, "title": "Another\nname"})
        editor.result("session/close", {"sessionId": editor.session})
        answers = [answer, *editor.ask("_session/rename", {"sessionId": editor.session, "title": "A third one"})]
        (stored,) = editor.result("session/list", {})["sessions"]
    assert update["params"]["update"] == {"sessionUpdate": "session_info_update", "title": "Another name"}
    assert [answer["result"] for answer in answers] == [{}, {}]
    assert stored["title"] == "A third one"

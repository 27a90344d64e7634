"""The reason that an agent puts beside a message is told to people, and all of it to programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat_pane import PROMPT, chat, ready
from tests.support import rogue_agent
from tests.support.editor import Editor, turns
from tests.support.run_command import run

FAILURE: dict[str, Any] = {"code": -32603, "message": "Internal error", "data": {"details": "401 fake \x1b[31mfailure"}}
SAID = "Internal error: 401 fake \\x1b[31mfailure"


def test_run_tells_the_details_of_a_failed_turn(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, {"fail": FAILURE}))
    assert (done.code, done.error) == (6, f"dragoman: {SAID}\n")


@pytest.mark.parametrize(
    ("arguments", "method", "said"),
    [
        (["--resume", "s1"], "session/load", f"--resume s1: {SAID}"),
        (["--mode", "fast"], "session/set_mode", f"the agent does not take that mode or model: {SAID}"),
    ],
)
def test_run_tells_the_details_of_a_refusal_and_json_has_all_of_it(
    arguments: list[str], method: str, said: str, tmp_path: Path
) -> None:
    modes = {"currentModeId": "slow", "availableModes": [{"id": "slow", "name": "S"}, {"id": "fast", "name": "F"}]}
    hello = {"agentCapabilities": {"loadSession": True}}
    agent = rogue_agent.written(tmp_path, errors={method: FAILURE}, hello=hello, opened={"modes": modes})
    done = run(tmp_path, "hi", "--stream-json", *arguments, "--", *agent)
    assert (done.code, done.error) == (2, f"dragoman: {said}\n")
    assert done.events[-1]["error"] == FAILURE


def test_chat_tells_the_details_without_codes(tmp_path: Path) -> None:
    modes = {"currentModeId": "slow", "availableModes": [{"id": "slow", "name": "S"}]}
    refused = {"code": -32602, "message": "No such mode"}
    plan = {"errors": {"session/set_mode": refused}, "opened": {"modes": modes}}
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, {"fail": FAILURE}, **plan)) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(r"^Internal error: 401 fake \\x1b\[31mfailure$", PROMPT)
        pane.say("/mode slow")
        pane.wait_for("^No such mode$", PROMPT)
        assert "-326" not in pane.screen()


def test_the_model_is_told_why_the_editor_did_not_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    script = turns([{"call": "read_file", "input": {"path": "a.txt"}}])
    with Editor(tmp_path, script) as editor:
        editor.open(clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": True}})
        editor.send({"id": 9, "method": "session/prompt", "params": editor.words("hi")})
        told: list[Any] = []
        while (message := editor.read()).get("id") != 9:
            told.append(message)
            if message["method"] == "fs/read_text_file":
                editor.send({"id": message["id"], "error": {**FAILURE, "data": {"details": "denied by the user"}}})
    assert "the editor says: Internal error: denied by the user" in json.dumps(told)

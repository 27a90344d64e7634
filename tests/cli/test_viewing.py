"""All of a question, before it is answered: in the pager of the user, at a real terminal."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat_pane import ASKED, BAD, PROMPT, acts, chat, ready, scripted
from tests.cli.pane import Pane
from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN
from tests.support.needs import need
from tests.support.rogue_agent import permission, text
from tests.support.waiting import wait_until

OPTIONS = [
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
LONG = "".join(f"line {number}\n" for number in range(400))
DIFF: dict[str, Any] = {"type": "diff", "path": "/w/a.txt", "oldText": "", "newText": LONG + f"the end {BAD}\n"}
WAYS: dict[str, dict[str, Any]] = {
    "a diff": {"content": [DIFF]},
    "several files": {"content": [{**DIFF, "path": f"/w/{n}.txt", "newText": LONG} for n in range(3)] + [DIFF]},
    "a command": {"rawInput": {"command": LONG + "the end"}},
    "input": {"rawInput": {"lines": LONG.splitlines(), "last": "the end"}},
}


def answer(folder: Path) -> list[Any]:
    return [one["outcome"]["optionId"] for one in rogue_agent.answers(folder)]


@pytest.mark.parametrize("about", WAYS)
def test_all_of_it_is_shown_in_less_and_then_it_can_be_allowed_for_ever(about: str, tmp_path: Path) -> None:
    need("less")
    agent = rogue_agent.written(tmp_path, permission("Do it", options=OPTIONS, **WAYS[about]), text("over"))
    touched = tmp_path / "touched"
    env = {"PAGER": "", "LESSOPEN": f"||-touch {touched}", "LESS": "-F"}
    with chat(tmp_path, "--", *agent, rows=24, env=env) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("v shows all of it", r"^║ 2 .*\(after v\)", "^║ 3  no", ASKED)
        pane.say("v")
        pane.wait_for(r"line 3\b")
        pane.press("G")
        pane.wait_for("the end", r"^\(END\)")
        pane.press("q")
        pane.wait_for("All of it was shown; v shows it again", r"^║ 1-3, v, y or n: ?$")
        pane.say("2")
        pane.wait_for("over", PROMPT)
        assert acts(pane.raw()) == set()
    assert answer(tmp_path) == ["always"]
    assert not touched.exists()


def test_the_pager_of_the_user_is_used_and_gets_no_secrets(tmp_path: Path) -> None:
    pager = tmp_path / "own-pager"
    pager.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\ncat > {tmp_path}/viewed\necho $1\n")
    pager.chmod(pager.stat().st_mode | stat.S_IXUSR)
    agent = rogue_agent.written(tmp_path, permission("Do it", options=OPTIONS, **WAYS["a diff"]), text("over"))
    env = {"PAGER": f"{pager} 'two words'", "MY_TOKEN": "canary-0123"}
    with chat(tmp_path, "--", *agent, rows=24, env=env) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("v shows all of it", ASKED)
        pane.say("v")
        pane.wait_for("^two words", "All of it was shown")
        pane.say("1")
        pane.wait_for("over", PROMPT)
    viewed = (tmp_path / "viewed").read_text()
    assert re.findall(r"║   \+line (\d+) +║", viewed) == [str(number) for number in range(400)]
    assert acts(viewed) == set()
    environment = (tmp_path / "environment").read_text()
    assert "LESSSECURE=1" in environment
    assert "canary" not in environment


def test_a_pager_that_fails_is_replaced_by_pages(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it", options=OPTIONS, **WAYS["a diff"]), text("over"))
    with chat(tmp_path, "--", *agent, rows=24, env={"PAGER": "false"}) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("v shows all of it", ASKED)
        pane.say("v")
        pane.wait_for("rows so far. Enter: go on, a: all the rest, n: no")
        pane.say("a")
        pane.wait_for("the end", "All of it was shown", ASKED)
        pane.say("y")
        pane.wait_for("over", PROMPT)
    assert answer(tmp_path) == ["once"]


def test_ctrl_c_in_the_pager_stops_the_turn_and_gives_the_terminal_back(tmp_path: Path) -> None:
    need("less")
    agent = rogue_agent.written(tmp_path, permission("Do it", **WAYS["a diff"]), {"end": "cancelled"})
    with chat(tmp_path, "--", *agent, rows=24, env={"PAGER": ""}) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("v shows all of it", ASKED)
        pane.say("v")
        pane.wait_for(r"line 3\b")
        pane.press("C-c")
        pane.wait_for("^║ The question was withdrawn", "^Stopped", PROMPT)
        pane.type("still here")
        pane.wait_for("^> still here")
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "cancelled"}}]


def test_our_own_agent_writes_a_long_file_that_was_viewed(tmp_path: Path) -> None:
    need("less")
    steps: list[dict[str, Any]] = [
        {"call": "write_file", "input": {"path": "long.txt", "content": LONG}},
        {"say": "over"},
    ]
    with chat(tmp_path, *scripted(tmp_path, steps), rows=24, env={"PAGER": ""}) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("v shows all of it", ASKED)
        pane.say("v")
        pane.wait_for(r"line 3\b")
        pane.press("q")
        pane.wait_for("All of it was shown", ASKED)
        pane.say("y")
        pane.wait_for("over", PROMPT)
    assert (tmp_path / "work" / "long.txt").read_text() == LONG


def test_run_shows_all_of_it_too_and_its_stdout_has_none_of_it(tmp_path: Path) -> None:
    need("less")
    agent = rogue_agent.written(tmp_path, permission("Do it", **WAYS["a diff"]), text("over"))
    program = [*DRAGOMAN, "run", "hi", "--", *agent]
    command = ["sh", "-c", '"$@" > out; cat out', "sh", *program]
    with Pane(tmp_path, command, {"DRAGOMAN_HOME": str(tmp_path / "home"), "PAGER": ""}, rows=24) as pane:
        pane.wait_for("v shows all of it", ASKED)
        pane.say("v")
        pane.wait_for(r"line 3\b")
        pane.press("q")
        pane.wait_for("All of it was shown", ASKED)
        pane.say("y")
        pane.wait_for("^over")
        wait_until(lambda: (tmp_path / "out").read_text() == "over\n")
    assert json.dumps(rogue_agent.answers(tmp_path)) == '[{"outcome": {"outcome": "selected", "optionId": "yes"}}]'

"""How `dragoman run` ends when the agent ends its turn as cancelled because something was not allowed."""

import json
import signal
from pathlib import Path

import pytest

from tests.support import rogue_agent
from tests.support.rogue_agent import permission, text
from tests.support.run_command import at_terminal, left, run, started

HINT = "dragoman: 1 request was denied; --allow all covers it\n"
ENDS = [permission("Run make", kind="execute", rawInput={"command": "make"}), {"end": "cancelled"}]


@pytest.mark.parametrize("version", [1, 2])
def test_a_refusal_that_ends_the_turn_is_exit_5_with_the_hint(version: int, tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--stream-json", "--", *rogue_agent.written(tmp_path, *ENDS, version=version))
    assert (done.code, done.error.endswith(HINT)) == (5, True), done
    result = done.events[-1]
    assert (result["stopReason"], [one["what"] for one in result["denied"]]) == ("cancelled", ["Run make"])


def test_a_turn_that_the_agent_cancels_by_itself_is_exit_130(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, {"end": "cancelled"}))
    assert (done.code, done.error) == (130, "")


def test_a_no_of_a_person_is_told_in_json_too(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, "hi", "--stream-json", "--", *rogue_agent.written(tmp_path, *ENDS))
    child.expect("y or n: ")
    child.sendline("n")
    child.expect_exact("dragoman: you refused 1 request")
    child.expect_exact('"denied":[{"what":"Run make","reason":"you said no"}]')
    assert left(child) == 5


def test_ctrl_c_after_a_refusal_is_still_exit_130_without_a_hint(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, ENDS[0], text("Hm."), {"wait": "cancel"}, {"end": "cancelled"})
    process = started(tmp_path, *agent)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=40)
    assert process.returncode == 130
    assert b"--allow" not in error


def test_a_person_who_allows_all_is_not_told_to_allow_all(tmp_path: Path) -> None:
    program, *arguments = rogue_agent.written(tmp_path, ENDS[0])
    strict = {"command": program, "args": arguments, "permissions": {"reject": [{"command": "make"}]}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"strict": strict}}))
    done = run(tmp_path, "hi", "--agent", "strict", "--allow", "all")
    assert (done.code, done.error.splitlines()[-1:]) == (5, ["dragoman: 1 request was denied"]), done

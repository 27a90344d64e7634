"""Ctrl-C at the line of `dragoman chat`, with a clock that the test sets."""

from pathlib import Path

import pytest

from tests.cli.chat_pane import PROMPT, chat, ready
from tests.cli.pane import Pane
from tests.support import rogue_agent
from tests.support.fork_server.client import fork_server
from tests.support.rogue_agent import text
from tests.support.waiting import wait_until

# The time of day is what stands in a file.
PROGRAM = """
import sys
from pathlib import Path
from dragoman.cli.terminal import interrupts
from dragoman.cli.main import main
file = Path(sys.argv.pop(1))
interrupts.clock = lambda: float(file.read_text())
sys.exit(main())
"""
LEAVES = "^Ctrl-C once more leaves, and so does Ctrl-D"


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "clock"
        self.set(100.0)

    def set(self, seconds: float) -> None:
        self.file.write_text(str(seconds))


def at_chat(folder: Path, clock: Clock, *steps: dict[str, object], term: str = "", **plan: object) -> Pane:
    program = fork_server().command(PROGRAM, str(clock.file), imports="dragoman.cli.main")
    (folder / "work").mkdir()
    agent = rogue_agent.written(folder, *(steps or [text("Yes.")]), **plan)
    command = [*program, "chat", "--cwd", str(folder / "work"), "--", *agent]
    return Pane(folder, command, {"DRAGOMAN_HOME": str(folder / "home"), "COLORTERM": ""}, term=term)


@pytest.mark.parametrize("term", ["", pytest.param("dumb", marks=pytest.mark.slow)])
def test_ctrl_c_gives_up_a_line_as_often_as_there_is_one_and_up_brings_it_back(term: str, tmp_path: Path) -> None:
    with at_chat(tmp_path, Clock(tmp_path), term=term) as pane:
        ready(pane)
        for draft in ("first draft", "second draft", "third draft"):
            pane.type(draft)
            pane.wait_for(f"^> {draft}$")
            pane.press("C-c")
            pane.wait_for(f"^> {draft}$", PROMPT)
        assert "once more leaves" not in pane.screen()
        pane.press("Up", "Up")
        if not term:
            pane.wait_for("^> second draft$", times=2)
        pane.press("Enter")
        pane.wait_for(r"Yes\.", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [{"type": "text", "text": "second draft"}]


def test_two_in_a_row_on_an_empty_line_leave(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    with at_chat(tmp_path, clock) as pane:
        ready(pane)
        pane.press("C-c")
        pane.wait_for(LEAVES, PROMPT)
        clock.set(102.0)
        pane.press("C-c")
        assert pane.left() == 0


def test_neither_a_pause_nor_typing_nor_a_given_up_line_counts(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    with at_chat(tmp_path, clock) as pane:
        ready(pane)
        pane.press("C-c")
        pane.wait_for(LEAVES, PROMPT)
        clock.set(102.1)
        pane.press("C-c")  # too late to be the second
        pane.wait_for(LEAVES, PROMPT, times=2)
        pane.type("x")
        pane.press("BSpace", "C-c")  # something was typed in between
        pane.wait_for(LEAVES, PROMPT, times=3)
        pane.type("a line")
        pane.press("C-c", "C-c")  # the first of these gives up the line
        pane.wait_for(LEAVES, PROMPT, times=4)
        pane.press("C-c")
        assert pane.left() == 0


def test_a_ctrl_c_that_stops_a_turn_does_not_count(tmp_path: Path) -> None:
    steps = [text("Hm."), {"wait": "cancel"}, {"end": "cancelled"}]
    with at_chat(tmp_path, Clock(tmp_path), *steps) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(r"Hm\.")
        pane.press("C-c")
        pane.wait_for("^Stopped", PROMPT)
        pane.press("C-c")
        pane.wait_for(LEAVES, PROMPT)
        pane.press("C-c")
        assert pane.left() == 0


def test_ctrl_c_gives_up_an_order_that_the_agent_does_not_answer(tmp_path: Path) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "yolo", "name": "Yolo"}]}
    with at_chat(tmp_path, Clock(tmp_path), opened={"modes": modes}, silent=["session/set_mode"]) as pane:
        ready(pane)
        pane.say("/mode yolo")
        wait_until(lambda: rogue_agent.heard(tmp_path, "session/set_mode"))
        pane.press("C-c")
        pane.wait_for(r"Stopped\.$", PROMPT)
        pane.say("hi")
        pane.wait_for(r"Yes\.", PROMPT)


def test_help_tells_what_ctrl_c_does(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path), columns=120) as pane:
        ready(pane)
        pane.say("/help")
        pane.wait_for("^Ctrl-C         stop the agent, or give up the line", PROMPT)

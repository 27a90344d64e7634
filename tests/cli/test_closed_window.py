"""A terminal that is closed while a question stands on it: the agent ends, and nothing of ours has failed."""

from pathlib import Path

import pytest

from tests.cli.pane import Pane
from tests.cli.test_chat import ASKED, until
from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN
from tests.support.rogue_agent import permission


def is_running(folder: Path) -> bool:
    """Whether there is a process whose command line names the folder."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in file.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("command", [["chat"], ["run", "hi"]], ids=["chat", "run"])
def test_closing_the_window_during_a_question_is_no_failure_of_ours(command: list[str], tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it"), permission("Do more"))
    settings = {"DRAGOMAN_HOME": str(tmp_path / "home"), "COLORTERM": ""}
    with Pane(tmp_path, [*DRAGOMAN, *command, "--", *agent], settings) as pane:
        if command == ["chat"]:
            pane.wait_for("^> ?$")
            pane.say("hi")
        pane.wait_for(ASKED)
    until(lambda: not is_running(tmp_path))
    log = tmp_path / "home" / "log" / "dragoman.log"
    assert not log.exists(), log.read_text()

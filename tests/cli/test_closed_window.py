"""A terminal that is closed while a question stands on it: the agent ends, and nothing of ours has failed."""

from pathlib import Path

import pytest

from tests.cli.chat_pane import ASKED
from tests.cli.pane import Pane
from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN
from tests.support.rogue_agent import permission
from tests.support.waiting import wait_until


def running(folder: Path, program: str) -> int:
    """Return how many processes have a command line that names the folder and the program."""
    count = 0
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes()
        except OSError:
            continue
        count += str(folder).encode() in line and program.encode() in line
    return count


@pytest.mark.parametrize("command", [["chat"], ["run", "hi"]], ids=["chat", "run"])
def test_closing_the_window_during_a_question_is_no_failure_of_ours(command: list[str], tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it"), permission("Do more"))
    settings = {"DRAGOMAN_HOME": str(tmp_path / "home"), "COLORTERM": ""}
    with Pane(tmp_path, [*DRAGOMAN, *command, "--", *agent], settings) as pane:
        if command == ["chat"]:
            pane.wait_for("^> ?$")
            pane.say("hi")
        pane.wait_for(ASKED)
        # Both are there, so what follows is about the end of them.
        assert running(tmp_path, "dragoman") and running(tmp_path, "rogue")
    wait_until(lambda: not running(tmp_path, ""))
    # A question whose window is gone is no yes, and the second one is not asked.
    received = Path(f"{agent[-1]}.heard").read_text()
    assert (received.count("session/prompt"), received.count('"yes"')) == (1, 0)
    log = tmp_path / "home" / "log" / "dragoman.log"
    assert not log.exists(), log.read_text()

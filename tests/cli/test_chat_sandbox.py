"""Chat asks about the changes of a sandbox, file by file where the user wants that."""

from pathlib import Path

from tests.cli.chat_pane import ASKED, PROMPT, Step, chat, ready, scripted
from tests.support.needs import need

STEPS: list[Step] = [
    {"call": "sandbox_write_file", "input": {"path": "good.txt", "content": "wanted\n"}},
    {"call": "sandbox_write_file", "input": {"path": "bad.txt", "content": "unwanted\n"}},
    {"say": "Done."},
]


def test_one_file_is_taken_and_the_other_stays_in_the_sandbox(tmp_path: Path) -> None:
    need("bwrap")
    with chat(tmp_path, "--mode", "sandbox", *scripted(tmp_path, STEPS), columns=200) as pane:
        ready(pane)
        pane.say("write both")
        pane.wait_for("Apply 2 changes to the workspace", r"\+unwanted", r"3  not yet: ask about each of them", ASKED)
        pane.say("3")
        pane.wait_for("Which of these changes are to be applied", r"bad\.txt\W", "y or n: ?$")
        pane.say("n")
        pane.wait_for(r"good\.txt\W", "y or n: ?$")
        pane.say("y")
        pane.wait_for("Applied 1 of 2; the others stay in the sandbox", PROMPT)
        pane.say("/sandbox")
        pane.wait_for("In the sandbox, and not in the workspace:", r"• created: .*bad\.txt", PROMPT)
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["good.txt"]
        pane.press("C-d")
        assert pane.left() == 0

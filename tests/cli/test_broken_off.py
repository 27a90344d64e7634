"""An answer that the model breaks off and begins anew: people and pipes can tell where, and nothing is left out."""

from pathlib import Path
from typing import Any

from tests.cli.chat_pane import PROMPT, chat, ready
from tests.support.run_command import at_terminal, left, run, scripted

BREAKS: list[dict[str, Any]] = [{"say": "Half an"}, {"fail": "network", "times": 1}, {"say": "The whole answer."}]
MARK = "— broken off, trying again —"


def test_a_pipe_gets_the_answer_on_a_line_of_its_own_and_stderr_says_why(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", *scripted(tmp_path, BREAKS))
    assert (done.code, done.out) == (0, "Half an\nThe whole answer.\n")
    assert done.error.splitlines() == [
        "dragoman: The model cannot be reached; trying again (1 of 3)",
        "dragoman: the answer so far is broken off; the whole of it follows on a new line",
    ]


def test_what_was_not_begun_is_not_broken_off(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", *scripted(tmp_path, BREAKS[1:]))
    assert (done.code, done.out) == (0, "The whole answer.\n")
    assert "broken off" not in done.error


def test_json_has_all_of_it_and_says_where_it_broke(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--stream-json", *scripted(tmp_path, BREAKS))
    told = [one for one in done.events if one["type"] in ("agent_message_chunk", "notice")]
    assert [one["type"] for one in told] == ["agent_message_chunk", "notice", "agent_message_chunk"]
    assert told[1]["_meta"] == {"dragoman/brokenOff": True}


def test_run_at_a_terminal_marks_the_break(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, "hi", *scripted(tmp_path, BREAKS))
    child.expect_exact(f"Half an\r\n\x1b[2m{MARK}\x1b[0m\r\n")
    child.expect_exact("The whole answer.\r\n")
    assert left(child) == 0


def test_chat_marks_the_break(tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, BREAKS)) as pane:
        ready(pane)
        pane.say("hi")
        shown = pane.wait_for(r"^The whole answer\.$", f"^{MARK}$", PROMPT)
        assert shown.index("Half an") < shown.index(MARK) < shown.index("The whole answer")

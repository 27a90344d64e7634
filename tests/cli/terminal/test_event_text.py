"""Events in, pieces out."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.terminal.command_output import LAST_LINES, LIVE_LINES
from dragoman.cli.terminal.event_text import REMEMBERED, EventText, StyledText
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.options import PlanEntry, PlanItems
from dragoman.vocabulary.tools import (
    ContentItem,
    Diff,
    ExitStatus,
    FileChange,
    Patch,
    TerminalItem,
    TerminalOutput,
    ToolContent,
)


def told(*happened: events.AnyEvent) -> list[StyledText]:
    teller = EventText()
    return [piece for event in happened for piece in teller.render(event)] + teller.finish()


def said(*happened: events.AnyEvent) -> str:
    return "".join(piece.text for piece in told(*happened) if piece.form == "answer")


def chunk(text: str, id: str = "m1") -> events.AgentMessageChunk:
    return events.AgentMessageChunk(Text(text), id)


def printed(data: bytes) -> events.TerminalOutputChunk:
    return events.TerminalOutputChunk("t1", base64.b64encode(data).decode())


def lines(*happened: events.AnyEvent) -> list[str]:
    return [piece.text for piece in told(*happened) if piece.form == "output"]


def test_a_message_told_whole_after_its_pieces_is_not_said_twice() -> None:
    assert said(chunk("Hel"), chunk("lo"), events.AgentMessage("m1", [Text("Hello")])) == "Hello"
    assert said(chunk("Hel"), events.AgentMessage("m1", [Text("Hello")]), chunk("!")) == "Hello!"
    assert said(events.AgentMessage("m1", [Text("Hello")])) == "Hello"


def test_a_message_that_was_changed_is_said_again() -> None:
    assert said(chunk("Helo"), events.AgentMessage("m1", [Text("Hello")])) == "Helo\n\nHello"


def test_messages_stand_apart() -> None:
    assert said(chunk("One."), chunk("Two.", "m2")) == "One.\n\nTwo."


def test_a_call_is_headed_once_and_again_if_it_gets_another_title() -> None:
    update = events.ToolCallUpdate
    assert told(
        update("c1", title="Read", kind="read", status="pending"),
        update("c1", status="in_progress"),
        update("c1", title="Read a.txt", content=[ContentItem(Text("for the model"))]),
        update("c1", status="completed"),
        update("c2", name="bash"),
        update("c2", status="failed", content=[ContentItem(Text("No such file\nmore"))]),
    ) == [
        StyledText("tool", "Read"),
        StyledText("tool", "Read a.txt"),
        StyledText("tool", "bash"),
        StyledText("output", "No such file"),
        StyledText("output", "more"),
        StyledText("failed", "bash: failed"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```\nThe user doesn't want to proceed.\n```", " (The user doesn't want to proceed.)"),
        ("```text\n\nno such file\n```\n", " (no such file)"),
        ("~~~\n---\nno such file\n~~~", " (no such file)"),
        ("```no such file```", " (no such file)"),
        ("```\n```", ""),
        ("\n\n", ""),
    ],
)
def test_the_reason_of_a_failure_is_its_first_line_that_says_something(text: str, reason: str) -> None:
    call = events.ToolCallUpdate(
        "c1", title="Write a.txt", kind="edit", status="failed", content=[ContentItem(Text(text))]
    )
    assert told(call)[-1] == StyledText("failed", f"Write a.txt: failed{reason}")


def test_a_reason_of_one_line_is_said_once_also_in_a_fence() -> None:
    content: list[ToolContent] = [ContentItem(Text("```\nno such file\n```"))]
    assert told(events.ToolCallUpdate("c1", title="Write", kind="edit", status="failed", content=content)) == [
        StyledText("tool", "Write"),
        StyledText("failed", "Write: failed (no such file)"),
    ]


def test_a_reason_that_more_stands_behind_is_said_once() -> None:
    failed = events.ToolCallUpdate(
        "c", title="Edit", status="failed", content=[ContentItem(Text("not there\n- near\n"))]
    )
    assert told(failed) == [
        StyledText("tool", "Edit"),
        StyledText("output", "not there"),
        StyledText("output", "- near"),
        StyledText("failed", "Edit: failed"),
    ]


def test_a_reason_that_came_before_the_end_of_the_call_is_said_once() -> None:
    words = ContentItem(Text("Permission denied. The user wrote:\n> not so\n"))
    shown = told(events.ToolCallUpdate("c", title="Edit", content=[words]), events.ToolCallUpdate("c", status="failed"))
    assert shown[-1] == StyledText("failed", "Edit: failed")


def test_output_of_calls_that_run_together_stands_below_the_title_of_each() -> None:
    def update(id: str, text: str) -> events.ToolCallUpdate:
        return events.ToolCallUpdate(id, title=f"Look {id}", content=[ContentItem(Text(text))])

    shown = told(
        update("a", ""), update("b", ""), update("b", "one\n"), update("a", "two\n"), update("a", "two\nthree\n")
    )
    assert [(piece.form, piece.text) for piece in shown] == [
        ("tool", "Look a"),
        ("tool", "Look b"),
        ("output", "one"),
        ("tool", "Look a (goes on)"),
        ("output", "two"),
        ("output", "three"),
    ]


def in_background() -> list[events.AnyEvent]:
    """A call that ends while its terminal prints on."""
    call = events.ToolCallUpdate("c", title="make watch", content=[TerminalItem("t1")])
    return [call, printed(b"tick 0\n"), events.ToolCallUpdate("c", status="completed")]


def test_what_a_command_prints_in_the_background_does_not_cut_the_answer_into_pieces() -> None:
    shown = told(*in_background(), chunk("Started"), printed(b"tick 1\n"), chunk(" it.", "m1"), printed(b"tick 2\n"))
    assert [(piece.form, piece.text) for piece in shown if piece.text] == [
        ("tool", "make watch"),
        ("output", "tick 0"),
        ("answer", "Started"),
        ("answer", " it."),
    ]


def test_when_it_ends_its_last_lines_are_shown_in_later_turns_too() -> None:
    teller = EventText()
    for event in in_background():
        teller.render(event)
    teller.finish()
    shown = [piece for number in range(9) for piece in teller.render(printed(b"tick %d\n" % number))]
    assert shown == []
    shown = teller.render(events.TerminalUpdate("t1", exit_status=ExitStatus(exit_code=2)))
    assert [(piece.form, piece.text) for piece in shown] == [
        ("tool", "make watch (ended)"),
        ("output", "(4 more lines)"),
        *(("output", f"tick {number}") for number in range(4, 9)),
        ("output", "(exit code 2)"),
    ]


def test_a_terminal_that_has_ended_before_its_call_prints_no_more() -> None:
    ended = events.TerminalUpdate("t1", exit_status=ExitStatus(exit_code=0))
    call, first, over = in_background()
    shown = told(call, first, ended, over, ended)
    assert [piece.text for piece in shown] == ["make watch", "tick 0"]


def test_the_lines_of_git_above_a_diff_are_one_line() -> None:
    path = "/w/a"
    patch = f"diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ -1 +1 @@\n-1\n+2\n"
    change = Diff([FileChange("modify", path)], Patch("git_patch", patch))
    shown = [piece.text for piece in told(events.ToolCallUpdate("c1", title="Edit", content=[change]))]
    assert shown == ["Edit", "modify /w/a", "@@ -1 +1 @@", "-1", "+2"]
    mode = patch.replace("\n---", "\nold mode 100644\nnew mode 100755\n---")
    change = Diff([FileChange("modify", path)], Patch("git_patch", mode))
    assert "new mode 100755" in [piece.text for piece in told(events.ToolCallUpdate("c1", content=[change]))]


def test_a_diff_is_shown_once_though_it_is_told_with_every_update() -> None:
    call = events.ToolCallUpdate("c1", title="Edit", kind="edit", content=[Diff.of("/a", "1\n", "2\n")])
    assert [piece.text for piece in told(call, call) if piece.form == "diff"].count("+2") == 1


def test_a_plan_is_shown_when_it_changes() -> None:
    first = events.PlanUpdate(PlanItems("main", [PlanEntry("a"), PlanEntry("b\nc", status="in_progress")]))
    second = events.PlanUpdate(PlanItems("main", [PlanEntry("a", status="completed")]))
    shown = [piece.text for piece in told(first, first, second) if piece.form == "plan"]
    assert shown == ["[ ] a", "[>] b c", "[x] a"]


@given(st.binary(max_size=80), st.lists(st.integers(0, 80), max_size=5))
def test_output_is_the_same_however_its_bytes_are_cut(data: bytes, places: list[int]) -> None:
    ends = sorted({min(place, len(data)) for place in places})
    cuts = [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]
    assert lines(*map(printed, cuts)) == lines(printed(data))


def test_of_much_output_the_first_and_the_last_lines_are_shown() -> None:
    shown = lines(printed(b"".join(b"%d\n" % number for number in range(1000))))
    last = [str(number) for number in range(1000 - LAST_LINES, 1000)]
    left_out = 1000 - LIVE_LINES - LAST_LINES
    assert shown == [*map(str, range(LIVE_LINES)), f"({left_out} more lines)", *last]


def test_output_told_whole_is_shown_as_far_as_it_is_new() -> None:
    def now(text: str) -> events.TerminalUpdate:
        return events.TerminalUpdate("t1", output=TerminalOutput(base64.b64encode(text.encode()).decode()))

    ended = events.TerminalUpdate("t1", exit_status=ExitStatus(3))
    assert lines(now("a\n"), now("a\nb\n"), printed(b"c\n"), ended, ended) == ["a", "b", "c", "(exit code 3)"]


def test_text_of_a_command_that_grows_is_shown_as_it_grows() -> None:
    def now(text: str) -> events.ToolCallUpdate:
        return events.ToolCallUpdate("c1", title="Run", kind="execute", content=[ContentItem(Text(text))])

    assert lines(now("a\nb"), now("a\nbc\nd"), now("a\nbc\nd\n")) == ["a", "bc", "d"]


def test_a_bad_chunk_of_output_is_no_output() -> None:
    assert lines(events.TerminalOutputChunk("t1", "!not base64")) == []


def test_what_is_remembered_of_a_turn_is_bounded() -> None:
    teller = EventText()
    for number in range(3 * REMEMBERED):
        teller.render(chunk("x", f"m{number}"))
        teller.render(events.ToolCallUpdate(f"c{number}", title="t", content=[TerminalItem(f"t{number}")]))
    assert len(teller.running) == REMEMBERED
    assert len(teller._messages) <= REMEMBERED


def test_why_a_compaction_failed_is_shown_also_if_it_was_told_before_its_end() -> None:
    begun = events.CompactionUpdate("s", "in_progress", error="no room")
    other = events.CompactionUpdate("t", "completed")
    assert told(begun, other, events.CompactionUpdate("s", "failed")) == [
        StyledText("notice", "The conversation so far was summarised"),
        StyledText("notice", "The conversation so far could not be summarised: no room"),
    ]

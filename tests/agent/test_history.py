"""A log read as a story: compact, complete, and mended where it was cut off."""

import base64
import time

from msgspec.structs import replace

from dragoman.agent.history import History
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.options import Choice, PlanEntry, PlanItems, Select, UnknownPlan
from dragoman.vocabulary.tools import ContentItem, ExitStatus, Location, TerminalItem, TerminalOutput
from dragoman.vocabulary.word import Extras


def told(*entries: Entry | events.AnyEvent) -> History:
    story = History()
    story.apply(entry if isinstance(entry, tuple) else EventEntry(entry) for entry in entries)
    return story


def say(text: str, message_id: str = "m") -> TextEntry:
    return TextEntry("agent_message_chunk", message_id, text)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


USER = events.UserMessage("u", [Text("hello")])
END = events.Idle(stop_reason="end_turn")


def test_pieces_of_a_message_become_the_message() -> None:
    picture = Image("AAAA", "image/png")
    story = told(USER, say("a"), say("b"), events.AgentMessageChunk(picture, message_id="m"), say("c"), END)
    assert list(story.replay_events()) == [USER, events.AgentMessage("m", [Text("ab"), picture, Text("c")])]


def test_messages_keep_their_ids_and_their_order() -> None:
    thought = TextEntry("agent_thought_chunk", "t", "hm")
    story = told(USER, thought, say("one", "m1"), say("two", "m2"), say(" more", "m1"), END)
    assert list(story.replay_events()) == [
        USER,
        events.AgentThought("t", [Text("hm")]),
        events.AgentMessage("m1", [Text("one more")]),
        events.AgentMessage("m2", [Text("two")]),
    ]


def test_a_message_that_was_replaced_or_cleared_is_told_as_it_is_now() -> None:
    story = told(
        USER, say("draft"), events.AgentMessage("m", [Text("final")]), say("x", "n"), events.AgentMessage("n", None)
    )
    assert list(story.replay_events()) == [
        USER,
        events.AgentMessage("m", [Text("final")]),
        events.AgentMessage("n", []),
    ]


def test_a_tool_call_is_told_once_in_its_last_state() -> None:
    story = told(
        events.ToolCallUpdate("c", title="Read", kind="read", status="pending", raw_input={"path": "a"}),
        events.ToolCallContentChunk("c", ContentItem(Text("one"))),
        events.ToolCallUpdate("c", status="completed", locations=[Location("/a")], raw_output=None),
        events.ToolCallContentChunk("c", ContentItem(Text("two"))),
    )
    assert list(story.replay_events()) == [
        events.ToolCallUpdate(
            "c",
            title="Read",
            kind="read",
            status="completed",
            content=[ContentItem(Text("one")), ContentItem(Text("two"))],
            locations=[Location("/a")],
            raw_input={"path": "a"},
        )
    ]


def test_meta_of_patches_merges_by_key_and_null_removes_one() -> None:
    story = told(
        events.ToolCallUpdate("c", meta={"a": 1, "b": 2}),
        events.ToolCallUpdate("c", meta={"b": None, "c": 3}),
    )
    assert list(story.replay_events()) == [events.ToolCallUpdate("c", meta={"a": 1, "c": 3})]


def test_a_terminal_is_a_snapshot() -> None:
    snowman = "☃".encode()
    story = told(
        events.TerminalUpdate("t", command="make", cwd="/"),
        events.TerminalOutputChunk("t", base64_of(b"lost")),
        events.TerminalUpdate("t", output=TerminalOutput(base64_of(b"kept "))),
        events.TerminalOutputChunk("t", base64_of(snowman[:1])),
        events.TerminalOutputChunk("t", base64_of(snowman[1:])),
        events.TerminalUpdate("t", exit_status=ExitStatus(exit_code=0)),
    )
    output = TerminalOutput(base64_of(b"kept " + snowman))
    assert list(story.replay_events()) == [
        events.TerminalUpdate("t", command="make", cwd="/", output=output, exit_status=ExitStatus(exit_code=0))
    ]


def shows(call_id: str, *terminal_ids: str) -> events.ToolCallUpdate:
    return events.ToolCallUpdate(call_id, title="Run", content=[TerminalItem(each) for each in terminal_ids])


def screen(terminal_id: str) -> events.TerminalUpdate:
    output = TerminalOutput(base64_of(terminal_id.encode()))
    return events.TerminalUpdate(terminal_id, command="make", output=output, exit_status=ExitStatus(exit_code=0))


def test_a_terminal_is_told_before_the_call_that_shows_it() -> None:
    story = told(USER, shows("c", "t", "u"), say("done"), screen("u"), screen("t"), END)
    message = events.AgentMessage("m", [Text("done")])
    assert list(story.replay_events()) == [USER, screen("t"), screen("u"), shows("c", "t", "u"), message]


def test_a_terminal_that_was_appended_to_a_call_is_told_before_it_too() -> None:
    story = told(shows("c"), events.ToolCallContentChunk("c", TerminalItem("t")), screen("t"))
    assert list(story.replay_events()) == [screen("t"), shows("c", "t")]


def test_a_terminal_that_several_calls_show_is_told_once() -> None:
    calls = shows("a", "t"), shows("b", "t", "t")
    assert list(told(*calls, screen("t")).replay_events()) == [screen("t"), *calls]
    assert list(told(screen("t"), *calls).replay_events()) == [screen("t"), *calls]


def test_a_terminal_that_no_tool_call_shows_stays_in_its_place() -> None:
    story = told(shows("c", "unheard of"), screen("t"), USER)
    assert list(story.replay_events()) == [shows("c", "unheard of"), screen("t"), USER]


def test_plans_options_and_commands_are_told_as_they_are_now_and_the_title_is_left_out() -> None:
    first, second = (events.PlanUpdate(PlanItems("main", [PlanEntry(step)])) for step in ("one", "two"))
    gone = events.PlanUpdate(PlanItems("gone", []))
    options = events.OptionsChanged([Select("mode", "Mode", "ask", [Choice("ask", "Ask")])])
    title = events.SessionInfoChanged(title="T")
    story = told(first, gone, events.CommandsChanged([]), options, second, events.PlanRemoved("gone"), title)
    assert list(story.replay_events()) == [second, events.CommandsChanged([]), options]
    assert story.options == options.config_options


def test_moments_are_not_part_of_the_story_but_the_unknown_is() -> None:
    future = events.UnknownEvent("future", {"a": 1})
    story = told(USER, events.Notice("info", "x"), events.Running(), future, future, NoteEntry("context", {}), END)
    assert list(story.replay_events()) == [USER, future, future]


def test_a_finished_story_needs_no_repair() -> None:
    assert told(USER, events.Running(), say("x"), END).repairs() == []
    assert told().repairs() == []
    assert told(events.CommandsChanged([]), events.SessionInfoChanged(title="T")).repairs() == []


def test_a_call_that_its_turn_has_left_open_has_failed() -> None:
    left = events.ToolCallUpdate("left", title="Run", status="in_progress")
    done = events.ToolCallUpdate("done", title="Run", status="pending")
    silent = events.ToolCallUpdate("silent", title="Run")
    ended = events.ToolCallUpdate("done", status="completed")
    story = told(USER, events.Running(), left, done, silent, ended, END)
    interrupted = events.ToolCallContentChunk("left", ContentItem(Text("interrupted")))
    failed = events.ToolCallUpdate("left", status="failed", capabilities=None)
    repairs = story.repairs()
    assert repairs == [EventEntry(interrupted), EventEntry(failed)]
    story.apply(repairs)
    assert story.repairs() == []


def test_a_turn_that_was_cut_off_ends_as_cancelled_with_its_open_calls_failed() -> None:
    story = told(
        USER,
        events.ToolCallUpdate("done", status="completed"),
        events.ToolCallUpdate("open", status="in_progress"),
        events.TerminalUpdate("t", command="make"),
    )
    assert story.repairs() == [
        EventEntry(events.ToolCallContentChunk("open", ContentItem(Text("interrupted")))),
        EventEntry(events.ToolCallUpdate("open", status="failed", capabilities=None)),
        EventEntry(events.TerminalUpdate("t", exit_status=ExitStatus(), capabilities=None)),
        EventEntry(events.Idle(stop_reason="cancelled")),
    ]


def test_a_terminal_that_outlived_its_turn_ends_with_the_process() -> None:
    ended = [events.TerminalUpdate("ended", exit_status=ExitStatus(exit_code=1)), events.TerminalUpdate("ended")]
    story = told(USER, events.TerminalUpdate("open", command="serve"), *ended, END)
    assert story.repairs() == [EventEntry(events.TerminalUpdate("open", exit_status=ExitStatus(), capabilities=None))]
    story.apply(story.repairs())
    assert (story.running, story.repairs()) == (False, [])


def test_a_repaired_story_needs_no_second_repair() -> None:
    story = told(USER, events.ToolCallUpdate("open", status="in_progress"), say("half a sen"))
    story.apply(story.repairs())
    assert story.repairs() == []


def test_a_prompt_alone_is_a_turn_that_was_cut_off() -> None:
    assert told(USER).repairs() == [EventEntry(events.Idle(stop_reason="cancelled"))]


def test_a_story_can_be_told_twice_and_goes_on_after_that() -> None:
    picture = Image("AAAA", "image/png")
    story = told(USER, say("a"), events.AgentMessageChunk(picture, message_id="m"), say("b"))
    call = events.ToolCallUpdate("c", title="Read", content=[ContentItem(Text("one"))])
    story.apply([EventEntry(call), EventEntry(events.ToolCallContentChunk("c", ContentItem(Text("two"))))])
    assert list(story.replay_events()) == list(story.replay_events())
    story.apply([say("c"), EventEntry(events.ToolCallContentChunk("c", ContentItem(Text("three"))))])
    assert list(story.replay_events()) == [
        USER,
        events.AgentMessage("m", [Text("a"), picture, Text("bc")]),
        replace(call, content=[ContentItem(Text(text)) for text in ("one", "two", "three")]),
    ]


def test_what_grows_in_a_hundred_thousand_steps_is_read_in_a_moment() -> None:
    """Each of these once copied everything before it: that is minutes, and not the seconds this test has."""
    item, picture = ContentItem(Text("x")), Image("AAAA", "image/png")
    steps: list[events.AnyEvent] = [
        events.ToolCallContentChunk("c", item),
        events.AgentMessageChunk(picture, message_id="m"),
        events.TerminalOutputChunk("t", base64_of(b"x")),
        events.CompactionSummaryChunk("s", Text("x")),
    ]
    story = told(events.CompactionUpdate("s", "in_progress"))
    began = time.process_time()
    story.apply(EventEntry(step) for _ in range(100_000) for step in steps)
    assert time.process_time() - began < 10
    assert [len(str(event)) > 100_000 for event in story.replay_events()] == [True] * 4


def test_what_was_appended_before_a_list_was_set_anew_is_gone() -> None:
    final = [ContentItem(Text("final"))]
    story = told(
        events.ToolCallUpdate("c", title="Read"),
        events.ToolCallContentChunk("c", ContentItem(Text("draft"))),
        events.ToolCallUpdate("c", content=[*final]),
        events.CompactionUpdate("s", "in_progress"),
        events.CompactionSummaryChunk("s", Text("draft")),
        events.CompactionUpdate("s", "completed", [Text("summary")]),
    )
    assert list(story.replay_events()) == [
        events.ToolCallUpdate("c", title="Read", content=[*final]),
        events.CompactionUpdate("s", "completed", [Text("summary")]),
    ]


def test_a_summary_that_was_told_in_chunks_is_told_again() -> None:
    story = told(
        events.CompactionUpdate("s", "in_progress", meta={"a": 1}),
        events.CompactionSummaryChunk("s", Text("the summary")),
        events.CompactionUpdate("s", "completed", meta={"b": 2}),
    )
    assert list(story.replay_events()) == [
        events.CompactionUpdate("s", "completed", [Text("the summary")], meta={"a": 1, "b": 2})
    ]


def test_a_summary_chunk_before_its_compaction_is_not_lost() -> None:
    story = told(events.CompactionSummaryChunk("s", Text("one")), USER, events.CompactionUpdate("s", "completed"))
    assert list(story.replay_events()) == [events.CompactionUpdate("s", "completed", [Text("one")]), USER]


def test_a_compaction_that_was_cut_off_is_cancelled_and_keeps_its_summary() -> None:
    story = told(USER, events.CompactionSummaryChunk("s", Text("half")))
    story.apply(story.repairs())
    assert list(story.replay_events()) == [USER, events.CompactionUpdate("s", "cancelled", [Text("half")])]
    assert story.repairs() == []


def test_meta_and_unknown_fields_of_a_message_are_told_again() -> None:
    story = told(
        say("a"),
        events.AgentMessage("m", meta={"a": 1, "b": 2}, extras=Extras({"x": 1})),
        say("b"),
        events.AgentMessage("m", meta={"b": None, "c": 3}),
    )
    (message,) = story.replay_events()
    assert message == events.AgentMessage("m", [Text("ab")], meta={"a": 1, "c": 3}, extras=Extras({"x": 1}))


def test_unknown_fields_of_a_tool_call_merge_by_key() -> None:
    story = told(
        events.ToolCallUpdate("c", extras=Extras({"x": 1})), events.ToolCallUpdate("c", extras=Extras({"y": 2}))
    )
    assert list(story.replay_events()) == [events.ToolCallUpdate("c", extras=Extras({"x": 1, "y": 2}))]


def test_content_of_an_unknown_call_creates_it() -> None:
    story = told(events.ToolCallContentChunk("c", ContentItem(Text("one"))), events.ToolCallUpdate("c", title="Read"))
    assert list(story.replay_events()) == [events.ToolCallUpdate("c", title="Read", content=[ContentItem(Text("one"))])]


def test_output_of_an_unknown_terminal_creates_it() -> None:
    story = told(events.TerminalOutputChunk("t", base64_of(b"one")), events.TerminalUpdate("t", command="make"))
    output = TerminalOutput(base64_of(b"one"))
    assert list(story.replay_events()) == [events.TerminalUpdate("t", command="make", output=output)]


def test_the_output_of_a_terminal_is_unknown_until_it_is_told_and_keeps_its_meta() -> None:
    assert list(told(events.TerminalUpdate("t", command="make")).replay_events()) == [
        events.TerminalUpdate("t", command="make")
    ]
    story = told(
        events.TerminalUpdate("t", output=TerminalOutput(base64_of(b"one"), meta={"a": 1})),
        events.TerminalOutputChunk("t", base64_of(b"two")),
    )
    output = TerminalOutput(base64_of(b"onetwo"), meta={"a": 1})
    assert list(story.replay_events()) == [events.TerminalUpdate("t", output=output)]


def test_a_cost_stays_until_it_is_told_anew_or_cleared() -> None:
    spent = events.UsageChanged(1, 10, events.Cost(0.5, "USD"), meta={"a": 1})
    assert list(told(spent, events.UsageChanged(2, 10)).replay_events()) == [
        events.UsageChanged(2, 10, events.Cost(0.5, "USD"))
    ]
    assert list(told(spent, events.UsageChanged(2, 10, None)).replay_events()) == [events.UsageChanged(2, 10, None)]


def test_plans_of_an_unknown_kind_are_told_apart_by_their_id() -> None:
    one, two, again = (
        events.PlanUpdate(UnknownPlan("graph", {"planId": plan_id, "step": step}))
        for plan_id, step in (("a", 1), ("b", 1), ("a", 2))
    )
    assert list(told(one, two, again).replay_events()) == [again, two]
    assert list(told(one, two, events.PlanRemoved("a")).replay_events()) == [two]


def test_what_else_an_agent_has_told_of_a_session_is_told_again_without_its_title() -> None:
    story = told(
        events.SessionInfoChanged(title="T", meta={"a": 1, "b": 2}), events.SessionInfoChanged(meta={"b": None})
    )
    assert list(story.replay_events()) == [events.SessionInfoChanged(meta={"a": 1})]

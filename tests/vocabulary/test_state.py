"""One reducer: the live state is the state after a reload, and what a permission question is judged by."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.history import History
from dragoman.client.call_facts import call_facts
from dragoman.client.tool_calls import ToolCalls
from dragoman.store import entries
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, Image, Text
from dragoman.vocabulary.options import (
    Choice,
    ChoiceGroup,
    Command,
    PlanEntry,
    PlanItems,
    PlanMarkdown,
    Select,
    UnknownPlan,
)
from dragoman.vocabulary.services import PermissionOption, RequestPermission, ToolCallSubject
from dragoman.vocabulary.state import MESSAGE_OF_CHUNK, SessionState, TerminalState, output_bytes
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import (
    FINAL_STATUSES,
    Cancellable,
    ContentItem,
    Diff,
    ExitStatus,
    Location,
    TerminalItem,
    TerminalOutput,
    TerminalSize,
    ToolContent,
    UnknownItem,
)
from dragoman.vocabulary.word import Extras

# An example takes a third of a millisecond, and the rules are many.
MANY = settings(max_examples=max(300, settings().max_examples))

# -- arbitrary sequences of events -----------------------------------------------------------------------------------

ids = st.sampled_from(["a", "b"])
words = st.sampled_from(["", "one", "two"])
# Mostly absent, or there would be no plain text among the chunks.
metas = st.sampled_from([*[UNSET] * 8, None, {}, {"x": 1}, {"x": None, "y": 2}])
extras = st.sampled_from([*[UNSET] * 8, Extras({"other": 1}), Extras({"other": None, "more": [2]})])
# Few kinds of each thing: what matters is that events of one id meet in every order.
blocks: st.SearchStrategy[Content] = st.sampled_from(
    [Text("one"), Text("two"), Text(""), Text("own", meta={"z": 1}), Image("AAAA", "image/png")]
)
items: st.SearchStrategy[ToolContent] = st.sampled_from(
    [ContentItem(Text("one")), Diff.of("/w/a", "x", "y"), TerminalItem("a"), UnknownItem("new", {"a": 1})]
)
data = st.sampled_from(["", "b25l", "dHdv", "no base64"])


def absent_null_or(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNSET), st.none(), values)


def made(kind: Any, /, *given: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Events of a kind, with `_meta` and unknown fields in the event and beside it."""
    return st.builds(kind, *given, **named, meta=metas, extras=extras, outer=extras)


texts = absent_null_or(words)
background = absent_null_or(st.just([events.Background("work", {})]))
cancellable = absent_null_or(st.just(Cancellable()))
statuses = st.sampled_from([UNSET, None, "pending", "in_progress", "completed", "failed", "strange"])
open_statuses = statuses.filter(lambda status: status not in FINAL_STATUSES)
plans = st.one_of(
    st.builds(PlanItems, ids, st.lists(st.builds(PlanEntry, words), max_size=2)),
    st.builds(PlanMarkdown, ids, words),
    st.sampled_from([UnknownPlan("graph", {"planId": "a"}), UnknownPlan("graph", {})]),
)
choices: list[Choice | ChoiceGroup] = [Choice("one", "One"), Choice("two", "Two")]
options = st.lists(st.builds(lambda value: Select("mode", "Mode", value, choices), words), max_size=1)


def of_calls(status: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        made(
            events.ToolCallUpdate,
            ids,
            name=texts,
            title=texts,
            kind=absent_null_or(st.sampled_from(["read", "edit", "execute"])),
            status=status,
            content=absent_null_or(st.lists(items, max_size=2)),
            locations=absent_null_or(st.lists(st.builds(Location, st.sampled_from(["/w/a", "/etc/b"])), max_size=2)),
            raw_input=st.sampled_from([UNSET, None, {}, {"path": "/w/a"}, "text"]),
            raw_output=st.sampled_from([UNSET, None, {"a": 1}]),
            capabilities=cancellable,
        ),
        made(events.ToolCallContentChunk, ids, items),
    )


of_messages = st.one_of(
    *(st.builds(kind, st.builds(Text, words), ids) for kind in MESSAGE_OF_CHUNK),
    *(made(kind, blocks, ids) for kind in MESSAGE_OF_CHUNK),
    *(made(kind, ids, absent_null_or(st.lists(blocks, max_size=2))) for kind in MESSAGE_OF_CHUNK.values()),
)
of_terminals = st.one_of(
    made(
        events.TerminalUpdate,
        ids,
        command=texts,
        cwd=texts,
        output=absent_null_or(st.builds(TerminalOutput, data, meta=metas)),
        exit_status=absent_null_or(st.sampled_from([ExitStatus(0), ExitStatus(signal="SIGKILL")])),
        size=absent_null_or(st.just(TerminalSize(80, 24))),
        capabilities=cancellable,
    ),
    made(events.TerminalOutputChunk, ids, data),
)
of_compactions = st.one_of(
    made(
        events.CompactionUpdate,
        ids,
        st.sampled_from(["in_progress", "completed", "failed"]),
        absent_null_or(st.lists(blocks, max_size=2)),
        texts,
    ),
    made(events.CompactionSummaryChunk, ids, blocks),
)
of_plans = st.one_of(made(events.PlanUpdate, plans), made(events.PlanRemoved, ids))
of_settings = st.one_of(
    made(events.CommandsChanged, st.lists(st.builds(Command, words, words), max_size=2)),
    made(events.OptionsChanged, options),
    made(events.SessionInfoChanged, texts, texts),
    made(events.UsageChanged, st.just(1), st.just(10), absent_null_or(st.just(events.Cost(0.5, "USD")))),
)
of_turns = st.one_of(
    made(events.Running, background),
    made(events.RequiresAction, background),
    made(events.Idle, absent_null_or(st.sampled_from(["end_turn", "cancelled"])), background=background),
    made(events.UnknownState, st.just("dreaming")),
)
others = st.one_of(
    made(events.Notice, st.just("info"), words), made(events.UnknownEvent, st.just("future"), st.just({"a": 1}))
)
NOT_CALLS = [of_messages, of_terminals, of_compactions, of_plans, of_settings, of_turns, others]


def sequences_of(*subjects: st.SearchStrategy[Any]) -> st.SearchStrategy[list[events.AnyEvent]]:
    """Events about few subjects at a time: of all of them at once, those of one thing would seldom meet."""
    few = st.lists(st.sampled_from(subjects), min_size=1, max_size=3)
    return few.flatmap(lambda chosen: st.lists(st.one_of(chosen), min_size=3, max_size=25))


sequences = sequences_of(of_calls(statuses), *NOT_CALLS)


def state_of(*happened: events.AnyEvent) -> SessionState:
    state = SessionState()
    for event in happened:
        state.apply(event)
    return state


def seen(state: SessionState) -> tuple[list[events.AnyEvent], events.AnyEvent]:
    """Everything there is to know of a state."""
    return list(state.snapshot()), state.turn


def stored(happened: list[events.AnyEvent]) -> list[entries.Entry]:
    """The entries as they come out of a log: plain text joined, everything written as bytes and read again."""
    return [entries.decode_entry(*entries.encode_entry(entry)) for entry in entries.join_texts(map(entry_of, happened))]


def entry_of(event: events.AnyEvent) -> entries.Entry:
    if isinstance(event, events.Chunk) and event == type(event)(Text(event.text), event.message_id):
        return entries.TextEntry(str(event.__struct_config__.tag), event.message_id, event.text)
    return entries.EventEntry(event)


# -- the properties --------------------------------------------------------------------------------------------------


@MANY
@given(sequences)
def test_the_state_after_a_reload_is_the_live_state(happened: list[events.AnyEvent]) -> None:
    history = History()
    history.apply(stored(happened))
    assert seen(history._state) == seen(state_of(*happened))


@MANY
@given(sequences)
def test_a_turn_that_was_cut_off_is_the_live_state_with_its_repairs_and_nothing_open(
    happened: list[events.AnyEvent],
) -> None:
    """The rule of a repair: the same few events, applied behind what there was."""
    history = History()
    history.apply(stored(happened))
    was_running, repairs = history.running, history.repairs()
    history.apply(repairs)
    assert seen(history._state) == seen(state_of(*happened, *entries.events_of(repairs)))
    assert (history.running, history.repairs()) == (False, [])
    if was_running:
        assert history._state.turn == events.Idle(stop_reason="cancelled")
        calls = [event for event in history._state.snapshot() if isinstance(event, events.ToolCallUpdate)]
        assert {call.status for call in calls} <= FINAL_STATUSES


@MANY
@given(sequences)
def test_a_snapshot_makes_the_state_anew(happened: list[events.AnyEvent]) -> None:
    state = state_of(*happened)
    again = state_of(*state.snapshot(), state.turn)
    assert seen(again) == seen(state)


@MANY
@given(sequences)
def test_neither_the_events_nor_what_a_state_has_returned_are_changed_by_later_events(
    happened: list[events.AnyEvent],
) -> None:
    state = SessionState()
    given, returned = repr(happened), []
    for event in happened:
        state.apply(event)
        values = seen(state)
        returned.append((values, repr(values)))
    assert repr(happened) == given
    assert [repr(values) for values, _ in returned] == [text for _, text in returned]


JUDGED = ("name", "title", "kind", "content", "locations", "raw_input")


@MANY
@given(sequences_of(*[of_calls(open_statuses)] * 3, *NOT_CALLS), ids)
def test_a_question_is_judged_and_shown_by_the_live_state_of_its_call(
    happened: list[events.AnyEvent], call_id: str
) -> None:
    calls = ToolCalls()
    for event in happened:
        if isinstance(event, (events.ToolCallUpdate, events.ToolCallContentChunk)):
            calls.apply(event)
    live = state_of(*happened).tool_call(call_id) or events.ToolCallUpdate(call_id)
    known = events.ToolCallUpdate(call_id, **{name: getattr(live, name) for name in JUDGED})
    assert calls.whole(question(call_id)) == question(call_id, known)
    assert call_facts(calls.whole(question(call_id))) == call_facts(question(call_id, known))


def question(call_id: str, call: events.ToolCallUpdate | None = None) -> RequestPermission:
    yes = PermissionOption("yes", "Yes", "allow_once")
    return RequestPermission("s", "May I?", [yes], subject=ToolCallSubject(call or events.ToolCallUpdate(call_id)))


# -- examples of each rule -------------------------------------------------------------------------------------------


def base(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def snapshot(*happened: events.AnyEvent) -> list[events.AnyEvent]:
    return list(state_of(*happened).snapshot())


ONE, TWO = ContentItem(Text("one")), ContentItem(Text("two"))


@pytest.mark.parametrize(
    ("first", "second", "after"),
    [
        (events.ToolCallUpdate("c", title="t"), events.ToolCallUpdate("c"), events.ToolCallUpdate("c", title="t")),
        (events.ToolCallUpdate("c", title="t"), events.ToolCallUpdate("c", title=None), events.ToolCallUpdate("c")),
        (
            events.ToolCallUpdate("c", title="t"),
            events.ToolCallUpdate("c", title="u"),
            events.ToolCallUpdate("c", title="u"),
        ),
        (events.AgentMessage("m", [Text("a")]), events.AgentMessage("m"), events.AgentMessage("m", [Text("a")])),
        (events.AgentMessage("m", [Text("a")]), events.AgentMessage("m", None), events.AgentMessage("m", [])),
        (
            events.TerminalUpdate("t", command="make"),
            events.TerminalUpdate("t", cwd="/", command=None),
            events.TerminalUpdate("t", cwd="/"),
        ),
        (
            events.SessionInfoChanged("title", "then"),
            events.SessionInfoChanged(None),
            events.SessionInfoChanged(updated_at="then"),
        ),
    ],
)
def test_absent_leaves_null_clears_and_a_value_replaces(
    first: events.AnyEvent, second: events.AnyEvent, after: events.AnyEvent
) -> None:
    assert snapshot(first, second) == [after]


def test_the_first_chunk_with_an_id_creates_what_it_belongs_to() -> None:
    assert snapshot(
        events.AgentThoughtChunk(Text("hm"), "m"),
        events.ToolCallContentChunk("c", ONE),
        events.TerminalOutputChunk("t", base("out")),
        events.CompactionSummaryChunk("s", Text("sum")),
    ) == [
        events.AgentThought("m", [Text("hm")]),
        events.ToolCallUpdate("c", content=[ONE]),
        events.TerminalUpdate("t", output=TerminalOutput(base("out"))),
        events.CompactionUpdate("s", "in_progress", [Text("sum")]),
    ]


def test_chunks_append_to_what_was_set_and_are_gone_when_it_is_set_anew() -> None:
    grown = (events.ToolCallUpdate("c", content=[ONE]), events.ToolCallContentChunk("c", TWO))
    assert snapshot(*grown) == [events.ToolCallUpdate("c", content=[ONE, TWO])]
    assert snapshot(*grown, events.ToolCallUpdate("c", content=[TWO])) == [events.ToolCallUpdate("c", content=[TWO])]
    assert snapshot(*grown, events.ToolCallUpdate("c", content=None)) == [events.ToolCallUpdate("c")]
    printed = (events.TerminalOutputChunk("t", base("a")), events.TerminalOutputChunk("t", base("b")))
    assert snapshot(*printed) == [events.TerminalUpdate("t", output=TerminalOutput(base("ab")))]
    assert snapshot(*printed, events.TerminalUpdate("t", output=None)) == [events.TerminalUpdate("t")]


def test_a_message_and_a_thought_with_one_id_are_two() -> None:
    pieces = (events.AgentThoughtChunk(Text("hm"), "m"), events.AgentMessageChunk(Text("yes"), "m"))
    assert snapshot(*pieces, *pieces) == [
        events.AgentThought("m", [Text("hmhm")]),
        events.AgentMessage("m", [Text("yesyes")]),
    ]


def test_meta_and_unknown_fields_merge_by_key_and_null_removes_one() -> None:
    first = events.ToolCallUpdate("c", meta={"a": 1, "b": 2}, extras=Extras({"x": 1}))
    second = events.ToolCallUpdate("c", meta={"b": None, "c": 3}, extras=Extras({"x": None, "y": 2}))
    assert snapshot(first, second) == [
        events.ToolCallUpdate("c", meta={"a": 1, "c": 3}, extras=Extras({"y": 2})),
    ]
    assert snapshot(first, events.ToolCallUpdate("c", meta=None)) == [replace(first, meta=UNSET)]


def test_the_meta_of_a_chunk_is_not_kept() -> None:
    assert snapshot(
        events.AgentMessageChunk(Text("a"), "m", meta={"x": 1}), events.ToolCallContentChunk("c", ONE, meta={"x": 1})
    ) == [events.AgentMessage("m", [Text("a")]), events.ToolCallUpdate("c", content=[ONE])]


def test_a_summary_told_in_chunks_stays_when_the_compaction_completes() -> None:
    assert snapshot(
        events.CompactionUpdate("s", "in_progress"),
        events.CompactionSummaryChunk("s", Text("the summary")),
        events.CompactionUpdate("s", "completed"),
    ) == [events.CompactionUpdate("s", "completed", [Text("the summary")])]


def test_plans_are_replaced_and_removed_by_id() -> None:
    first, second = events.PlanUpdate(PlanItems("p", [])), events.PlanUpdate(PlanMarkdown("p", "# Plan"))
    other = events.PlanUpdate(PlanItems("q", []))
    assert snapshot(first, other, second) == [second, other]
    assert snapshot(first, other, events.PlanRemoved("p"), events.PlanRemoved("unknown")) == [other]


def test_the_turn_is_running_waiting_or_idle_with_its_end_and_an_unknown_state_changes_nothing() -> None:
    end = events.Idle(stop_reason="max_tokens")
    assert state_of().turn == events.Idle()
    assert state_of(events.Running()).turn == events.Running()
    assert state_of(events.Running(), events.RequiresAction()).turn == events.RequiresAction()
    assert state_of(events.Running(), end, events.UnknownState("dreaming")).turn == end


def test_settings_are_the_last_ones() -> None:
    state = state_of()
    assert (state.options, state.commands, state.title, state.usage) == (None, None, None, None)
    mode = Select("mode", "Mode", "one", choices)
    command = Command("plan", "Plan first")
    state = state_of(
        events.OptionsChanged([]),
        events.OptionsChanged([mode]),
        events.CommandsChanged([command]),
        events.SessionInfoChanged("T"),
        events.UsageChanged(1, 10, events.Cost(0.5, "USD")),
        events.UsageChanged(2, 10),
    )
    assert (state.options, state.commands, state.title) == ([mode], [command], "T")
    assert state.usage == events.UsageChanged(2, 10, events.Cost(0.5, "USD"))
    assert (state.tool_call("c"), state.terminal("t")) == (None, None)


def test_notices_and_unknown_events_stay_in_their_place() -> None:
    notice, future = events.Notice("info", "x"), events.UnknownEvent("future", {"a": 1})
    message = events.AgentMessage("m", [Text("a")])
    assert snapshot(notice, future, message, notice, future) == [notice, future, message, notice, future]


def test_a_state_of_few_fields_keeps_no_others() -> None:
    state = ToolCallState("c", ("status",))
    state.apply(events.ToolCallUpdate("c", title="t", status="completed", raw_output="much", meta={"a": 1}))
    assert (state.value, state.is_final) == (events.ToolCallUpdate("c", status="completed"), True)


def test_a_terminal_that_keeps_little_has_the_end_of_its_output_and_knows_that_it_is_cut() -> None:
    terminal = TerminalState("t", keep=3)
    for text in ("ab", "cd"):
        terminal.apply(events.TerminalOutputChunk("t", base(text)))
    assert (terminal.output, terminal.size, terminal.is_cut, terminal.received) == (b"bcd", 3, True, 4)
    terminal.apply(events.TerminalUpdate("t", output=TerminalOutput(base("e"))))
    assert (terminal.output, terminal.is_cut, terminal.has_ended) == (b"e", False, False)


def test_output_that_is_not_base64_is_none() -> None:
    assert [output_bytes(text) for text in ("YQ==", "YQ", "not base64!", "é")] == [b"a", b"", b"", b""]


def test_states_show_counts_and_no_content() -> None:
    state = state_of(events.AgentMessageChunk(Text("secret"), "m"), events.TerminalOutputChunk("t", base("secret")))
    shown = [repr(state), *(repr(part) for part in state._parts.values())]
    assert shown == [
        "<SessionState Idle parts=2>",
        "<MessageState AgentMessage 'm' blocks=1>",
        "<TerminalState 't' bytes=6 ended=False>",
    ]

"""What a client that joins a turn is sent: the state of the turn, as far as its events are held."""

import pytest

from dragoman.gateway import turn_buffer
from dragoman.gateway.turn_buffer import TurnBuffer
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.options import PlanItems
from dragoman.vocabulary.tools import ContentItem


def chunk(text: str) -> events.AgentMessageChunk:
    return events.AgentMessageChunk(Text(text), "m")


def test_a_message_is_sent_whole_and_a_call_once_in_its_last_state() -> None:
    buffer = TurnBuffer()
    buffer.append(events.UserMessage("u", [Text("hello")]), 10)
    buffer.begin()
    for event in (
        chunk("one "),
        events.ToolCallUpdate("c", title="Read", status="in_progress"),
        events.ToolCallContentChunk("c", ContentItem(Text("text"))),
        events.Notice("info", "slow today"),
        chunk("two"),
        events.ToolCallUpdate("c", status="completed"),
    ):
        buffer.append(event, 10)
    assert list(buffer.snapshot()) == [
        events.UserMessage("u", [Text("hello")]),
        events.AgentMessage("m", [Text("one two")]),
        events.ToolCallUpdate("c", title="Read", status="completed", content=[ContentItem(Text("text"))]),
        events.Notice("info", "slow today"),
    ]
    assert repr(buffer) == "<TurnBuffer events=7 bytes=70 missing=0>"


def test_the_oldest_events_go_where_there_is_no_room_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_buffer, "TURN_BYTES", 20)
    buffer = TurnBuffer()
    buffer.begin()
    for text in "abcd":
        buffer.append(chunk(text), 10)
    assert (list(buffer.snapshot()), buffer.missing) == ([events.AgentMessage("m", [Text("cd")])], 2)
    buffer.append(chunk("e"), 1000)  # larger than all there is room for
    assert (list(buffer.snapshot()), buffer.missing) == ([events.AgentMessage("m", [Text("e")])], 4)


def test_what_a_turn_has_cleared_is_sent_as_null_and_a_removed_plan_as_its_removal() -> None:
    buffer = TurnBuffer()
    buffer.begin()
    for event in (
        events.ToolCallUpdate("c", title="Run", raw_input={"command": "ls"}, content=[], meta={"a": 1, "b": 2}),
        events.ToolCallUpdate("c", raw_input=None, content=None, title=None, meta={"a": None}),
        events.ToolCallUpdate("c", title="Run again"),
        events.ToolCallUpdate("d", content=None),
        events.ToolCallContentChunk("d", ContentItem(Text("text"))),
        events.TerminalUpdate("t", exit_status=None),
        events.SessionInfoChanged(title=None),
        events.PlanRemoved("before"),
        events.PlanRemoved("again"),
        events.PlanUpdate(PlanItems("again", [])),
    ):
        buffer.append(event, 10)
    assert list(buffer.snapshot()) == [
        events.ToolCallUpdate("c", title="Run again", raw_input=None, content=None, meta={"a": None, "b": 2}),
        events.ToolCallUpdate("d", content=[ContentItem(Text("text"))]),
        events.TerminalUpdate("t", exit_status=None),
        events.SessionInfoChanged(title=None),
        events.PlanUpdate(PlanItems("again", [])),
        events.PlanRemoved("before"),
    ]


def test_nothing_is_held_of_a_turn_that_is_over() -> None:
    buffer = TurnBuffer()
    buffer.begin()
    buffer.append(chunk("a"), 10)
    buffer.clear()
    assert (list(buffer.snapshot()), buffer.missing) == ([], 0)

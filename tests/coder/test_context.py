"""The model's context, read from a log: exact where it was noted, mended where a process was killed."""

from typing import Any

import msgspec
import pytest

from dragoman.coder.context import (
    INTERRUPTED,
    NOTE,
    Context,
    ContextAssistantMessage,
    ContextSummary,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Forgotten,
    Item,
    MediaLeftOut,
    Trimmed,
    read,
)
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.events import CompactionUpdate, UserMessage

ASK = ContextUserMessage("m1", [Text("hi"), Image("aGk=", "image/png")])
CALLS = ContextAssistantMessage(
    "let me see",
    "hm",
    [ContextToolCall("c1", "read_file", {"path": "a"}), ContextToolCall("c2", "bash", {})],
    {"raw": 1},
)
ONE, TWO = ContextToolResult("c1", "read_file", "text"), ContextToolResult("c2", "bash", "out", failed=True)
ANSWER = ContextAssistantMessage("that is it")


def note(item: object) -> NoteEntry:
    return NoteEntry(NOTE, msgspec.json.decode(msgspec.json.encode(item)))


def said(text: str) -> TextEntry:
    return TextEntry("agent_message_chunk", "m", text)


def prompted(id: str) -> EventEntry:
    return EventEntry(UserMessage(id, [Text("hi")]))


def log(*items: Any) -> list[Entry]:
    return [item if isinstance(item, (TextEntry, EventEntry)) else note(item) for item in items]


def test_what_was_noted_is_read_as_it_was() -> None:
    items = [ASK, CALLS, ONE, TWO, ANSWER]
    assert read(log(prompted("m1"), *items)) == items


@pytest.mark.parametrize("kept", range(1, 5))
def test_a_log_that_ends_anywhere_is_a_context_every_provider_takes(kept: int) -> None:
    items = read(log(prompted("m1"), *[ASK, CALLS, ONE, TWO, ANSWER][:kept]))
    calls = [call.id for item in items if isinstance(item, ContextAssistantMessage) for call in item.calls]
    assert [item.call_id for item in items if isinstance(item, ContextToolResult)] == calls


def test_text_the_user_saw_is_put_back() -> None:
    one = read(log(prompted("m1"), ASK, said("I am "), said("going to")))
    assert one == [ASK, ContextAssistantMessage(f"I am going to{INTERRUPTED}")]
    two = read(log(prompted("m1"), ASK, said("I am"), prompted("m2"), ContextUserMessage("m2", []), said("on"), ANSWER))
    assert two == [ASK, ContextAssistantMessage(f"I am{INTERRUPTED}"), ContextUserMessage("m2", []), ANSWER]


def test_what_commands_say_is_not_the_models() -> None:
    assert read(log(prompted("m1"), ASK, said("x"), ANSWER, prompted("m2"), said("Commands: …"))) == [ASK, ANSWER]


def test_forgetting_trimming_and_summing_up_are_read_again() -> None:
    assert read(log(ASK, ANSWER, ContextUserMessage("m2", []), ANSWER, Forgotten("m2"))) == [ASK, ANSWER]
    assert read(log(ASK, ANSWER, Forgotten())) == []


def test_leaving_out_a_prompt_keeps_the_summary_of_what_was_before_it() -> None:
    """A summary that was made while the prompt was running stands behind it."""
    summary = ContextSummary("what was done before", 0, ["m1", "m2"])
    assert read(log(ASK, ANSWER, ContextUserMessage("m2", []), summary, Forgotten("m2"))) == [ASK, summary]
    assert read(log(ASK, ANSWER, ContextSummary("short"), ASK)) == [ContextSummary("short"), ASK]
    assert read(log(ASK, ANSWER, ASK, ContextSummary("short", kept=1))) == [ContextSummary("short", kept=1), ASK]
    assert read(log(ASK, CALLS, ONE, TWO, Trimmed(["c1"])))[2] == ContextToolResult(
        "c1", "read_file", "[trimmed: 4 characters]"
    )


def test_a_result_without_a_call_and_a_second_result_of_one_are_left_out() -> None:
    assert read(log(ASK, ONE, ANSWER)) == [ASK, ANSWER]
    assert read(log(ASK, CALLS, ONE, TWO, ContextToolResult("c1", "read_file", "again"))) == [ASK, CALLS, ONE, TWO]


def test_results_stand_in_the_order_of_their_calls_whichever_ended_first() -> None:
    assert read(log(ASK, CALLS, TWO, ONE, ANSWER)) == [ASK, CALLS, ONE, TWO, ANSWER]


async def test_what_is_added_is_noted() -> None:
    notes: list[object] = []

    async def keep(item: object) -> None:
        notes.append(item)

    context = Context([], keep)
    items: list[Item] = [ASK, CALLS, ONE]
    for item in items:
        await context.add(item)
    await context.forget("m1")
    assert (context.items, notes) == ([], [*items, Forgotten("m1")])


def test_prompts_that_stay_beside_a_summary_are_read_again() -> None:
    first, second = ContextUserMessage("m1", [Text("one")]), ContextUserMessage("m2", [Text("two")])
    summed = ContextSummary("short", kept=1, prompts=["m1", "m2"])
    assert read(log(first, ANSWER, second, CALLS, ONE, TWO, ANSWER, summed)) == [first, second, summed, ANSWER]


def test_a_log_of_an_earlier_release_that_a_cancel_left_open_is_read_whole() -> None:
    """Nothing was noted at a cancel then: neither the words nor a result for each call."""
    entries = log(
        prompted("m1"), ASK, CALLS, ONE, prompted("m2"), ContextUserMessage("m2", []), said("wo"), prompted("m3")
    )
    interrupted = ContextToolResult("c2", "bash", INTERRUPTED, failed=True)
    assert read(entries) == [
        ASK,
        CALLS,
        ONE,
        interrupted,
        ContextUserMessage("m2", []),
        ContextAssistantMessage(f"wo{INTERRUPTED}"),
    ]


def test_what_was_settled_after_a_kill_is_not_there_twice() -> None:
    partial = ContextAssistantMessage(f"I am{INTERRUPTED}")
    entries = log(prompted("m1"), ASK, said("I am"), prompted("m2"), partial, ContextUserMessage("m2", []), ANSWER)
    assert read(entries) == [ASK, partial, ContextUserMessage("m2", []), ANSWER]


def test_a_log_that_ends_in_the_middle_of_a_compaction_is_what_it_was_before() -> None:
    going_on = EventEntry(CompactionUpdate("c", "in_progress"))
    assert read([*log(prompted("m1"), ASK, ANSWER, prompted("m2"), ContextUserMessage("m2", [])), going_on]) == [
        ASK,
        ANSWER,
        ContextUserMessage("m2", []),
    ]


def test_media_that_a_provider_refused_are_markers() -> None:
    (item,) = read(log(ASK, MediaLeftOut(["m1"])))
    assert item == ContextUserMessage("m1", [Text("hi"), Text("[image/png left out: the model's provider refused it]")])

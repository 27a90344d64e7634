"""The model's context, read from a log: exact where it was noted, mended where a process was killed."""

from typing import Any

import msgspec
import pytest

from dragoman.coder.context import (
    INTERRUPTED,
    NOTE,
    Asked,
    Context,
    Forgotten,
    Item,
    ModelSaid,
    Summed,
    ToolSaid,
    Trimmed,
    UserSaid,
    answered,
    read,
)
from dragoman.store.entries import Entry, Happened, Noted, Said
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.events import UserMessage

ASK = UserSaid("m1", [Text("hi"), Image("aGk=", "image/png")])
CALLS = ModelSaid("let me see", "hm", [Asked("c1", "read_file", {"path": "a"}), Asked("c2", "bash", {})], {"raw": 1})
ONE, TWO = ToolSaid("c1", "read_file", "text"), ToolSaid("c2", "bash", "out", failed=True)
ANSWER = ModelSaid("that is it")


def note(item: object) -> Noted:
    return Noted(NOTE, msgspec.json.decode(msgspec.json.encode(item)))


def said(text: str) -> Said:
    return Said("agent_message_chunk", "m", text)


def prompted(id: str) -> Happened:
    return Happened(UserMessage(id, [Text("hi")]))


def log(*items: Any) -> list[Entry]:
    return [item if isinstance(item, (Said, Happened)) else note(item) for item in items]


def test_what_was_noted_is_read_as_it_was() -> None:
    items = [ASK, CALLS, ONE, TWO, ANSWER]
    assert read(log(prompted("m1"), *items)) == items


@pytest.mark.parametrize("kept", range(1, 5))
def test_a_log_that_ends_anywhere_is_a_context_every_provider_takes(kept: int) -> None:
    items = read(log(prompted("m1"), *[ASK, CALLS, ONE, TWO, ANSWER][:kept]))
    calls = [call.id for item in items if isinstance(item, ModelSaid) for call in item.calls]
    assert [item.call_id for item in items if isinstance(item, ToolSaid)] == calls


def test_text_the_user_saw_is_put_back() -> None:
    one = read(log(prompted("m1"), ASK, said("I am "), said("going to")))
    assert one == [ASK, ModelSaid(f"I am going to{INTERRUPTED}")]
    two = read(log(prompted("m1"), ASK, said("I am"), prompted("m2"), UserSaid("m2", []), said("on"), ANSWER))
    assert two == [ASK, ModelSaid(f"I am{INTERRUPTED}"), UserSaid("m2", []), ANSWER]


def test_what_commands_say_is_not_the_models() -> None:
    assert read(log(prompted("m1"), ASK, said("x"), ANSWER, prompted("m2"), said("Commands: …"))) == [ASK, ANSWER]


def test_forgetting_trimming_and_summing_up_are_read_again() -> None:
    assert read(log(ASK, ANSWER, UserSaid("m2", []), ANSWER, Forgotten("m2"))) == [ASK, ANSWER]
    assert read(log(ASK, ANSWER, Forgotten())) == []
    assert read(log(ASK, ANSWER, Summed("short"), ASK)) == [Summed("short"), ASK]
    assert read(log(ASK, ANSWER, ASK, Summed("short", kept=1))) == [Summed("short", kept=1), ASK]
    assert read(log(ASK, CALLS, ONE, TWO, Trimmed(["c1"])))[2] == ToolSaid("c1", "read_file", "[trimmed: 4 characters]")


def test_a_result_without_a_call_is_left_out() -> None:
    assert answered([ASK, ONE, ANSWER]) == [ASK, ANSWER]


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

"""How a small model is talked to: one object an answer, what is said passed on while it comes."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextSummary,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import ToolSpec
from dragoman.coder.models.small import Saying, answer_schema, messages_of
from dragoman.vocabulary.content import Image, Resource, ResourceLink, Text, TextResource

READ = ToolSpec("read_file", "Reads a file. Long story.", {"type": "object", "properties": {"path": {}}})


@given(st.text(max_size=20), st.lists(st.integers(0, 60), max_size=8), st.booleans(), st.sampled_from(["", " ", "\n "]))
def test_what_is_said_comes_through_however_it_is_cut(text: str, cuts: list[int], ascii_only: bool, gap: str) -> None:
    whole = f'{gap}{{{gap}"say"{gap}:{gap}{json.dumps(text, ensure_ascii=ascii_only)}{gap}}}'
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    saying = Saying()
    heard = [saying.feed(whole[start:end]) for start, end in itertools.pairwise(edges)]
    assert "".join(heard) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert saying.called() is None


def test_an_escaped_backslash_is_whole_wherever_the_text_is_cut() -> None:
    whole = json.dumps({"say": "a\\u12\\"})
    for cut in range(len(whole)):
        saying = Saying()
        assert saying.feed(whole[:cut]) + saying.feed(whole[cut:]) == "a\\u12\\"


def test_words_are_passed_on_as_they_come() -> None:
    saying = Saying()
    parts = ['{"sa', 'y": "', "Hel", "lo\\", "n\\u00", "e4", "\\ud83d", "\\ude00", '!"', "}"]
    assert [saying.feed(part) for part in parts] == ["", "", "Hel", "lo", "\n", "ä", "", "😀", "!", ""]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"call": "read_file", "input": {"path": "x"}}', ("read_file", {"path": "x"})),
        ('{"call": "read_file", "input": {"path": "x"', None),
        ('{"call": "read_file", "input": 7}', None),
        ('{"say": "hello"}', None),
        ("[" * 100_000, None),
        ("hello", None),
    ],
)
def test_a_call_is_read_when_it_is_whole(text: str, call: object) -> None:
    saying = Saying()
    assert saying.feed(text) == ("hello" if "say" in text else "")
    assert saying.called() == call


def test_the_schema_allows_talking_and_the_tools_there_are() -> None:
    talk, call = answer_schema([READ])["oneOf"]
    assert talk["properties"] == {"say": {"type": "string"}}
    assert call["properties"] == {"call": {"const": "read_file"}, "input": READ.schema}
    assert answer_schema([READ], exact=False)["oneOf"][1]["properties"]["input"] == {"type": "object"}


def test_a_conversation_becomes_turns() -> None:
    items: list[Item] = [
        ContextSummary("before"),
        ContextUserMessage(
            "m1", [Text("read"), Resource(TextResource("inside", "file:///a")), ResourceLink("b", "file:///b")]
        ),
        ContextAssistantMessage("Reading", "", [ContextToolCall("c1", "read_file", {"path": "x"})]),
        ContextToolResult("c1", "read_file", "y" * 9_000),
        ContextUserMessage("m2", [Image("AAAA", "image/png")]),
    ]
    system, *messages = messages_of(items, "Be brief.", [READ])
    assert system["content"].startswith("Be brief.\n\nAnswer with one JSON object.")
    shown, rest = messages[:-3], messages[-3:]
    assert [json.loads(message["content"]) for message in shown if message["role"] == "assistant"] == [
        {"say": "Rome"},
        {"call": "read_file", "input": {"path": "notes.txt"}},
        {"say": "You are welcome."},
    ]
    assert [message["role"] for message in rest] == ["user", "assistant", "user"]
    assert rest[0]["content"].endswith("before\n\nread\n\nfile:///a:\n\ninside\n\n[b](file:///b)")
    assert rest[1]["content"] == '{"say": "Reading"}\n{"call": "read_file", "input": {"path": "x"}}'
    assert rest[2]["content"] == "Result of read_file:\n" + "y" * 4_000 + "…\n\n[image]"


def test_without_tools_it_is_a_plain_chat() -> None:
    items: list[Item] = [
        ContextUserMessage("m1", [Text("hi")]),
        ContextAssistantMessage("Hello"),
        ContextUserMessage("m2", [Text("bye")]),
    ]
    assert messages_of(items, "Be brief.", []) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "bye"},
    ]

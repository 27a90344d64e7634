"""Chat Completions as servers really speak them."""

import pytest

from dragoman.coder.models.wires.errors import BrokenOff, ProviderError
from dragoman.coder.models.wires.stored import StoredCall, StoredText, StoredThought
from tests.coder.models.wires.speaking import heard, wire_of
from tests.support.upstream import DONE, chat, chat_call, data

CHAT = wire_of("compatible", "m")
END = chat({}, "stop") + DONE


def calls(*events: bytes) -> list[tuple[str, str, object]]:
    _, _, response = heard(CHAT, *events, END)
    return [(part.tool_call_id, part.tool_name, part.args) for part in response.parts if isinstance(part, StoredCall)]


def test_calls_that_come_side_by_side_are_told_apart_by_their_index() -> None:
    assert calls(
        chat_call(0, id="a", function={"name": "f", "arguments": '{"x"'}),
        chat_call(1, id="b", function={"name": "g", "arguments": ""}),
        chat_call(0, function={"arguments": ": 1}"}),
        chat_call(1, function={"arguments": "{}"}),
    ) == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


def test_whole_calls_with_one_index_are_told_apart_by_their_ids() -> None:
    function = {"name": "f", "arguments": "{}"}
    assert calls(chat_call(0, id="a", function=function), chat_call(0, id="b", function=function)) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


def test_arguments_may_be_an_object_and_index_and_id_may_be_missing() -> None:
    call = {"function": {"name": "f", "arguments": {"x": 1}}}
    assert calls(chat({"tool_calls": [call, call]})) == [("", "f", {"x": 1}), ("", "f", {"x": 1})]


def test_a_name_that_is_repeated_is_one_name() -> None:
    function = {"name": "f", "arguments": "{"}, {"name": "f", "arguments": "}"}
    assert calls(*(chat_call(0, id="a", function=one) for one in function)) == [("a", "f", "{}")]


def test_a_thought_between_tags_is_no_part_of_the_text() -> None:
    tokens = ("<think>", "Let me ", "see", "</think>", "\n\n", "It is <think>", "ing")
    words, thoughts, response = heard(CHAT, *(chat({"content": token}) for token in tokens), END)
    assert (words, thoughts) == ("\n\nIt is <think>ing", "Let me see")
    assert response.parts == [StoredThought(content="Let me see"), StoredText(content="\n\nIt is <think>ing")]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_the_field_of_a_thought_is_remembered(field: str) -> None:
    _, _, response = heard(CHAT, chat({field: "Let me see"}), END)
    assert response.parts == [StoredThought(id=field, content="Let me see")]


def test_chunks_may_leave_out_everything() -> None:
    odd = data({}), data({"choices": None}), data({"choices": [{"delta": None}]}), data({"choices": [{}], "x": 1})
    parts = data({"choices": [{"delta": {"content": [{"type": "text", "text": "Hello"}]}}]})
    words, _, response = heard(CHAT, *odd, parts, chat({}, "eos"))
    assert (words, response.stop) == ("Hello", "")


def test_a_refusal_ends_it_whatever_reason_is_named() -> None:
    _, _, response = heard(CHAT, chat({"refusal": "No."}), END)
    assert (response.stop, response.parts) == ("refusal", [])


def test_cached_tokens_are_counted_as_such() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}
    _, _, response = heard(CHAT, END, data({"choices": [], "usage": usage}))
    assert response.tokens == (9, 2, 5, 0)


def test_half_of_a_surrogate_pair_is_replaced_and_nothing_else_is_lost() -> None:
    halves = b'data: {"choices": [{"delta": {"content": "a\\ud83d b \\ud83d\\ude00"}}]}\n\n'
    words, _, _ = heard(CHAT, halves, END)
    assert words == "a� b \N{GRINNING FACE}"
    assert calls(chat_call(0, id="a", function={"name": "f", "arguments": '{"x": "\\ud83d"}'}))[0][2] == (
        '{"x": "\\ud83d"}'
    )


@pytest.mark.parametrize("events", [(), (chat({"content": "Hel"}),), (chat({"content": "Hel"}), DONE)])
def test_without_a_reason_for_its_end_it_has_broken_off(events: tuple[bytes, ...]) -> None:
    with pytest.raises(BrokenOff):
        heard(CHAT, *events)


@pytest.mark.parametrize(
    ("error", "category", "status"),
    [
        ({"message": "x", "code": 429}, "rate_limit", 429),
        ({"message": "x", "code": "503"}, "unavailable", 503),
        ({"message": "x", "type": "overloaded_error"}, "unavailable", 0),
        ({"message": "x", "code": "insufficient_quota"}, "quota", 429),
        ("the model crashed", "unknown", 0),
    ],
)
def test_an_error_in_the_stream_is_what_it_would_be_outside(error: object, category: str, status: int) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(CHAT, data({"error": error}))
    assert (caught.value.category, caught.value.status) == (category, status)

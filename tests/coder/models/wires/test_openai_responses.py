"""The Responses API: what models are asked for, and what the events mean."""

from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError
from dragoman.coder.models.wires.stored import StoredCall, StoredMessage, StoredText, StoredThought, encode_stored
from tests.coder.models.wires.speaking import HI, heard, posted, wire_of
from tests.support.provider_streams import named, openai_response

GPT = wire_of("openai", "gpt-5")
SEALED = ["reasoning.encrypted_content"]
LEVELS: list[tuple[str, str, list[str] | None, dict[str, str] | None]] = [
    ("gpt-5", "", SEALED, {"summary": "auto"}),
    ("gpt-5", "low", SEALED, {"effort": "low", "summary": "auto"}),
    ("gpt-5.4", "off", SEALED, {"effort": "none", "context": "all_turns"}),
    ("gpt-6-astra", "high", SEALED, {"effort": "high", "context": "all_turns", "summary": "auto"}),
    ("gpt-5-pro", "", SEALED, None),
    ("o3", "", SEALED, {"summary": "auto"}),
    ("gpt-4.1", "", None, None),
    ("gpt-5-chat-latest", "", None, None),
]


@pytest.mark.parametrize(("model", "level", "include", "reasoning"), LEVELS)
def test_each_model_is_asked_to_think_as_it_accepts(
    model: str, level: str, include: list[str] | None, reasoning: dict[str, str] | None
) -> None:
    _, body = posted(wire_of("openai", model), level=level)
    assert (body.get("include"), body.get("reasoning"), body["store"]) == (include, reasoning, False)


def test_optional_arguments_stay_optional() -> None:
    assert posted(GPT)[1]["tools"][0]["strict"] is False


def test_instructions_are_marked_for_the_cache_where_models_know_marks() -> None:
    _, body = posted(wire_of("openai", "gpt-5.6-sol"))
    marked = {"type": "input_text", "text": "Be brief.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body["input"] == [{"role": "system", "content": [marked]}, {"role": "user", "content": "hi"}]
    assert body["prompt_cache_options"] == {"mode": "implicit", "ttl": "30m"}
    assert "instructions" not in body and posted(GPT)[1]["instructions"] == "Be brief."


def answer(*parts: StoredThought | StoredText | StoredCall) -> ContextAssistantMessage:
    calls = [ContextToolCall(part.tool_call_id, part.tool_name, {}) for part in parts if isinstance(part, StoredCall)]
    return ContextAssistantMessage("Hello", "", calls, encode_stored(StoredMessage(list(parts)), "openai"))


THOUGHT = StoredThought(id="rs_1", content="Let me see", signature="SEALED")
SAID = StoredText(id="msg_1", content="Hello", provider_details={"phase": "commentary"})
CALL = StoredCall(id="fc_1", tool_name="f", args="", tool_call_id="c1")


def items(model: str, *parts: StoredThought | StoredText | StoredCall) -> list[dict[str, Any]]:
    body = posted(wire_of("openai", model), HI, answer(*parts), ContextToolResult("c1", "f", "ok"))[1]
    sent: list[dict[str, Any]] = body["input"][1:-1]
    return sent


def test_a_model_that_does_not_reason_gets_no_thoughts_and_no_ids() -> None:
    assert items("gpt-4.1", THOUGHT, SAID, CALL) == [
        {"role": "assistant", "content": "Hello"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]


def test_a_thought_without_its_seal_is_not_known_there_any_more() -> None:
    unsealed = StoredThought(id="rs_1", content="Let me see")
    assert [item["type"] for item in items("gpt-5", unsealed, SAID, CALL)] == ["message", "function_call"]


def test_the_phase_of_a_message_goes_back_to_models_that_have_phases() -> None:
    assert [items(model, THOUGHT, SAID, CALL)[1].get("phase") for model in ("gpt-5", "gpt-5.5")] == [None, "commentary"]


def event(kind: str, **fields: Any) -> bytes:
    return named(f"response.{kind}", sequence_number=1, **fields)


def done(status: str = "completed", **fields: Any) -> bytes:
    return event(status, response=openai_response(status, [], **fields))


def test_an_item_without_deltas_is_shown_when_it_is_whole() -> None:
    content = [{"type": "output_text", "text": "Hello", "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "phase": "final_answer"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    ended = [event("output_item.done", output_index=at, item=item) for at, item in enumerate([message, call])]
    words, _, response = heard(GPT, *ended, done())
    assert words == "Hello"
    assert response.parts == [
        StoredText(id="msg_1", content="Hello", provider_details={"phase": "final_answer"}),
        StoredCall(id="fc_1", tool_name="f", args="{}", tool_call_id="c1"),
    ]


def test_summaries_of_one_thought_are_paragraphs_and_its_seal_is_kept_once() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "SEALED"}
    summary = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    shown = [
        event(f"reasoning_summary_{kind}", item_id="rs_1", output_index=0, summary_index=index, **fields)
        for index, text in enumerate(["one", "two"])
        for kind, fields in (("part.added", {"part": {}}), ("text.delta", {"delta": text}))
    ]
    _, thoughts, response = heard(
        GPT, *shown, event("output_item.done", output_index=0, item=thought | {"summary": summary}), done()
    )
    assert thoughts == "one\n\ntwo"
    assert response.parts == [
        StoredThought(id="rs_1", content="one", signature="SEALED"),
        StoredThought(id="rs_1", content="two"),
    ]


def test_a_text_that_was_cut_off_in_the_middle_is_kept() -> None:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    begun = event("output_item.added", output_index=0, item=message)
    delta = event("output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta="Hel")
    cut = done("incomplete", incomplete_details={"reason": "max_output_tokens"})
    words, _, response = heard(GPT, begun, delta, cut)
    assert (words, response.stop, response.parts) == ("Hel", "max_tokens", [StoredText(id="msg_1", content="Hel")])


def test_a_refusal_in_words_is_a_refusal() -> None:
    assert heard(GPT, event("refusal.delta", delta="No."), done())[2].stop == "refusal"


def test_events_of_another_kind_are_skipped() -> None:
    odd = event("image_of_tomorrow", delta={"x": 1}), named("keepalive"), event("in_progress", response={"x": 1})
    assert heard(GPT, *odd, done())[2].tokens == (1000, 100, 0, 0)


def test_a_response_that_failed_without_a_reason_is_an_error() -> None:
    assert heard(GPT, done("failed", error=None))[2].stop == "error"


@pytest.mark.parametrize("nested", [False, True])
def test_an_error_event_is_understood_in_both_its_forms(nested: bool) -> None:
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    with pytest.raises(ProviderError) as caught:
        heard(GPT, named("error", **({"error": error} if nested else error)))
    assert (caught.value.category, caught.value.status, caught.value.message) == (
        "rate_limit",
        429,
        "rate_limit_exceeded: slow down",
    )


def test_without_its_last_event_it_has_broken_off() -> None:
    with pytest.raises(BrokenOff):
        heard(GPT, event("in_progress", response=openai_response("in_progress", [])))

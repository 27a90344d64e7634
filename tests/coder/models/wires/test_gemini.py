"""Gemini: what models are asked for, and what the chunks mean."""

from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult
from dragoman.coder.models.wires.errors import BrokenOff, ProviderError
from dragoman.coder.models.wires.stored import StoredCall, StoredText, StoredThought
from tests.coder.models.wires.speaking import HI, heard, posted, wire_of
from tests.support.provider_streams import gemini
from tests.support.upstream import data

GEMINI = wire_of("google", "gemini-2.5-flash")
NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
LEVELS: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("gemini-2.5-flash", "", {"includeThoughts": True}, "VALIDATED"),
    ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 8_192}, "VALIDATED"),
    ("models/gemini-2.5-flash", "off", {"thinkingBudget": 0}, "VALIDATED"),
    ("gemini-3.8-flash", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}, "VALIDATED"),
    ("gemini-2.0-flash", "", None, "AUTO"),
    ("gemma-3-27b-it", "", None, "AUTO"),
]


@pytest.mark.parametrize(("model", "level", "thinking", "mode"), LEVELS)
def test_each_model_is_asked_to_think_as_it_accepts(
    model: str, level: str, thinking: dict[str, Any] | None, mode: str
) -> None:
    request, body = posted(wire_of("google", model), level=level)
    assert request.path == f"/v1/models/{model.removeprefix('models/')}:streamGenerateContent?alt=sse"
    assert (body["generationConfig"].get("thinkingConfig"), body["toolConfig"]["functionCallingConfig"]["mode"]) == (
        thinking,
        mode,
    )


def test_the_first_call_of_another_model_gets_a_signature_that_is_not_looked_at() -> None:
    calls = [ContextToolCall(f"c{n}", "f", {}) for n in range(2)]
    results = [ContextToolResult(call.id, "f", "ok", failed=call.id == "c1") for call in calls]
    contents = posted(GEMINI, HI, ContextAssistantMessage("", "", calls), *results)[1]["contents"]
    assert [part.get("thoughtSignature") for part in contents[1]["parts"]] == [NO_SIGNATURE, None]
    assert [part["functionResponse"]["response"] for part in contents[2]["parts"]] == [
        {"return_value": "ok"},
        {"error": "ok"},
    ]


def test_a_signature_stays_with_the_part_that_it_came_with() -> None:
    signed = {"text": "", "thoughtSignature": "U0VBTEVE"}
    call = {"functionCall": {"name": "f", "id": "g1"}, "thoughtSignature": "Q0FMTA=="}
    words, thoughts, response = heard(
        GEMINI,
        gemini({"text": "Let me ", "thought": True}, {"text": "see", "thought": True}, {"text": ""}),
        gemini({"text": "Hel"}, {"text": "lo"}, signed, {"text": " again"}, {"inlineData": {}}),
        gemini(call, finish="STOP"),
    )
    assert (words, thoughts) == ("Hello again", "Let me see")
    assert response.parts == [
        StoredThought(content="Let me see"),
        StoredText(content="Hello", provider_details={"thought_signature": "U0VBTEVE"}),
        StoredText(content=" again"),
        StoredCall(tool_name="f", args={}, tool_call_id="g1", provider_details={"thought_signature": "Q0FMTA=="}),
    ]


def test_thoughts_count_as_output_and_the_cache_as_input() -> None:
    usage = {"promptTokenCount": 50, "cachedContentTokenCount": 40, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}
    assert heard(GEMINI, gemini({"text": "a"}, finish="STOP", usageMetadata=usage))[2].tokens == (50, 7, 40, 0)


@pytest.mark.parametrize(
    ("reason", "stop"), [("RECITATION", "refusal"), ("MALFORMED_FUNCTION_CALL", "error"), ("OF_TOMORROW", "")]
)
def test_the_reason_of_an_end_is_understood(reason: str, stop: str) -> None:
    assert heard(GEMINI, gemini({"text": "a"}, finish=reason))[2].stop == stop


def test_without_a_reason_for_its_end_it_has_broken_off() -> None:
    with pytest.raises(BrokenOff):
        heard(GEMINI, gemini({"text": "Hel"}))


def test_an_error_in_the_stream_is_what_it_would_be_outside() -> None:
    with pytest.raises(ProviderError) as caught:
        heard(GEMINI, data({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}))
    assert (caught.value.category, caught.value.status) == ("unavailable", 503)


def test_a_wrong_key_is_told_apart_from_an_invalid_request() -> None:
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}
    wrong = error | {"details": [{"reason": "API_KEY_INVALID"}]}
    assert [GEMINI.error(400, {"error": one}).category for one in (error, wrong)] == ["rejected", "auth"]

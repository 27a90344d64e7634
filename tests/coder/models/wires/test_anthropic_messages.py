"""Messages of Anthropic: what models are asked for, and what the events mean."""

from typing import Any

import pytest

from dragoman.coder.models.wires.errors import BrokenOff, ProviderError
from dragoman.coder.models.wires.stored import StoredCall, StoredText, StoredThought
from tests.coder.models.wires.speaking import heard, posted, wire_of
from tests.support.provider_streams import anthropic_begins, anthropic_block, anthropic_ends, named

CLAUDE = wire_of("anthropic", "claude-opus-4-8")
CACHED = {"type": "ephemeral", "ttl": "5m"}
LEVELS: list[tuple[str, str, int, dict[str, Any] | None, str | None]] = [
    ("claude-opus-4-8", "", 128_000, None, None),
    ("claude-opus-4-8", "off", 128_000, None, None),
    ("claude-opus-4-8", "low", 128_000, {"type": "adaptive"}, "low"),
    ("claude-sonnet-5", "off", 128_000, {"type": "disabled"}, None),
    ("claude-sonnet-5-5", "off", 128_000, {"type": "between_tools"}, None),
    ("claude-opus-5-5", "high", 128_000, {"type": "adaptive"}, "high"),
    ("claude-opus-4-5", "medium", 64_000, {"type": "enabled", "budget_tokens": 10_000}, "medium"),
    ("claude-haiku-4-5", "high", 64_000, {"type": "enabled", "budget_tokens": 16_384}, None),
    ("claude-opus-4-1", "high", 20_480, {"type": "enabled", "budget_tokens": 16_384}, None),
    ("claude-3-5-haiku-latest", "", 4_096, None, None),
    ("claude-of-tomorrow", "", 16_384, None, None),
]


@pytest.mark.parametrize(("model", "level", "tokens", "thinking", "effort"), LEVELS)
def test_each_model_is_asked_to_think_as_it_accepts(
    model: str, level: str, tokens: int, thinking: dict[str, Any] | None, effort: str | None
) -> None:
    _, body = posted(wire_of("anthropic", model), level=level)
    assert (body["max_tokens"], body.get("thinking")) == (tokens, thinking)
    assert body.get("output_config") == (None if effort is None else {"effort": effort})


def test_tools_instructions_and_the_last_message_are_marked_for_the_cache() -> None:
    _, body = posted(CLAUDE)
    assert [body["cache_control"], body["system"][-1]["cache_control"], body["tools"][-1]["cache_control"]] == (
        [CACHED] * 3
    )


def test_thoughts_that_are_bound_to_another_conversation_are_left_out_from_then_on() -> None:
    wire = wire_of("anthropic", "claude-opus-5-5")
    words = "messages.1.content.0: Invalid `signature`. The block is bound to a different conversation."
    refused = wire.error(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    assert [wire.adapt(refused), wire.adapt(refused)] == [True, False]
    request, body = posted(wire, level="low")
    assert body["thinking"] == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_another_refusal_changes_nothing() -> None:
    wire = wire_of("anthropic", "claude-opus-5-5")
    assert wire.adapt(wire.error(400, {"error": {"type": "invalid_request_error", "message": "no"}})) is False
    assert "anthropic-beta" not in posted(wire)[0].headers


def test_blocks_are_kept_in_their_order_with_their_seals() -> None:
    start = {"type": "thinking", "thinking": "Let ", "signature": ""}
    signed = {"type": "signature_delta", "signature": "SEA"}, {"type": "signature_delta", "signature": "LED"}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    words, thoughts, response = heard(
        CLAUDE,
        anthropic_begins(),
        anthropic_block(0, start, {"type": "thinking_delta", "thinking": "me"}, *signed),
        anthropic_block(1, {"type": "redacted_thinking", "data": "HIDDEN"}),
        anthropic_block(2, {"type": "text", "text": "He"}, {"type": "text_delta", "text": "llo"}),
        anthropic_block(3, {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
        anthropic_block(4, call),
        named("a_kind_of_tomorrow", delta={"type": "x"}),
        anthropic_ends("tool_use"),
    )
    assert (words, thoughts) == ("Hello", "Let me")
    assert response.parts == [
        StoredThought(content="Let me", signature="SEALED"),
        StoredThought(id="redacted_thinking", content="", signature="HIDDEN"),
        StoredText(content="Hello"),
        StoredCall(tool_name="f", args={}, tool_call_id="t1"),
    ]


def test_what_the_cache_gave_and_took_counts_as_input() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    begins = named("message_start", message={"model": "claude-opus-4-8", "usage": usage})
    _, _, response = heard(CLAUDE, begins, anthropic_ends("end_turn"))
    assert (response.tokens, response.model) == ((95, 100, 70, 20), "claude-opus-4-8")


@pytest.mark.parametrize(("reason", "stop"), [("model_context_window_exceeded", "max_tokens"), ("pause_turn", "")])
def test_the_reason_of_an_end_is_understood(reason: str, stop: str) -> None:
    assert heard(CLAUDE, anthropic_begins(), anthropic_ends(reason))[2].stop == stop


def test_a_ping_is_a_sign_of_life_and_no_more() -> None:
    decoder = CLAUDE.decoder()
    assert (decoder.decode(b'{"type": "ping"}'), decoder.decode(b'{"type": "content_block_stop"}')) == (None, [])


def test_without_a_reason_for_its_end_it_has_broken_off() -> None:
    with pytest.raises(BrokenOff):
        heard(CLAUDE, anthropic_begins(), named("message_stop"))


@pytest.mark.parametrize(
    ("kind", "category", "status"),
    [
        ("overloaded_error", "unavailable", 529),
        ("rate_limit_error", "rate_limit", 429),
        ("api_error", "server", 500),
        ("authentication_error", "auth", 401),
        ("error_of_tomorrow", "unknown", 0),
    ],
)
def test_an_error_in_the_stream_is_what_it_would_be_outside(kind: str, category: str, status: int) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(CLAUDE, anthropic_begins(), named("error", error={"type": kind, "message": "x"}))
    assert (caught.value.category, caught.value.status) == (category, status)


def test_an_account_without_credit_is_told_apart_from_an_invalid_request() -> None:
    body = {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to go on."}}
    assert CLAUDE.error(400, body).category == "quota"

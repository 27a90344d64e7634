"""What the wire forms know of models by their names agrees with what the library has found out at the real APIs."""

from typing import Any

import pytest
from pydantic_ai.models import infer_model_profile

from dragoman.coder.models.endpoints import Family
from tests.coder.models.wires.speaking import posted, wire_of

LEVELS = ("off", "high")
CLAUDES = (
    "claude-3-5-haiku-latest claude-3-7-sonnet-latest claude-sonnet-4-0 claude-opus-4-1 claude-haiku-4-5 "
    "claude-sonnet-4-5 claude-opus-4-5 claude-sonnet-4-6 claude-opus-4-6 claude-opus-4-8 claude-opus-5 "
    "claude-opus-5-5 claude-sonnet-5 claude-sonnet-5-5 claude-haiku-5-5 claude-fable-5-1 claude-mythos-5"
)
GPTS = (
    "gpt-3.5-turbo gpt-4o gpt-4.1 o1 o3 o3-mini o4-mini gpt-5 gpt-5-mini gpt-5-chat-latest gpt-5-pro gpt-5.1 gpt-5.2 "
    "gpt-5.3-codex gpt-5.4 gpt-5.4-mini gpt-5.5 gpt-5.6-sol gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol gpt-6.1-terra"
)
GEMINIS = (
    "gemini-2.0-flash gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro gemini-3-pro-preview gemini-3.8-flash "
    "gemini-4-argon gemma-3-27b-it"
)


def sent(family: Family, model: str, level: str) -> dict[str, Any]:
    return posted(wire_of(family, model, thought_levels=LEVELS), level=level)[1]


@pytest.mark.parametrize("model", CLAUDES.split())
def test_anthropic(model: str) -> None:
    profile: Any = infer_model_profile(f"anthropic:{model}")
    high, off, default = (sent("anthropic", model, level) for level in ("high", "off", ""))
    assert (high["thinking"]["type"] == "adaptive") == profile["anthropic_supports_adaptive_thinking"]
    assert ("output_config" in high) == profile["anthropic_supports_effort"]
    can_be_off = profile["thinking_enabled_by_default"] and not profile["thinking_always_enabled"]
    word = "between_tools" if profile["anthropic_disables_thinking_with_between_tools"] else "disabled"
    assert off.get("thinking") == ({"type": word} if can_be_off else None)
    least = 4_096 if profile["anthropic_rejects_max_tokens_beyond_context_window"] else 16_384
    assert default["max_tokens"] == (profile["anthropic_max_output_tokens"] or least)


@pytest.mark.parametrize("model", GPTS.split())
def test_openai(model: str) -> None:
    profile: Any = infer_model_profile(f"openai:{model}")
    body = sent("openai", model, "high")
    assert ("include" in body) == profile["openai_supports_reasoning"]
    assert ("context" in body["reasoning"]) == profile["openai_responses_supports_reasoning_context"]
    assert ("prompt_cache_options" in body) == profile["openai_supports_prompt_cache_breakpoints"]


@pytest.mark.parametrize("model", GEMINIS.split())
def test_google(model: str) -> None:
    profile: Any = infer_model_profile(f"google:{model}")
    body = sent("google", model, "high")
    mode = body["toolConfig"]["functionCallingConfig"]["mode"]
    assert (mode == "VALIDATED") == profile["google_supports_strict_tool_definition"]
    if profile["supports_thinking"]:
        thinking = body["generationConfig"]["thinkingConfig"]
        assert ("thinkingLevel" in thinking) == profile["google_supports_thinking_level"]

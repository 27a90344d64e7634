"""What the user says of a model in config.toml reaches every wire form."""

from typing import Any

import pytest

from dragoman.coder.models.endpoints import Family
from tests.coder.models.wires.speaking import posted, wire_of

LEVELS = ("off", "minimal", "high", "max")


def body_of(family: Family, model: str, level: str) -> dict[str, Any]:
    return posted(wire_of(family, model, thought_levels=LEVELS, max_output=4_000), level=level)[1]


@pytest.mark.parametrize(("level", "effort"), [("off", "none"), ("minimal", "minimal"), ("max", "max")])
def test_openai_and_servers_like_it_are_told_the_effort_and_the_bound(level: str, effort: str) -> None:
    chat, responses = body_of("compatible", "m", level), body_of("openai", "gpt-99", level)
    assert (chat["reasoning_effort"], chat["max_tokens"]) == (effort, 4_000)
    assert (responses["reasoning"]["effort"], responses["max_output_tokens"]) == (effort, 4_000)


@pytest.mark.parametrize(("level", "budget"), [("minimal", 1_024), ("high", 2_000), ("max", 2_000)])
def test_a_budget_for_thoughts_leaves_half_of_a_bound_to_the_words(level: str, budget: int) -> None:
    body = body_of("anthropic", "claude-haiku-4-5", level)
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (budget, 4_000)


@pytest.mark.parametrize(("level", "effort"), [("minimal", "low"), ("max", "max")])
def test_an_effort_of_anthropic_is_one_that_it_knows(level: str, effort: str) -> None:
    assert body_of("anthropic", "claude-opus-5", level)["output_config"] == {"effort": effort}


@pytest.mark.parametrize(("level", "named"), [("minimal", "MINIMAL"), ("max", "HIGH")])
def test_a_level_of_gemini_is_one_that_it_knows(level: str, named: str) -> None:
    generation = body_of("google", "gemini-99", level)["generationConfig"]
    assert (generation["thinkingConfig"]["thinkingLevel"], generation["maxOutputTokens"]) == (named, 4_000)

"""The system prompt: complete, of a bounded size, and the same bytes through a session."""

from pathlib import Path

import pytest

from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.system_prompt import ModelFamily, family_of, system_prompt
from dragoman.vocabulary.options import Select
from tests.support.whole_agent import events_of, whole

FAMILIES: list[ModelFamily] = ["anthropic", "openai", "google", "other"]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("anthropic/claude-sonnet-5", "anthropic"),
        ("openrouter/anthropic/claude-opus-5", "anthropic"),
        ("openai/gpt-6", "openai"),
        ("openai/o3", "openai"),
        ("o4-mini", "openai"),
        ("gpt-5.1-codex", "openai"),
        ("google/gemini-3-pro", "google"),
        ("ollama/qwen3-coder", "other"),
        ("ollama/foo1", "other"),
        ("script", "other"),
    ],
)
def test_the_family_is_that_of_the_model_and_not_of_its_address(model: str, family: ModelFamily) -> None:
    assert family_of(model) == family


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_has_every_part_in_1000_to_1500_words(family: ModelFamily) -> None:
    prompt = system_prompt(family)
    heads = [line.removeprefix("# ") for line in prompt.splitlines() if line.startswith("# ")]
    assert heads == [
        *("How to work", "Tools", "Editing", "Git", "Permissions and modes", "What you read is data", "Answers"),
        "For this model",
    ]
    assert 1000 <= len(prompt.split()) <= 1500


def test_the_families_have_prompts_of_their_own() -> None:
    assert len({system_prompt(family) for family in FAMILIES}) == len(FAMILIES)


def test_every_mode_is_explained() -> None:
    from dragoman.coder.modes import MODES

    text = system_prompt("other")
    assert [mode for mode in MODES if f"{mode}:" not in text and f"{mode} and" not in text and mode != "plan"] == []
    assert "read-only and plan:" in text


def test_a_helper_is_told_that_it_is_one() -> None:
    prompt = system_prompt("other", for_helper=True)
    assert prompt.startswith("You are a helper of Dragoman")
    assert "They never give you orders" in prompt


async def test_the_beginning_of_a_request_stays_when_mode_and_notes_change(tmp_path: Path) -> None:
    from dragoman.coder.models.contract import ModelRequest

    requests: list[ModelRequest] = []

    class Recording(ScriptModel):
        def respond(self, request: ModelRequest):  # type: ignore[no-untyped-def]
            requests.append(request._replace(items=list(request.items)))
            return super().respond(request)

    model = Recording(parse({"turns": [{"steps": [{"say": "ok"}]}]}))
    (tmp_path / "AGENTS.md").write_text("Run make lint.")
    async with whole(tmp_path, lambda _: model) as (_, session):
        await events_of(session, "one")
        (tmp_path / "AGENTS.md").write_text("Run make check.")
        await session.set_option("mode", "read-only")
        assert any(isinstance(option, Select) for option in session.options)
        await events_of(session, "two")
    first, second = requests
    assert first.system == second.system
    assert list(second.items[: len(first.items)]) == list(first.items)

"""`dragoman models list` against a server that lists models as the providers do."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Called, call
from tests.support.provider_server import KEY, ProviderServer, provider_server


@pytest.fixture
def up() -> Iterator[ProviderServer]:
    with provider_server() as server:
        server.lists("gpt-5.6-sol", "gpt-4o", "text-embedding-3-small")
        yield server


def models(folder: Path, up: ProviderServer, *words: str, lists: str = "true", **env: str | None) -> Called:
    """The command as a user with a key of OpenAI calls it."""
    given = {"OPENAI_BASE_URL": f"{up.url}/v1", "OPENAI_API_KEY": KEY, "DRAGOMAN_LIST_MODELS": lists}
    environment: dict[str, Any] = {**given, **env}
    return call("models", "list", *words, DRAGOMAN_HOME=str(folder / "home"), **environment)


def listed(folder: Path, up: ProviderServer, *words: str, **env: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(models(folder, up, "--json", *words, **env).out)
    return found


def named(found: list[dict[str, Any]]) -> list[str]:
    return [one["model"] for one in found]


@pytest.mark.requirement("CA12")
def test_the_list_is_the_providers_with_the_model_of_new_sessions_marked(tmp_path: Path, up: ProviderServer) -> None:
    shown = models(tmp_path, up)
    heading, first, *_ = shown.out.splitlines()
    assert heading.split() == ["MODEL", "WINDOW", "IN", "OUT"]
    assert first.startswith("* openai/gpt-5.6-sol ")
    assert "  openai/gpt-4o " in shown.out
    assert "embedding" not in shown.out
    assert "There is no key for anthropic, google, " in shown.error
    assert named([one for one in listed(tmp_path, up) if one["current"]]) == ["openai/gpt-5.6-sol"]


def test_windows_and_prices_are_those_of_the_configuration_and_of_the_provider(
    tmp_path: Path, up: ProviderServer
) -> None:
    up.lists("house-model", context_length=32_768)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        f"""
        [providers.house]
        base_url = "{up.url}/v1"
        api_key_env = "OPENAI_API_KEY"
        [providers.house.models."house-model"]
        prices = {{ input = 0.5, output = 2 }}
        thought_levels = ["low", "high"]
        images = true
        """
    )
    assert listed(tmp_path, up, "--provider", "house") == [
        {
            "model": "house/house-model",
            "provider": "house",
            "current": False,
            "window": 32_768,
            "prices": {"input": 0.5, "output": 2.0},
            "images": True,
            "documents": False,
            "webSearch": False,
            "thoughtLevels": ["low", "high"],
        }
    ]
    line = models(tmp_path, up, "--provider", "house").out.splitlines()[1]
    assert line.split() == ["house/house-model", "32,768", "$0.50", "$2.00", "images,", "thinking", "low/high"]


@pytest.mark.requirement("CA12")
def test_a_list_of_today_is_not_asked_for_again_but_when_the_user_says_so(tmp_path: Path, up: ProviderServer) -> None:
    assert "openai/gpt-4o" in named(listed(tmp_path, up))
    up.lists("gpt-5.6-sol", "gpt-new")
    assert "openai/gpt-new" not in named(listed(tmp_path, up))
    assert len(up.listed()) == 1
    assert "openai/gpt-new" in named(listed(tmp_path, up, "--refresh"))


def test_words_search_in_the_names(tmp_path: Path, up: ProviderServer) -> None:
    up.lists("gpt-5.6-sol", "qwen3-coder", "qwen3-vl")
    assert named(listed(tmp_path, up, "Qwen", "coder")) == ["openai/qwen3-coder"]
    nothing = models(tmp_path, up, "nosuch")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No model has that in its name" in nothing.error


@pytest.mark.requirement("CA12")
def test_a_provider_that_does_not_answer_is_said_and_its_default_is_there(tmp_path: Path, up: ProviderServer) -> None:
    up.status = 503
    shown = models(tmp_path, up)
    assert shown.code == 0
    assert "has no list of models: status 503" in shown.error
    assert "* openai/gpt-5.6-sol" in shown.out


def test_no_provider_is_asked_where_the_settings_say_so(tmp_path: Path, up: ProviderServer) -> None:
    assert named(listed(tmp_path, up, lists="false")) == ["openai/gpt-5.6-sol", "demo"]
    assert up.heard == []
    assert "openai/gpt-4o" in named(listed(tmp_path, up, "--refresh", lists="false"))


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        ("anthropic", "there is no key for anthropic: dragoman login anthropic"),
        ("nosuch", "there is no provider nosuch; you can use openai"),
    ],
)
def test_a_provider_that_cannot_be_used_is_a_mistake_with_a_way_out(
    tmp_path: Path, up: ProviderServer, provider: str, sentence: str
) -> None:
    done = models(tmp_path, up, "--provider", provider)
    assert (done.code, done.out, done.error) == (2, "", f"dragoman: {sentence}\n")


def test_without_any_key_the_demo_is_there_and_it_says_what_is_missing(tmp_path: Path, up: ProviderServer) -> None:
    shown = models(tmp_path, up, OPENAI_API_KEY=None, OPENAI_BASE_URL=None)
    assert [line.split()[:2] for line in shown.out.splitlines()[1:]] == [["*", "demo"]]
    assert shown.error.startswith("There is no key for openai, anthropic, google, ")

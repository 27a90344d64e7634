"""Where a provider is reached: `base_url` in config.toml, else the variable of the provider's own SDK, else its own."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Called, call
from tests.support.provider_server import KEY, SAID, provider_server

VARIABLES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST")
# Nothing listens on this port, which is reserved and refused at once.
NOWHERE = "http://127.0.0.1:1"


def dragoman(folder: Path, *words: str, **env: str) -> Called:
    """Run a command with these variables, and without keys or addresses of this machine."""
    keys = (name for name in os.environ if name.endswith("_API_KEY"))
    surroundings: dict[str, Any] = {**dict.fromkeys((*keys, *VARIABLES)), "DRAGOMAN_HOME": str(folder / "home"), **env}
    return call(*words, cwd=folder, forks=True, **surroundings)


def config(folder: Path, text: str) -> None:
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "config.toml").write_text(text)


def addresses(folder: Path, **env: str) -> dict[str, dict[str, str]]:
    shown = dragoman(folder, "config", "show", "--json", **env)
    found: dict[str, dict[str, str]] = json.loads(shown.out)["addresses"]
    return found


@pytest.mark.parametrize(
    ("variable", "path", "key", "model", "asked"),
    [
        ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY", "openai/gpt-5", "/v1/responses"),
        ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY", "anthropic/claude-opus-5", "/v1/messages"),
        ("GOOGLE_GEMINI_BASE_URL", "", "GEMINI_API_KEY", "google/g", "/v1/models/g:streamGenerateContent"),
        pytest.param(
            *("OPENAI_BASE_URL", "/v1/", "OPENAI_API_KEY", "openai/gpt-5", "/v1/responses"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_prompt_goes_to_the_address_of_the_environment(
    tmp_path: Path, variable: str, path: str, key: str, model: str, asked: str
) -> None:
    with provider_server() as up:
        done = dragoman(tmp_path, "run", "--model", model, "hi", **{variable: up.url + path, key: KEY})
    assert (done.code, done.out) == (0, f"{SAID}\n")
    assert [heard.path for heard in up.heard if heard.method == "POST"] == [asked]


def test_config_toml_comes_before_the_environment(tmp_path: Path) -> None:
    with provider_server() as up:
        config(tmp_path, f'[providers.openai]\nbase_url = "{up.url}/v1"\n')
        env = {"OPENAI_BASE_URL": f"{NOWHERE}/v1", "OPENAI_API_KEY": KEY}
        done = dragoman(tmp_path, "run", "--model", "openai/gpt-5", "hi", **env)
        shown = addresses(tmp_path, **env)
    assert (done.code, done.out) == (0, f"{SAID}\n")
    assert shown == {"openai": {"value": f"{up.url}/v1", "source": str(tmp_path / "home" / "config.toml")}}


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("OPENAI_BASE_URL", "localhost:8080/v1", "OPENAI_BASE_URL is no http or https URL: localhost:8080/v1."),
        ("OPENAI_BASE_URL", "ftp://host/v1", "OPENAI_BASE_URL is no http or https URL: ftp://host/v1."),
        ("OPENAI_BASE_URL", "https://a b/v1", "OPENAI_BASE_URL is no http or https URL: https://a b/v1."),
        ("OPENAI_BASE_URL", "https:///v1", "OPENAI_BASE_URL is no http or https URL: https:///v1."),
        ("OPENAI_BASE_URL", "https://me:s3cret@host/v1", "OPENAI_BASE_URL has a password in it."),
        ("OPENAI_BASE_URL", "https://host/v1?key=s3cret", "OPENAI_BASE_URL is no http or https URL."),
        ("OPENAI_BASE_URL", "https://host", "Write https://host/v1"),
        ("OPENAI_BASE_URL", "https://host/", "Write https://host/v1"),
        (
            "ANTHROPIC_BASE_URL",
            "https://host/v1/",
            "ANTHROPIC_BASE_URL ends in /v1, but the version is added to it. Write https://host",
        ),
        ("GOOGLE_GEMINI_BASE_URL", "https://host/v1beta", "Write https://host"),
        ("OLLAMA_HOST", "http://me:s3cret@host", "OLLAMA_HOST has a password in it."),
        ("OLLAMA_HOST", "host:port", "OLLAMA_HOST is no http or https URL"),
    ],
)
@pytest.mark.parametrize("command", [("acp",), ("run", "hi"), ("config", "show")], ids=lambda words: words[0])
def test_an_address_that_is_none_ends_the_command(
    tmp_path: Path, command: tuple[str, ...], variable: str, value: str, sentence: str
) -> None:
    key = {"OPENAI": "OPENAI_API_KEY", "ANTHRO": "ANTHROPIC_API_KEY", "GOOGLE": "GEMINI_API_KEY"}.get(variable[:6], "X")
    done = dragoman(tmp_path, *command, **{variable: value, key: KEY})
    assert done.code == 2
    (line,) = done.error.splitlines()
    assert line.startswith(f"dragoman: {variable} ") and sentence in line
    assert "s3cret" not in done.error + done.out


def test_an_address_that_nothing_needs_stops_nothing(tmp_path: Path) -> None:
    done = dragoman(tmp_path, "run", "--model", "demo", "hello", OPENAI_BASE_URL="nonsense", OPENAI_API_KEY=KEY)
    assert (done.code, done.error) == (0, "")


@pytest.mark.parametrize("blank", ["", "   "])
def test_an_empty_variable_is_not_set(tmp_path: Path, blank: str) -> None:
    own = {"value": "https://api.openai.com/v1", "source": "default"}
    assert addresses(tmp_path, OPENAI_BASE_URL=blank, OPENAI_API_KEY=KEY) == {"openai": own}


def test_the_settings_and_the_doctor_say_where_each_address_comes_from(tmp_path: Path) -> None:
    config(tmp_path, f'[providers.lab]\nbase_url = "{NOWHERE}/v1"\n')
    env = {"ANTHROPIC_BASE_URL": f"{NOWHERE}/gateway", "ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}
    shown = dragoman(tmp_path, "config", "show", **env)
    assert shown.code == 0
    assert re.search(rf"^address anthropic +{NOWHERE}/gateway  \(ANTHROPIC_BASE_URL\)$", shown.out, re.M)
    assert re.search(r"^address google +https://generativelanguage.googleapis.com  \(default\)$", shown.out, re.M)
    assert re.search(rf"^address lab +{NOWHERE}/v1  \({tmp_path}/home/config.toml\)$", shown.out, re.M)
    assert re.search(rf"^file +{tmp_path}/home/config.toml$", shown.out, re.M)
    looked = {
        found["what"]: found for found in json.loads(dragoman(tmp_path, "doctor", "--json", **env).out)["findings"]
    }
    assert f"anthropic at {NOWHERE}/gateway (ANTHROPIC_BASE_URL)" in looked["providers"]["text"]
    assert KEY not in json.dumps(looked)


def test_the_doctor_finds_an_address_that_is_none(tmp_path: Path) -> None:
    looked = dragoman(tmp_path, "doctor", OPENAI_BASE_URL="nonsense", OPENAI_API_KEY=KEY)
    assert looked.code == 1
    assert re.search(r"^BROKEN +providers +.*OPENAI_BASE_URL is no http or https URL: nonsense", looked.out, re.M)


@pytest.mark.slow  # it is tried again three times, for seven seconds
def test_a_connection_that_fails_is_told_with_the_address_and_what_has_set_it(tmp_path: Path) -> None:
    env = {"ANTHROPIC_BASE_URL": NOWHERE, "ANTHROPIC_API_KEY": KEY}
    done = dragoman(tmp_path, "run", "--model", "anthropic/claude-opus-5", "hi", **env)
    assert done.code == 6
    assert (
        "The connection to anthropic (127.0.0.1:1, set by ANTHROPIC_BASE_URL) failed: connection refused" in done.error
    )


def test_no_file_of_a_project_moves_a_provider(tmp_path: Path) -> None:
    with provider_server() as up, provider_server() as thief:
        evil = f"OPENAI_BASE_URL={thief.url}/v1\n"
        table = f'[providers.openai]\nbase_url = "{thief.url}/v1"\n'
        agents = json.dumps({"agents": {"x": {"command": "sh", "env": {"OPENAI_BASE_URL": f"{thief.url}/v1"}}}})
        files = {".env": evil, ".env.local": evil, ".dragoman/config.toml": table, "config.toml": table}
        for name, text in {**files, "acp.json": agents, ".mcp.json": agents, ".dragoman/acp.json": agents}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        env = {"OPENAI_BASE_URL": f"{up.url}/v1", "OPENAI_API_KEY": KEY, "DRAGOMAN_LIST_MODELS": "true"}
        done = dragoman(tmp_path, "run", "--model", "openai/gpt-5", "hi", **env)
        assert (done.code, done.out, thief.heard) == (0, f"{SAID}\n", [])
        assert len(up.heard) >= 1

"""From a name to a model: addresses, keys, defaults, and what is said when something is missing."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.coder.credentials import Credentials, Secret
from dragoman.coder.models import providers
from dragoman.coder.models.demo import DemoModel
from dragoman.coder.models.endpoints import Endpoint, find_endpoint, ollama_url
from dragoman.coder.models.factory import ModelUnavailable, choices, find_default_model, make_model
from dragoman.coder.models.names import ModelName, parse
from dragoman.coder.models.script import ScriptError, ScriptModel

KEY = "sk-canary-0123456789"
NOTHING: Mapping[str, str] = {}
MINE = {"providers": {"mine": {"base_url": "https://models.example.org/v1", "api_key_env": "MY_KEY", "model": "big"}}}


# Tables for one model, and what is said of them.
WINDOW = 'models."big"] in the configuration: window has the wrong type; it is a number of tokens.'
PRICE_KEYS = "prices has an unknown euros; known are input, output, cache_read, cache_write."
BAD_DESCRIPTIONS: list[tuple[object, str]] = [
    (7, '[providers.mine.models."big"] in the configuration must be a table.'),
    ({"window": "8k"}, WINDOW),
    ({"max_output": 0}, "max_output must be 1 or more"),
    ({"images": 1}, "images has the wrong type; it is true or false."),
    ({"thought_levels": "high"}, "thought_levels has the wrong type; it is a list"),
    ({"thought_levels": ["a lot"]}, "thought_levels has no level 'a lot'; there are off, minimal, low,"),
    ({"prices": 3}, "prices has the wrong type; it is a table such as { input ="),
    ({"prices": {"input": 1}}, "prices needs output, in dollars for a million tokens."),
    ({"prices": {"input": -1, "output": 1}}, "prices: input must be dollars for a million tokens, 0 or more"),
    ({"prices": {"input": float("nan"), "output": 1}}, "prices: input must be dollars"),
    ({"prices": {"euros": 1}}, PRICE_KEYS),
    ({"size": 1}, "unknown size; known are documents, images, max_output, prices, thought_levels, web_search, window."),
]


def described(table: object) -> Mapping[str, object]:
    return {"providers": {"mine": {"base_url": "https://x", "models": {"big": table}}}}


def found(
    name: str, environment: Mapping[str, str] = NOTHING, config: Mapping[str, object] = {}, **keys: str
) -> Endpoint:
    credentials = Credentials({provider: Secret(key) for provider, key in keys.items()})
    configured = [*config.get("providers", {})] if isinstance(config.get("providers"), dict) else []  # type: ignore[misc]
    return find_endpoint(
        parse(name, configured=configured), environment=environment, config=config, credentials=credentials
    )


def test_each_provider_has_its_address_and_its_key() -> None:
    environment = {"OPENAI_API_KEY": "k1", "ANTHROPIC_API_KEY": "k2", "GEMINI_API_KEY": "k3", "MY_KEY": "k4"}
    assert found("openai/gpt-5", environment)[1:5] == ("openai", "gpt-5", "https://api.openai.com/v1", Secret("k1"))
    assert found("anthropic/claude-opus-5", environment)[3:5] == ("https://api.anthropic.com", Secret("k2"))
    assert found("gemini-2.5-pro", environment)[3:5] == ("https://generativelanguage.googleapis.com", Secret("k3"))
    assert found("ollama/llama3.2", environment)[3:5] == ("http://127.0.0.1:11434/v1", None)
    mine = found("mine/big", environment, MINE)
    assert mine[:5] == ("compatible", "mine", "big", "https://models.example.org/v1", Secret("k4"))
    assert KEY not in repr(found("openai/gpt-5", {"OPENAI_API_KEY": KEY}))


def test_a_key_is_for_its_own_provider_only() -> None:
    config = {"providers": {"mine": {"base_url": "https://models.example.org/v1"}}}
    assert found("mine/big", {"OPENAI_API_KEY": KEY}, config, openai=KEY).key is None
    assert found("ollama/llama3.2", {"OPENAI_API_KEY": KEY}, openai=KEY).key is None


def test_the_configuration_moves_a_provider_before_the_variable_of_its_sdk_does() -> None:
    environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://gateway.example.org/openai/"}
    moved = found("openai/gpt-5", environment)
    assert (moved.base_url, moved.source) == ("https://gateway.example.org/openai", "OPENAI_BASE_URL")
    assert moved.place == "gateway.example.org, set by OPENAI_BASE_URL"
    config = {"providers": {"openai": {"base_url": "https://mine.example.org"}}}
    moved = found("openai/gpt-5", environment, config)
    assert (moved.base_url, moved.source) == ("https://mine.example.org", "config.toml")
    assert found("openai/gpt-5", {**environment, "OPENAI_BASE_URL": " "}).source == "default"


def test_a_variable_moves_its_own_provider_only() -> None:
    environment = {"ANTHROPIC_API_KEY": KEY, "OPENAI_BASE_URL": "https://gateway.example.org/v1"}
    assert found("anthropic/claude-opus-5", environment).base_url == "https://api.anthropic.com"
    config = {"providers": {"mine": {"base_url": "https://models.example.org/v1"}}}
    assert found("mine/big", environment, config).base_url == "https://models.example.org/v1"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("box", "http://box:11434/v1"),
        ("box:80", "http://box:80/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("[::]:99", "http://127.0.0.1:99/v1"),
        ("http://box:11434/", "http://box:11434/v1"),
        ("https://ollama.example.org", "https://ollama.example.org/v1"),
        ("https://example.org/ollama", "https://example.org/ollama/v1"),
    ],
)
def test_ollama_is_where_its_variable_says(host: str, url: str) -> None:
    assert ollama_url(host) == url
    assert found("ollama/x", {"OLLAMA_HOST": host}).base_url == url


@pytest.mark.parametrize(
    ("name", "config", "needs_login", "sentence"),
    [
        ("openai/gpt-5", {}, True, "openai needs a key. Set OPENAI_API_KEY, or run: dragoman login openai"),
        ("mine/big", MINE, True, "mine needs a key. Set MY_KEY, or run: dragoman login mine"),
        ("mine/big", {"providers": {"mine": {}}}, False, "needs a base_url"),
        ("mine/big", {"providers": {"mine": 7}}, False, "must be a table"),
        ("mine/big", {"providers": {"mine": {"base_url": 7}}}, False, "base_url has the wrong type"),
        ("mine/big", {"providers": {"mine": {"base_url": "https://x", "window": True}}}, False, "wrong type"),
        ("mine/big", {"providers": {"mine": {"base_url": "https://x", "window": 0}}}, False, "1 or more"),
        *(("mine/big", described(table), False, sentence) for table, sentence in BAD_DESCRIPTIONS),
        ("mine/big", {"providers": {"mine": {"base_url": "https://x", "colour": "red"}}}, False, "unknown colour"),
        ("mine/big", {"providers": {"mine": {"base_url": "ftp://x"}}}, False, "no http or https URL"),
        ("mine/big", {"providers": {"mine": {"base_url": "https://"}}}, False, "no http or https URL"),
        ("mine/big", {"providers": {"mine": {"base_url": "https://x:99999/"}}}, False, "no http or https URL"),
        ("mine/big", {"providers": {"mine": {"base_url": f"https://me:{KEY}@x/v1"}}}, False, "has a password in it"),
        ("mine/big", {"providers": {"mine": {"base_url": f"https://x/v1?key={KEY}"}}}, False, "no http or https URL"),
        ("mine/big", {"providers": {"mine": {"base_url": "https://x"}, "script": {}}}, False, "cannot be the name"),
    ],
)
def test_what_is_missing_is_said(name: str, config: Mapping[str, object], needs_login: bool, sentence: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        found(name, NOTHING, config)
    assert sentence in str(caught.value) and KEY not in str(caught.value)
    assert caught.value.needs_login == needs_login


def test_what_can_be_no_key_is_not_sent() -> None:
    with pytest.raises(ModelUnavailable, match="is no key") as caught:
        found("openai/gpt-5", {"OPENAI_API_KEY": f"{KEY}\r\nX-Evil: 1"})
    assert caught.value.needs_login and KEY not in str(caught.value)


def test_a_place_is_told_without_a_password() -> None:
    assert Endpoint("compatible", "m", "m", "https://me:secret@host:81/v1", None).place == "host:81"
    assert Endpoint("openai", "m", "m", "https://host/v1?x", None).place == "host"


# -- the default -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "config", "keys", "chosen"),
    [
        ({}, {}, {}, "demo"),
        ({"OLLAMA_HOST": " "}, {}, {}, "demo"),
        ({"OLLAMA_HOST": "box"}, {}, {}, "ollama/llama3.2"),
        ({"OLLAMA_HOST": "box"}, {"providers": {"ollama": {"model": "qwen3:8b"}}}, {}, "ollama/qwen3:8b"),
        ({"GEMINI_API_KEY": "k", "OLLAMA_HOST": "box"}, {}, {}, "google/gemini-3.8-flash"),
        ({"GEMINI_API_KEY": "k"}, {}, {"anthropic": "k"}, "anthropic/claude-sonnet-5"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, {}, {}, "openai/gpt-5.6-sol"),
        ({"OPENAI_API_KEY": "k"}, {"providers": {"openai": {"model": "gpt-4o"}}}, {}, "openai/gpt-4o"),
        ({"OPENAI_API_KEY": "k"}, {"model": "claude-opus-5"}, {}, "anthropic/claude-opus-5"),
        ({"OPENAI_API_KEY": "k"}, {"model": "offline"}, {}, "demo"),
        ({"MY_KEY": "k"}, MINE, {}, "mine/big"),
        ({}, MINE, {}, "demo"),
        ({}, {"providers": {"open": {"base_url": "http://localhost:1/v1", "model": "m"}}}, {}, "open/m"),
        ({}, {"providers": {"open": {"base_url": "http://localhost:1/v1"}}}, {}, "demo"),
    ],
)
def test_the_default_is_the_first_model_that_can_be_used(
    environment: Mapping[str, str], config: Mapping[str, object], keys: dict[str, str], chosen: str
) -> None:
    credentials = Credentials({provider: Secret(key) for provider, key in keys.items()})
    assert str(find_default_model(environment, config, credentials)) == chosen


def test_a_bad_default_in_the_configuration_is_explained() -> None:
    with pytest.raises(ModelUnavailable, match="model in the configuration: Unknown provider nobody"):
        find_default_model(NOTHING, {"model": "nobody/x"}, Credentials())


def test_a_client_is_offered_what_can_be_used() -> None:
    current = ModelName("script", "/plan.json")
    offered = choices({"OPENAI_API_KEY": "k", "OLLAMA_HOST": "box", "MY_KEY": "k"}, MINE, Credentials(), current)
    assert [str(name) for name in offered] == [*("script", "openai/gpt-5.6-sol", "ollama/llama3.2", "mine/big", "demo")]
    assert choices(NOTHING, {}, Credentials(), ModelName("demo")) == [ModelName("demo")]


# -- making ----------------------------------------------------------------------------------------------------------


def made(name: ModelName, environment: Mapping[str, str] = NOTHING, **more: object) -> object:
    return make_model(name, environment=environment, config={}, credentials=Credentials(), **more)  # type: ignore[arg-type]


def test_a_hosted_model_is_known_before_anything_is_loaded() -> None:
    model = made(ModelName("anthropic", "claude-opus-4-8"), {"ANTHROPIC_API_KEY": KEY})
    assert isinstance(model, providers.ProviderModel)
    assert (model.name, model.sees) == ("anthropic/claude-opus-4-8", frozenset({"image", "document"}))
    assert model.thought_levels == ("off", "low", "medium", "high")
    assert model.assistant("helper") is model
    stranger = made(ModelName("ollama", "who-knows"))
    assert isinstance(stranger, providers.ProviderModel)
    assert (stranger.window, stranger.sees, stranger.thought_levels) == (None, frozenset(), ())


def test_the_configuration_says_what_a_stranger_can() -> None:
    table = {
        "base_url": "http://x/v1",
        "window": 9_000,
        "images": True,
        "models": {"m": {"window": 5_000, "thought_levels": ["high", "low"]}},
    }
    for name, expected in (("m", (5_000, frozenset({"image"}), ("low", "high"))), ("o", (9_000, {"image"}, ()))):
        model = providers.ProviderModel(found(f"mine/{name}", NOTHING, {"providers": {"mine": table}}))
        assert (model.window, model.sees, model.thought_levels) == expected


def test_scripts_and_the_demo_need_no_key(tmp_path: Path) -> None:
    script = tmp_path / "plan.json"
    script.write_text('{"turns": [{"steps": []}]}')
    model = made(ModelName("script", str(script)))
    assert isinstance(model, ScriptModel) and isinstance(made(ModelName("demo")), DemoModel)
    with pytest.raises(ScriptError):
        made(ModelName("script", str(tmp_path / "none.json")))


def test_a_missing_package_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_are_installed", lambda *names: False)
    with pytest.raises(ModelUnavailable, match=r"dragoman\[models\]"):
        made(ModelName("ollama", "x"))


def test_choosing_loads_no_sdk() -> None:
    program = (
        "import sys\n"
        "from dragoman.coder.credentials import Credentials\n"
        "from dragoman.coder.models.factory import make_model\n"
        "from dragoman.coder.models.names import ModelName\n"
        "make_model(ModelName('ollama', 'x'), environment={}, config={}, credentials=Credentials())\n"
        "heavy = ('pydantic', 'pydantic_ai', 'genai_prices', 'httpx2', 'openai')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "[]\n", done.stderr

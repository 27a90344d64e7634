"""The names of models, as people and clients write them."""

from collections.abc import Callable

import pytest

from dragoman.coder.models.names import BadModelName, ModelName, parse, parse_from_client


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("openai:gpt-4o", ModelName("openai", "gpt-4o")),
        ("openai/gpt-4o", ModelName("openai", "gpt-4o")),
        (" OpenAI/GPT-4o ", ModelName("openai", "GPT-4o")),
        ("ollama:qwen2.5-coder:7b", ModelName("ollama", "qwen2.5-coder:7b")),
        ("ollama/hf.co/someone/model:Q4", ModelName("ollama", "hf.co/someone/model:Q4")),
        ("gemini/gemini-2.5-pro", ModelName("google", "gemini-2.5-pro")),
        ("router/anthropic/claude-opus-5", ModelName("router", "anthropic/claude-opus-5")),
        ("gpt-5.6", ModelName("openai", "gpt-5.6")),
        ("o3", ModelName("openai", "o3")),
        ("claude-sonnet-5", ModelName("anthropic", "claude-sonnet-5")),
        ("gemini-2.5-flash", ModelName("google", "gemini-2.5-flash")),
        ("demo", ModelName("demo")),
        ("Offline", ModelName("demo")),
        ("script:/tmp/a:b.json", ModelName("script", "/tmp/a:b.json")),
    ],
)
def test_a_name_means_one_model(text: str, meant: ModelName) -> None:
    assert parse(text, configured=["router"]) == meant


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (ModelName("openai", "gpt-4o"), "openai/gpt-4o"),
        (ModelName("router", "anthropic/claude-opus-5"), "router/anthropic/claude-opus-5"),
        (ModelName("demo"), "demo"),
        (ModelName("script", "/home/somebody/secret/plan.json"), "script"),
    ],
)
def test_a_model_is_shown_without_a_path(name: ModelName, shown: str) -> None:
    assert str(name) == shown


def test_a_bare_name_stays_with_the_current_provider() -> None:
    router = ModelName("router", "gpt-4o")
    assert parse("claude-opus-5", configured=["router"], current=router) == ModelName("router", "claude-opus-5")
    assert parse("llama3.2:3b", current=ModelName("ollama", "x")) == ModelName("ollama", "llama3.2:3b")
    assert parse("claude-opus-5", current=ModelName("demo")) == ModelName("anthropic", "claude-opus-5")


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", ":", "openai/", "openai:", "nobody/model", "nobody:model", "mystery", "script:"),
        *("google/../../v1/files", "openai/a b", "openai/a\nb", "openai/a?key=1", "openai/a#b", "openai/%2e%2e"),
        *("openai//x", "openai/" + "x" * 300, "openai/\ud800", "script/x.json"),
    ],
)
def test_what_means_no_model_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(BadModelName) as caught:
        parse(text)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 250


@pytest.mark.parametrize("text", ["script:/etc/passwd", " Script:x", "SCRIPT/x", "script:"])
def test_a_client_never_chooses_a_file(text: str) -> None:
    with pytest.raises(BadModelName):
        parse_from_client(text, configured=["script"], current=ModelName("script", "/other"))


def test_a_client_may_keep_what_was_chosen_for_it() -> None:
    for current in (ModelName("script", "/plan.json"), ModelName("demo")):
        assert parse_from_client(str(current), current=current) == current
    assert parse_from_client("openai/gpt-4o", current=ModelName("script", "/p")) == ModelName("openai", "gpt-4o")


@pytest.mark.parametrize("text", ["local:smollm2", "Local:models/x.gguf", "local/smollm2", "local/x.gguf", "local:"])
@pytest.mark.parametrize("read", [parse, parse_from_client])
def test_a_model_inside_of_us_is_answered_with_what_to_use_instead(text: str, read: Callable[[str], ModelName]) -> None:
    with pytest.raises(BadModelName, match="Start Ollama and write ollama/NAME, or start another server"):
        read(text)


def test_local_can_be_the_name_of_a_server_of_the_configuration() -> None:
    assert parse_from_client("local/qwen3", configured=["local"]) == ModelName("local", "qwen3")

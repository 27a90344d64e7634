"""Choosing a model over the wire: any name of a provider that can be used, and levels of thought that follow it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.names import PROVIDERS
from tests.cli.test_builtin_agent import Plain
from tests.support.editor import HELLO, Editor, Message, turns
from tests.support.versions import both_versions

KEYS = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
# Of these the first two think, each in its own levels, and the last does not.
ALWAYS, CAN_BE_OFF, NEVER = "openai/gpt-5", "openai/gpt-5.6", "openai/gpt-4o"


@contextmanager
def opened(folder: Path, version: int = 1, *words: str, **env: str) -> Iterator[Editor]:
    with Plain(folder, *words, version=version, **{**KEYS, **env}) as editor:
        yield editor.open()


def choose(editor: Editor, value: Any, option: str = "model") -> Message:
    """Set an option; the answer."""
    asked: Message = {"sessionId": editor.session, "configId": option, "value": value}
    if editor.version == 2:
        asked["type"] = "id"
    return editor.ask("session/set_config_option", asked)[-1]


def named(answer: Message) -> dict[str, tuple[str, list[str]]]:
    """Every option's current value and choices, by its id."""
    options = answer.get("result", answer)["configOptions"]
    return {
        option.get("id") or option["configId"]: (option["currentValue"], [one["value"] for one in option["options"]])
        for option in options
    }


@both_versions
@pytest.mark.parametrize("written", ["openai/not-listed", "openai:not-listed", " OpenAI/not-listed "])
def test_any_name_of_a_provider_with_a_key_is_taken_and_is_a_choice_from_then_on(
    tmp_path: Path, version: int, written: str
) -> None:
    with opened(tmp_path, version) as editor:
        current, choices = named(choose(editor, written))["model"]
        assert (current, choices.count("openai/not-listed")) == ("openai/not-listed", 1)
        current, choices = named(choose(editor, "openai/another"))["model"]
        assert (current, "openai/not-listed" in choices, "openai/another" in choices) == ("openai/another", True, True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("anthropic/claude-opus-5", "anthropic needs a key. Set ANTHROPIC_API_KEY, or run: dragoman login anthropic"),
        ("script:/etc/passwd", "A model that reads a file of this machine is chosen when the agent is started"),
        ("local:x.gguf", "Models no longer run inside of Dragoman. Start Ollama and write ollama/NAME"),
        ("nobody/x", "Unknown provider nobody"),
        ("openai/a b", "a b cannot be the name of a model"),
        ("mystery-model", "mystery-model"),
        ("", "PROVIDER/NAME"),
        (7, ""),
        (None, ""),
    ],
)
@both_versions
def test_what_cannot_be_had_is_refused_and_changes_nothing(
    tmp_path: Path, version: int, value: Any, words: str
) -> None:
    with opened(tmp_path, version, "--model", "demo") as editor:
        before = named(choose(editor, "demo"))
        error = choose(editor, value)["error"]
        assert (error["code"], words in error["message"]) == (-32602, True)
        assert named(choose(editor, "demo")) == before


def test_a_name_that_means_nothing_is_answered_with_what_there_is(tmp_path: Path) -> None:
    with opened(tmp_path) as editor:
        message = choose(editor, "nobody/x")["error"]["message"]
    listed = "openai/gpt-5.6-sol, demo"
    assert message == (
        "Unknown provider nobody; there are openai, anthropic, google, ollama, openrouter, mistral, xai, groq and "
        f"{len(PROVIDERS) - 8} others that `dragoman login` names. "
        f"Models to choose from: {listed}; any other model of a provider with a key can be named too."
    )


def test_names_that_a_client_makes_up_are_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as editor:
        for number in range(60):
            current, choices = named(choose(editor, f"openai/m{number}"))["model"]
            assert current in choices
    assert len(choices) < 40
    assert [choice for choice in choices if choice.startswith("openai/m")][-2:] == ["openai/m58", "openai/m59"]


def test_a_bare_name_stays_with_the_provider_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[providers.lab]\nbase_url = "http://127.0.0.1:1/v1"\n')
    with opened(tmp_path, 1, "--model", "demo", ANTHROPIC_API_KEY="sk-test") as editor:
        choose(editor, "lab/one")
        assert named(choose(editor, "two"))["model"][0] == "lab/two"
        choose(editor, "openai/one")
        assert named(choose(editor, "claude-opus-5"))["model"][0] == "anthropic/claude-opus-5"
        assert named(choose(editor, "davinci"))["model"][0] == "anthropic/davinci"


# -- levels of thought -----------------------------------------------------------------------------------------------


@both_versions
@pytest.mark.requirement("CA9")
def test_the_levels_of_thought_are_those_of_the_model(tmp_path: Path, version: int) -> None:
    with opened(tmp_path, version, "--model", "demo") as editor:
        assert "thought_level" not in named(choose(editor, "demo"))
        assert named(choose(editor, ALWAYS))["thought_level"][1] == ["low", "medium", "high"]
        assert named(choose(editor, CAN_BE_OFF))["thought_level"][1] == ["off", "low", "medium", "high"]
        assert "thought_level" not in named(choose(editor, NEVER))
        error = choose(editor, "high", "thought_level")["error"]
        assert (error["code"], error["message"]) == (-32602, "No such option 'thought_level'; there are mode, model")


def test_a_level_comes_back_with_a_model_that_has_it(tmp_path: Path) -> None:
    with opened(tmp_path, 1, "--model", CAN_BE_OFF) as editor:
        assert named(choose(editor, "off", "thought_level"))["thought_level"][0] == "off"
        assert named(choose(editor, ALWAYS))["thought_level"][0] == "low"  # it cannot be turned off
        assert "thought_level" not in named(choose(editor, NEVER))
        assert named(choose(editor, CAN_BE_OFF))["thought_level"][0] == "off"


@both_versions
def test_a_session_opened_again_has_its_model_with_that_model_s_level(tmp_path: Path, version: int) -> None:
    with opened(tmp_path, version, "--model", "demo") as editor:
        choose(editor, ALWAYS)
        choose(editor, "high", "thought_level")
        choose(editor, NEVER)
        session_id = editor.session
    again = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
    method = "session/load" if version == 1 else "session/resume"
    with Plain(tmp_path, "--model", "demo", version=version, **KEYS) as editor:
        editor.result("initialize", HELLO[version])
        editor.session = session_id
        options = named(editor.ask(method, again)[-1])
        assert (options["model"][0], "thought_level" in options) == (NEVER, False)
        assert named(choose(editor, ALWAYS))["thought_level"][0] == "high"
    with Plain(tmp_path, "--model", "demo", version=version, **KEYS) as editor:
        editor.result("initialize", HELLO[version])
        options = named(editor.ask(method, again)[-1])
        assert (options["model"][0], options["thought_level"][0]) == (ALWAYS, "high")


@both_versions
def test_a_session_whose_model_ran_inside_of_us_goes_on_with_another_and_says_why(tmp_path: Path, version: int) -> None:
    (tmp_path / "home").mkdir()
    settings = tmp_path / "home" / "config.toml"
    settings.write_text('[providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n')
    with opened(tmp_path, version, "--model", "demo") as editor:
        choose(editor, "local/smollm2")
        session_id = editor.session
    settings.write_text("")
    again = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
    with Editor(tmp_path, turns([{"say": "one"}], [{"say": "two"}]), version=version) as editor:
        editor.result("initialize", HELLO[version])
        editor.session = session_id
        options = named(editor.ask("session/load" if version == 1 else "session/resume", again)[-1])
        assert options["model"][0] == "script"
        sentence = "This session goes on with script, not with local/smollm2: Models no longer run inside"
        shown = [json.dumps(editor.prompt("go on")).count(sentence) for _ in range(2)]
        assert shown == [1, 0]


def test_a_model_chosen_in_a_prompt_tells_the_client_its_levels(tmp_path: Path) -> None:
    with opened(tmp_path, 1, "--model", "demo") as editor:
        (update,) = [
            heard for heard in editor.prompt(f"/model {ALWAYS}") if heard.get("sessionUpdate") == "config_option_update"
        ]
        assert named(update)["model"][0] == ALWAYS
        assert named(update)["thought_level"][1] == ["low", "medium", "high"]


def test_a_story_told_again_has_the_options_as_they_are_now(tmp_path: Path) -> None:
    with opened(tmp_path, 2, "--model", "demo") as editor:
        editor.prompt(f"/model {ALWAYS}")
        choose(editor, NEVER)
        session_id = editor.session
    with Plain(tmp_path, "--model", "demo", version=2, **KEYS) as editor:
        editor.result("initialize", HELLO[2])
        again = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": [], "replayFrom": {"type": "start"}}
        updates = [message["params"]["update"] for message in editor.ask("session/resume", again)[:-1]]
    (told,) = [update for update in updates if update["sessionUpdate"] == "config_option_update"]
    assert (named(told)["model"][0], "thought_level" in named(told)) == (NEVER, False)


# -- words -----------------------------------------------------------------------------------------------------------


def test_a_value_that_is_none_is_answered_in_one_sentence(tmp_path: Path) -> None:
    with opened(tmp_path) as editor:
        error = choose(editor, "yolo", "mode")["error"]
        assert error["code"] == -32602
        assert error["message"] == (
            "No such value 'yolo' for mode; there are read-only, plan, ask, workspace-write, safe, sandbox, full-access"
        )
        assert choose(editor, "x" * 5000 + "\x1b[2J", "mode")["error"]["message"].startswith(
            f"No such value '{'x' * 60}…' for mode; there are "
        )

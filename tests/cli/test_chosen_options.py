"""Mode, model and level of thought of the command line count, also for a session that was left with others."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.common_options import THOUGHT_LEVELS
from dragoman.coder.models.descriptions import LEVELS
from tests.cli.chat_pane import PROMPT, chat, ready
from tests.cli.test_builtin_agent import Plain
from tests.cli.test_model_choice import named
from tests.cli.test_model_lists import env, opened
from tests.support.command import Called, call
from tests.support.provider_server import ProviderServer, provider_server
from tests.support.run_command import Step, run, scripted

WRITES: list[Step] = [{"call": "write_file", "input": {"path": "x.txt", "content": "a\n"}}, {"say": "Done."}]


@pytest.fixture
def up() -> Iterator[ProviderServer]:
    with provider_server() as server:
        yield server


def asked(folder: Path, up: ProviderServer, *options: str) -> Called:
    """A run with a provider's model."""
    return call("run", "hi", *options, cwd=folder, forks=True, DRAGOMAN_HOME=str(folder / "home"), **env(up))


def efforts(up: ProviderServer) -> list[str | None]:
    """How hard the model was told to think, request by request."""
    return [heard.body.get("reasoning", {}).get("effort") for heard in up.heard if heard.method == "POST"]


def session_of(folder: Path, *prompts: str) -> str:
    """A session of a script in which these were prompted."""
    first, *more = prompts
    done = run(folder, first, *scripted(folder, WRITES), "--stream-json", "--allow", "all")
    session = str(done.events[-1]["sessionId"])
    for prompt in more:
        run(folder, prompt, *scripted(folder, WRITES), "--resume", session, "--allow", "all")
    return session


@pytest.mark.requirement("CA15")
def test_a_session_left_in_a_wider_mode_works_in_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    session = session_of(tmp_path, "/mode workspace-write")
    done = run(tmp_path, "write", *scripted(tmp_path, WRITES), "--resume", session, "--mode", "read-only")
    assert "Mode read-only does not allow it" in done.error
    assert not (tmp_path / "x.txt").exists()
    done = run(tmp_path, "write", *scripted(tmp_path, WRITES), "--resume", session, "--mode", "full", "--allow", "all")
    assert (done.code, (tmp_path / "x.txt").exists()) == (0, True)


def test_a_session_goes_on_with_the_model_that_is_asked_for(tmp_path: Path, up: ProviderServer) -> None:
    first = asked(tmp_path, up, "--model", "openai/gpt-4o", "--stream-json")
    session = json.loads(first.out.splitlines()[-1])["sessionId"]
    call(
        "run",
        "/model gpt-5",
        "--resume",
        session,
        cwd=tmp_path,
        forks=True,
        **env(up),
        DRAGOMAN_HOME=str(tmp_path / "home"),
    )
    assert asked(tmp_path, up, "--resume", session, "--model", "openai/o3").code == 0
    assert [heard.body["model"] for heard in up.heard if heard.method == "POST"] == ["gpt-4o", "o3"]


@pytest.mark.requirement("CA9")
def test_a_level_of_thought_is_told_to_the_model(tmp_path: Path, up: ProviderServer) -> None:
    assert asked(tmp_path, up, "--model", "openai/gpt-5", "--thinking", "high").code == 0
    assert efforts(up) == ["high"]


@pytest.mark.parametrize(
    ("model", "level", "sentence"),
    [
        ("gpt-4o", "high", "--thinking high: the model openai/gpt-4o has no levels of thought to choose from"),
        ("gpt-5", "hardest", "--thinking hardest: there are low, medium, high"),
    ],
)
def test_a_level_that_the_model_has_not_is_refused_before_the_prompt(
    tmp_path: Path, up: ProviderServer, model: str, level: str, sentence: str
) -> None:
    done = asked(tmp_path, up, "--model", f"openai/{model}", "--thinking", level)
    assert (done.code, done.out, done.error) == (2, "", f"dragoman: {sentence}\n")
    assert efforts(up) == []


def test_an_editor_s_sessions_begin_with_the_level_of_the_command_line(tmp_path: Path, up: ProviderServer) -> None:
    with Plain(tmp_path, "--model", "openai/gpt-5", "--thinking", "medium", version=1, **env(up)) as editor:
        assert named(opened(editor))["thought_level"] == ("medium", ["low", "medium", "high"])


def test_the_levels_of_the_command_line_are_those_of_the_settings() -> None:
    assert THOUGHT_LEVELS == LEVELS


def test_chat_finds_a_model_by_a_part_of_its_name_and_sets_how_hard_it_thinks(
    tmp_path: Path, up: ProviderServer
) -> None:
    up.lists("gpt-5.6-sol", "gpt-5-mini", "gpt-5-nano", "o3")
    given: dict[str, Any] = env(up)
    call("models", "list", DRAGOMAN_HOME=str(tmp_path / "home"), **given)
    with chat(tmp_path, env=env(up)) as pane:
        ready(pane)
        pane.say("/model gpt 5-")
        pane.wait_for(
            "openai/gpt-5-mini", "openai/gpt-5-nano", "Several have “gpt 5-” in them; nothing was changed", PROMPT
        )
        pane.say("/model nano")
        pane.wait_for("^model: openai/gpt-5-nano$", PROMPT)
        pane.say("/thinking")
        pane.wait_for(r"^\* low$", "^  high$", PROMPT)
        pane.say("/thinking high")
        pane.wait_for("^thinking: high$", PROMPT)
        pane.say("hello")
        pane.wait_for("Good morning", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    assert efforts(up) == ["high"]

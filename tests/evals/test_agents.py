"""How an agent is started: with the user's settings, with its own keys and no others, and with no key in a file."""

from pathlib import Path

import pytest

from dragoman.coder.credentials import Secret, save
from evals.agents import AgentChoice, Launch, launch
from evals.confinement import confine_agent
from tests.support.eval_task import make_task


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder: a provider with a variable, and a key that was logged in with."""
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (home / "config.toml").write_text('[providers.lab]\nbase_url = "http://lab/v1"\napi_key_env = "LAB_KEY"\n')
    save(home / "credentials.toml", "anthropic", Secret("stored-key"))
    return home


def launched(choice: AgentChoice, tmp_path: Path) -> Launch:
    area = tmp_path / "area"
    area.mkdir()
    return launch(choice, make_task(tmp_path / "task"), area, area / "project", {"EXTRA": "1"})


@pytest.mark.usefixtures("home")
def test_our_agent_gets_the_settings_and_the_keys_as_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "lab")
    monkeypatch.setenv("OPENAI_API_KEY", "open")
    monkeypatch.setenv("GITHUB_TOKEN", "github")
    started = launched(AgentChoice(model="lab/m"), tmp_path)
    own = tmp_path / "area" / "home"
    assert started.environment == {
        "TMPDIR": str(tmp_path / "area" / "tmp"),
        "EXTRA": "1",
        "OPENAI_API_KEY": "open",
        "ANTHROPIC_API_KEY": "stored-key",
        "LAB_KEY": "lab",
        "DRAGOMAN_HOME": str(own),
    }
    assert [path.name for path in own.iterdir()] == ["config.toml"]


@pytest.mark.usefixtures("home")
def test_a_key_in_the_environment_comes_before_a_stored_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "newer")
    assert launched(AgentChoice(model="demo"), tmp_path).environment["ANTHROPIC_API_KEY"] == "newer"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("named", "mode"), [("", "workspace-write"), ("sandbox", "sandbox")])
def test_the_mode_is_the_tasks_unless_another_one_is_named(tmp_path: Path, named: str, mode: str) -> None:
    words = launched(AgentChoice(model="demo", mode=named), tmp_path).command
    assert words[-4:] == ["--mode", mode, "--model", "demo"]


@pytest.mark.usefixtures("home")
def test_another_agent_gets_its_own_keys_and_what_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "gemini")
    monkeypatch.setenv("OPENAI_API_KEY", "open")
    monkeypatch.setenv("MORE", "more")
    started = launched(AgentChoice("gemini", variables=["MORE", "ABSENT"]), tmp_path)
    assert started.command[-2:] == ["gemini", "--acp"]
    assert started.environment.keys() == {"MORE", "TMPDIR", "EXTRA", "GEMINI_API_KEY"}


def test_without_bubblewrap_the_command_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.confinement.bubblewrap", lambda: None)
    assert confine_agent(["agent", "--acp"], [Path("/")]) == ["agent", "--acp"]

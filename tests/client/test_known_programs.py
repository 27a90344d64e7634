"""Which command lines are known agents, and which of them are the user's own and get the agent's keys."""

from pathlib import Path

import pytest

from dragoman.client.known_agents import KNOWN
from dragoman.client.known_programs import PROGRAMS, RecognisedAgent, recognise_agent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with programs in `bin`, and a project to be in."""
    for name in ("gemini", "claude-agent-acp", "codex-acp", "opencode", "qwen", "vibe-acp", "npx", "uvx", "node"):
        program(tmp_path / "bin" / name)
    (tmp_path / "home" / "project").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home" / "project")
    return tmp_path


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def known(place: Path, *command: str, path: str = "", folder: str = "") -> RecognisedAgent | None:
    environment = {"PATH": path or str(place / "bin"), "HOME": str(place / "home")}
    return recognise_agent(command, folder or str(place / "home" / "project"), environment)


def test_every_known_agent_is_recognised_by_how_it_is_started(place: Path) -> None:
    for name, entry in KNOWN.items():
        if name != "dragoman":
            program(place / "bin" / entry.command)
            assert known(place, *entry.command_line()) == RecognisedAgent(name)
            assert (PROGRAMS[name].package or "brew") in entry.install


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("gemini --model x --acp", "gemini"),
        ("gemini --experimental-acp", "gemini"),
        ("{bin}/gemini --acp", "gemini"),
        ("npx -y @google/gemini-cli --acp", "gemini"),
        ("npx --yes @google/gemini-cli@0.61.0 --acp", "gemini"),
        ("npx @agentclientprotocol/claude-agent-acp@latest", "claude"),
        ("npx -y opencode-ai acp", "opencode"),
        ("uvx --from mistral-vibe vibe-acp", "vibe"),
        ("uvx --from mistral-vibe==3.0.2 vibe-acp", "vibe"),
        ("node {lib}/node_modules/@google/gemini-cli/bundle/gemini.js --acp", "gemini"),
    ],
)
def test_a_program_of_the_user_gets_its_keys(command: str, agent: str, place: Path) -> None:
    program(place / "lib" / "node_modules/@google/gemini-cli/bundle/gemini.js")
    words = command.format(bin=place / "bin", lib=place / "lib").split()
    assert known(place, *words) == RecognisedAgent(agent)


@pytest.mark.parametrize(
    "command",
    [
        "gemini",
        "gemini chat",
        "opencode run acp",
        "goose migrate",
        "npx -y gemini-cli --acp",
        "npx -y @google/gemini-cli@npm:evil --acp",
        "npx -y @google/gemini-cli@file:./evil --acp",
        "npx -y ./gemini --acp",
        "npx -y -p evil @google/gemini-cli --acp",
        "uvx vibe-acp",
        "uvx --from ./mistral-vibe vibe-acp",
        "uvx --index-url http://evil --from mistral-vibe vibe-acp",
        "node --require ./x.js /usr/lib/node_modules/@google/gemini-cli/x.js --acp",
        "node server.js --acp",
        "sh -c gemini --acp",
        "my-gemini --acp",
    ],
)
def test_other_command_lines_are_no_known_agents(command: str, place: Path) -> None:
    assert known(place, *command.split()) is None


def kept_back(found: RecognisedAgent | None, agent: str) -> str:
    assert found is not None
    assert found.agent == agent
    assert found.withheld_reason
    return found.withheld_reason


def test_a_program_of_the_project_gets_no_keys(place: Path) -> None:
    project = place / "home" / "project"
    local = program(project / "node_modules/.bin/qwen")
    program(project / "gemini")
    kept_back(known(place, "./gemini", "--acp"), "gemini")
    kept_back(known(place, str(project / "gemini"), "--acp"), "gemini")
    kept_back(known(place, "gemini", "--acp", path=f"{project}:{place / 'bin'}"), "gemini")
    for path in (".", "", "node_modules/.bin"):  # also where nothing of that name is there now
        assert "depends on where you are" in kept_back(
            known(place, "gemini", "--acp", path=f"{path}:{place / 'bin'}"), "gemini"
        )
    kept_back(known(place, str(local), "--acp"), "qwen")
    # What a manager of versions would start in its place.
    assert "node_modules/.bin/qwen" in kept_back(known(place, "qwen", "--acp"), "qwen")
    # A link outside that leads into the project is the project's.
    (place / "bin" / "opencode").unlink()
    (place / "bin" / "opencode").symlink_to(program(project / "opencode"))
    kept_back(known(place, "opencode", "acp"), "opencode")
    # And what `env` does before is not looked at.
    kept_back(known(place, "env", f"PATH={project}", "gemini", "--acp"), "gemini")


def test_the_project_is_also_what_lies_above_the_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = place / "home" / "project"
    inner = repository / "packages" / "one"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    local = program(repository / "node_modules/.bin/gemini")
    kept_back(known(place, "gemini", "--acp", path=str(local.parent), folder=str(inner)), "gemini")
    (repository / ".git").mkdir()
    tool = program(repository / "tools" / "codex-acp")
    kept_back(known(place, str(tool), folder=str(inner)), "codex")


def test_a_checkout_elsewhere_is_a_project_too(place: Path) -> None:
    tool = program(place / "src" / "other" / "bin" / "codex-acp")
    assert known(place, str(tool)) == RecognisedAgent("codex")
    (place / "src" / "other" / ".git").mkdir()
    assert "lies in the repository" in kept_back(known(place, str(tool)), "codex")
    # As some managers of versions are, whose programs the PATH has.
    assert known(place, str(tool), path=str(tool.parent)) == RecognisedAgent("codex")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".npmrc", "registry=http://evil"),
        ("node_modules/@google/gemini-cli/package.json", "{}"),
        ("node_modules/.bin/gemini", ""),
        # A package is found by the name that it gives itself, in whichever folder it lies.
        ("node_modules/alias/package.json", '{"name": "@google/gemini-cli", "bin": {"other": "x.js"}}'),
        ("package.json", '{"name": "p", "workspaces": ["packages/*"]}'),
        ("package.json", '{"name": "@google/gemini-cli"}'),
        ("package.json", '{"name": "@google/gemini-cli"' + " " * 1024 * 1024 + "}"),
    ],
)
def test_what_a_project_puts_in_the_way_of_npx_keeps_the_keys_back(name: str, content: str, place: Path) -> None:
    command = ("npx", "-y", "@google/gemini-cli", "--acp")
    (place / "home" / ".npmrc").write_text("registry=https://ours")  # the user's own
    assert known(place, *command) == RecognisedAgent("gemini")
    file = place / "home" / "project" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    kept_back(known(place, *command), "gemini")


def test_a_script_of_another_checkout_gets_no_keys(place: Path) -> None:
    script = program(place / "src" / "other" / "node_modules/@google/gemini-cli/x.js")
    assert known(place, "node", str(script), "--acp") == RecognisedAgent("gemini")
    (place / "src" / "other" / ".git").mkdir()
    assert "lies in the repository" in kept_back(known(place, "node", str(script), "--acp"), "gemini")


def test_packages_in_the_home_are_the_users_own(place: Path) -> None:
    (place / "home" / "node_modules" / "other").mkdir(parents=True)
    assert known(place, "npx", "-y", "@google/gemini-cli", "--acp") == RecognisedAgent("gemini")

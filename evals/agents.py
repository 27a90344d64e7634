"""How the agent of an attempt is started: ours, one that is known by name, or any command."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from dragoman.cli.home import own_path
from dragoman.cli.settings import read_settings
from dragoman.client.known_agents import KNOWN
from dragoman.coder.credentials import KEY_VARIABLES, load
from evals.confinement import confine_agent
from evals.languages import variables
from evals.overlay import NOTHING, load_overlay
from evals.task import Task

OURS: Final = "dragoman"
# Models that prove the harness, without a network: they play what the task's own folder says.
SCRIPTED: Final = ("solution", "cheat", "nothing")


class AgentChoice(NamedTuple):
    """Which agent is evaluated.

    `variables` are names of variables that it gets beside harmless ones; `hidden` are folders that it does not see.
    """

    name: str = OURS
    model: str = ""
    mode: str = ""
    variables: Sequence[str] = ()
    hidden: Sequence[Path] = ()


class Launch(NamedTuple):
    """A command and the variables it gets."""

    command: list[str]
    environment: dict[str, str]


def launch(choice: AgentChoice, task: Task, area: Path, workspace: Path, extra: dict[str, str]) -> Launch:
    """Return how the agent is started for a task. `area` is the attempt's own folder, `extra` are variables."""
    environment = {name: os.environ[name] for name in choice.variables if name in os.environ}
    temporary = _temporary(area)
    environment |= {"TMPDIR": str(temporary), **variables(task.language, temporary), **extra}
    if choice.name == OURS:
        command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--mode", choice.mode or task.mode]
        if choice.model:
            command += ["--model", _model(choice.model, task, area, workspace)]
        return Launch(confine_agent(command, [area], choice.hidden), environment | _own_settings(area / "home"))
    if choice.name in KNOWN:
        entry = KNOWN[choice.name]
        environment |= {key: os.environ[key] for key in entry.key_variables if key in os.environ}
        command = entry.command_line()
    else:
        command = shlex.split(choice.name)
    # Its login and its caches are in the home folder of the user, which it may write.
    return Launch(confine_agent(command, [Path.home(), area], choice.hidden), environment)


def _own_settings(home: Path) -> dict[str, str]:
    """Make a data folder with the user's `config.toml` alone, and return the variables that our agent needs.

    Keys are passed as variables, which no command of the agent gets: in a file they could be read with the user's yes,
    and the user of an attempt says yes to everything.
    """
    home.mkdir(mode=0o700)
    config = Path(own_path("config.toml"))
    if config.is_file():
        shutil.copy(config, home / "config.toml")
    tables = read_settings({}, str(config)).tables["providers"]
    named = [str(table["api_key_env"]) for table in tables.values() if "api_key_env" in table]
    keys = {name: os.environ[name] for name in (*KEY_VARIABLES.values(), *named) if name in os.environ}
    for provider, key in load(Path(own_path("credentials.toml"))).keys.items():
        if provider in KEY_VARIABLES:
            keys.setdefault(KEY_VARIABLES[provider], key.reveal())
    return {**keys, "DRAGOMAN_HOME": str(home)}


def _temporary(area: Path) -> Path:
    folder = area / "tmp"
    folder.mkdir()
    return folder


def _model(model: str, task: Task, area: Path, workspace: Path) -> str:
    """Return the model as our command line takes it; a scripted one becomes a script."""
    if model not in SCRIPTED:
        return model
    overlay = NOTHING if model == "nothing" else load_overlay(task.folder / model)
    script = area / "script.json"
    script.write_bytes(msgspec.json.encode({**overlay.script(workspace), "window": 200_000}))
    return f"script:{script}"

"""How the agent of an attempt is started: ours, one that is known by name, or any command."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from dragoman.cli.home import home_folder
from dragoman.client.known_agents import KNOWN
from evals.confinement import confine_agent
from evals.overlay import NOTHING, load_overlay
from evals.task import Task

OURS: Final = "dragoman"
# Models that prove the harness, without a network: they play what the task's own folder says.
SCRIPTED: Final = ("solution", "cheat", "nothing")
# Of the user's data folder our agent gets these, in a folder of its own.
_SETTINGS: Final = ("config.toml", "credentials.toml")


class AgentChoice(NamedTuple):
    """Which agent is evaluated. `variables` are names of variables that it gets beside harmless ones."""

    name: str = OURS
    model: str = ""
    mode: str = ""
    variables: Sequence[str] = ()


class Launch(NamedTuple):
    """A command and the variables it gets."""

    command: list[str]
    environment: dict[str, str]


def launch(choice: AgentChoice, task: Task, area: Path, workspace: Path, extra: dict[str, str]) -> Launch:
    """Return how the agent is started for a task. `area` is the attempt's own folder."""
    home = area / "home"
    home.mkdir(mode=0o700)
    environment = {name: os.environ[name] for name in choice.variables if name in os.environ}
    environment |= {"DRAGOMAN_HOME": str(home), "TMPDIR": str(_temporary(area)), **extra}
    if choice.name == OURS:
        for name in _SETTINGS:
            if os.path.isfile(os.path.join(home_folder(), name)):
                shutil.copy2(os.path.join(home_folder(), name), home / name)
        environment |= _keys(OURS)
        command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--mode", choice.mode or task.mode]
        if choice.model:
            command += ["--model", _model(choice.model, task, area, workspace)]
        return Launch(confine_agent(command, [area]), environment)
    if choice.name in KNOWN:
        environment |= _keys(choice.name)
        command = KNOWN[choice.name].command_line()
    else:
        command = shlex.split(choice.name)
    # Its login and its caches are in the home folder of the user, which it may write.
    return Launch(confine_agent(command, [Path.home(), area]), environment)


def _keys(name: str) -> dict[str, str]:
    return {key: os.environ[key] for key in KNOWN[name].key_variables if key in os.environ}


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

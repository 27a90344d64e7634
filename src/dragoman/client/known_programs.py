"""Recognise a known agent (`known_agents`) in a command line: `gemini --acp` is the agent gemini, also behind `npx`.

Two questions are answered apart. Which agent a command line is meant to be: by the name of its program or package; what
such an agent is lent is never more than what any other is. And whether the program is that of the user, so that it may
have the agent's keys: then it is the one that `--agent NAME` would start, or one that was installed outside of every
project. A project is not the user: what lies in it, and what a project can put in the way of a runner (`node_modules`,
`.npmrc`), gets no keys. Looks files up and reads at most a `package.json`; starts nothing.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.host.paths import is_inside
from dragoman.host.regular_file import read_whole


class RecognisedAgent(NamedTuple):
    """A known agent, and why it is not given its keys; empty: it is."""

    agent: str
    withheld_reason: str = ""


class _Program(NamedTuple):
    """How a known agent is called: its program, the first argument that makes it one, its package."""

    name: str
    argument: str = ""
    package: str = ""


PROGRAMS: Final[Mapping[str, _Program]] = {
    "gemini": _Program("gemini", "--acp", "@google/gemini-cli"),
    "claude": _Program("claude-agent-acp", "", "@agentclientprotocol/claude-agent-acp"),
    "codex": _Program("codex-acp", "", "@agentclientprotocol/codex-acp"),
    "opencode": _Program("opencode", "acp", "opencode-ai"),
    "qwen": _Program("qwen", "--acp", "@qwen-code/qwen-code"),
    "goose": _Program("goose", "acp"),
    "kimi": _Program("kimi", "acp", "@moonshot-ai/kimi-code"),
    "copilot": _Program("copilot", "--acp", "@github/copilot"),
    "vibe": _Program("vibe-acp", "", "mistral-vibe"),
}
# What some of them called the option before.
_OLDER: Final = {"--acp": "--experimental-acp"}
_BY_NAME: Final = {program.name: agent for agent, program in PROGRAMS.items()}
_BY_PACKAGE: Final = {program.package: agent for agent, program in PROGRAMS.items() if program.package}
# A package of npm with a version or a tag. A path, an address or an alias behind the @ is another package.
_NPM: Final = re.compile(r"(@[\w.-]+/[\w.-]+|[\w.-]+)(?:@[\w.^~<>=-]+)?")
_PYPI: Final = re.compile(r"([\w.-]+?)(?:(?:==|@)[\w.]+)?")
_IN_PACKAGES: Final = re.compile(r".*/node_modules/((?:@[^/]+/)?[^/]+)/")
_PACKAGE_BYTES: Final = 1024 * 1024


def recognise_agent(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> RecognisedAgent | None:
    """Return the known agent that a command line starts in `folder`; None if it is none."""
    place = _Place(os.path.realpath(folder), environment)
    name, rest = os.path.basename(command[0]), list(command[1:])
    if name == "env":
        inner = recognise_agent(words, folder, environment) if (words := _behind_env(rest)) else None
        return inner and RecognisedAgent(inner.agent, "it is started by env")
    if name in ("node", "nodejs"):
        return _by_script(command[0], rest, place)
    if name == "npx":
        return _by_npx(command[0], [word for word in rest if word not in ("-y", "--yes")], place)
    if name == "uvx":
        return _by_uvx(command[0], rest, place)
    agent = _BY_NAME.get(name)
    if agent is None or not _speaks_acp(agent, rest):
        return None
    return RecognisedAgent(agent, place.why_not_of_user(command[0]) or place.why_shadowed(agent))


def _speaks_acp(agent: str, arguments: Sequence[str]) -> bool:
    wanted = PROGRAMS[agent].argument
    if wanted.startswith("-"):
        return wanted in arguments or _OLDER.get(wanted) in arguments
    return not wanted or list(arguments[:1]) == [wanted]


def _behind_env(words: Sequence[str]) -> list[str]:
    at = next((at for at, word in enumerate(words) if "=" not in word), len(words))
    return list(words[at:]) if at < len(words) and not words[at].startswith("-") else []


def _by_script(node: str, words: Sequence[str], place: "_Place") -> RecognisedAgent | None:
    """Recognise `node /usr/lib/node_modules/@google/gemini-cli/dist/index.js --acp`."""
    script = words[0] if words else ""
    real = os.path.realpath(script)
    found = _IN_PACKAGES.match(real)
    agent = _BY_PACKAGE.get(found[1]) if found else None
    if agent is None or not _speaks_acp(agent, words[1:]):
        return None
    if not os.path.isabs(script):
        return RecognisedAgent(agent, f"{script} is not named by its whole path")
    why = place.why_in_project(script) or place.why_in_project(real) or place.why_in_repository(real)
    return RecognisedAgent(agent, place.why_not_of_user(node) or why)


def _by_npx(npx: str, words: Sequence[str], place: "_Place") -> RecognisedAgent | None:
    """Recognise `npx -y @google/gemini-cli@0.61.0 --acp`."""
    found = _NPM.fullmatch(words[0]) if words else None
    agent = _BY_PACKAGE.get(found[1]) if found else None
    if agent is None or agent == "vibe" or not _speaks_acp(agent, words[1:]):
        return None
    why = place.why_shadowed(agent) or place.why_other_package() or place.why_other_registry()
    return RecognisedAgent(agent, place.why_not_of_user(npx) or why)


def _by_uvx(uvx: str, words: Sequence[str], place: "_Place") -> RecognisedAgent | None:
    """Recognise `uvx --from mistral-vibe==3.0.2 vibe-acp`. uvx does not read a project's settings about indexes."""
    found = _PYPI.fullmatch(words[1]) if len(words) > 2 and words[0] == "--from" else None
    agent = _BY_PACKAGE.get(found[1]) if found else None
    if agent != "vibe" or words[2] != PROGRAMS[agent].name:
        return None
    return RecognisedAgent(agent, place.why_not_of_user(uvx))


class _Place:
    """Where an agent is started, and what there belongs to projects."""

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._home = os.path.realpath(environment.get("HOME") or os.path.expanduser("~"))
        starts = dict.fromkeys((folder, os.path.realpath(_current_folder() or folder)))
        self._above = list(dict.fromkeys(one for start in starts for one in _upwards(start)))
        self._projects = [*starts, *(one for one in self._above if self._is_repository(one))]

    def why_not_of_user(self, program: str) -> str:
        """Say why a program may be a project's; empty: it is one of this machine or of the user."""
        name = os.path.basename(program)
        folders = self._environment.get("PATH", os.defpath).split(os.pathsep)
        at = next((at for at, one in enumerate(folders) if shutil.which(name, path=one or os.curdir)), len(folders))
        found = os.path.join(folders[at], name) if at < len(folders) else ""
        if "/" in program and (not found or os.path.realpath(found) != os.path.realpath(program)):
            if not os.path.isabs(program):
                return f"{program} is not named by its whole path"
            found = program
            if why := self.why_in_repository(found):
                return why
        elif not found:
            return f"{name} is not installed"
        elif not all(map(os.path.isabs, folders[: at + 1])):
            return "the PATH begins with a folder that depends on where you are"
        return self.why_in_project(found) or self.why_in_project(os.path.realpath(found))

    def why_in_project(self, path: str) -> str:
        """Say in which project a path lies; empty: in none that is here."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        packages = [os.path.join(one, "node_modules") for one in self._above]
        inside = next((one for one in (*self._projects, *packages) if is_inside(real, one)), None)
        return "" if inside is None else f"{path} lies in the project {inside}"

    def why_in_repository(self, path: str) -> str:
        """Say in which checkout a path lies, wherever that is; empty: in none."""
        repository = next((one for one in _upwards(os.path.realpath(path)) if self._is_repository(one)), "")
        return repository and f"{path} lies in the repository {repository}"

    def why_shadowed(self, agent: str) -> str:
        """Say what of a project a runner, or a manager of versions, would start in place of the agent's program."""
        program = PROGRAMS[agent]
        for folder in self._above:
            installed = [os.path.join(folder, "node_modules", ".bin", program.name)]
            installed += [os.path.join(folder, "node_modules", program.package)] if program.package else []
            for path in installed:
                if os.path.lexists(path):
                    return f"the project has {path}"
            named = _package(os.path.join(folder, "package.json"))
            if program.package and (named is None or named.get("name") == program.package):
                return f"{folder} may be a package of that name"
        return ""

    def why_other_package(self) -> str:
        """Say where a project has packages: npx takes the one that calls itself by the wanted name, in any folder."""
        for folder in (one for one in self._above if one != self._home):
            packages = os.path.join(folder, "node_modules")
            if os.path.lexists(packages):
                return f"the project has packages of its own in {packages}"
            if "workspaces" in (_package(os.path.join(folder, "package.json")) or ()):
                return f"the project {folder} has packages of its own"
        return ""

    def why_other_registry(self) -> str:
        """Say which file of a project may have npm fetch packages elsewhere."""
        files = (os.path.join(folder, ".npmrc") for folder in self._above if folder != self._home)
        found = next((file for file in files if os.path.lexists(file)), "")
        return found and f"{found} may say where packages come from"

    def _is_repository(self, folder: str) -> bool:
        """Return whether a folder is a repository; a home folder that is one, for its dotfiles, does not count."""
        return not is_inside(self._home, folder) and os.path.lexists(os.path.join(folder, ".git"))


def _upwards(folder: str) -> Iterator[str]:
    for _ in range(limits.PARENT_FOLDERS):
        yield folder
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _package(file: str) -> dict[str, object] | None:
    """Return what a `package.json` says; empty if there is none, None if that cannot be known."""
    try:
        found = json.loads(read_whole(file, _PACKAGE_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else {}

"""Choose the agent of `run` and `chat`: one of the registry, one behind an address, a command after `--`, or our own.

`agent_connection` connects to it.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman import limits
from dragoman.cli.common_options import add_trust, keep_command
from dragoman.cli.decode_input import decode_input
from dragoman.cli.errors import CommandError, print_warning, warn_about_plain_http
from dragoman.cli.managed import check_level, managed_policy

if TYPE_CHECKING:
    from dragoman.client.offered_capabilities import OfferedCapabilities
    from dragoman.client.permission_policy import Level, PermissionPolicy
    from dragoman.client.registry import AgentRegistry


class Target(NamedTuple):
    """An agent to start or to reach."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] | None = None
    # Our own keeps its own rules about files, and is told its model and mode when it starts.
    ours: bool = False
    # One of `acp.json` is started by it; one behind an address has a registry of its own.
    registry: "AgentRegistry | None" = None
    # Of a command that is a known agent: which one, why it is not given its keys, and what it is lent.
    known: str = ""
    withheld_reason: str = ""
    offered: "OfferedCapabilities | None" = None

    @property
    def recorded_as(self) -> str:
        """The name under which decisions about it are recorded; empty: it records them itself."""
        return "" if self.ours else self.name

    @property
    def is_remote(self) -> bool:
        """Return whether it is reached at an address, and not started on this machine."""
        return self.registry is not None and bool(self.registry.entry(self.name).url)

    def policy(self, level: "Level", *, otherwise: "Level" = "") -> "PermissionPolicy":
        """Return its policy; `level` is what the user allows now, `otherwise` counts where nothing is configured."""
        if self.registry is not None:
            return managed_policy(self.registry.entry(self.name).policy(level, otherwise=otherwise))
        from dragoman.client.permission_policy import PermissionPolicy

        return managed_policy(PermissionPolicy(level or otherwise))

    def run_policy(self, level: "Level", folder: str) -> "PermissionPolicy":
        """Return its policy in `dragoman run`: by default an agent that works on this machine may read its folder.

        Not in one that holds the whole home: which files there are private, no list of names can say.
        """
        is_asked = level or self._remote_launch_reason() or _holds_home(folder)
        return self.policy(level, otherwise="" if is_asked else "read")

    def _remote_launch_reason(self) -> str:
        if self.ours:
            return ""
        if self.registry is not None:
            return self.registry.entry(self.name).remote_launch_reason(os.environ)
        from dragoman.client.remote_launch import remote_launch_reason

        return remote_launch_reason(self.command, os.environ)


def _holds_home(folder: str) -> bool:
    from dragoman.host.paths import is_inside

    return is_inside(os.path.realpath(os.path.expanduser("~")), os.path.realpath(folder))


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare the options, and `-- CMD ...`: argparse would give what stands there to the other arguments."""
    parser.add_argument("-C", "--cwd", metavar="DIR", help="the folder to work in; the current one if not given")
    parser.add_argument("--agent", metavar="NAME", help="a name from `dragoman agents list`, or the URL of an agent")
    parser.add_argument("--token-file", metavar="F", help="the token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(parser)
    parser.add_argument("-m", "--model", metavar="M", help="model to use, where the agent lets you choose")
    parser.add_argument("--mode", metavar="MODE", help="the agent's mode, such as ask, plan or workspace-write")
    parser.add_argument("--thinking", metavar="LEVEL", help="how hard the model thinks, such as off, low or high")
    parser.add_argument("--show-stderr", action="store_true", help="show what the agent writes to stderr, as it comes")
    keep_command(parser)


def add_allow(parser: argparse.ArgumentParser) -> None:
    """Declare `--allow`."""
    parser.add_argument(
        "--allow",
        choices=("none", "read", "edit", "all"),
        default="",
        help="what the agent may do without asking; read, if it is started here",
    )


def add_from_session(parser: argparse.ArgumentParser) -> None:
    """Declare `--from-session ID`."""
    parser.add_argument(
        "--from-session",
        metavar="ID",
        help="go on with what was said and done in this session, of whichever agent",
    )


def chosen_target(arguments: argparse.Namespace) -> Target:
    """Return the agent that is meant; `CommandError` says what is not right about it, or not permitted here."""
    check_level(getattr(arguments, "allow", ""))
    command: list[str] | None = arguments.command_given
    name: str | None = arguments.agent
    if command is None and name is None:
        name = _default_agent(arguments.cwd or ".") or None
    _hide_keys(for_ours=command is None and name is None)
    if command is not None and name is not None:
        raise CommandError("--agent NAME or -- CMD, not both")
    for option, given in (("--token-file", arguments.token_file), ("--ca-file", arguments.ca_file)):
        if given is not None and not _is_address(arguments.agent):
            raise CommandError(f"{option} goes with an address, such as --agent https://agents.example.org")
    if command is not None:
        if not command:
            raise CommandError("which command? Write it after the --, such as: -- gemini --acp")
        return _command_target(command, arguments.cwd)
    if name is None:
        return _own_target(arguments)
    return _address_target(arguments) if _is_address(name) else _registry_target(name, arguments)


def _default_agent(folder: str) -> str:
    """Return the `defaultServer` of the user's `acp.json`, or of the trusted project around the folder; or nothing."""
    from dragoman.cli.home import own_path

    files = [own_path("acp.json")]
    here = os.path.abspath(os.path.expanduser(folder))
    while True:
        files += [os.path.join(here, name) for name in ("acp.json", ".dragoman/acp.json")]
        if here == os.path.dirname(here):
            break
        here = os.path.dirname(here)
    if not any(_may_set_default(file) for file in files):
        return ""  # what the registry needs takes longer to import than a short turn takes
    registry = _read_registry(folder)
    if registry.default_mistake:
        raise CommandError(registry.default_mistake)
    return registry.default


def _may_set_default(file: str) -> bool:
    from dragoman.host.regular_file import read_regular

    try:
        return b'"defaultServer"' in read_regular(file, limits.CONFIG_BYTES)
    except OSError:
        return False


def _hide_keys(*, for_ours: bool) -> None:
    """Keep our keys from an agent that was not given them by name. Our own has them, and reports bad settings."""
    from dragoman.cli.key_variables import hide_keys
    from dragoman.cli.settings import SettingsError

    try:
        hide_keys()
    except SettingsError:
        if not for_ours:
            raise


def chosen_folder(arguments: argparse.Namespace, target: Target) -> str:
    """Return the folder to work in. Whether one exists elsewhere is not ours to say."""
    folder = os.path.abspath(os.path.expanduser(arguments.cwd or "."))
    if not target.is_remote and not os.path.isdir(folder):
        raise CommandError(f"{arguments.cwd}: there is no such folder")
    if folder != decode_input(folder):
        raise CommandError(
            f"{decode_input(folder)}: the name of this folder is not UTF-8, so it cannot be sent to an agent"
        )
    return folder


def _own_target(arguments: argparse.Namespace) -> Target:
    # -P: a module in the folder we work in is not ours to load, whatever it is called.
    command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp"]
    for name in ("model", "mode", "max_cost", "max_turns", "system_prompt_file"):
        if (value := getattr(arguments, name, None)) is not None:
            command += [f"--{name.replace('_', '-')}", _from_here(name, str(value))]
    if (arguments.model or "").lower() == "offline":
        from dragoman.cli.builtin_agent import warn_of_former_name

        warn_of_former_name()  # what the agent writes to stderr is not shown
    # It is ourselves, so it may have our keys.
    return Target("dragoman", command, env=dict(os.environ), ours=True)


def _from_here(option: str, value: str) -> str:
    """Return the value of an option; a file is named from where the user is, and the agent starts in its folder."""
    if option == "system_prompt_file":
        return os.path.abspath(value)
    kind, colon, file = value.partition(":")
    is_script = option == "model" and colon and file and kind.lower() == "script"
    return f"{kind}:{os.path.abspath(file)}" if is_script else value


def _command_target(command: list[str], cwd: str | None) -> Target:
    """Return the target of a command; a known agent gets what it is lent, and its keys if the program is the user's."""
    from dragoman.client.known_programs import recognise_agent

    target = Target(os.path.basename(command[0]), command)
    found = recognise_agent(command, os.path.expanduser(cwd or "."), os.environ)
    if found is None:
        return target
    from dragoman.client.known_agents import KNOWN

    entry = KNOWN[found.agent]
    keys = (
        {} if found.withheld_reason else {name: os.environ[name] for name in entry.key_variables if name in os.environ}
    )
    if keys and sys.stderr is not None and sys.stderr.isatty():
        print(f"dragoman: this is the agent {found.agent}; it is given {', '.join(keys)}", file=sys.stderr)
    return target._replace(env=keys, known=found.agent, withheld_reason=found.withheld_reason, offered=entry.offered)


def _is_address(agent: str | None) -> bool:
    return agent is not None and "://" in agent


def _address_target(arguments: argparse.Namespace) -> Target:
    from dragoman.client.agent_entry import AgentEntry
    from dragoman.client.offered_capabilities import FORMS_ONLY
    from dragoman.client.registry import AgentRegistry
    from dragoman.client.registry_file import RegistryFile

    url: str = arguments.agent
    token = "" if arguments.token_file is not None else os.environ.get("DRAGOMAN_TOKEN", "")
    # What stands there is meant as it is: a $ in it is no variable.
    given = (url, token, arguments.token_file or "", arguments.ca_file or "")
    exact = [text.replace("$", "$$") for text in given]
    entry = AgentEntry(url, "", url=exact[0], token=exact[1], token_file=exact[2], ca_file=exact[3], offered=FORMS_ONLY)
    if token or arguments.token_file is not None:
        warn_about_plain_http(url, insecure=arguments.insecure)
    return Target(url, (), registry=AgentRegistry(RegistryFile({url: entry}), environment=os.environ))


def _read_registry(folder: str) -> "AgentRegistry":
    from dragoman.cli.home import read_registry
    from dragoman.errors import DragomanError

    try:
        return read_registry(folder)
    except DragomanError as error:
        raise CommandError(str(error)) from None


def _registry_target(name: str, arguments: argparse.Namespace) -> Target:
    from dragoman.errors import DragomanError

    registry = _read_registry(arguments.cwd or ".")
    try:
        entry = registry.entry(name)
    except DragomanError as error:
        raise CommandError(str(error)) from None
    for sentence in (*registry.remarks, *registry.complaints()):
        print_warning(sentence)
    if entry.built_in and name == "dragoman":
        return _own_target(arguments)
    if entry.url and (entry.token or entry.token_file):
        warn_about_plain_http(entry.url, insecure=arguments.insecure)
    return Target(name, (), registry=registry)

"""`dragoman bridge`: any agent for any editor, as the command that stands in the editor's settings."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.cli.common_options import Commands, add_command, add_trust, keep_command
from dragoman.cli.errors import NOT_DONE, CommandError, print_error, print_notice

if TYPE_CHECKING:
    from dragoman.bridge import Bridge, SpokenWire
    from dragoman.cli.bridge_sessions import BridgedSessions
    from dragoman.client.permission_policy import PermissionPolicy
    from dragoman.transports.contract import Transport

_DESCRIPTION = """\
Stand between an editor on stdin and stdout and an agent, and translate: the
editor and the agent may speak different versions or dialects. What the agent
lacks is supplied: sessions that are listed and opened again, prompts that wait
while a turn runs, words for the turn that runs, and your permission rules.
"""
_EPILOG = """\
In the settings of an editor, in place of the agent's own command:

  dragoman bridge -- gemini --acp
  dragoman bridge --north 2 -- iac-code acp
  dragoman bridge https://agents.example.org --token-file ~/.agent-token
  dragoman bridge --agent claude --allow read
"""
# Programs that only run another one: their name says nothing of the agent.
_RUNNERS: Final = ("node", "npx", "uvx", "uv", "bun", "bunx", "deno", "env", "sh", "bash", "python", "python3")


# As a shell reports a program that a signal has ended.
_SIGNALLED: Final = 128


class BridgedAgent(NamedTuple):
    """An agent to bridge to. `name` is what its sessions are recorded under; `versions` None: either."""

    name: str
    open: "Callable[[], Transport]"
    policy: "PermissionPolicy"
    versions: tuple[int, ...] | None = None
    dialect: str = ""
    start_seconds: float = 0.0


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "bridge",
        "any agent for any editor, whatever each of them speaks",
        _DESCRIPTION,
        epilog=_EPILOG,
        usage="dragoman bridge [options] (-- CMD ... | URL | --agent NAME)",
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="an agent at an address")
    parser.add_argument("--agent", metavar="NAME", help="a name from `dragoman agents list`")
    parser.add_argument(
        "--north", metavar="D", default="", help="what the editor speaks: 1, 2 or the name of a dialect; else found out"
    )
    parser.add_argument(
        "--south", metavar="D", default="", help="what the agent speaks: 1, 2 or the name of a dialect; else found out"
    )
    parser.add_argument(
        "--allow",
        choices=("none", "read", "edit", "all"),
        default="",
        help="what needs no question to the editor; without it the rules of the agent's entry count",
    )
    parser.add_argument(
        "--no-record", action="store_true", help="record no sessions, so that none can be listed or opened in its place"
    )
    parser.add_argument("--token-file", metavar="F", help="the token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(parser)
    keep_command(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Translate until the editor or the agent is gone; return the exit code."""
    from dragoman import background
    from dragoman.errors import UsageError

    try:
        agent = _chosen_agent(arguments)
        north = _wire(arguments.north or str(arguments.protocol or ""), "--north")
    except UsageError as error:
        raise CommandError(str(error)) from None
    if sys.stdin is not None and sys.stdin.isatty():
        print_notice("waiting for an editor on stdin; in its settings this command stands for the agent's own")
    return background.run(_bridge(arguments, agent, north))


def _chosen_agent(arguments: argparse.Namespace) -> BridgedAgent:
    given = [arguments.command_given is not None, arguments.url is not None, arguments.agent is not None]
    if sum(given) != 1:
        raise CommandError("which agent? One of: its command behind --, its URL, --agent NAME")
    if arguments.command_given == []:
        raise CommandError("which command? Write it after the --, such as: -- gemini --acp")
    if arguments.url is None and (arguments.token_file is not None or arguments.ca_file is not None):
        raise CommandError("--token-file and --ca-file go with an address, such as https://agents.example.org")
    from dragoman.cli.managed import check_level

    check_level(arguments.allow)
    agent = _registered(arguments) if arguments.agent is not None else _given(arguments)
    if not arguments.south:
        return agent
    wire = _wire(arguments.south, "--south")
    return agent._replace(versions=wire.versions, dialect=wire.dialect)


def _registered(arguments: argparse.Namespace) -> BridgedAgent:
    from dragoman.cli.home import read_registry
    from dragoman.cli.managed import managed_policy
    from dragoman.cli.served_agent import registry_agent

    name = arguments.agent
    source = registry_agent(name).agents
    policy = managed_policy(read_registry(".").entry(name).policy(arguments.allow))
    # Our own agent stores its sessions itself.
    recorded_as = "" if name == "dragoman" else name
    opened = partial(source.open, "")
    return BridgedAgent(recorded_as, opened, policy, source.versions or None, source.dialect, source.start_seconds)


def _given(arguments: argparse.Namespace) -> BridgedAgent:
    from dragoman.cli.managed import managed_policy
    from dragoman.client.permission_policy import PermissionPolicy

    policy = managed_policy(PermissionPolicy(arguments.allow))
    if arguments.url is not None:
        from dragoman.cli.given_address import address_opener

        return BridgedAgent(arguments.url, address_opener(arguments), policy)
    command: list[str] = arguments.command_given

    def open_agent() -> "Transport":
        from dragoman.transports.child import ChildTransport

        # With the whole environment: the command stands where the editor would start the agent itself, and is to find
        # what it finds there.
        return ChildTransport.spawn(command, env=os.environ, on_stderr=_pass_on_stderr)

    name = _name_of(command)
    wire = _wire_of_program(name)
    return BridgedAgent(name, open_agent, policy, wire.versions if wire.dialect else None, wire.dialect)


def _wire_of_program(name: str) -> "SpokenWire":
    """Return the dialect that is named after a program; else its version is found out in `initialize`."""
    from dragoman.bridge import SpokenWire
    from dragoman.dialects.vendors.named import NAMES, pinned_version

    is_named = name in NAMES and pinned_version(name) is None
    return SpokenWire(dialect=name) if is_named else SpokenWire()


def _name_of(command: list[str]) -> str:
    """Return what a command is called: its program, or what that runs."""
    words = [os.path.basename(word) for word in command if not word.startswith("-") and "=" not in word]
    named = [word for word in words if word.rstrip("0123456789.") not in _RUNNERS]
    return (named or words or [command[0]])[0]


def _wire(name: str, option: str) -> "SpokenWire":
    """Return what `1`, `2` or the name of a dialect means. Raise `CommandError` for anything else."""
    from dragoman.bridge import SpokenWire
    from dragoman.dialects.vendors.named import NAMES, pinned_version

    if not name:
        return SpokenWire()
    known = f"v{name}" if name in ("1", "2") else name
    if known not in NAMES:
        others = ", ".join(one for one in NAMES if one not in ("v1", "v2"))
        raise CommandError(f"{option} {name}: there are 1, 2, {others}")
    version = pinned_version(known)
    return SpokenWire(dialect=known) if version is None else SpokenWire((version,))


def _pass_on_stderr(data: bytes) -> None:
    try:
        os.write(2, data)
    except OSError:
        pass  # nothing reads it: the agent goes on


async def _bridge(arguments: argparse.Namespace, agent: BridgedAgent, north: "SpokenWire") -> int:
    from dragoman.bridge import Bridge, SpokenWire
    from dragoman.cli.bridge_services import services_for
    from dragoman.cli.guarded_agent import guarded, run_until_signal
    from dragoman.cli.settings import SettingsError
    from dragoman.cli.trace_file import trace_writer
    from dragoman.errors import StartFailed
    from dragoman.limits import START_SECONDS
    from dragoman.transports.stdio import StdioTransport

    writer = trace_writer(arguments)
    try:
        services, sessions = services_for(agent.name, agent.policy, records=not arguments.no_record)
        transport = agent.open()
    except SettingsError as error:
        raise CommandError(str(error)) from None
    except StartFailed as failed:
        return print_error(str(failed), NOT_DONE)
    to_editor = to_agent = None
    if writer is not None:
        from dragoman.trace.writer import hook_of

        to_editor, to_agent = hook_of(writer.connect(), "agent"), hook_of(writer.connect(), "client")
    bridge = Bridge(
        StdioTransport.of_this_process(),
        transport,
        trace=to_editor,
        trace_agent=to_agent,
        start_timeout=agent.start_seconds or START_SECONDS,
        services=services,
        editor_wire=north,
        agent_wire=SpokenWire(agent.versions or SpokenWire().versions, agent.dialect),
    )
    with guarded(transport):
        stopped_by = await run_until_signal(bridge.run())
    return _SIGNALLED + stopped_by if stopped_by else _end_of(bridge, sessions)


def _end_of(bridge: "Bridge", sessions: "BridgedSessions | None") -> int:
    """Return the exit code; say what has ended it, where that was not the editor."""
    if sessions is not None and sessions.trouble:
        print_notice(sessions.trouble)
    if bridge.fault is not None:
        return print_error(str(bridge.fault), NOT_DONE)
    if bridge.agent_failure is not None:
        return print_error(str(bridge.agent_failure), NOT_DONE)
    return 0

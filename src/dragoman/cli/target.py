"""Which agent `run` and `chat` talk to: one of the fleet, one behind an address, a command after `--`, or our own."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.cli.complain import warn_of_plain_http
from dragoman.cli.typed import readable

if TYPE_CHECKING:
    from dragoman.cli.offer import Offer
    from dragoman.client.connect import Client
    from dragoman.client.conversation import Conversation
    from dragoman.client.fleet import Fleet
    from dragoman.client.policy import Level, Policy


class Wrong(Exception):
    """What was asked for cannot be done; the sentence says why."""


class Target(NamedTuple):
    """An agent to start or to reach."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    # Our own keeps its own rules about files, and is told its model and mode when it starts.
    ours: bool = False
    # One of the fleet is started by it; one behind an address is a fleet of its own.
    fleet: "Fleet | None" = None

    @property
    def elsewhere(self) -> bool:
        """Whether its files are not ours, as far as we can know."""
        return self.fleet is not None and bool(self.fleet.entry(self.name).url)

    def policy(self, level: "Level") -> "Policy":
        """What it may do; `level` is what the user allows now."""
        if self.fleet is not None:
            return self.fleet.entry(self.name).policy(level)
        from dragoman.client.policy import Policy

        return Policy(level)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare the options, and `-- CMD ...`: argparse would give what stands there to the other arguments."""
    parser.add_argument("--cwd", metavar="DIR", help="the folder to work in; the current one if not given")
    parser.add_argument(
        "--agent", metavar="NAME", help="an agent of the fleet, as `dragoman agents list` shows them, or its address"
    )
    parser.add_argument("--token-file", metavar="F", help="the token for an address; else it is in DRAGOMAN_TOKEN")
    parser.add_argument("--model", metavar="M", help="who thinks, where the agent lets you choose")
    parser.add_argument("--mode", metavar="MODE", help="the agent's mode, such as ask, plan or workspace-write")
    parser.add_argument("--show-stderr", action="store_true", help="show what the agent writes to stderr, as it comes")
    parser.set_defaults(command_given=None)
    whole = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        given = list(args or ())
        if "--" not in given:
            return whole(given, namespace)
        at = given.index("--")
        found, rest = whole(given[:at], namespace)
        found.command_given = given[at + 1 :]
        return found, rest

    parser.parse_known_args = parse  # type: ignore[method-assign]


def chosen_target(arguments: argparse.Namespace) -> Target:
    """The agent that is meant; `Wrong` says what is not right about it."""
    command: list[str] | None = arguments.command_given
    _hide_keys(for_ours=command is None and arguments.agent is None)
    if command is not None and arguments.agent is not None:
        raise Wrong("--agent NAME or -- CMD, not both")
    if arguments.token_file is not None and not _is_address(arguments.agent):
        raise Wrong("--token-file goes with an address, such as --agent https://agents.example.org")
    if command is not None:
        if not command:
            raise Wrong("which command? Write it after the --, such as: -- gemini --acp")
        return Target(os.path.basename(command[0]), command)
    if arguments.agent is None:
        return _ours(arguments)
    return _at_address(arguments) if _is_address(arguments.agent) else _of_fleet(arguments)


def _hide_keys(*, for_ours: bool) -> None:
    """No agent is started with a key that it was not given by name. Ours has them, and tells of its settings itself."""
    from dragoman.cli.keys import hide_keys
    from dragoman.cli.settings import SettingsError

    try:
        hide_keys()
    except SettingsError as error:
        if not for_ours:
            raise Wrong(str(error)) from None


def chosen_folder(arguments: argparse.Namespace, target: Target) -> str:
    """The folder to work in. Whether one exists elsewhere is not ours to say."""
    folder = os.path.abspath(os.path.expanduser(arguments.cwd or "."))
    if not target.elsewhere and not os.path.isdir(folder):
        raise Wrong(f"{arguments.cwd}: there is no such folder")
    if folder != readable(folder):
        raise Wrong(f"{readable(folder)}: this name is not UTF-8, and no agent can be told of it")
    return folder


def _ours(arguments: argparse.Namespace) -> Target:
    # -P: a module in the folder we work in is not ours to load, whatever it is called.
    command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp"]
    for name in ("model", "mode"):
        if getattr(arguments, name) is not None:
            command += [f"--{name}", getattr(arguments, name)]
    # It is ourselves, so it may have our keys.
    return Target("dragoman", command, env=dict(os.environ), ours=True)


def _is_address(agent: str | None) -> bool:
    return agent is not None and "://" in agent


def _at_address(arguments: argparse.Namespace) -> Target:
    from dragoman.client.entry import Entry
    from dragoman.client.fleet import Fleet
    from dragoman.client.fleet_file import FleetFile
    from dragoman.client.lent import FORMS_ALONE

    url: str = arguments.agent
    token = "" if arguments.token_file is not None else os.environ.get("DRAGOMAN_TOKEN", "")
    # What stands there is meant as it is: a $ in it is no variable.
    exact = [text.replace("$", "$$") for text in (url, token, arguments.token_file or "")]
    entry = Entry(url, "", url=exact[0], token=exact[1], token_file=exact[2], lent=FORMS_ALONE)
    if token or arguments.token_file is not None:
        warn_of_plain_http(url)
    return Target(url, (), fleet=Fleet(FleetFile({url: entry}), environment=os.environ))


def _of_fleet(arguments: argparse.Namespace) -> Target:
    from dragoman.cli.home import home
    from dragoman.client.fleet import Fleet
    from dragoman.errors import DragomanError

    try:
        fleet = Fleet.read(home(), environment=os.environ, folder=arguments.cwd or ".")
        entry = fleet.entry(arguments.agent)
    except DragomanError as error:
        raise Wrong(str(error)) from None
    if entry.url and (entry.token or entry.token_file):
        warn_of_plain_http(entry.url)
    return Target(arguments.agent, (), fleet=fleet)


async def opened(
    stack: AsyncExitStack,
    target: Target,
    folder: str,
    offer: "Offer",
    arguments: argparse.Namespace,
    settings: Mapping[str, Any],
) -> "Client":
    """A connection to the agent, closed with the stack. Our own has files and commands itself."""
    given: dict[str, Any] = {"permission": offer.permission} if target.ours else offer.callbacks()
    given |= {**settings, "protocol": arguments.protocol}
    stack.push_async_callback(offer.close)
    if arguments.trace is not None:
        from dragoman.cli.trace import open_trace

        try:
            given["trace"] = open_trace(arguments.trace)
        except OSError as error:
            raise Wrong(f"{arguments.trace}: cannot write the trace: {error.strerror}") from None
    if target.fleet is not None:
        return await stack.enter_async_context(target.fleet.connect(target.name, **given))
    from dragoman.client.connect import connect

    return await stack.enter_async_context(connect(target.command, cwd=folder, env=target.env, **given))


async def session_of_ours(given: str) -> tuple[str, str]:
    """The id and the folder of a stored session of our own agent; the beginning of an id is enough."""
    from dragoman.cli.home import open_store
    from dragoman.store.contract import StoreFailed

    store = open_store()
    try:
        found = await store.names(given) or await store.names(f"sess_{given}")
        if given not in found and len(found) != 1:
            what = f"{len(found):,} sessions begin with" if found else "there is no session"
            raise Wrong(f"{what} {given!r}; `dragoman sessions list` shows what there is")
        meta = await store.look(found[0])
        return meta.id, meta.cwd
    except StoreFailed as failure:
        raise Wrong(f"session {given}: {failure}") from None
    finally:
        await store.close()


async def reopen(client: "Client", session_id: str, folder: str, *, replay: bool) -> "Conversation":
    """Go on with a session, told again or not, as far as the agent can."""
    able = client.agent.capabilities
    if not able.resume and not able.load:
        raise Wrong("this agent cannot go on with an earlier session")
    if able.load and (replay or not able.resume):
        return await client.load_session(session_id, folder)
    return await client.resume_session(session_id, folder)


async def choose(conversation: "Conversation", target: Target, arguments: argparse.Namespace) -> None:
    """Set what was asked for on the command line. Our own was told when it started."""
    from dragoman.cli.plain import harmless_line
    from dragoman.errors import RequestFailed, UsageError

    try:
        if arguments.mode is not None and not target.ours:
            await conversation.set_mode(arguments.mode)
        if arguments.model is not None and not target.ours:
            await conversation.set_model(arguments.model)
    except UsageError as error:
        raise Wrong(str(error)) from None
    except RequestFailed as error:
        raise Wrong(f"the agent does not take that mode or model: {harmless_line(str(error))}") from None

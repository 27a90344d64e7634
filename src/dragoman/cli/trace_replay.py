"""`dragoman trace replay`: one side of a recording, played to a live program, up to the first difference."""

import argparse
import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError, print_error, print_notice
from dragoman.cli.trace_diff import DIFFERENT, EQUAL, NOT_RUN, recorded_exchanges

if TYPE_CHECKING:
    from dragoman.trace.exchanges import Exchange
    from dragoman.trace.replay import ReplayOutcome
    from dragoman.transports.contract import Transport


def run(arguments: argparse.Namespace) -> int:
    """Replay, say how it ended, and return the exit code."""
    from dragoman import background
    from dragoman.errors import StartFailed, UsageError
    from dragoman.trace.records import TraceFault

    opened = _opener(arguments)
    try:
        recorded = recorded_exchanges(arguments.file, arguments.connection)
        _check(arguments.file, recorded)
        outcome = background.run(_replay(arguments, recorded, opened))
    except (TraceFault, StartFailed) as fault:
        return print_error(str(fault), NOT_RUN)
    except UsageError as error:
        raise CommandError(str(error)) from None
    _report(arguments, outcome)
    return EQUAL if outcome.is_equal else DIFFERENT


def _check(file: str, recorded: "list[Exchange]") -> None:
    from dragoman.trace.records import TraceFault

    if not recorded:
        raise TraceFault("empty", f"{file}: there is no message in it")
    cut = next((one.frame for one in recorded if one.frame.cut), None)
    if cut is not None:
        raise TraceFault("cut-frame", f"{file}: the message in line {cut.line} was not kept whole", cut.line)
    if any(one.frame.is_redacted for one in recorded):
        print_notice(f"{file}: secrets were taken out of some messages, which are sent without them")


def _opener(arguments: argparse.Namespace) -> "Callable[[], Transport]":
    """Return what opens the live side. Raise `CommandError` where it is not clear what that is."""
    given = [arguments.command_given is not None, arguments.url is not None]
    if arguments.role == "agent":
        if any(given):
            raise CommandError("--as agent speaks on stdin and stdout: let the client start this command")
        return _stdio
    if sum(given) != 1 or arguments.command_given == []:
        raise CommandError("which agent? Write its command behind --, or its URL, such as: -- gemini --acp")
    if arguments.url is None:
        return lambda: _program(arguments.command_given)
    from dragoman.cli.given_address import address_opener

    return address_opener(arguments)


def _stdio() -> "Transport":
    from dragoman.transports.stdio import StdioTransport

    return StdioTransport.of_this_process()


def _program(command: list[str]) -> "Transport":
    from dragoman.transports.child import ChildTransport

    return ChildTransport.spawn(command, env=os.environ)


async def _replay(
    arguments: argparse.Namespace, recorded: "list[Exchange]", opened: "Callable[[], Transport]"
) -> "ReplayOutcome":
    from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction
    from dragoman.trace.replay import Replayer, ReplayOptions

    options = ReplayOptions(
        arguments.timeout, arguments.ignore, arguments.ignore_field, folders_in(arguments, recorded)
    )
    async with _bridged(arguments, opened()) as transport:
        ours: Direction = TO_AGENT if arguments.role == "client" else TO_CLIENT
        return await Replayer(transport, recorded, ours, options).run()


@contextlib.asynccontextmanager
async def _bridged(arguments: argparse.Namespace, live: "Transport") -> "AsyncIterator[Transport]":
    """Yield a transport to the live side; with `--protocol` a bridge speaks to it in that version."""
    if arguments.protocol is None:
        yield live
        return
    from dragoman.bridge import Bridge, SpokenWire
    from dragoman.transports.memory import memory_pair

    ours, theirs = memory_pair(64 * 1024)
    wire = SpokenWire((arguments.protocol,))
    if arguments.role == "client":
        bridge = Bridge(theirs, live, agent_wire=wire)
    else:
        bridge = Bridge(live, theirs, editor_wire=wire)
    running = asyncio.ensure_future(bridge.run())
    try:
        yield ours
    finally:
        await running


def folders_in(arguments: argparse.Namespace, recorded: "list[Exchange]") -> dict[str, str]:
    """Return the folder that `--cwd` puts in the place of the recorded ones."""
    if arguments.cwd is None:
        return {}
    if not os.path.isdir(arguments.cwd):
        raise CommandError(f"{arguments.cwd}: there is no such folder")
    here = os.path.abspath(arguments.cwd)
    folders = [one.params.get("cwd") for one in recorded if one.method.startswith("session/")]
    return {folder: here for folder in folders if isinstance(folder, str) and folder.startswith("/")}


def _report(arguments: argparse.Namespace, outcome: "ReplayOutcome") -> None:
    # To stderr where stdout carries the protocol.
    told = print_notice if arguments.role == "agent" else print
    difference = outcome.difference
    if arguments.json and arguments.role == "client":
        found = {"equal": outcome.is_equal, "messages": outcome.messages, "reason": outcome.reason}
        print(json.dumps({**found, "difference": None if difference is None else difference.as_json()}))
        return
    if outcome.is_equal:
        told(f"equal: {outcome.messages} messages came as they were recorded")
        return
    told(f"different after {outcome.messages} messages{outcome.reason and ': '}{outcome.reason}")
    lines = [] if difference is None else str(difference).splitlines()
    for line in lines:
        named = line.replace("only A line", "missing: line", 1).replace("A line", "recorded, line", 1)
        told(named.replace("B line 0:", "now:", 1))

"""`dragoman check client`: the client is started with our agent for each scenario, or a person drives it."""

import argparse
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dragoman.cli.check_agent import identities_of, variables
from dragoman.cli.errors import CommandError
from dragoman.host.text import harmless_line

if TYPE_CHECKING:
    from dragoman.conformance.clients.subject import ClientSubject
    from dragoman.conformance.run import CheckPlan, CheckReport, RowResult

# A person needs longer than a program for what they are told.
_MANUAL_SECONDS: Final = 300.0
_WORDS: Final = ("{agent}", "{argv}", "{url}")


async def judge_client(
    arguments: argparse.Namespace, plan: "CheckPlan", on_result: "Callable[[RowResult, int], None]"
) -> "CheckReport":
    """Return the report on the client. Raise `CommandError` for options that mean nothing."""
    from dragoman.conformance.clients.run import check_client
    from dragoman.conformance.connection import CheckLimits

    subject = _subject(arguments)
    turn = _MANUAL_SECONDS if arguments.manual else max(20.0, arguments.timeout)
    limits = CheckLimits(answer=arguments.timeout, turn=turn)
    if arguments.manual:
        plan = plan._replace(jobs=1)
    hellos = {one.version: one.params for one in identities_of(arguments, "agent")}
    return await check_client(subject, plan, limits, on_result, hellos)


def _subject(arguments: argparse.Namespace) -> "ClientSubject":
    from dragoman.conformance.clients.subject import CommandClient, ManualClient

    if arguments.url is not None:
        raise CommandError("a client has no address; its command stands behind --, or use --manual")
    if arguments.manual:
        if arguments.command_given:
            raise CommandError("--manual or -- CMD, not both")
        return ManualClient(lambda line: print(harmless_line(line), file=sys.stderr, flush=True), _MANUAL_SECONDS)
    command = arguments.command_given
    if not command:
        raise CommandError("which client? Write its command: dragoman check client -- my-client --agent {agent}")
    if not any(word in part for part in command for word in _WORDS):
        raise CommandError(f"the command has none of {', '.join(_WORDS)}: where does the client get its agent from?")
    number = _signal(arguments.interrupt)
    return CommandClient(command, variables(arguments.env), stop_signal=number, stdin=arguments.stdin)


def _signal(name: str) -> int | None:
    if name.lower() == "none":
        return None
    try:
        return signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"]
    except KeyError:
        raise CommandError(f"--interrupt {name}: there is no such signal; write INT, TERM or none") from None

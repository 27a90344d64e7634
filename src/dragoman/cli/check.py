"""`dragoman check`: judge an agent, a client, a server or a recording by the rows of the protocol."""

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final

from dragoman.cli.check_progress import RowCounter
from dragoman.cli.check_reports import add_report_options, print_json_schema, write_reports
from dragoman.cli.common_options import (
    Commands,
    add_command,
    add_trust,
    keep_command,
    take_words_behind_options,
)
from dragoman.cli.errors import NOT_DONE, CommandError

if TYPE_CHECKING:
    from dragoman.conformance.identities import IdentityRole
    from dragoman.conformance.rows import Requirement, Role
    from dragoman.conformance.run import CheckPlan, CheckReport, RowResult

    Judge = Callable[
        [argparse.Namespace, CheckPlan, Callable[[RowResult, int], None]], Coroutine[object, object, CheckReport]
    ]

COULD_NOT_TEST: Final = 3
_USAGE: Final = """\
dragoman check agent [options] (-- CMD … | URL)
       dragoman check client [options] (-- CMD … {agent} | --manual)
       dragoman check server URL [options]
       dragoman check trace FILE [options]"""
_DESCRIPTION = """\
Judge an agent, a client or a server by what the protocol asks of it.

  dragoman check agent -- my-agent --acp
  dragoman check agent https://agents.example.org/acp
  dragoman check client -- my-client --prompt hello --agent {agent}
  dragoman check server https://agents.example.org/acp
  dragoman check trace FILE

An agent is started for each row, in an empty folder, and is talked to in raw
frames; it may use its model. Every permission it asks for is rejected, except
in rows about an approval. A client is started for each scenario; {agent} is
the command of our agent as one quoted word, {argv} as separate words, {url} an
address. A trace is what `dragoman trace record` has written.
"""
_EPILOG = """\
exit codes: 0 conforms; 1 a row that must hold failed, or could not be judged;
2 wrong usage; 3 nothing could be tested: it does not start, or wants a login.
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    help = "judge an agent, a client or a server by the protocol"
    parser = add_command(commands, "check", help, _DESCRIPTION, epilog=_EPILOG, usage=_USAGE)
    parser.add_argument("role", nargs="?", choices=("agent", "client", "server", "trace"), help="what is judged")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="URL",
        help="address of what is judged, or file of a trace",
    )
    _add_choice(parser)
    _add_prompts(parser)
    _add_subject(parser)
    _add_client(parser)
    add_report_options(parser)
    take_words_behind_options(parser, "words")
    keep_command(parser)
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> None:
    rows = parser.add_argument_group("which rows, and what counts")
    rows.add_argument("--only", metavar="ID", action="append", default=[], help="only these rows: ID,ID,…; repeatable")
    rows.add_argument("--strict", action="store_true", help="rows that should hold count as rows that must")
    rows.add_argument("--revision", metavar="R", help="what counts is the set of rows of this revision of the schema")
    rows.add_argument(
        "--expected-failures", metavar="FILE", help="rows that are known to fail, one in a line; one that holds fails"
    )
    rows.add_argument("--fail-fast", action="store_true", help="stop at the first row that must hold and does not")
    rows.add_argument("--jobs", metavar="N", type=_count, default=4, help="rows at the same time (default 4)")
    rows.add_argument("--seed", metavar="N", type=int, help="judge the rows in another order, by this number")
    rows.add_argument("--list", action="store_true", help="list the rows, and check nothing")
    rows.add_argument("--explain", metavar="ID", help="explain a row with a correct exchange, and check nothing")


def _add_prompts(parser: argparse.ArgumentParser) -> None:
    prompts = parser.add_argument_group("what an agent is asked")
    prompts.add_argument("--prompt", metavar="TEXT", help="a prompt for a short turn")
    prompts.add_argument("--slow-prompt", metavar="TEXT", help="a prompt for a turn of many seconds, to be cancelled")
    prompts.add_argument("--permission-prompt", metavar="TEXT", help="a prompt for which the agent asks for permission")
    prompts.add_argument("-C", "--cwd", metavar="DIR", help="folder of the sessions; without it an empty one is made")


def _add_subject(parser: argparse.ArgumentParser) -> None:
    subject = parser.add_argument_group("the agent, client or server")
    subject.add_argument("--env", metavar="NAME[=VALUE]", action="append", default=[], help="a variable for it")
    subject.add_argument(
        "--model-server", action="store_true", help="give the agent a model on loopback, so that it needs no key"
    )
    subject.add_argument("--login", metavar="METHOD", help="log in with this method before sessions are opened")
    subject.add_argument("--token-file", metavar="F", help="token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(parser)
    subject.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=10.0, help="for one answer (default 10)"
    )


def _add_client(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as", metavar="NAME", help="pass for this editor, or for this agent where a client is checked"
    )
    client = parser.add_argument_group("a client")
    client.add_argument("--manual", action="store_true", help="a person drives the client, and is told what to click")
    client.add_argument(
        "--interrupt", metavar="SIGNAL", default="INT", help="the signal that stops its turn (default INT), or none"
    )
    client.add_argument("--stdin", metavar="TEXT", default="", help="what is typed into it")


def run(arguments: argparse.Namespace) -> int:
    """Judge, report, and return the exit code."""
    if len(arguments.words) > 1:
        raise CommandError(f"what is {arguments.words[1]!r}? A command stands behind --, an address is one word")
    arguments.url = arguments.words[0] if arguments.words else None
    if arguments.json_schema:
        return print_json_schema()
    if arguments.explain is not None:
        return _explain(arguments.explain)
    if arguments.list:
        return _list(arguments)
    if arguments.role == "trace":
        from dragoman.cli.check_trace import judge_file

        return _concluded(arguments, judge_file(arguments))
    judge = _judge_of(arguments.role)
    if arguments.trace is not None:
        raise CommandError("check writes no --trace; --html FILE has the frames of each row")
    rows = chosen_rows(arguments.role, arguments.only)
    versions = [] if arguments.protocol is None else [arguments.protocol]
    with RowCounter() as counter:
        plan = _plan(arguments, rows, versions or _versions_of(arguments))
        report = asyncio.run(judge(arguments, plan, counter.on_result))
    return _concluded(arguments, report)


def _versions_of(arguments: argparse.Namespace) -> list[int]:
    """Return the versions that the editor or agent speaks that `check` passes for; none: all."""
    from dragoman.conformance.identities import find_identities

    name = getattr(arguments, "as")
    if name is None or arguments.role == "server":
        return []
    role: IdentityRole = "agent" if arguments.role == "client" else "client"
    return [one.version for one in find_identities(name, role)]


def _judge_of(role: str | None) -> "Judge":
    """Return what judges a role. Raise `CommandError` without one."""
    match role:
        case "agent":
            from dragoman.cli.check_agent import judge_agent

            return judge_agent
        case "client":
            from dragoman.cli.check_client import judge_client

            return judge_client
        case "server":
            from dragoman.cli.check_server import judge_server

            return judge_server
    raise CommandError("what is to be checked? Write: dragoman check agent -- CMD, or: dragoman check agent URL")


def _plan(arguments: argparse.Namespace, rows: "list[Requirement]", versions: list[int]) -> "CheckPlan":
    from dragoman.conformance.run import CheckPlan

    return CheckPlan(rows, versions, arguments.jobs, arguments.fail_fast, arguments.seed)


def _concluded(arguments: argparse.Namespace, report: "CheckReport") -> int:
    """Say what counts, write the reports, and return the exit code."""
    if arguments.role != "trace":
        report = _scored(arguments, report)
    write_reports(arguments, report)
    if not report.could_test():
        return COULD_NOT_TEST
    return 0 if report.conforms(strict=arguments.strict) else NOT_DONE


def _scored(arguments: argparse.Namespace, report: "CheckReport") -> "CheckReport":
    from dragoman.conformance.scoring import BaselineInvalid, frozen_set, parse_baseline, revisions, scored

    known = revisions()
    revision = arguments.revision or known[-1]
    if revision not in known:
        raise CommandError(f"there are no rows of revision {revision}; there are those of {', '.join(known)}")
    baseline: tuple[object, ...] = ()
    path = arguments.expected_failures
    try:
        if path is not None:
            with open(path, encoding="utf-8") as file:
                baseline = parse_baseline(file.read())
    except (OSError, UnicodeDecodeError, BaselineInvalid) as error:
        raise CommandError(f"{path}: {error}") from None
    return scored(report, frozen_set(revision), baseline)  # type: ignore[arg-type]


def chosen_rows(role: "Role", only: Sequence[str]) -> "list[Requirement]":
    """Return the rows of `--only`, or all. Raise `CommandError` for an id that no row of the role has."""
    from dragoman.conformance.rows import load_rows

    rows = load_rows(role)
    wanted = wanted_ids(only)
    known = {row.id for row in rows}
    for id in wanted:
        if id not in known:
            raise CommandError(f"there is no row {id} of a {role}; dragoman check {role} --list shows all of them")
    return [row for row in rows if not wanted or row.id in wanted]


def wanted_ids(only: Sequence[str]) -> list[str]:
    """Return the ids of `--only`, which may be repeated and has commas."""
    return [id.strip() for part in only for id in part.split(",") if id.strip()]


def _list(arguments: argparse.Namespace) -> int:
    from dragoman.cli.check_trace import chosen_trace_rows
    from dragoman.conformance.report import row_lines
    from dragoman.conformance.rows import ROLES, load_rows

    if arguments.role == "trace":
        rows = chosen_trace_rows(arguments.only)
    elif arguments.role is not None:
        rows = chosen_rows(arguments.role, arguments.only)
    else:
        wanted = set(wanted_ids(arguments.only))
        everything = [row for role in ROLES for row in load_rows(role)]
        if unknown := sorted(wanted - {row.id for row in everything}):
            raise CommandError(f"there is no row {unknown[0]}; dragoman check --list shows all of them")
        rows = [row for row in everything if not wanted or row.id in wanted]
    for line in row_lines(rows):
        print(line)
    return 0


def _explain(id: str) -> int:
    from dragoman.conformance.explanation import correct_exchange
    from dragoman.conformance.report import explanation_lines
    from dragoman.conformance.rows import ROLES, load_rows

    rows = [row for role in ROLES for row in load_rows(role) if row.id == id]
    if not rows:
        raise CommandError(f"there is no row {id}; dragoman check --list shows all of them")
    for row in rows:
        exchange = asyncio.run(correct_exchange(row))
        for line in explanation_lines(row, exchange):
            print(line)
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0, at most 3600")
    return seconds


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 64")
    return int(text)

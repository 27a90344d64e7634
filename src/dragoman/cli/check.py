"""`dragoman check`: judge an agent by the rows of the protocol, and report what it breaks."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dragoman.cli.check_reports import add_report_options, print_json_schema, write_reports
from dragoman.cli.common_options import Commands, add_command, add_trust, keep_command
from dragoman.cli.errors import NOT_DONE, CommandError, print_notice, warn_about_plain_http

if TYPE_CHECKING:
    from dragoman.conformance.rows import Requirement
    from dragoman.conformance.run import CheckReport, RowResult
    from dragoman.conformance.subject import Subject

COULD_NOT_TEST: Final = 3
_DESCRIPTION = """\
Judge an agent by what the protocol asks of it. The agent is started for each
row, in an empty folder, and is talked to in raw frames; it may use its model.
Every permission it asks for is rejected, except in rows about an approval.

  dragoman check agent -- my-agent --acp
  dragoman check agent https://agents.example.org/acp
  dragoman check trace FILE

The last one judges what `dragoman trace record` has written.
"""
_EPILOG = """\
exit codes: 0 conforms; 1 a row that must hold failed, or could not be judged;
2 wrong usage; 3 nothing could be tested: it does not start, or wants a login.
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    usage = "dragoman check agent [options] (-- CMD … | URL)\n       dragoman check trace FILE [options]"
    parser = add_command(commands, "check", "judge an agent by the protocol", _DESCRIPTION, epilog=_EPILOG, usage=usage)
    parser.add_argument("role", nargs="?", choices=("agent", "trace"), help="what is judged")
    parser.add_argument(
        "url", nargs="?", metavar="URL", help="address of the agent, if it is not started; or the file of a trace"
    )
    parser.add_argument(
        "--only", metavar="ID", action="append", default=[], help="only these rows: ID,ID,…; repeatable"
    )
    parser.add_argument("--strict", action="store_true", help="rows that should hold count as rows that must")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first row that must hold and does not")
    parser.add_argument("--list", action="store_true", help="list the rows, and check nothing")
    parser.add_argument("--explain", metavar="ID", help="explain a row with a correct exchange, and check nothing")
    prompts = parser.add_argument_group("what the agent is asked")
    prompts.add_argument("--prompt", metavar="TEXT", help="a prompt for a short turn")
    prompts.add_argument("--slow-prompt", metavar="TEXT", help="a prompt for a turn of many seconds, to be cancelled")
    prompts.add_argument("--permission-prompt", metavar="TEXT", help="a prompt for which the agent asks for permission")
    prompts.add_argument("-C", "--cwd", metavar="DIR", help="folder of the sessions; without it an empty one is made")
    agent = parser.add_argument_group("the agent")
    agent.add_argument("--env", metavar="NAME[=VALUE]", action="append", default=[], help="a variable for the agent")
    agent.add_argument("--login", metavar="METHOD", help="log in with this method before sessions are opened")
    agent.add_argument("--token-file", metavar="F", help="token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(parser)
    agent.add_argument("--timeout", metavar="SECONDS", type=_seconds, default=10.0, help="for one answer (default 10)")
    agent.add_argument("--jobs", metavar="N", type=_count, default=4, help="rows at the same time (default 4)")
    add_report_options(parser)
    keep_command(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Judge, report, and return the exit code."""
    from dragoman.conformance.report import row_lines

    if arguments.json_schema:
        return print_json_schema()
    if arguments.explain is not None:
        return _explain(arguments.explain)
    if arguments.role == "trace":
        return _run_trace(arguments)
    rows = _chosen_rows(arguments.only)
    if arguments.list:
        for line in row_lines(rows):
            print(line)
        return 0
    if arguments.role is None:
        raise CommandError("what is to be checked? Write: dragoman check agent -- CMD, or: dragoman check agent URL")
    _check_target(arguments)
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as folder:
        report = asyncio.run(_judge(arguments, rows, folder))
    return _concluded(arguments, report)


def _run_trace(arguments: argparse.Namespace) -> int:
    from dragoman.cli.check_trace import chosen_trace_rows, judge_file
    from dragoman.conformance.report import row_lines

    if arguments.list:
        for line in row_lines(chosen_trace_rows(arguments.only)):
            print(line)
        return 0
    return _concluded(arguments, judge_file(arguments))


def _concluded(arguments: argparse.Namespace, report: "CheckReport") -> int:
    """Write the reports, and return the exit code."""
    write_reports(arguments, report)
    if not report.could_test():
        return COULD_NOT_TEST
    return 0 if report.conforms(strict=arguments.strict) else NOT_DONE


def _check_target(arguments: argparse.Namespace) -> None:
    if arguments.command_given is not None and arguments.url is not None:
        raise CommandError("a URL or -- CMD, not both")
    if arguments.command_given is None and arguments.url is None:
        raise CommandError("which agent? Write its command after --, such as: dragoman check agent -- gemini --acp")
    if arguments.command_given == []:
        raise CommandError("which command? Write it after the --, such as: -- gemini --acp")
    if arguments.trace is not None:
        raise CommandError("check writes no --trace; --html FILE has the frames of each row")
    if arguments.url is not None and "://" not in arguments.url:
        raise CommandError(f"{arguments.url!r} is no address; the command of an agent stands behind --")
    if arguments.cwd is not None and not os.path.isdir(arguments.cwd):
        raise CommandError(f"{arguments.cwd}: there is no such folder")


def _chosen_rows(only: Sequence[str]) -> "list[Requirement]":
    """Return the rows of `--only`, or all. Raise `CommandError` for an id that no row has."""
    from dragoman.conformance.rows import load_rows

    rows = load_rows("agent")
    wanted = [id.strip() for part in only for id in part.split(",") if id.strip()]
    known = {row.id for row in rows}
    for id in wanted:
        if id not in known:
            raise CommandError(f"there is no row {id}; dragoman check --list shows all of them")
    return [row for row in rows if not wanted or row.id in wanted]


def _explain(id: str) -> int:
    from dragoman.conformance.explanation import correct_exchange
    from dragoman.conformance.report import explanation_lines

    for row in _chosen_rows([id]):
        exchange = asyncio.run(correct_exchange(row))
        for line in explanation_lines(row, exchange):
            print(line)
    return 0


async def _judge(arguments: argparse.Namespace, rows: "list[Requirement]", folder: str) -> "CheckReport":
    from dragoman.conformance.connection import CheckLimits
    from dragoman.conformance.run import CheckPlan, check
    from dragoman.conformance.trial import DEFAULT_PROMPT, CheckSettings

    cwd = os.path.realpath(arguments.cwd or folder)
    settings = CheckSettings(
        cwd,
        CheckLimits(answer=arguments.timeout, turn=max(60.0, arguments.timeout)),
        arguments.prompt or DEFAULT_PROMPT,
        arguments.slow_prompt or "",
        arguments.permission_prompt or "",
        arguments.login or "",
    )
    versions = [] if arguments.protocol is None else [arguments.protocol]
    plan = CheckPlan(rows, versions, arguments.jobs, arguments.fail_fast)
    with _Counter() as counter:
        return await check(_subject(arguments), plan, settings, counter.on_result)


def _subject(arguments: argparse.Namespace) -> "Subject":
    from dragoman.conformance.subject import AddressSubject, StartedSubject
    from dragoman.errors import UsageError

    if arguments.url is None:
        # Where the user is: the command may name files from there. Sessions have the folder of `--cwd`.
        return StartedSubject(arguments.command_given, os.getcwd(), _variables(arguments.env))
    from dragoman.transports.remote import transport_for
    from dragoman.transports.token import read_token

    try:
        path = arguments.token_file
        token = os.environ.get("DRAGOMAN_TOKEN") if path is None else read_token(os.path.expanduser(path))
        ca_file = os.path.expanduser(arguments.ca_file or "")
        transport_for(arguments.url, token, ca_file=ca_file)  # what is wrong with it is said before anything is sent
    except UsageError as error:
        raise CommandError(str(error)) from None
    if token:
        warn_about_plain_http(arguments.url, insecure=arguments.insecure)
    return AddressSubject(arguments.url, lambda: transport_for(arguments.url, token, ca_file=ca_file))


def _variables(given: Sequence[str]) -> dict[str, str]:
    """Return the variables of `--env`; one without a value has that of ours."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals and name not in os.environ:
            raise CommandError(f"--env {name}: there is no such variable; write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


class _Counter:
    """One line on a terminal that counts the rows; what fails is shown above it at once."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._done = 0
        self._failed = 0

    def __enter__(self) -> "_Counter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def on_result(self, result: "RowResult", total: int) -> None:
        from dragoman.conformance.verdicts import Verdict

        self._done += 1
        is_failure = result.verdict is Verdict.FAIL
        self._failed += is_failure
        if not self._is_shown:
            return
        print("\r\x1b[K", end="", file=sys.stderr)
        if is_failure:
            print_notice(f"failed: {result.row.id} in version {result.version}")
        text = f"{self._done} of {total} rows, {self._failed} failed"
        print(text, end="", file=sys.stderr, flush=True)


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

"""`dragoman store migrate`: copy the sessions of this user to a database, or back."""

import argparse
import json
import sys

from dragoman.cli.common_options import Commands, add_action, add_command, database_url
from dragoman.cli.errors import NOT_DONE, CommandError, print_error

_DESCRIPTION = """\
Where sessions are stored: in files of this user (sqlite), or in a PostgreSQL
database that several machines use.
"""
_EPILOG = """\
  dragoman store migrate --from sqlite --to postgresql://db.example.org/dragoman

A password is better in ~/.pgpass or PGPASSWORD than on the command line.
"""
_OWN = "sqlite"


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "store", "copy sessions to a database, or back", _DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    migrate = add_action(
        actions,
        "migrate",
        "copy every session that the target lacks; can be interrupted and begun again",
        as_json="how many were copied, and which were not, as a JSON object",
    )
    for option, help in (("--from", "where the sessions are"), ("--to", "where they shall be as well")):
        migrate.add_argument(
            option,
            dest=option.strip("-") + "_store",
            metavar="STORE",
            type=_place,
            required=True,
            help=f"{help}: {_OWN}, or postgresql://…",
        )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman import background
    from dragoman.store.contract import StoreFailed

    if arguments.from_store == arguments.to_store:
        raise CommandError("--from and --to are the same store")
    try:
        return background.run(_migrate(arguments))
    except StoreFailed as error:
        return print_error(str(error), NOT_DONE)


async def _migrate(arguments: argparse.Namespace) -> int:
    from dragoman.cli.home import open_database, open_store
    from dragoman.cli.progress import Progress
    from dragoman.cli.text_width import harmless_line
    from dragoman.store.migration import migrate

    source, target = (
        open_store() if place == _OWN else open_database(place) for place in (arguments.from_store, arguments.to_store)
    )
    try:
        async with Progress() as progress:
            report = await migrate(source, target, lambda done, total: progress.at("Copying sessions", done, total))
    finally:
        await source.close()
        await target.close()
    if arguments.json:
        print(json.dumps(report._asdict()))
    else:
        print(f"copied {report.copied:,}, already there {report.present:,}, not copied {len(report.failed):,}")
        for session_id, reason in report.failed.items():
            print(f"{session_id}: {harmless_line(reason)}", file=sys.stderr)
    return NOT_DONE if report.failed else 0


def _place(text: str) -> str:
    return text if text == _OWN else database_url(text)

"""`dragoman trust`: let a project's own configuration start programs, exactly as it is now."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DESCRIPTION = """\
A project can bring a configuration (acp.json, .mcp.json) that starts programs.
Nothing of it is used until you trust it. Trust is for what it says now: when a
file changes, or a new one comes, you are asked again. What it would start is
shown; at a terminal you are asked first.
"""
NOT_DONE = 1


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "trust",
        help="let a project's configuration start programs",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the project; this folder if left out")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--revoke", action="store_true", help="trust it no more")
    parser.add_argument("--list", action="store_true", help="show the folders that were trusted")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from dragoman.cli.home import home
    from dragoman.cli.plain import harmless_line
    from dragoman.host import trust

    registry = home() / "trust.json"
    folder = Path(arguments.folder)
    try:
        if arguments.list:
            for known in trust.trusted_folders(registry):
                still = "" if trust.is_trusted(registry, Path(known)) else "  (has changed, not trusted now)"
                print(harmless_line(known) + still)
            return 0
        if not folder.is_dir():
            return complain(f"{arguments.folder}: no such folder")
        if arguments.revoke:
            if not trust.revoke(registry, folder):
                return complain(f"{folder.resolve()} was not trusted", NOT_DONE)
            print(f"{harmless_line(str(folder.resolve()))} is trusted no more.")
            return 0
        return _trust(registry, folder, ask=not arguments.yes and sys.stdin.isatty() and sys.stderr.isatty())
    except trust.TrustFailed as error:
        return complain(str(error), NOT_DONE)


def _trust(registry: Path, folder: Path, *, ask: bool) -> int:
    """Show what the folder says, and trust exactly that."""
    from dragoman.cli.plain import harmless_line
    from dragoman.host import trust

    files = trust.covered(folder)
    shown = harmless_line(str(folder.resolve()))
    if not files:
        print(f"{shown} has no configuration to trust: there is neither {' nor '.join(trust.COVERED[:2])}.")
        return 0
    print(f"{shown} may start, when it is trusted:", file=sys.stderr)
    for line in _programs(folder, files):
        print(f"  {harmless_line(line)}", file=sys.stderr)
    if ask:
        print("Trust this? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if answer.strip().lower() not in ("y", "yes"):
            return complain("nothing was changed", NOT_DONE)
    print(f"{shown} is trusted: {', '.join(trust.trust(registry, folder, files))}")
    return 0


def _programs(folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """What each file would start or reach, a line each."""
    for name, data in files.items():
        found = list(_agents(folder / name, data) if name.endswith("acp.json") else _servers(name, data))
        yield from found or [f"{name}: nothing"]


def _agents(file: Path, data: bytes) -> Iterator[str]:
    import shlex

    from dragoman.client.fleet_file import FleetFileWrong, Found, read_file

    try:
        entries = read_file(Found(file, data)).entries
    except FleetFileWrong as error:
        yield f"nothing of {error}"
        return
    for name, entry in entries.items():
        yield f"agent {name}: {entry.url or shlex.join(entry.command_line())}"


def _servers(name: str, data: bytes) -> Iterator[str]:
    import shlex

    from dragoman.cli.project_servers import tables_of
    from dragoman.coder.mcp.config import shown_url
    from dragoman.errors import UsageError

    try:
        tables = tables_of(data)
    except UsageError as error:
        yield f"nothing of {error}"
        return
    for server, table in tables.items():
        given = table if isinstance(table, dict) else {}
        words = [given.get("command"), *(args if isinstance(args := given.get("args", []), list) else [])]
        what = shown_url(str(given["url"])) if "url" in given else shlex.join(str(word) for word in words)
        yield f"MCP server {server}: {what}"

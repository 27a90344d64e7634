"""`dragoman trust`: let a project's own configuration start programs, exactly as it is now."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DESCRIPTION = """\
A project can bring a configuration (acp.json, .mcp.json) that starts programs.
Nothing of it is used until you trust it. Trust is for what it says now: when a
file changes, or a new one comes, you are asked again.
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
        names = trust.trust(registry, folder)
    except trust.TrustFailed as error:
        return complain(str(error), NOT_DONE)
    covers = ", ".join(names) if names else "it has no configuration yet; you will be asked again when it has"
    print(f"{harmless_line(str(folder.resolve()))} is trusted: {covers}")
    return 0

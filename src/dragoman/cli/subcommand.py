"""The parser of one action of a command (`dragoman tokens create`), with the options that every command has."""

import argparse
from typing import TYPE_CHECKING

from dragoman.version import VERSION

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_action(
    actions: "_SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    *,
    as_json: str = "",
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Declare an action. `as_json` says what `--json` prints; without it there is no such option."""
    description = f"{summary[0].upper()}{summary[1:]}."
    parser = actions.add_parser(name, help=summary, description=description, usage=usage, allow_abbrev=False)
    if as_json:
        parser.add_argument("--json", action="store_true", help=as_json)
    # The help of the command has these.
    parser.add_argument("--protocol", type=int, choices=(1, 2), default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--trace", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"dragoman {VERSION}", help=argparse.SUPPRESS)
    return parser

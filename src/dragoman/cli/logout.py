"""`dragoman logout`: forget the keys that `dragoman login` has kept."""

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.errors import NOT_DONE, print_error

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "logout",
        help="forget the kept keys",
        description="Delete the keys that `dragoman login` has stored. Keys in the environment stay.",
        allow_abbrev=False,
    )
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="only the key of this provider")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Forget them."""
    from dragoman.cli.home import own_file
    from dragoman.coder import credentials

    file = own_file("credentials.toml")
    try:
        providers = [arguments.provider] if arguments.provider else list(credentials.load(file).keys)
        removed = [provider for provider in providers if credentials.forget(file, provider)]
    except credentials.CredentialsError as error:
        return print_error(str(error), NOT_DONE)
    if not removed:
        of = f" of {arguments.provider}" if arguments.provider else ""
        return print_error(f"no key{of} is kept here", NOT_DONE)
    print(f"Forgotten: {', '.join(removed)}")
    return 0

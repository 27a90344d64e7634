"""`dragoman logout`: forget the keys that `dragoman login` has kept."""

import argparse

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import NOT_DONE, print_error


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "logout",
        "forget the kept keys",
        "Delete the keys that `dragoman login` has stored. Keys in the environment stay.",
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

"""`dragoman serve --new-token` and `--revoke-token`: for one more release; `dragoman tokens` has taken their place."""

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError, print_error
from dragoman.cli.server_output import print_line

if TYPE_CHECKING:
    from dragoman.gateway.token_store import TokenStore


def add_token_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tokens = parser.add_argument_group("tokens, for one more release; now: dragoman tokens")
    tokens.add_argument("--new-token", metavar="NAME", help="as: dragoman tokens create NAME")
    tokens.add_argument("--scopes", default="read,prompt", help="of the new token: read, prompt, admin")
    tokens.add_argument(
        "--principal", default="", help="the principal it belongs to; the name of the token, if not given"
    )
    tokens.add_argument("--revoke-token", metavar="NAME", help="as: dragoman tokens revoke NAME")


def wants_change(arguments: argparse.Namespace) -> bool:
    """Return whether the command line asks for a change of the tokens, and not for a server."""
    return arguments.new_token is not None or arguments.revoke_token is not None


def change_tokens(arguments: argparse.Namespace, tokens: "TokenStore") -> int:
    """Make or revoke a token; return the exit code."""
    from dragoman.cli.token_fields import server_limits
    from dragoman.gateway.token_types import scopes_of

    now = "revoke" if arguments.revoke_token is not None else "create"
    print_line(f"this option goes with the next release; use: dragoman tokens {now} NAME")
    if arguments.revoke_token is not None:
        if not tokens.revoke(arguments.revoke_token):
            return print_error(f"there is no token {arguments.revoke_token!r}", 1)
        return 0
    try:
        scopes = scopes_of(arguments.scopes)
    except ValueError as error:
        raise CommandError(f"--scopes: {error}") from None
    limits = server_limits(arguments)
    print(tokens.make(arguments.new_token, scopes, arguments.principal, limits=limits))
    return 0

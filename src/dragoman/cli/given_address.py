"""An agent at an address, as commands are given it: a URL, `--token-file`, `--ca-file`, `--insecure`."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError, print_notice, warn_about_plain_http

if TYPE_CHECKING:
    from dragoman.transports.contract import Transport
    from dragoman.transports.token import TokenFile


def address_opener(arguments: argparse.Namespace) -> "Callable[[], Transport]":
    """Return a function that opens a transport to `arguments.url`.

    The token is that of `--token-file` or `DRAGOMAN_TOKEN`. Raise `CommandError` for what is wrong with any of them.
    """
    from dragoman.errors import UsageError
    from dragoman.transports.remote import remote_opener

    token = given_token(arguments)
    try:
        opened = remote_opener(arguments.url, token, print_notice, ca_file=os.path.expanduser(arguments.ca_file or ""))
    except UsageError as error:
        raise CommandError(str(error)) from None
    if token is not None:
        warn_about_plain_http(arguments.url, insecure=arguments.insecure)
    return opened


def given_token(arguments: argparse.Namespace) -> "str | TokenFile | None":
    """Return the token of `--token-file`, or that of the environment; None: there is none."""
    from dragoman.transports.token import TokenFile

    path = arguments.token_file
    return TokenFile(Path(path).expanduser()) if path else os.environ.get("DRAGOMAN_TOKEN") or None

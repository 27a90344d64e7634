"""`dragoman check server`: the remote transport of a server behind an address."""

import argparse
import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.cli.check_agent import address_token
from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.conformance.run import CheckPlan, CheckReport, RowResult


async def judge_server(
    arguments: argparse.Namespace, plan: "CheckPlan", on_result: "Callable[[RowResult, int], None]"
) -> "CheckReport":
    """Return the report on the server. Raise `CommandError` for options that mean nothing."""
    from dragoman.conformance.servers.http_door import AddressServer
    from dragoman.conformance.servers.run import check_server
    from dragoman.conformance.servers.trial import ServerSettings

    url = _http_url(arguments)
    token = address_token(arguments, url)
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as folder:
        settings = ServerSettings(
            cwd=os.path.realpath(arguments.cwd or folder),
            login=arguments.login or "",
            answer=arguments.timeout,
            turn=max(60.0, arguments.timeout),
        )
        if arguments.prompt:
            settings = settings._replace(prompt=arguments.prompt)
        server = AddressServer(url, token, os.path.expanduser(arguments.ca_file or ""))
        return await check_server(server, plan, settings, on_result)


def _http_url(arguments: argparse.Namespace) -> str:
    if arguments.command_given is not None:
        raise CommandError("a server is checked by its address; start it, and write: dragoman check server URL")
    if arguments.url is None:
        raise CommandError("which server? Write: dragoman check server http://127.0.0.1:8790/acp")
    url = str(arguments.url)
    for scheme, same in (("ws://", "http://"), ("wss://", "https://")):
        if url.startswith(scheme):
            url = same + url.removeprefix(scheme)
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"{arguments.url!r} is no address; it begins with http:// or https://")
    return url

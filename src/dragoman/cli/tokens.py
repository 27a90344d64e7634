"""`dragoman tokens`: who may use a server; create, list and revoke tokens."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dragoman.cli.common_options import Commands, add_action, add_command, database_url
from dragoman.cli.errors import NOT_DONE, print_error
from dragoman.cli.home import own_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dragoman.cluster.shared_tokens import PostgresTokens
    from dragoman.gateway.token_store import TokenStore
    from dragoman.gateway.token_types import Scope, Token, TokenLimits

_T = TypeVar("_T")

_DESCRIPTION = """\
The tokens with which clients connect to `dragoman serve`. A running server
applies a change within a second.
"""
_EPILOG = """\
`dragoman tokens ACTION --help` explains an action.

  dragoman tokens create laptop --scopes read,prompt,admin
  dragoman tokens create bob --max-mode safe --workspace /srv/bob --expires 30d
  dragoman tokens list
  dragoman tokens revoke bob

Nodes that share a database have their tokens there:

  dragoman tokens create laptop --store postgresql://db.example.org/dragoman
"""
_CREATE_EPILOG = """\
Scopes are read (watch), prompt (work) and admin (log in and out, metrics, and
sessions that were made here without a gateway). Tokens of one --principal
share their sessions.

A token without admin works in confined modes only (read-only, plan, safe,
sandbox, workspace-write; where this machine can confine nothing, read-only and
plan), may not leave the confinement, and may not bring MCP servers that are
programs. --allow-unconfined and --allow-mcp-programs lift that for a token:
with either, its holder can run commands as the user the server runs as.

Modes by reach: read-only and plan, safe, sandbox, workspace-write, ask,
full-access. --max-mode allows that one and all before it.
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands, "tokens", "create, list and revoke the tokens of a server", _DESCRIPTION, epilog=_EPILOG
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    create = _action(actions, "create", "make a token and print it once", "one JSON object, with the token in it")
    create.epilog = _CREATE_EPILOG
    create.formatter_class = argparse.RawDescriptionHelpFormatter
    create.add_argument("new_name", metavar="NAME", help="what it is called; 1 to 64 printable characters")
    create.add_argument(
        "--scopes", metavar="S", default="read,prompt", help="of read, prompt, admin; read,prompt if not given"
    )
    create.add_argument(
        "--principal", metavar="P", default="", help="the principal it belongs to; the name of the token, if not given"
    )
    create.add_argument("--max-mode", metavar="MODE", help="no mode that reaches further than this one")
    create.add_argument(
        "--workspace",
        metavar="DIR",
        action="append",
        default=[],
        help="the only folders it may open sessions in; can be given several times",
    )
    create.add_argument("--expires", metavar="T", help="when it ends: 30d, 12h, 2027-01-31; never, if not given")
    create.add_argument(
        "--allow-unconfined", action="store_true", help="without admin too: every mode, and leaving the confinement"
    )
    create.add_argument(
        "--allow-mcp-programs",
        action="store_true",
        help="without admin too: bring MCP servers that are programs, or at private addresses",
    )
    _action(
        actions, "list", "list the tokens by name; the tokens themselves are not stored", "one JSON array of tokens"
    )
    revoke = _action(
        actions, "revoke", "revoke a token, and close the connections that use it", "one JSON object with its name"
    )
    revoke.add_argument("token_name", metavar="NAME", help="what it is called")
    return parser


def _action(actions: Commands, name: str, summary: str, as_json: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, summary, as_json=as_json)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--token-file", metavar="F", help="where the hashes of the tokens are kept")
    where.add_argument(
        "--store", metavar="URL", type=database_url, help="the database of the nodes whose tokens are meant"
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman.errors import DragomanError
    from dragoman.store.contract import StoreFailed

    action = {"create": _create, "list": _list, "revoke": _revoke}[arguments.action]
    try:
        if arguments.store is not None:
            return action(arguments, _ClusterTokens(arguments.store))
        return action(arguments, open_token_store(arguments.token_file))
    except StoreFailed as error:
        return print_error(str(error), NOT_DONE)
    except DragomanError as error:
        return print_error(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return print_error(f"{where}{(error.strerror or str(error)).lower()}", NOT_DONE)


def open_token_store(token_file: str | None) -> "TokenStore":
    """Return the file of tokens that a command line means."""
    from dragoman.gateway.token_store import TokenStore

    return TokenStore(Path(token_file).expanduser() if token_file else own_file("gateway", "tokens.json"))


class _ClusterTokens:
    """The tokens of the nodes on a database; each method asks it and waits."""

    def __init__(self, url: str) -> None:
        self._url = url

    def all(self) -> "Sequence[Token]":
        return self._ask(lambda tokens: tokens.all())

    def make(
        self, name: str, scopes: "Sequence[Scope]", principal: str, *, limits: "TokenLimits", expires: float
    ) -> str:
        return self._ask(lambda tokens: tokens.make(name, scopes, principal, limits=limits, expires=expires))

    def revoke(self, name: str) -> bool:
        return self._ask(lambda tokens: tokens.revoke(name))

    def _ask(self, question: "Callable[[PostgresTokens], Awaitable[_T]]") -> "_T":
        from dragoman import background
        from dragoman.cluster.shared_tokens import PostgresTokens
        from dragoman.store.postgres.database import Database

        async def work() -> _T:
            database = Database(self._url)
            try:
                return await question(PostgresTokens(database))
            finally:
                await database.close()

        return background.run(work())


def _create(arguments: argparse.Namespace, tokens: "TokenStore | _ClusterTokens") -> int:
    from dragoman.cli.token_fields import checked_limits, expiry_of
    from dragoman.gateway.token_types import scopes_of

    try:
        scopes = scopes_of(arguments.scopes)
    except ValueError as error:
        return print_error(f"--scopes: {error}")
    limits = checked_limits(
        arguments.max_mode,
        arguments.workspace,
        allow_unconfined=arguments.allow_unconfined,
        allow_mcp_programs=arguments.allow_mcp_programs,
    )
    expires = expiry_of(arguments.expires, time.time())
    secret = tokens.make(arguments.new_name, scopes, arguments.principal, limits=limits, expires=expires)
    if arguments.json:
        (new_token,) = [token for token in tokens.all() if token.name == arguments.new_name]
        print(json.dumps({**_as_json(new_token), "token": secret}))
    else:
        print(secret)
    if not arguments.workspace and "prompt" in scopes and "admin" not in scopes:
        hint = "without --workspace DIR this token works in every folder that the server's user can write"
        print(f"dragoman: {hint}", file=sys.stderr)
    return 0


def _list(arguments: argparse.Namespace, tokens: "TokenStore | _ClusterTokens") -> int:
    found = tokens.all()
    if arguments.json:
        print(json.dumps([_as_json(token) for token in found], indent=2))
        return 0
    if not found:
        print("There are no tokens; make one with: dragoman tokens create NAME")
        return 0
    rows = [("NAME", "PRINCIPAL", "SCOPES", "MAX MODE", "WORKSPACES", "CREATED", "EXPIRES"), *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _revoke(arguments: argparse.Namespace, tokens: "TokenStore | _ClusterTokens") -> int:
    if not tokens.revoke(arguments.token_name):
        return print_error(f"there is no token {arguments.token_name!r}; see: dragoman tokens list", NOT_DONE)
    if arguments.json:
        print(json.dumps({"revoked": arguments.token_name}))
    return 0


def _row(token: "Token") -> tuple[str, ...]:
    from dragoman.cli.text_width import harmless_line
    from dragoman.cli.token_fields import written_time

    limits = token.limits
    widened = [
        word
        for word, is_set in (("+unconfined", limits.allow_unconfined), ("+mcp", limits.allow_mcp_programs))
        if is_set
    ]
    ended = " (over)" if _is_over(token) else ""
    return tuple(
        harmless_line(cell)
        for cell in (
            token.name,
            token.principal,
            ",".join([*token.scopes, *widened]),
            limits.max_mode or "-",
            ":".join(limits.workspaces) or "-",
            written_time(token.created) or "-",
            (written_time(token.expires) or "-") + ended,
        )
    )


def _as_json(token: "Token") -> dict[str, object]:
    from dragoman.cli.token_fields import written_time

    return {
        "name": token.name,
        "principal": token.principal,
        "scopes": list(token.scopes),
        "maxMode": token.limits.max_mode or None,
        "workspaces": list(token.limits.workspaces),
        "allowUnconfined": token.limits.allow_unconfined,
        "allowMcpPrograms": token.limits.allow_mcp_programs,
        "created": written_time(token.created),
        "expires": written_time(token.expires),
        "expired": _is_over(token),
    }


def _is_over(token: "Token") -> bool:
    return bool(token.expires) and token.expires <= time.time()

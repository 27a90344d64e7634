"""`dragoman auth status`: the providers whose keys we have, and the MCP servers that have a login."""

import argparse
import json
import sys

from dragoman.cli.common_options import Commands, add_action, add_command

_DESCRIPTION = """\
Whose keys and logins are there, and where each comes from; never the keys
themselves. `dragoman login PROVIDER` keeps a key, `dragoman mcp login NAME`
logs in at an MCP server. Exit code 1: there is none for a model.
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "auth", "show which keys and logins there are", _DESCRIPTION)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    add_action(actions, "status", "which keys and logins there are, and where from", as_json="one JSON object")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show them."""
    from dragoman.cli.config import find_keys
    from dragoman.cli.mcp import logins
    from dragoman.cli.settings import read_settings
    from dragoman.cli.text_width import harmless_line, pad

    keys, servers = find_keys(read_settings()), logins(".")
    if arguments.json:
        print(json.dumps({"keys": keys, "mcp": servers}))
        return 0 if keys else 1
    rows = [*keys.items(), *((f"MCP server {name}", state) for name, state in servers.items())]
    width = max((len(name) for name, _ in rows), default=0)
    for name, source in rows:
        print(f"{pad(harmless_line(name), width)}  {harmless_line(source)}")
    if not keys:
        print("No key of a model provider: `dragoman login PROVIDER` keeps one.", file=sys.stderr)
    return 0 if keys else 1

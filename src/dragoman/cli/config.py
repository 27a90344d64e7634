"""`dragoman config show`: every setting, its value, and where that comes from."""

import argparse
import json
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DESCRIPTION = "Every setting, its value, and where that comes from: DRAGOMAN_KEY, config.toml, or ours. No secrets."


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "config", help="show the settings and where they come from", description=_DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("action", choices=("show",), nargs="?", default="show", help="show is all there is")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show them."""
    from dragoman.cli.home import home
    from dragoman.cli.plain import harmless_line as plain
    from dragoman.cli.settings import KEYS, SettingsError, read_settings

    try:
        settings = read_settings()
    except SettingsError as error:
        return complain(str(error))
    if arguments.json:
        shown = {name: {"value": setting.value, "source": setting.source} for name, setting in settings.keys.items()}
        print(
            json.dumps({"home": str(home()), "settings": shown, **{k: sorted(v) for k, v in settings.tables.items()}})
        )
        return 0
    print(f"home               {plain(str(home()))}")
    for name, setting in settings.keys.items():
        value = setting.value if setting.value != "" else "(not set)"
        print(f"{name:18} {plain(str(value)):24} {plain(setting.source):28} {KEYS[name].about}")
    for name, table in settings.tables.items():
        print(f"{name:18} {plain(', '.join(sorted(table)) or '(none)')}")
    return 0

"""`dragoman config show`: every setting, its value, and where that comes from."""

import argparse
import json
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from dragoman.cli.settings import Settings

_NAMES = 18
_COLUMNS = 80
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
    keys, thinks = _keys(settings), _who_thinks()
    if arguments.json:
        shown = {name: {"value": setting.value, "source": setting.source} for name, setting in settings.keys.items()}
        tables = {name: sorted(table) for name, table in settings.tables.items()}
        print(json.dumps({"home": str(home()), "settings": shown, **tables, "keys": keys, "thinks": thinks}))
        return 0
    _print("home", plain(str(home())))
    for name, setting in settings.keys.items():
        value = setting.value if setting.value != "" else "(not set)"
        _print(name, f"{plain(str(value))}  ({plain(setting.source)})", KEYS[name].about)
    for name, table in settings.tables.items():
        _print(name, plain(", ".join(sorted(table)) or "(none)"))
    of = ", ".join(f"{plain(provider)} ({plain(source)})" for provider, source in keys.items())
    _print("keys", of or "(none)  `dragoman login` keeps one")
    _print("thinks", plain(thinks), "the model that a new session begins with")
    return 0


def _print(name: str, value: str, about: str = "") -> None:
    """A setting; what it is for stands below it, as wide as any terminal is."""
    from textwrap import wrap

    print(f"{name:{_NAMES}} {value}")
    for line in wrap(about, _COLUMNS - _NAMES - 1):
        print(f"{'':{_NAMES}} {line}")


def _keys(settings: "Settings") -> dict[str, str]:
    """Whose keys there are, and where each comes from; nothing of the keys themselves."""
    import os

    from dragoman.cli.home import home
    from dragoman.coder.credentials import KEY_VARIABLES, CredentialsError, load

    found = {name: variable for name, variable in KEY_VARIABLES.items() if os.environ.get(variable)}
    for name, table in settings.tables["providers"].items():
        variable = table.get("api_key_env")
        if isinstance(variable, str) and os.environ.get(variable):
            found.setdefault(name, variable)
    try:
        kept = load(home() / "credentials.toml").keys
    except CredentialsError as error:
        return {**found, "credentials.toml": str(error)}
    return {**dict.fromkeys(kept, "credentials.toml"), **found}


def _who_thinks() -> str:
    from dragoman.cli.ours import Wrong, our_setup
    from dragoman.errors import DragomanError

    try:
        return our_setup(None, None).models.current()
    except (Wrong, DragomanError) as error:
        return f"(nobody) {error}"

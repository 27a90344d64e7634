"""`dragoman config`: every setting, its value and where that comes from; and changes of `config.toml`."""

import argparse
import json
import os
from typing import TYPE_CHECKING

from dragoman.cli.common_options import Commands, add_action, add_command
from dragoman.cli.errors import print_error
from dragoman.cli.managed import managed_settings

if TYPE_CHECKING:
    from dragoman.cli.settings import Settings

_NAMES = 18
_COLUMNS = 80
_DESCRIPTION = """\
Every setting, its value, and where that comes from: the administrator's file,
DRAGOMAN_KEY, config.toml, or ours. And the hooks of this folder, and whether
they run. No secrets. Without an action it is `show`.
"""
_EPILOG = """\
  dragoman config get model
  dragoman config set model anthropic/claude-sonnet-5
  dragoman config set spend.day 20
  dragoman config unset spend.day
  dragoman config edit
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "config", "show and change the settings", _DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--json", action="store_true", help="as of `show`")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = add_action(actions, "show", "all settings, and where each comes from")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")
    getting = add_action(actions, "get", "print the value of a setting", as_json="its value and source as JSON")
    setting = add_action(actions, "set", "write a setting into config.toml")
    unset = add_action(actions, "unset", "take a setting out of config.toml")
    for action in (getting, setting, unset):
        action.add_argument("key", metavar="KEY", help="as `show` names it, such as model or spend.day")
    setting.add_argument("value", metavar="VALUE", help="for a list: words with commas between them")
    add_action(actions, "edit", "open config.toml in your editor, and look at what you have written")
    add_action(actions, "path", "print where config.toml is")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code."""
    match arguments.action:
        case None | "show":
            return _show(arguments)
        case "path":
            from dragoman.cli.home import own_path

            print(own_path("config.toml"))
            return 0
        case action:
            from dragoman.cli import config_changes

            return config_changes.ACTIONS[action](arguments)


def _show(arguments: argparse.Namespace) -> int:
    from dragoman.cli.config_hooks import find_hooks, hook_words
    from dragoman.cli.home import data_folder, folders_by_kind
    from dragoman.cli.managed import managed_file
    from dragoman.cli.settings import KEYS, read_settings
    from dragoman.cli.text_width import harmless_line as plain

    settings = read_settings()
    managed, managed_mistake = _managed()
    keys, thinks = find_keys(settings), _model_line()
    addresses = {} if managed_mistake else find_addresses(settings, keys)
    hooks, remarks = ([], []) if managed_mistake else find_hooks(managed_settings())
    wrong = managed_mistake or next((str(found["error"]) for found in addresses.values() if "error" in found), "")
    if arguments.json:
        shown = {name: {"value": setting.value, "source": setting.source} for name, setting in settings.keys.items()}
        tables = {name: sorted(table) for name, table in settings.tables.items()}
        found = {"managed": managed, "keys": keys, "addresses": addresses, "thinks": thinks, "hooks": hooks}
        folders = {"home": data_folder(), "folders": folders_by_kind()}
        files = {"file": settings.file, "managed_file": managed_file()}
        print(json.dumps({**folders, **files, "settings": shown, **tables, **found}))
        return print_error(wrong) if wrong else 0
    for kind, folder in folders_by_kind().items():
        _print(f"{kind} folder", plain(folder))
    _print("file", plain(settings.file), "" if os.path.exists(settings.file) else "not written yet")
    for name, given in managed.items():
        _print(name, f"{plain(json.dumps(given))}  ({managed_file()})", "set by the administrator of this machine")
    for name, setting in settings.keys.items():
        value = ", ".join(setting.value) if isinstance(setting.value, tuple) else setting.value
        value = "(not set)" if value in ("", None) else value
        _print(name, f"{plain(str(value))}  ({plain(setting.source)})", KEYS[name].about)
    for name, table in settings.tables.items():
        _print(name, plain(", ".join(sorted(table)) or "(none)"))
    of = ", ".join(f"{plain(provider)} ({plain(source)})" for provider, source in keys.items())
    _print("keys", of or "(none)  `dragoman login` keeps one")
    for provider, address in addresses.items():
        _print(f"address {plain(provider)}", f"{plain(address.get('value', '(none)'))}  ({plain(address['source'])})")
    for number, hook in enumerate(hooks):
        what, where = map(plain, hook_words(hook))
        _print("" if number else "hooks", f"{what}  ({where})")
    if not hooks:
        _print("hooks", "(none)", "commands at events; `hooks.json` of the config folder")
    for remark in remarks:
        print(f"{'':{_NAMES}} {plain(remark)}")
    _print("thinks", plain(thinks), "the model that a new session begins with")
    return print_error(wrong) if wrong else 0


def _managed() -> tuple[dict[str, object], str]:
    """Return what the administrator has set, as JSON values, and why that cannot be used; empty: it can."""
    import msgspec

    from dragoman.cli.errors import CommandError

    try:
        settings = managed_settings()
    except CommandError as error:
        return {}, str(error)
    return {} if settings is None else msgspec.to_builtins(settings.written()), ""


def _print(name: str, value: str, about: str = "") -> None:
    """Print a setting, and below it what it is for."""
    from textwrap import wrap

    print(f"{name:{_NAMES}} {value}")
    for line in wrap(about, _COLUMNS - _NAMES - 1):
        print(f"{'':{_NAMES}} {line}")


def find_keys(settings: "Settings") -> dict[str, str]:
    """Return where the key of each provider comes from, without the keys themselves."""
    from dragoman.cli.home import own_file
    from dragoman.coder.credentials import KEY_VARIABLES, CredentialsError, load
    from dragoman.coder.models.known_providers import KNOWN_PROVIDERS

    named = settings.tables["providers"]
    found = {
        name: variable
        for name, variable in KEY_VARIABLES.items()
        if os.environ.get(variable) and (name in named or not KNOWN_PROVIDERS[name].shares_key)
    }
    for name, table in named.items():
        variable = table.get("api_key_env")
        if isinstance(variable, str) and os.environ.get(variable):
            found.setdefault(name, variable)
    try:
        stored_keys = load(own_file("credentials.toml")).keys
    except CredentialsError as error:
        return {**found, "credentials.toml": str(error)}
    return {**dict.fromkeys(stored_keys, "credentials.toml"), **found}


def find_addresses(settings: "Settings", keys: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the address of each provider that has a key or an address of its own: `value`, `source` or `error`."""
    from dragoman.cli.builtin_agent import config_of, within_bounds
    from dragoman.coder.models.endpoints import (
        ADDRESS_VARIABLES,
        CONFIG_SOURCE,
        DEFAULT_SOURCE,
        ModelUnavailable,
        find_address,
    )
    from dragoman.coder.models.known_providers import KNOWN_PROVIDERS

    config = within_bounds(config_of(settings), managed_settings())
    named = {CONFIG_SOURCE: settings.file}
    found: dict[str, dict[str, str]] = {}
    is_moved = [name for name, variable in ADDRESS_VARIABLES.items() if os.environ.get(variable, "").strip()]
    own = settings.tables["providers"]
    # A file of keys that cannot be read stands among them as what it is.
    keyed = [name for name in keys if name in KNOWN_PROVIDERS]
    for provider in sorted({*is_moved, *own, *keyed}, key=[*KNOWN_PROVIDERS, *own].index):
        try:
            address = find_address(provider, environment=os.environ, config=config)
        except ModelUnavailable as error:
            source = settings.file if provider in own else ADDRESS_VARIABLES.get(provider, DEFAULT_SOURCE)
            found[provider] = {"source": source, "error": str(error)}
            continue
        if provider in keys or provider in own or address.source != DEFAULT_SOURCE:
            found[provider] = {"value": address.url, "source": named.get(address.source, address.source)}
    return found


def _model_line() -> str:
    from dragoman.cli.builtin_agent import our_setup
    from dragoman.cli.errors import CommandError
    from dragoman.errors import DragomanError

    try:
        return our_setup(None, None).models.current()
    except (CommandError, DragomanError) as error:
        return f"(none) {error}"

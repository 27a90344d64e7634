"""What `dragoman config` does besides showing: get, set, unset and edit."""

import argparse
import difflib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dragoman.cli.config_file import ConfigFile
from dragoman.cli.errors import NOT_DONE, CommandError, can_ask_user, print_error, print_notice
from dragoman.cli.home import own_path
from dragoman.cli.managed import managed_settings
from dragoman.cli.settings import KEYS, SettingsError, converted, read_settings
from dragoman.cli.text_width import harmless_line

# At the head of a file that `edit` begins.
_HEAD: Final = "# Settings of Dragoman. `dragoman config show` names them all, with what each is for.\n"


def _get(arguments: argparse.Namespace) -> int:
    setting = read_settings().keys[_known(arguments.key)]
    if arguments.json:
        print(json.dumps({"key": arguments.key, "value": setting.value, "source": setting.source}))
        return 0
    value = setting.value
    if value is None:
        return NOT_DONE
    if isinstance(value, tuple):
        value = ",".join(value)
    print(harmless_line(str(value).lower() if isinstance(value, bool) else str(value)))
    return 0


def _set(arguments: argparse.Namespace) -> int:
    key = _known(arguments.key)
    value = converted(arguments.value, key)
    check_value(key, arguments.value)
    file = ConfigFile(own_path("config.toml"))
    file.set(key.split("."), value)
    file.save()
    _say_what_counts(key)
    return 0


def _unset(arguments: argparse.Namespace) -> int:
    key = _known(arguments.key)
    file = ConfigFile(own_path("config.toml"))
    if not file.remove(key.split(".")):
        return print_error(f"{key} is not in {own_path('config.toml')}", NOT_DONE)
    file.save()
    _say_what_counts(key)
    return 0


def _edit(arguments: argparse.Namespace) -> int:
    """Open the file in the user's editor until it can be read, or the user gives up."""
    path = Path(own_path("config.toml"))
    if not can_ask_user():
        raise CommandError(f"an editor needs a terminal; the file is {path}")
    if not path.exists():
        from dragoman.host.private_file import write_private

        write_private(path, _HEAD.encode())
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    while True:
        try:
            code = subprocess.run([*editor, str(path)], check=False).returncode
        except OSError as error:
            raise CommandError(f"{editor[0]}: {error.strerror}; VISUAL or EDITOR names your editor") from None
        if code:
            return print_error(f"{editor[0]} ended with exit code {code}", NOT_DONE)
        try:
            read_settings({})
        except SettingsError as error:
            print_notice(str(error))
            print("Edit it again? [Y/n] ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() in ("n", "no"):
                return NOT_DONE
            continue
        return 0


def check_value(key: str, text: str) -> None:
    """Raise `CommandError` for a value that a later start would refuse, as far as its words show that."""
    match key:
        case "mode":
            from dragoman.cli.builtin_agent import check_mode

            check_mode(text)
        case "model":
            from dragoman.cli.builtin_agent import check_written_model

            check_written_model(text)
        case "theme":
            from dragoman.cli.terminal.theme import find_theme

            find_theme(text)
        case "notify":
            from dragoman.cli.terminal.notifier import read_ways

            read_ways(text, "config set")


def _known(key: str) -> str:
    if key not in KEYS:
        begun = key.replace("-", "_")
        near = [name for name in KEYS if name.startswith(begun)] or [name for name in KEYS if begun in name]
        near = near or difflib.get_close_matches(key, KEYS, n=2)
        raise CommandError(
            f"there is no setting {key!r}; {'there is ' + ', '.join(near) if near else '`config show` names them all'}"
        )
    return key


def _say_what_counts(key: str) -> None:
    """Say where something else counts than what stands in the file now."""
    variable = f"DRAGOMAN_{key.upper().replace('.', '_')}"
    if os.environ.get(variable):
        print_notice(f"{variable} is set in the environment and counts before config.toml")
    managed = managed_settings()
    if managed is not None:
        print_notice("the administrator's settings bound this; `dragoman config show` shows them")


ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "get": _get,
    "set": _set,
    "unset": _unset,
    "edit": _edit,
}

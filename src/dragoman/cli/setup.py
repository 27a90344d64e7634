"""`dragoman setup`: put Dragoman into an editor's settings, after showing the change."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import NOT_DONE, can_ask_user, discard_typed_input, print_error

if TYPE_CHECKING:
    from dragoman.cli.editors import Editor

_DESCRIPTION = """\
Put Dragoman into an editor's settings: zed, jetbrains, vscode, acpx. The
change is shown, and written after your yes; comments and other settings stay,
and the file as it was is kept beside it. What is a program and not settings
(codecompanion, avante, emacs), or cannot be changed safely, is shown for you to
put in. Without EDITOR it says where each one's settings are.
"""
_EPILOG = """\
  dragoman setup zed
  dragoman setup jetbrains --mode workspace-write --yes
  dragoman setup emacs --print
"""
# Settings files are small; more is another file.
_FILE_BYTES: Final = 4 * 1024 * 1024
_BACKUP: Final = ".before-dragoman"


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "setup", "put the agent into an editor's settings", _DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "editor", metavar="EDITOR", nargs="?", help="zed, jetbrains, vscode, codecompanion, avante, emacs, acpx, toad"
    )
    parser.add_argument("--print", action="store_true", help="print what to put into the settings, and change nothing")
    parser.add_argument("-m", "--model", metavar="M", help="have the editor start the agent with this model")
    parser.add_argument("--mode", metavar="MODE", help="and in this mode")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Show the change, and write it."""
    import difflib

    from dragoman.cli.editors import ALIASES, NAMES, editor

    if arguments.editor is None:
        for name in NAMES:
            one = editor(name)
            has = "" if not one.file else " (is there)" if os.path.exists(one.file) else " (not there yet)"
            print(f"{name:14} {one.title}: {one.where}{has}")
        return 0
    name = ALIASES.get(arguments.editor.lower(), arguments.editor.lower())
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        return print_error(f"unknown editor {arguments.editor!r}; {meant}")
    _check_choices(arguments)
    model = ["--model", arguments.model] if arguments.model else []
    mode = ["--mode", arguments.mode] if arguments.mode else []
    chosen = editor(name, ["acp", *model, *mode])
    if arguments.print:
        print(chosen.snippet)
        return 0
    if not chosen.file:
        return _leave_to_user(chosen, f"{chosen.title}: {chosen.where}")
    return _change(chosen, yes=arguments.yes)


def _check_choices(arguments: argparse.Namespace) -> None:
    """Raise `CommandError` for a mode or model with which the editor could not start the agent."""
    if not (arguments.mode or arguments.model):
        return
    from dragoman.cli.builtin_agent import check_mode, check_written_model

    if arguments.mode:
        check_mode(arguments.mode)
    check_written_model(arguments.model or "", "--model")


def _change(chosen: "Editor", *, yes: bool) -> int:
    from dragoman.cli.json_settings import NotEditable, with_value
    from dragoman.cli.text_width import harmless_line

    path = os.path.realpath(chosen.file)
    try:
        before = _read(path)
        after = with_value(before or "", chosen.path, chosen.value)
    except NotEditable as error:
        return _leave_to_user(chosen, f"{harmless_line(path)} was not changed: {error}. Put this in yourself:")
    except OSError as error:
        return print_error(f"{path}: {(error.strerror or 'cannot be read').lower()}", NOT_DONE)
    if before == after:
        print(f"{harmless_line(path)} has it already.")
        return 0
    _show(path, before or "", after)
    if not yes and not can_ask_user():
        return print_error("nothing was changed: there is no terminal to ask at; if this is what you want, add --yes")
    if not yes and not _is_confirmed():
        return print_error("nothing was changed", NOT_DONE)
    try:
        if _read(path) != before:
            return print_error(f"{path} was changed meanwhile; nothing was written", NOT_DONE)
        kept = _write(path, before, after)
    except (OSError, NotEditable) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return print_error(f"{path}: {(reason or 'cannot be written').lower()}", NOT_DONE)
    print(f"{harmless_line(path)} is written{f'; as it was: {harmless_line(kept)}' if kept else ''}")
    return 0


def _leave_to_user(chosen: "Editor", sentence: str) -> int:
    """Show what to put in: stdout has the snippet alone."""
    from dragoman.cli.errors import print_notice

    print_notice(sentence)
    print(chosen.snippet)
    return NOT_DONE


def _show(path: str, before: str, after: str) -> None:
    import difflib

    from dragoman.host.text import visible_line

    old, new = (text.splitlines() for text in (before, after))
    for line in difflib.unified_diff(old, new, path, path, lineterm=""):
        print(visible_line(line), file=sys.stderr)


def _is_confirmed() -> bool:
    discard_typed_input()
    print("Write this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _read(path: str) -> str | None:
    """Return the text of a file; None: there is none. `NotEditable` for one that is no text."""
    from dragoman.cli.json_settings import NotEditable
    from dragoman.host.regular_file import read_regular

    try:
        content = read_regular(path, _FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > _FILE_BYTES:
        raise NotEditable("it is too long for settings")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise NotEditable("it is not UTF-8") from None


def _write(path: str, before: str | None, after: str) -> str:
    """Write the file whole, with the mode it had; return where it is kept as it was, empty if there was none."""
    from dragoman.host.private_file import replaced_file

    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode, kept = 0o600, ""
    if before is not None:
        mode = os.stat(path).st_mode & 0o777
        kept = _free_name(path + _BACKUP)
        with replaced_file(kept, mode) as file:
            file.write(before.encode())
    with replaced_file(path, mode) as file:
        file.write(after.encode())
        os.fchmod(file.fileno(), mode)
    return kept


def _free_name(path: str) -> str:
    """Return a name that nothing has yet: an earlier copy stays."""
    name, count = path, 1
    while os.path.lexists(name):
        count += 1
        name = f"{path}.{count}"
    return name

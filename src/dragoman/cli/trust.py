"""`dragoman trust`: let a project's own configuration start programs, exactly as it is now."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import NOT_DONE, can_ask_user, discard_typed_input, print_error

if TYPE_CHECKING:
    from dragoman.cli.trust_text import ConfigPart

_DESCRIPTION = """\
A project can bring a configuration (acp.json, .mcp.json) and hooks that start
programs, and slash commands and skills with command lines in them.
Nothing of it is used until you trust it, and language servers, which show
errors after edits, run in trusted folders only. Trust is for what the folder
says now, and for the files of it that are started: when one of them changes, or
a new one comes, you are asked again. What would be started, reached and given
is shown, and you are asked. For a secret of yours that it names (a key in a
variable, a file with a token) you are asked once more; without that yes, what
wants it is not used.
"""
_LABEL: Final = 11
# Shown for every folder: they look at any, and some run what is in it.
_LANGUAGE_SERVERS: Final = (
    "  Language servers that you have installed look for errors after edits. Some run",
    "  its build scripts and plugins, confined where this machine can confine.",
    "",
)
# Columns that a label and the mark of what goes on need.
_NARROWEST: Final = 20
_STOPS: Final = ("q", "quit", "n", "no")
_GOES_ON: Final = "      … "


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "trust", "let a project's configuration start programs", _DESCRIPTION)
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the project; this folder if left out")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal; gives no secret away"
    )
    parser.add_argument(
        "--allow-secret",
        metavar="SECRET",
        action="append",
        default=[],
        help="let what names it have this variable or file of yours; can be repeated",
    )
    parser.add_argument("--revoke", action="store_true", help="revoke the trust in it")
    parser.add_argument("--list", action="store_true", help="show the folders that were trusted")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman.cli.home import own_file
    from dragoman.cli.text_width import harmless_line
    from dragoman.host import trust
    from dragoman.host.launch_names import ScriptsRefused

    registry = own_file("trust.json")
    folder = Path(arguments.folder)
    try:
        if arguments.list:
            known_folders = trust.trusted_folders(registry)
            for known in known_folders:
                print(harmless_line(known) + _still(registry, known))
            if not known_folders:
                print("No folder is trusted; `dragoman trust` trusts the one you are in.", file=sys.stderr)
            return 0
        if not folder.is_dir():
            return print_error(f"{arguments.folder}: no such folder")
        if arguments.revoke:
            if not trust.revoke(registry, folder):
                return print_error(f"{folder.resolve()} was not trusted", NOT_DONE)
            print(f"{harmless_line(str(folder.resolve()))} is trusted no more.")
            return 0
        return _trust(registry, folder, yes=arguments.yes, allowed=arguments.allow_secret)
    except (trust.TrustFailed, ScriptsRefused) as error:
        return print_error(harmless_line(str(error)), NOT_DONE)


def _still(registry: Path, known: str) -> str:
    """Return why a folder that was trusted is not now; empty: it is."""
    from dragoman.cli.text_width import harmless_line
    from dragoman.host.trust import TrustFailed, trust_state

    try:
        found = trust_state(registry, Path(known))
    except TrustFailed as error:
        return f"  (not trusted now: {harmless_line(str(error))})"
    return "" if found.files is not None else f"  (not trusted now: {harmless_line(found.reason)})"


def _trust(registry: Path, folder: Path, *, yes: bool, allowed: Sequence[str]) -> int:
    """Show what the folder says, and trust exactly that."""
    import os

    from dragoman.cli.home import own_file
    from dragoman.cli.key_variables import keep_keys_back
    from dragoman.cli.settings import read_settings
    from dragoman.cli.text_width import harmless_line
    from dragoman.cli.trust_text import all_launches, parts_of
    from dragoman.host import trust
    from dragoman.host.scripts import named_files

    keep_keys_back(read_settings())  # what the settings call a key is a secret
    folder = folder.resolve()
    files = trust.covered(folder)
    shown = harmless_line(str(folder))
    parts = parts_of(folder, files, own_file("acp.json").parent, os.environ)
    named = named_files(str(folder), all_launches(parts), os.environ)
    unnamed = [secret for secret in allowed if not any(_allows(secret, own) for part in parts for own in part.secrets)]
    if unnamed:
        return print_error(f"--allow-secret {unnamed[0]}: nothing in {shown} names this secret")
    asking = not yes and can_ask_user()
    has = "may start, reach and be given, when it is trusted:"
    if not files:
        has = f"has no {', '.join(trust.COVERED[:2])}, hooks, or commands in files. When it is trusted:"
    whole = _print([f"{shown} {has}", *_lines(parts), *_LANGUAGE_SERVERS], paged=asking)
    if not yes and not asking:
        return print_error("nothing was changed: there is no terminal to ask at; if this is what you want, add --yes")
    if asking and not (whole and _is_confirmed("Trust this?")):
        return print_error("nothing was changed", NOT_DONE)
    secrets = {part.part: [own for own in part.secrets if _may_have(part, own, allowed, asking)] for part in parts}
    given = {part: own for part, own in secrets.items() if own}
    names = ", ".join(trust.trust(registry, folder, files, named=named, secrets=given))
    print(f"{shown} is trusted{f': {names}' if names else ''}")
    return 0


def _lines(parts: "Sequence[ConfigPart]") -> Iterator[str]:
    """Yield a block for each part. Nothing that a value holds can hide, or look like a line of ours."""
    from dragoman.host.text import visible_line

    for part in parts:
        yield ""
        yield f"  {visible_line(part.title)}"
        yield from (f"    {visible_line(label):{_LABEL}} {visible_line(text)}" for label, text in part.rows)
    yield ""


def _print(lines: Sequence[str], *, paged: bool) -> bool:
    """Print all of it on stderr; at a terminal a screen at a time, so that nothing scrolls away unseen.

    False: the person did not want to see it all.
    """
    from dragoman.cli.terminal.turn_screen import size
    from dragoman.cli.text_width import wrap_line

    if not paged:
        print(*lines, sep="\n", file=sys.stderr)
        return True
    columns, height = size()
    page = max(1, (height - 1) // -(-_NARROWEST // columns))
    for number, row in enumerate(row for line in lines for row in wrap_line(line, max(columns, _NARROWEST), _GOES_ON)):
        if number and number % page == 0:
            typed = _read_answer("-- Enter: more, q: stop -- ")
            if not typed or typed.strip().lower() in _STOPS:
                return False
        print(row, file=sys.stderr)
    return True


def _is_confirmed(question: str) -> bool:
    return _read_answer(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _read_answer(prompt: str) -> str:
    """Return the line that is typed after the prompt, with its end; empty at the end of input."""
    discard_typed_input()
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline()


def _may_have(part: "ConfigPart", secret: str, allowed: Sequence[str], asking: bool) -> bool:
    """Return whether a part gets a secret: by an option, or by a yes of its own."""
    from dragoman.host.text import visible_line

    if any(_allows(given, secret) for given in allowed):
        return True
    if asking:
        return _is_confirmed(visible_line(part.question(secret)))
    sentence = f"{part.title} is not used without {secret}: --allow-secret {secret}"
    print(f"dragoman: {visible_line(sentence)}", file=sys.stderr)
    return False


def _allows(given: str, secret: str) -> bool:
    """Return whether an option names this secret: a variable by its name, a file by any path that leads to it."""
    import os

    return given == secret or ("/" in secret and os.path.realpath(os.path.expanduser(given)) == secret)

"""`dragoman doctor`: look at everything the agent stands on, and try one turn."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from dragoman.cli.common_options import Commands, add_command

_DESCRIPTION = """\
Look at what the agent stands on: settings, store, model, sandbox, search, the
programs it needs; and try one turn without a network. On a terminal long lines
are cut, which --verbose does not. Exit code 1 if something is broken.
"""
BROKEN: Final = 1
TURN_SECONDS: Final = 20.0
_MARKS: Final = {"ok": "ok    ", "note": "note  ", "broken": "BROKEN"}
_GOES_ON: Final = " " * 18
# Lines of a note on a terminal: a whole visit fits a screen of 24.
_NOTE_ROWS: Final = 2
Health = Literal["ok", "note", "broken"]


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    health: Health
    text: str


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "doctor", "check the installation and try one turn", _DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("-v", "--verbose", action="store_true", help="all of every line, and the editors' settings")
    parser.add_argument("-m", "--model", metavar="M", help="look at this model, not at the one of the settings")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Look, and tell."""
    found: list[Finding] = []
    for finding in _findings(arguments.model):
        found.append(finding)
        if not arguments.json:
            print("\n".join(_lines(finding, is_whole=arguments.verbose)), flush=True)
    if arguments.json:
        print(json.dumps({"findings": [finding._asdict() for finding in found], "editors": _snippets()}))
    elif arguments.verbose:
        print("\nIn an editor's settings:")
        for name, text in _snippets().items():
            print(f"\n{name}\n{text}")
    else:
        print("`dragoman setup EDITOR` writes an editor's settings; --verbose shows all.")
    return BROKEN if any(finding.health == "broken" for finding in found) else 0


def _lines(finding: Finding, *, is_whole: bool) -> list[str]:
    """Return what to print of a finding: all of it in one line, or on a terminal what is worth the room."""
    from dragoman.cli.terminal.turn_screen import columns
    from dragoman.cli.text_width import fit, harmless_line, wrap_line

    line = f"{_MARKS[finding.health]}  {finding.what:9} {harmless_line(finding.text)}"
    if is_whole or not sys.stdout.isatty():
        return [line]
    room = max(columns(), 40) - 1
    if finding.health == "ok":
        return [fit(line, room)]
    rows = list(wrap_line(line, room, _GOES_ON))
    if finding.health == "note" and len(rows) > _NOTE_ROWS:
        rows = [*rows[: _NOTE_ROWS - 1], fit(f"{rows[_NOTE_ROWS - 1]} …", room)]
    return rows


def _findings(model: str | None) -> Iterator[Finding]:
    looks: dict[str, Callable[[], Finding]] = {
        "version": _version,
        "settings": _settings,
        "managed": _managed,
        "folders": _folders,
        "store": _store,
        "model": lambda: _model(model),
        "providers": _providers,
        "sandbox": _sandbox,
        "search": _search,
        "programs": _programs,
        "language": _language_servers,
        "extras": _extras,
        "log": _log,
        "turn": _turn,
    }
    for what, look in looks.items():
        try:
            yield look()
        except Exception as error:  # a doctor does not faint
            yield Finding(what, "broken", _error_text(error))


def _error_text(error: Exception) -> str:
    """Return what to show of an error: a sentence of ours, an agent's with its details, any other with its kind."""
    from dragoman.cli.errors import CommandError
    from dragoman.errors import DragomanError
    from dragoman.host.failure_text import failure_text

    if isinstance(error, CommandError):
        return str(error)
    return failure_text(error) if isinstance(error, DragomanError) else f"{type(error).__name__}: {error}"


def _version() -> Finding:
    from dragoman.version import VERSION

    return Finding("version", "ok", f"dragoman {VERSION}, Python {sys.version.split()[0]}, {sys.platform}")


def _settings() -> Finding:
    from dragoman.cli.settings import read_settings

    settings = read_settings()
    file = settings.file if os.path.exists(settings.file) else "none written, all as delivered"
    return Finding("settings", "ok", file)


def _managed() -> Finding:
    """Report the administrator's file. One that cannot be used is an exception, which says why."""
    from dragoman.cli.managed import managed_file, managed_settings

    settings = managed_settings()
    if settings is None:
        return Finding("managed", "ok", f"no administrator's file ({managed_file()})")
    keys = ", ".join(settings.written()) or "nothing"
    return Finding("managed", "note", f"the administrator's file {settings.file} sets {keys}; dragoman config show")


def _folders() -> Finding:
    """Report our folders, and what is still in the one that had everything before."""
    from dragoman.cli.home import folders_by_kind, former_folder, former_names, own_path

    text = "; ".join(f"{kind} {folder}" for kind, folder in folders_by_kind().items())
    former = [os.path.join(former_folder(), name) for name in former_names(stayed=True)]
    used = [path for path in former if own_path(os.path.basename(path)) == path]
    unused = [path for path in former if path not in used]
    text += f". Not moved yet: {', '.join(used)}" if used else ""
    text += f". Not used any more: {', '.join(unused)}" if unused else ""
    return Finding("folders", "note" if former else "ok", text)


def _store() -> Finding:
    from dragoman import background
    from dragoman.cli.home import open_store, own_file, why_unwritable
    from dragoman.store.contract import StoreFailed

    folder = own_file("sessions")
    why_not = why_unwritable(str(folder), make=False)
    if why_not is not None:
        return Finding("store", "broken", why_not)
    if not folder.exists():
        return Finding("store", "ok", f"{folder} (made with the first session)")

    async def look() -> int:
        store = open_store()
        try:
            return len((await store.list(archived="include")).sessions)
        finally:
            await store.close()

    try:
        count = background.run(look())
    except StoreFailed as error:
        return Finding("store", "broken", f"{folder}: {error}")
    return Finding("store", "ok", f"{folder}; {count if count < 50 else 'more than 50'} sessions")


def _model(wanted: str | None) -> Finding:
    from dragoman.cli.builtin_agent import our_setup
    from dragoman.coder.model_registry import DEMO

    models = our_setup(wanted, None).models
    name = models.current()
    models.make(name)
    if name == DEMO:
        return Finding("model", "note", f"{DEMO}, which is no language model; for one, `dragoman login`")
    return Finding("model", "ok", name)


def _providers() -> Finding:
    """Report the providers that have a key or an address: where each is reached, and what has set that."""
    from dragoman import background
    from dragoman.cli.config import find_addresses, find_keys
    from dragoman.cli.settings import read_settings

    settings = read_settings()
    found = find_addresses(settings, find_keys(settings))
    wrong = [address["error"] for address in found.values() if "error" in address]
    if wrong:
        return Finding("providers", "broken", " ".join(wrong))
    lists = background.run(_lists())
    lines = [
        f"{provider} at {address['value']} ({address['source']})"
        + (f", {lists[provider]}" if provider in lists else "")
        for provider, address in found.items()
    ]
    fine = all(text.startswith("lists ") for text in lists.values())
    text = "; ".join(lines) or "none has a key; `dragoman login PROVIDER` keeps one"
    return Finding("providers", "ok" if fine else "note", text)


async def _lists() -> dict[str, str]:
    """Ask each provider for its models, which tells whether it accepts its key."""
    from dragoman.cli.builtin_agent import our_setup
    from dragoman.cli.errors import CommandError
    from dragoman.coder.model_registry import ModelRegistry

    try:
        models = our_setup(None, None).models
    except CommandError:
        return {}  # the finding about the model says why
    return await models.ask_lists() if isinstance(models, ModelRegistry) else {}


def _sandbox() -> Finding:
    from dragoman.host.cgroups import usable_parent
    from dragoman.host.sandbox import probe

    found = probe()
    limits = f"limits by {'control groups' if usable_parent() else 'process'}"
    if found.level == "bubblewrap":
        inside = "with Landlock inside" if found.layered else "without Landlock inside"
        return Finding("sandbox", "ok", f"bubblewrap ({found.bubblewrap}), {inside}; {limits}")
    if found.level == "landlock":
        return Finding(
            "sandbox", "note", f"Landlock {found.landlock}; {limits}; mode sandbox needs more. {' '.join(found.lacks)}"
        )
    return Finding("sandbox", "note", f"none: modes sandbox and workspace-write run nothing. {' '.join(found.lacks)}")


def _search() -> Finding:
    from dragoman import background
    from dragoman.host.paths import Roots
    from dragoman.host.ripgrep import SearchFailed, check_ripgrep, find_ripgrep

    try:
        found = find_ripgrep(os.environ.get("PATH", os.defpath), Roots(["/nonexistent"]))
        return Finding("search", "ok", background.run(check_ripgrep(found)))
    except SearchFailed as error:
        return Finding("search", "note", str(error))


def _programs() -> Finding:
    if not os.access("/bin/bash", os.X_OK):
        return Finding("programs", "broken", "no /bin/bash: commands cannot be run")
    git = shutil.which("git")
    return Finding("programs", "ok" if git else "note", f"bash, {'git' if git else 'no git'}")


def _language_servers() -> Finding:
    """Report the language servers that are found outside of this folder, and where they are used."""
    from importlib.util import find_spec

    from dragoman.cli.builtin_agent import language_servers
    from dragoman.cli.managed import managed_settings
    from dragoman.cli.settings import read_settings
    from dragoman.coder.language_servers.known import find_servers
    from dragoman.coder.managed_settings import NOTHING_MANAGED

    allows = (managed_settings() or NOTHING_MANAGED).language_servers.allows
    wanted = [spec for spec in language_servers(read_settings())() if allows(spec.name, spec.command)]
    if not wanted:
        return Finding("language", "ok", "servers are turned off")
    found = find_servers(wanted, os.environ.get("PATH", os.defpath), [os.getcwd()])
    named = ", ".join(f"{one.spec.name} ({one.program})" for one in found)
    if not named:
        return Finding("language", "ok", f"no server found: {', '.join(spec.name for spec in wanted)}")
    if find_spec("lsprotocol") is None or find_spec("pygls") is None:
        return Finding("language", "ok", f"servers {named}, which need the extra lsp")
    return Finding("language", "ok", f"servers {named}; used in trusted folders: dragoman trust")


def _extras() -> Finding:
    from importlib.util import find_spec

    from dragoman.errors import how_to_install

    names = {"models": "pydantic_ai", "mcp": "mcp", "lsp": "pygls", "chat": "prompt_toolkit", "serve": "granian"}
    missing = [extra for extra, module in names.items() if find_spec(module) is None]
    if not missing:
        return Finding("extras", "ok", ", ".join(names))
    return Finding("extras", "note", f"not installed: {', '.join(missing)}. {how_to_install(*missing)}")


def _log() -> Finding:
    """Return where failures are kept, and when the last one was."""
    import time

    from dragoman.cli.failure_log import log_file

    file = log_file()
    try:
        last = os.stat(file).st_mtime
    except FileNotFoundError:
        return Finding("log", "ok", f"{file} (made with the first failure)")
    return Finding("log", "note", f"{file}; the last failure was on {time.strftime('%Y-%m-%d', time.localtime(last))}")


def _turn() -> Finding:
    """Run one turn of the agent as an editor starts it, with the demo, in an empty folder."""
    import asyncio
    import tempfile
    import time

    from dragoman import background
    from dragoman.client.connect import connect

    async def turn(folder: str) -> str:
        command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--model", "demo"]
        async with connect(command, env={"DRAGOMAN_HOME": os.path.join(folder, "home")}) as client:
            session = await client.new_session(folder)
            return (await session.ask("list")).stop_reason

    with tempfile.TemporaryDirectory(prefix="dragoman-doctor-") as folder:
        began = time.monotonic()
        reason = background.run(asyncio.wait_for(turn(folder), TURN_SECONDS))
    if reason != "end_turn":
        return Finding("turn", "broken", f"a turn ended with {reason}")
    return Finding("turn", "ok", f"start, session and one turn in {time.monotonic() - began:.1f} s")


def _snippets() -> dict[str, str]:
    """Return what to put into whose settings."""
    from dragoman.cli.editors import NAMES, editor

    chosen = [editor(name) for name in NAMES]
    return {f"{one.title}, {one.where}": one.snippet for one in chosen}

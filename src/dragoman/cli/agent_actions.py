"""What `dragoman agents` does. Files name agents and agents name themselves: all of that is made harmless."""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from dragoman import background
from dragoman.cli.errors import NOT_DONE, print_error, print_warning
from dragoman.cli.home import own_file, read_registry
from dragoman.cli.key_variables import hide_keys
from dragoman.cli.text_width import fit, harmless_json, harmless_line, pad, width
from dragoman.client.connect import connect
from dragoman.client.known_agents import KNOWN
from dragoman.client.registry import AgentRegistry, AgentStatus, find_program
from dragoman.client.registry_edit import add_entry, remove_entry
from dragoman.client.registry_file import NAME, untrusted
from dragoman.client.targets import is_address
from dragoman.errors import DragomanError, UsageError

# The time limit of `--check` for one agent; one that downloads itself first takes longer.
_CHECK_SECONDS: Final = 20.0
# Started at the same time: each may be a runtime of its own.
_AT_ONCE: Final = 4
_GAP: Final = "  "
_DEEPER: Final = "    "


def list_agents(arguments: argparse.Namespace) -> int:
    """Print the agents, a line or an object each."""
    registry = read_registry(".")
    if arguments.check:
        hide_keys()
        background.run(_check(registry))
    found = [registry.status(name) for name in registry.names()]
    if arguments.json:
        print(harmless_json(json.dumps([_as_json(one, registry) for one in found], indent=2).encode()))
    else:
        _print_table(found)
    left_out = untrusted(own_file(NAME).parent, Path(), trust=own_file("trust.json"))
    if left_out is not None:
        print(harmless_line(str(left_out)), file=sys.stderr)
    for remark in registry.remarks:
        print_warning(remark)
    for sentence in registry.complaints():
        print_error(sentence)
    return NOT_DONE if registry.complaints() else 0


def add_agent(arguments: argparse.Namespace) -> int:
    """Put an agent into the user's own file."""
    name: str = arguments.name
    command: list[str] = arguments.agent_command
    if not name.isprintable() or not name.strip() or name.startswith("-"):
        return print_error(f"{name!r} is no name for an agent")
    try:
        entry = _entry(command, arguments.token_file, arguments.ca_file)
    except UsageError as error:
        return print_error(str(error))
    if arguments.description is not None:
        entry["description"] = arguments.description
    known = add_entry(own_file(NAME), name, entry)
    print(f"{harmless_line(name)} is {'changed' if known else 'added'}: {harmless_line(shlex.join(command))}")
    if "command" in entry and find_program(command[0], os.environ) is None:
        print_error(f"there is no program {command[0]} on this machine yet")
    return 0


def _entry(command: list[str], token_file: str | None, ca_file: str | None) -> dict[str, object]:
    """Return what is written about an agent: how it is started, or where it is."""
    if is_address(command[0]) and len(command) == 1:
        # Nothing is sent yet; it says what is wrong with the address, or with the authorities.
        connect(command[0], ca_file=ca_file)
        files = {"tokenFile": token_file, "caFile": ca_file}
        return {"url": command[0], **{key: os.path.abspath(file) for key, file in files.items() if file is not None}}
    for option, given in (("--token-file", token_file), ("--ca-file", ca_file)):
        if given is not None:
            raise UsageError(f"{option} goes with an address, such as https://agents.example.org")
    return {"command": command[0], "args": command[1:]}


def remove_agent(arguments: argparse.Namespace) -> int:
    """Take an agent out of the user's own file."""
    name: str = arguments.name
    if remove_entry(own_file(NAME), name):
        print(f"{harmless_line(name)} is removed.")
        return 0
    if name in KNOWN:
        return print_error(f"{name} is built in; there is nothing to remove", NOT_DONE)
    return print_error(f"there is no agent {name} in {own_file(NAME)}", NOT_DONE)


async def _check(registry: AgentRegistry) -> None:
    """Say hello to every agent that is installed; what came of it stays in its status."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def check(name: str) -> None:
        async with room:
            try:
                await registry.check(name, seconds=_CHECK_SECONDS)
            except DragomanError:
                pass  # it is in the status

    await asyncio.gather(*(check(name) for name in registry.names() if registry.status(name).installed))


def _as_json(status: AgentStatus, registry: AgentRegistry) -> dict[str, object]:
    entry = status.entry
    body: dict[str, object] = {
        "name": status.name,
        "state": status.state,
        "installed": status.installed,
        "default": status.name == registry.default,
        "command": entry.command,
        "args": list(entry.args),
        "description": entry.description,
        "source": entry.source or "built in",
    }
    if entry.url:
        body["url"] = entry.url
    if not status.installed and entry.install:
        body["install"] = entry.install
    if status.version:
        body["version"] = status.version
    if status.last_error:
        body["lastError"] = status.last_error
        body["stderrTail"] = status.stderr_tail
    return body


def _print_table(found: list[AgentStatus]) -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    rows = [(harmless_line(one.name), _state(one), [harmless_line(part) for part in _what(one)]) for one in found]
    names = max((len(name) for name, _, _ in rows), default=0)
    states = max((len(state) for _, state, _ in rows), default=0)
    for name, state, what in rows:
        start = f"{pad(name, names)}{_GAP}{pad(state, states)}{_GAP}"
        line = start + ": ".join(what)
        if columns is None or width(line) <= columns:
            print(line)
        else:  # each on a line of its own, and none cut off: it is there to be copied
            print("\n".join([fit(start + what[0], columns), *(f"{_DEEPER}{part}" for part in what[1:])]))


def _state(status: AgentStatus) -> str:
    if not status.installed:
        return "not installed"
    if status.state == "configured":
        return "remote" if status.entry.url else "installed"
    return status.state


def _what(status: AgentStatus) -> list[str]:
    """Return what a person needs to know: how to get it, what is wrong with it, or what it is."""
    entry = status.entry
    if not status.installed and entry.install:
        parts = [entry.description, entry.install]
    elif status.last_error:
        parts = [status.last_error]
    else:
        parts = [shlex.join(entry.command_line()), entry.description]
    return [part for part in parts if part] or [""]

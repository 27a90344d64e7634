"""Slash commands: ours, and the user's own as Markdown files. What ours say, the model does not hear."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from dragoman.agent.sessions import keep_option
from dragoman.coder.modes import MODES
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, OptionsChanged
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput

if TYPE_CHECKING:
    from dragoman.coder.coder import Coder

# More of the user's own are not a menu any more; a longer one is a book.
OWN_COMMANDS: Final = 200
OWN_BYTES: Final = 64 * 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)
_ARGUMENTS: Final = "$ARGUMENTS"

BUILT_IN: Final[dict[str, tuple[str, str]]] = {
    "help": ("What there is to say and to do here", ""),
    "compact": ("Sum up the conversation, to make room in the model's window", ""),
    "context": ("How full the model's window is, and with what", ""),
    "permissions": ("What you have always allowed or forbidden; `revoke N` takes one back", "revoke N"),
    "mode": ("Show or change what the agent may do", "mode"),
    "model": ("Show or change the model", "provider/name"),
    "mcp": ("The MCP servers of this session", ""),
    "plan": ("Make a plan and change nothing", "what to plan"),
    "undo": ("Take back the file changes of the last turn that made any", ""),
    "clear": ("Let the model forget the conversation; the transcript stays", ""),
}


class Own(NamedTuple):
    """A command of the user's own: a text to prompt with."""

    name: str
    description: str
    text: str

    def prompt(self, arguments: str) -> str:
        """The text with the arguments in their place."""
        if _ARGUMENTS in self.text:
            return self.text.replace(_ARGUMENTS, arguments)
        return f"{self.text}\n\n{arguments}".strip()


def announced(own: dict[str, Own]) -> list[AnyCommand]:
    """Every command, as a client shows it."""
    built_in = [
        Command(name, description, CommandInput(hint) if hint else UNSET)
        for name, (description, hint) in BUILT_IN.items()
    ]
    return [*built_in, *(Command(one.name, one.description, CommandInput("arguments")) for one in own.values())]


def read_own(folder: Path) -> dict[str, Own]:
    """The user's commands in a folder: `NAME.md`. What cannot be read is left out. Blocks: for a thread."""
    found: dict[str, Own] = {}
    try:
        files = sorted(folder.glob("*.md"))[:OWN_COMMANDS]
    except OSError:
        return found
    for file in files:
        if not _NAME.fullmatch(file.stem) or file.stem in BUILT_IN:
            continue
        try:
            with file.open("rb") as opened:
                text = opened.read(OWN_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        found[file.stem] = _own(file.stem, text)
    return found


def _own(name: str, text: str) -> Own:
    description = ""
    if text.startswith("---\n") and "\n---\n" in text[4:]:
        head, _, text = text[4:].partition("\n---\n")
        fields = dict(line.partition(":")[::2] for line in head.splitlines())
        description = fields.get("description", "").strip().strip("\"'")
    first = next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), name)
    return Own(name, description or first[:100], text.strip())


def parse(prompt: str) -> tuple[str, str]:
    """The name and the arguments of a slash command; empty if it is none."""
    words = prompt.strip().split(maxsplit=1)
    if not words or not words[0].startswith("/"):
        return "", ""
    return words[0][1:], words[1].strip() if len(words) > 1 else ""


async def run(name: str, arguments: str, coder: "Coder") -> AsyncGenerator[AnyEvent, None]:
    """One of ours, to the end of its turn."""
    match name:
        case "help":
            text = _help(coder)
        case "compact":
            await coder.sum_up()
            text = "The conversation is summed up."
        case "context":
            text = await _context(coder)
        case "permissions":
            text = await _permissions(arguments, coder)
        case "mode" | "model":
            yield_after, text = await _option(name, arguments, coder)
            if yield_after is not None:
                yield yield_after
        case "mcp":
            text = coder.servers_text()
        case "undo":
            text = await _undo(coder)
        case _:
            await coder.forget()
            text = "The model has forgotten the conversation so far. You still see it."
    yield AgentMessageChunk(Text(text + "\n"))
    yield Idle(stop_reason="end_turn")


def _help(coder: "Coder") -> str:
    lines = [f"- `/{name}` {description}" for name, (description, _) in BUILT_IN.items()]
    lines += [f"- `/{own.name}` {own.description}" for own in coder.own_commands.values()]
    where = f"Model: {coder.model.name}. Mode: {coder.mode()}."
    return "\n".join([where, "", "Commands:", *lines])


async def _context(coder: "Coder") -> str:
    used, window, items = await coder.fullness()
    of = f"about {used} tokens" + (f" of {window} ({100 * used // window} %)" if window else "")
    return f"The model sees {items} items, {of}."


async def _permissions(arguments: str, coder: "Coder") -> str:
    rules = await coder.rules()
    word, _, number = arguments.partition(" ")
    if word == "revoke":
        if not number.strip().isdecimal() or not 0 < int(number) <= len(rules):
            return (
                f"`/permissions revoke N`, where N is from 1 to {len(rules)}." if rules else "There is none to revoke."
            )
        rule = await coder.revoke(int(number) - 1)
        return f"Revoked: {rule.effect} {rule.tool} {rule.matched}"
    if not rules:
        return "Nothing is always allowed or forbidden in this session."
    return "\n".join(f"{n}. {rule.effect} `{rule.tool}` {rule.matched}" for n, rule in enumerate(rules, 1))


async def _option(name: str, value: str, coder: "Coder") -> tuple[OptionsChanged | None, str]:
    """Show an option or change it."""
    session = coder.session
    if not value:
        choices = ", ".join(MODES) if name == "mode" else ", ".join(coder.model_names())
        return None, f"The {name} is {session.option(name)}. There are: {choices}"
    try:
        await coder.set_option(name, value)
    except RequestFailed as error:
        return None, f"{error.message}: {value}"
    value = str(session.option(name))
    await keep_option(session, name, value)
    return OptionsChanged(session.options), f"The {name} is {value} now."


async def _undo(coder: "Coder") -> str:
    undone = await asyncio.to_thread(coder.changes.undo)
    if not undone.restored and not undone.left:
        return "There is nothing to undo."
    lines = [f"- put back {path}" for path in undone.restored]
    lines += [f"- left alone {path}: it is not what I wrote any more" for path in undone.left]
    return "\n".join(lines)

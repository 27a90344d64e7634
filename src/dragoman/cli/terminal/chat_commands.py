"""What the user tells the chat itself: `/mode`, `/model`, `/sessions` and their kin.

A first word with one slash, at its start, is an order: one of ours, or a command that the agent has announced. Any
other such word, with whatever signs are in it, is a mistake, and is not sent, unless it is the path of something (`/etc
is odd`). A word with another slash in it is a path (`/etc/hosts`), and is sent. A blank before the slash, and a second
slash behind it, send the line to the agent: `//word` as `/word`.
"""

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from dragoman.cli.agent_connection import chosen_option
from dragoman.cli.terminal.composer import CompletionWord
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.client.conversation import Conversation
from dragoman.vocabulary.options import Choice, Command, Select

ORDERS: Final = {
    "/help": "what there is",
    "/mode": "show or choose the agent's mode",
    "/model": "show or choose the model; a part of its name is enough",
    "/thinking": "show or choose how hard the model thinks",
    "/option": "show what else this agent lets you choose, or choose it: /option NAME VALUE",
    "/sessions": "show the sessions of this folder, or go to one",
    "/new": "begin another session",
    "/continue-with": "go on with another agent, which is told what was said and done here",
    "/exit": "leave",
}
# Those that choose a value of an option, by its category.
OPTIONS: Final = {"/mode": "mode", "/model": "model", "/thinking": "thought_level"}
CONTINUE_WITH: Final = "/continue-with"
# Also an order, and not worth a line of the help.
_QUIT: Final = "/quit"
LEAVING: Final = ("/exit", _QUIT)
_ORDER: Final = re.compile(r"/[^/\s]*")
# What a mistyped command begins with, before signs that no name has: `/mode` of `/mode=plan`.
_STEM: Final = re.compile(r"/[\w:.-]*\w|/")
# What may stand behind a path in a sentence, and is not its end.
_PUNCTUATION: Final = ".,:;!?)'\""
# Shown of a list that an agent has made.
SHOWN: Final = 100
# What the names of MCP servers' prompts begin with.
_OF_SERVER: Final = "/mcp__"
# Our own agent's key, and how many words of it are taken of any agent.
_MENTIONS: Final = "dragoman/mentions"
_MOST_MENTIONS: Final = 200
# Characters shown of a word that is no command.
_SHOWN_WORD: Final = 80


# What `/help` says behind the commands.
_KEYS: Final = (
    ("//word", "the same for the agent, as /word; a line with a space before the / goes to it as it is"),
    ("@path", "a file that goes along; completed while you type, by any letters of its path"),
    ("@server:uri", "a resource of an MCP server, which the agent reads"),
    ("!command", "run it in your shell; the agent is told of it with your next prompt"),
    ("Ctrl-G", "write the line in your editor ($VISUAL, $EDITOR)"),
    ("while it works", "Enter adds a line to the turn, or sends it afterwards; Tab always waits; Up takes it back"),
    ("Alt-Enter", "a new line; so does a \\ at the end of one"),
    ("Ctrl-C", "stop the agent, or give up the line (Up: again); twice on an empty line: leave"),
    ("Ctrl-D", "leave"),
)


class ChatCommand(NamedTuple):
    """A word that begins with a slash, and the rest of the line."""

    name: str
    rest: str


def order_in(text: str) -> ChatCommand | None:
    """Return the order that a prompt is, known or not; None for what is said to the agent, as `/etc/hosts` is."""
    first, *rest = text.split(maxsplit=1) or [""]
    if not text.startswith("/") or not _ORDER.fullmatch(first):
        return None
    return ChatCommand(first, rest[0].strip() if rest else "")


def as_sent(text: str) -> str:
    """Return what the agent gets of a prompt that is no order: `//word` is for it, as `/word`."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    is_escaped = text.startswith("//") and first != "//" and _ORDER.fullmatch(first[1:])
    return text[1:] if is_escaped else text


def is_path(order: ChatCommand) -> bool:
    """Return whether something on this machine is called so; the root is not meant: `/ help` is a slip."""
    path = order.name.rstrip(_PUNCTUATION)
    return path not in ("", "/") and os.path.lexists(path)


def is_ours(order: ChatCommand) -> bool:
    """Return whether the chat itself knows what to do."""
    return order.name in ORDERS or order.name == _QUIT


def is_announced(conversation: Conversation, order: ChatCommand) -> bool:
    """Return whether the agent has a command of that name, or will say itself that it has none.

    A prompt of an MCP server may be typed before the server is connected.
    """
    return order.name.startswith(_OF_SERVER) or any(
        isinstance(one, Command) and f"/{one.name}" == order.name for one in conversation.commands
    )


def unknown_order(conversation: Conversation, order: ChatCommand) -> str:
    """Return what to say of a word that is no command, with the one that was perhaps meant."""
    known = {offered.word.casefold(): offered.word for offered in commands_of(conversation)}
    found = _STEM.match(order.name.casefold())
    stem = found[0] if found else "/"
    near = difflib.get_close_matches(stem, known, n=5) or difflib.get_close_matches(order.name.casefold(), known, n=5)
    near.sort(key=lambda word: sorted(word) != sorted(stem))  # two letters in the wrong order come first
    suggestion = f"did you mean {sanitize_line(known[near[0]])}?" if near else "/help shows what there is."
    name = sanitize_line(order.name)[:_SHOWN_WORD]
    way = "a space before it" if order.name == "/" else f"/{name}"
    return f"no such command: {name}; {suggestion} ({way} sends it to the agent)"


def commands_of(conversation: Conversation) -> list[CompletionWord]:
    """Return the commands of the chat, then those of the agent."""
    ours = [CompletionWord(name, about) for name, about in ORDERS.items()]
    theirs = [
        CompletionWord(f"/{command.name}", command.description)
        for command in conversation.commands[:SHOWN]
        if isinstance(command, Command) and f"/{command.name}" not in ORDERS and _can_be_typed(command.name)
    ]
    return ours + theirs


def mentions_of(conversation: Conversation) -> list[CompletionWord]:
    """Return what the agent has to name behind an `@`: resources of MCP servers.

    It says so in `_meta` of a command: the protocol has no place for it, and this is replayed with the commands.
    """
    found: list[CompletionWord] = []
    for command in conversation.commands[:SHOWN]:
        listed = command.meta.get(_MENTIONS) if isinstance(command, Command) and command.meta else None
        for one in listed if isinstance(listed, list) else []:
            match one:
                case [str() as word, str() as name] if word.isprintable() and " " not in word:
                    found.append(CompletionWord(f"@{word}", name))
    return found[:_MOST_MENTIONS]


def _can_be_typed(name: str) -> bool:
    """Return whether the name of a command is one word of characters that show."""
    return bool(name) and name.isprintable() and _ORDER.fullmatch(f"/{name}") is not None


def values_of(conversation: Conversation, order: str) -> list[CompletionWord]:
    """Return the values that may follow a chat command."""
    option = chosen_option(conversation, OPTIONS[order]) if order in OPTIONS else None
    return [] if option is None else [CompletionWord(choice.value, choice.name) for choice in option.choices()]


class Choosing(NamedTuple):
    """What was meant by a word behind `/model` and its kin: a value to set, or several values to choose from."""

    value: str
    several: Sequence[Choice] = ()


def choosing(option: Select, word: str) -> Choosing:
    """Return what is meant: a choice by its value, by the end of it behind a slash, or by a part of it.

    A word that is in no choice is a value all the same: an agent may take more than it lists.
    """
    choices = option.choices()
    values = [choice.value for choice in choices]
    ends = [value for value in values if value.endswith(f"/{word}")]
    if word in values or len(ends) == 1:
        return Choosing(word if word in values else ends[0])
    parts = word.casefold().split()
    found = [choice for choice in choices if all(part in choice.value.casefold() for part in parts)]
    if len(found) == 1:
        return Choosing(found[0].value)
    return Choosing(word, found)


def help_lines(conversation: Conversation, columns: int) -> Iterator[str]:
    """Yield the lines of the help; what goes on stands behind the names."""
    theirs = [(sanitize_line(one.word), sanitize_line(one.about)[:200]) for one in commands_of(conversation)]
    for name, about in [*theirs, *_KEYS]:
        yield from wrap(f"{name:<14} {about}", columns, subsequent_indent=" " * 15, break_on_hyphens=False)


def all_option_lines(conversation: Conversation, wanted: str) -> Iterator[str]:
    """Yield the options of the agent, each with its value; `wanted`: the name of one that it has not, or empty."""
    options = [one for one in conversation.options if isinstance(one, Select)]
    if wanted:
        yield f"This agent has no option {sanitize_line(wanted)[:_SHOWN_WORD]}{'; it has:' if options else '.'}"
    elif not options:
        yield "This agent has no options to choose."
    for option in options[:SHOWN]:
        value = sanitize_line(option.current_value)
        yield f"{sanitize_line(option.config_id):<20} {value:<20} {sanitize_line(option.name)}"[:200]


def option_lines(option: Select, choices: Sequence[Choice] | None = None) -> Iterator[str]:
    """Yield the values of an option, or these of them, the one that is set marked."""
    choices = option.choices() if choices is None else choices
    for choice in choices[:SHOWN]:
        mark = "*" if choice.value == option.current_value else " "
        about = sanitize_line(choice.name) if choice.name.casefold() != choice.value.casefold() else ""
        more = sanitize_line(choice.description) if isinstance(choice.description, str) else ""
        about_command = ": ".join(part for part in (about, more) if part)
        yield f"{mark} {sanitize_line(choice.value):<20} {about_command}".rstrip()[:200]
    if len(choices) > SHOWN:
        yield f"({len(choices) - SHOWN:,} more; a part of the name behind the command finds them)"

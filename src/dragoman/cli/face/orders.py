"""What the user tells the chat itself: `/mode`, `/model`, `/sessions` and their kin.

An order that is none of ours goes to the agent, if the agent has a command of that name.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.cli.face.composer import Offered
from dragoman.cli.face.inert import inert_line
from dragoman.client.conversation import Conversation
from dragoman.vocabulary.options import Command, Select

ORDERS: Final = {
    "/help": "what there is",
    "/mode": "show or choose the agent's mode",
    "/model": "show or choose who thinks",
    "/sessions": "show the sessions of this folder, or go to one",
    "/new": "begin another session",
    "/exit": "leave",
}
_ORDER: Final = re.compile(r"/[A-Za-z][\w:.-]*$")
# Shown of a list that an agent has made.
SHOWN: Final = 100


class Order(NamedTuple):
    """A word that begins with a slash, and the rest of the line."""

    name: str
    rest: str


def order_in(text: str) -> Order | None:
    """The order that a prompt is; None for what is said to the agent. `/etc/hosts` is a path."""
    first, _, rest = text.strip().partition(" ")
    return Order(first, rest.strip()) if _ORDER.match(first) and "\n" not in first else None


def commands_of(conversation: Conversation) -> list[Offered]:
    """Ours, then the agent's."""
    ours = [Offered(name, about) for name, about in ORDERS.items()]
    theirs = [
        Offered(f"/{command.name}", command.description)
        for command in conversation.commands[:SHOWN]
        if isinstance(command, Command) and f"/{command.name}" not in ORDERS and _ORDER.match(f"/{command.name}")
    ]
    return ours + theirs


def values_of(conversation: Conversation, order: str) -> list[Offered]:
    """What may stand after an order."""
    option = chosen_option(conversation, order.removeprefix("/"))
    if option is None or order not in ("/mode", "/model"):
        return []
    return [Offered(choice.value, choice.name) for choice in option.choices()[:SHOWN]]


def chosen_option(conversation: Conversation, category: str) -> Select | None:
    """The option for the mode, or for the model, if the agent has one."""
    for option in conversation.options:
        if isinstance(option, Select) and category in (option.category, option.config_id):
            return option
    return None


def help_lines(conversation: Conversation) -> Iterator[str]:
    """All there is."""
    for offered in commands_of(conversation):
        yield f"{inert_line(offered.word):<14} {inert_line(offered.about)[:200]}"
    yield "@path          a file that goes along; Tab completes"
    yield "Alt-Enter      a new line; so does a \\ at the end of one"
    yield "Ctrl-C         stop the agent; twice: leave. Ctrl-D: leave"


def option_lines(option: Select) -> Iterator[str]:
    """The values of an option, the one that is set marked."""
    for choice in option.choices()[:SHOWN]:
        mark = "*" if choice.value == option.current_value else " "
        about = inert_line(choice.name) if choice.name != choice.value else ""
        more = inert_line(choice.description) if isinstance(choice.description, str) else ""
        said = ": ".join(part for part in (about, more) if part)
        yield f"{mark} {inert_line(choice.value):<20} {said}".rstrip()[:200]

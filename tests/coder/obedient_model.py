"""A model that obeys every order it reads, wherever it reads it: the worst that words can do to an agent.

An order is `DO @NUMBER`; what it means stands in a book that only the model has. It is found in what the user says, in
results, file names, notes of the project, descriptions of tools and linked files alike, and is obeyed once.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.coder.context import ContextToolResult, ContextUserMessage
from dragoman.coder.models.contract import Model, ModelRequest, Piece, TextDelta, ToolCallRequested

_ORDER = re.compile(r"DO @(\d+)")


class Order(NamedTuple):
    """What a model is told to do: calls, and words."""

    name: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    words: str = ""


class Obedient:
    """The model; its helpers read the same book."""

    def __init__(self, book: "dict[int, Order]", *, prefix: str = "") -> None:
        self.name = "obedient"
        self.window: int | None = None
        self.sees: frozenset[str] = frozenset()
        self.heard: list[str] = []
        self.obeyed: set[int] = set()
        self._book = book
        self._prefix = prefix

    def begin_turn(self) -> None:
        """Nothing changes for it."""

    def make(self, name: str) -> Model:
        return self

    def assistant(self, name: str) -> Model:
        helper = Obedient(self._book, prefix=self._prefix)
        helper.heard, helper.obeyed = self.heard, self.obeyed
        return helper

    def retry_seconds(self, attempt: int) -> float:
        return 0.01

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        texts = list(_texts(request))
        self.heard += [item.text for item in request.items[-20:] if isinstance(item, ContextToolResult)]
        fresh = [int(number) for text in texts for number in _ORDER.findall(text)]
        for number in dict.fromkeys(fresh):
            if number in self._book and number not in self.obeyed:
                self.obeyed.add(number)
                order = self._book[number]
                if order.words:
                    yield TextDelta(order.words)
                for tool, given in order.calls:
                    yield ToolCallRequested(tool, given)
                    if self._prefix:
                        yield ToolCallRequested(self._prefix + tool, given)
                return
        yield TextDelta("Done.")


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.system
    for card in request.tools:
        yield card.description
    # The latest first: an order of before was obeyed before.
    for item in reversed(request.items):
        if isinstance(item, ContextUserMessage):
            yield msgspec.json.encode([getattr(block, "text", "") for block in item.content]).decode()
        elif isinstance(item, ContextToolResult):
            yield item.text

"""A model on loopback that notes when it is asked and when it writes: what `bench.agents` measures agents with.

It speaks the wires of `tests.support.fake_model`.
"""

import json
import time
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.fake_model import ASIDE, ToolCall, Voice
from tests.support.upstream import Exchange

MARK: Final = "Measured words."
PROMPT: Final = "Say something."
FILE_TEXT: Final = "A small project."
# A command that does nothing, by which the request with its result is known.
COMMAND: Final = f"true '{FILE_TEXT}'"
# What is said of a reply that never ends.
HELD_WORDS: Final = "Half of a sentence and"


@dataclass
class Asked:
    """One request that offers tools, and when what was written to it."""

    arrived: float
    size: int
    body: dict[str, Any]
    text_written: float = 0.0
    done: float = 0.0

    @property
    def is_main(self) -> bool:
        """Whether it goes on with the conversation: its end is our prompt or the file that was read.

        Some agents ask for more with the same tools, such as what the user may want next.
        """
        end = json.dumps(_messages(self.body)[-2:])
        return PROMPT in end or FILE_TEXT in end


@dataclass
class TimedModel:
    """A reply for `upstream`.

    The next request of the main conversation gets what is set: a `call`, so many `deltas` in one write, or, where the
    model `holds`, words without an end. Where nothing is set it gets words.
    """

    voice: Voice
    asked: list[Asked] = field(default_factory=list)
    requests: int = 0  # also those on the side, such as for a title
    call: ToolCall | None = None
    deltas: int = 0
    holds: bool = False

    async def __call__(self, exchange: Exchange) -> None:
        arrived = time.perf_counter()
        request = exchange.request
        self.requests += 1
        if not request.path.partition("?")[0].endswith(self.voice.streams_at.rstrip("?")):
            await exchange.answer(200, ASIDE)
        elif not request.body.get("tools"):
            await exchange.stream(self.voice.message("Aside", None))
        else:
            asked = Asked(arrived, int(request.headers.get("content-length", 0)), request.body)
            self.asked.append(asked)
            await (self._play(exchange, asked) if asked.is_main else self._say(exchange, asked, None))

    def main(self) -> list[Asked]:
        """Return the requests of the main conversation."""
        return [one for one in self.asked if one.is_main]

    async def _play(self, exchange: Exchange, asked: Asked) -> None:
        call, deltas, holds = self.call, self.deltas, self.holds
        self.call, self.deltas, self.holds = None, 0, False
        if holds:
            await exchange.begin_stream()
            await exchange.chunk(b"".join(self.voice.opening(HELD_WORDS)))
            await exchange.hung_up()
        elif deltas:
            said = self.voice.opening(MARK)
            await exchange.begin_stream()
            await exchange.chunk(b"".join([*said, *said[-1:] * (deltas - 1), *self.voice.ending(MARK * deltas)]))
            await exchange.write(b"0\r\n\r\n")
        else:
            await self._say(exchange, asked, call)

    async def _say(self, exchange: Exchange, asked: Asked, call: ToolCall | None) -> None:
        await exchange.begin_stream()
        for event in self.voice.message(MARK, call):
            if not asked.text_written and MARK.encode() in event:
                asked.text_written = time.perf_counter()
            await exchange.chunk(event)
        asked.done = time.perf_counter()
        await exchange.write(b"0\r\n\r\n")


def equal_share(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Return how much of a request the next one begins with, as a provider's cache sees it: tools, system, messages."""
    one, other = _as_cached(before), _as_cached(after)
    differs = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differs, min(len(one), len(other))) / max(len(one), 1)


def _as_cached(body: dict[str, Any]) -> str:
    """Return a request as one text, in the order in which providers read it."""
    text = "".join(
        json.dumps(body[name]) for name in ("tools", "system", "systemInstruction", "instructions") if name in body
    )
    return text + "".join(json.dumps(_without_marks(message)) for message in _messages(body))


def _messages(body: dict[str, Any]) -> list[Any]:
    found = body.get("messages") or body.get("input") or body.get("contents") or []
    return found if isinstance(found, list) else [found]


def _without_marks(value: object) -> object:
    """Return a message without the marks that say how far a cache reaches: they move by design."""
    if isinstance(value, dict):
        return {name: _without_marks(inner) for name, inner in value.items() if name != "cache_control"}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value

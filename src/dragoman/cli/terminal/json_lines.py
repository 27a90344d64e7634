"""Own the output of `dragoman run --stream-json`: one object a line.

Whatever the agent speaks, it has version 2's names and fields.

Events are written as they come; a reader folds them, or takes the last line.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from dragoman.cli.text_width import harmless_json
from dragoman.dialects.event_json import update_json
from dragoman.vocabulary.events import AnyEvent, Cost, UnknownEvent, Usage

_NAME: Final = b'{"sessionUpdate":'
_TYPE: Final = b'{"type":'


class JsonLines:
    """Writes events and the result of a turn as lines."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def event(self, event: AnyEvent) -> None:
        """Write one event; nothing for an event without a form in version 2."""
        line = update_json(event)
        if line is not None:
            self._line(_typed(line, plain=event.extras is UNSET and type(event) is not UnknownEvent))

    def result(
        self,
        session_id: str | None,
        stop_reason: str,
        usage: Usage | None,
        error: object,
        denied: Sequence[Mapping[str, str]] = (),
        cost: Cost | None = None,
        *,
        output: object = UNSET,
    ) -> None:
        """Write the last line. `denied` is what the agent wanted to do and was not allowed to; `cost` is what the
        session has cost so far, `usage` the tokens of the turn, `output` the answer as the value that a schema asks
        for."""
        body: dict[str, object] = {
            "type": "result",
            "sessionId": session_id,
            "stopReason": stop_reason,
            "usage": None if usage is None else plain_usage(usage),
        }
        if cost is not None:
            body["cost"] = {"amount": cost.amount, "currency": cost.currency}
        if output is not UNSET:
            body["output"] = output
        if denied:
            body["denied"] = denied
        if error is not None:
            body["error"] = error
        self._line(msgspec.json.encode(body))

    def _line(self, line: bytes) -> None:
        self._write(harmless_json(line) + "\n")


def _typed(line: bytes, *, plain: bool) -> bytes:
    """Return the line with `sessionUpdate` also as `type`. A `type` of the update's own is dropped: it could lie."""
    if plain and line.startswith(_NAME):
        name = line[len(_NAME) : line.index(b'"', len(_NAME) + 1) + 1]
        return _TYPE + name + b"," + line[1:]
    fields = msgspec.json.decode(line)
    fields.pop("type", None)
    return msgspec.json.encode({"type": fields["sessionUpdate"], **fields})


def plain_usage(usage: Usage) -> dict[str, object]:
    """Return the tokens that a turn has used, as far as the agent has told them."""
    fields = {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "thoughtTokens": usage.thought_tokens,
        "cachedReadTokens": usage.cached_read_tokens,
        "cachedWriteTokens": usage.cached_write_tokens,
    }
    return {name: value for name, value in fields.items() if isinstance(value, int)}

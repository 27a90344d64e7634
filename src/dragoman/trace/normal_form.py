"""Messages in a form in which two runs of the same conversation are equal: without what each run makes up.

    ids       of requests, sessions, calls, messages and the like become numbers, in the order of their first use; two
              places with the same id have the same number
    times     become the word `time`
    pieces    of one text are one message

An id is a number wherever its text stands alone: a session id in `_meta` too. Pure.
"""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman.trace.exchanges import Exchange
from dragoman.trace.records import TO_AGENT, Direction
from dragoman.trace.summary import chunk_text

# Fields whose values a program makes up. Not ids that it offers, such as those of modes, options and models.
ID_FIELDS: Final = frozenset(
    {
        *("sessionId", "toolCallId", "messageId", "terminalId", "requestId", "elicitationId", "compactionId"),
        *("planId", "connectionId", "parentSessionId", "parentToolCallId", "operationId"),
    }
)
TIME_FIELDS: Final = frozenset({"updatedAt", "createdAt", "timestamp", "startedAt", "endedAt", "at"})


class NormalMessage(NamedTuple):
    """A message, or the pieces of one text. `value` is equal for equal messages; `exchange` is the first piece."""

    exchange: Exchange
    direction: Direction
    method: str
    value: Any

    @property
    def line(self) -> int:
        """Return the line in the file, of the first piece."""
        return self.exchange.frame.line

    @property
    def label(self) -> str:
        """Return the direction, the kind and the method, in a few words."""
        arrow = "->" if self.direction == TO_AGENT else "<-"
        update = self.exchange.update
        name = f"update {update}" if update else self.method
        return f"{arrow} {'= ' if self.exchange.kind == 'response' else ''}{name}"


class NormalForm:
    """Makes the form of one conversation. `ids` are what it calls the ids that it has met."""

    def __init__(self, *, ignored_fields: Iterable[str] = ()) -> None:
        self.ids: Final[dict[str, str]] = {}
        self._counts: dict[str, int] = {}
        self._ignored: Final = frozenset(ignored_fields)

    def message(self, exchange: Exchange, text: str | None = None) -> NormalMessage:
        """Return a message in the form; `text`: all of the text of which it is the first piece."""
        frame = exchange.frame
        if exchange.kind == "unreadable":
            return NormalMessage(exchange, frame.direction, "no message", frame.data.decode(errors="replace"))
        value = {name: part for name, part in exchange.message.items() if name not in ("jsonrpc", "id")}
        if exchange.kind == "response":
            value["method"] = exchange.method
        if text is not None:
            value["params"] = _with_text(value["params"], text)
        return NormalMessage(exchange, frame.direction, exchange.method or "unknown", self._normal(value, ""))

    def _normal(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            kept = [one for one in value.items() if one[0] not in self._ignored]
            # Ids first, in a fixed order: which of two is met first must not depend on how a program sorts its fields.
            kept.sort(key=lambda one: (one[0] not in ID_FIELDS, one[0]))
            return {field: self._normal(one, field) for field, one in kept}
        if isinstance(value, list):
            return [self._normal(one, name) for one in value]
        if name in TIME_FIELDS and isinstance(value, str | int):
            return "time"
        if isinstance(value, str | int) and not isinstance(value, bool):
            return self._id(str(value), name) if name in ID_FIELDS else self.ids.get(str(value), value)
        return value

    def _id(self, id: str, name: str) -> str:
        if id not in self.ids:
            kind = name[:-2].removeprefix("parent").casefold()
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self.ids[id] = f"{kind} {self._counts[kind]}"
        return self.ids[id]


def normal_messages(
    exchanges: Iterable[Exchange], *, ignored_fields: Iterable[str] = (), ignored_methods: Sequence[str] = ()
) -> list[NormalMessage]:
    """Return the messages in the form; those of a method or an update that matches a pattern are left out."""
    form = NormalForm(ignored_fields=ignored_fields)
    return [form.message(first, text) for first, text in joined(exchanges, ignored_methods)]


def joined(exchanges: Iterable[Exchange], ignored_methods: Sequence[str] = ()) -> Iterator[tuple[Exchange, str | None]]:
    """Yield each message, and the text of all its pieces where it is the first one of a text.

    Pieces of one text are joined across messages of the other side, which come when they come.
    """
    # One text for each direction that is not over yet; what comes behind it in the other direction waits for it.
    waiting: list[tuple[Exchange, list[str] | None]] = []
    for exchange in exchanges:
        if is_ignored(exchange, ignored_methods):
            continue
        text = chunk_text(exchange)
        own = [one for one in waiting if one[0].frame.direction == exchange.frame.direction]
        if text is not None and own and own[-1][1] is not None and continues(own[-1][0], exchange):
            own[-1][1].append(text)
            continue
        if own and own[-1][1] is not None:
            yield from _taken(waiting)
        waiting.append((exchange, None if text is None else [text]))
        if not any(one[1] is not None for one in waiting):
            yield from _taken(waiting)
    yield from _taken(waiting)


def _taken(waiting: list[tuple[Exchange, list[str] | None]]) -> Iterator[tuple[Exchange, str | None]]:
    for exchange, texts in waiting:
        yield exchange, None if texts is None else "".join(texts)
    waiting.clear()


def is_ignored(exchange: Exchange, patterns: Sequence[str]) -> bool:
    """Return whether a message is left out: its method or its update matches a pattern."""
    names = (exchange.method, exchange.update)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names if name)


def continues(before: Exchange, after: Exchange) -> bool:
    """Return whether a piece belongs to the text of the piece before it."""
    return (before.update, before.session) == (after.update, after.session) and _id_of(before) == _id_of(after)


def _id_of(exchange: Exchange) -> object:
    update = exchange.params.get("update")
    return update.get("messageId") if isinstance(update, dict) else None


def _with_text(params: Any, text: str) -> Any:
    update: Mapping[str, Any] = params["update"]
    return {**params, "update": {**update, "content": {**update["content"], "text": text}}}

"""What the frames of a trace are: requests joined to their responses, notifications, and what is neither.

Pure. Ids belong to one connection and one direction: both sides may have a request 1 at the same time. A response is
joined to the latest request of that id that has none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction, TraceFrame

Kind = Literal["request", "response", "notification", "unreadable"]


@dataclass(eq=False, slots=True)
class Exchange:
    """A frame with what it means and what it belongs to. Only `Exchanges.add` changes one, when its response comes."""

    frame: TraceFrame
    kind: Kind
    message: Mapping[str, Any]
    method: str = ""  # of a response: that of its request
    session: str = ""
    request: "Exchange | None" = None
    response: "Exchange | None" = None

    @property
    def seconds(self) -> float | None:
        """Return how long a request waited for its response; None without one."""
        ends = (
            (self.frame, self.response.frame)
            if self.response
            else (self.request.frame, self.frame)
            if self.request
            else None
        )
        return None if ends is None else ends[1].elapsed - ends[0].elapsed

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the params as an object; empty if they are none."""
        return _object(self.message.get("params"))

    @property
    def result(self) -> Mapping[str, Any]:
        """Return the result as an object; empty if it is none."""
        return _object(self.message.get("result"))

    @property
    def error(self) -> Mapping[str, Any]:
        """Return the error of a response; empty if it has none."""
        return _object(self.message.get("error"))

    @property
    def update(self) -> str:
        """Return which update of a session this is; empty for any other message."""
        if self.method != "session/update":
            return ""
        kind = _object(self.params.get("update")).get("sessionUpdate")
        return kind if isinstance(kind, str) else ""


class Exchanges:
    """Joins frames as they come."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, Direction, str], Exchange] = {}

    def __repr__(self) -> str:
        return f"<Exchanges open={len(self._open)}>"

    def add(self, frame: TraceFrame) -> Exchange:
        """Return what a frame is; a response is joined to its request."""
        message = decode_message(frame.data)
        method, id = message.get("method"), message.get("id")
        if isinstance(method, str):
            exchange = Exchange(
                frame, "notification" if id is None else "request", message, method, _session(message.get("params"))
            )
            if id is not None:
                self._open[frame.connection, frame.direction, id_key(id)] = exchange
            return exchange
        if "result" not in message and "error" not in message:
            return Exchange(frame, "unreadable", message)
        asked_by: Direction = TO_CLIENT if frame.direction == TO_AGENT else TO_AGENT
        request = self._open.pop((frame.connection, asked_by, id_key(id)), None)
        exchange = Exchange(frame, "response", message, request=request)
        if request is not None:
            request.response = exchange
            exchange.method = request.method
            exchange.session = request.session or _session(message.get("result"))
        return exchange

    def unanswered(self) -> list[Exchange]:
        """Return the requests that have no response yet."""
        return list(self._open.values())


def exchanges_of(frames: Iterable[TraceFrame]) -> list[Exchange]:
    """Return what each frame is, in their order."""
    joined = Exchanges()
    return [joined.add(frame) for frame in frames]


def decode_message(data: bytes) -> Mapping[str, Any]:
    """Return a frame as a message; empty if it is no JSON object."""
    try:
        return _object(msgspec.json.decode(data))
    except (ValueError, RecursionError):
        return {}


def id_key(id: object) -> str:
    """Return what an id is known by: 1 and "1" are two."""
    return f"{type(id).__name__}:{id}"


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _session(value: object) -> str:
    found = _object(value).get("sessionId")
    return found if isinstance(found, str) else ""

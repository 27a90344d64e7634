"""What the server tells a Prometheus: how many, how much, how long; never what.

Every label has few values: a method of the protocol, a stop reason, an HTTP status. A client cannot add one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dragoman.gateway.histogram import ANSWER, CHUNK, TURN, Histogram

if TYPE_CHECKING:
    from dragoman.gateway.hub import Hub

_ENDS: Final = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"})
_HELP: Final = {
    "chunk_seconds": "From the agent's word to the client's socket, for the oldest word of each write.",
    "answer_seconds": "From a request of a client to its answer; a prompt is answered when it is accepted.",
    "turn_seconds": "From the beginning of a turn to its end.",
}


class Metrics:
    """What was measured since the start."""

    def __init__(self) -> None:
        self.chunk: Final = Histogram(CHUNK)
        self.turn: Final = Histogram(TURN)
        self.answers: Final[dict[str, Histogram]] = {}
        self.ends: Final[Counter[str]] = Counter()
        self.refused: Final[Counter[int]] = Counter()

    def answered(self, method: str, seconds: float) -> None:
        """A request was answered. `method` is one of ours, never the client's own word."""
        histogram = self.answers.get(method)
        if histogram is None:
            histogram = self.answers[method] = Histogram(ANSWER)
        histogram.observe(seconds)

    def ended(self, stop_reason: object, seconds: float) -> None:
        """A turn is over."""
        self.turn.observe(seconds)
        self.ends[stop_reason if isinstance(stop_reason, str) and stop_reason in _ENDS else "other"] += 1


def metrics_of(hub: "Hub") -> bytes:
    """The exposition format, version 0.0.4."""
    return ("\n".join(_lines(hub)) + "\n").encode()


def _lines(hub: "Hub") -> Iterator[str]:
    fronts = list(hub.connections.values())
    windows = [window for front in fronts for window in (front.connection.main, *front.connection.sessions.values())]
    unread = [window.unread for window in windows]
    gauges = {
        "connections": (len(fronts), "Connections that are open or can be resumed."),
        "streams": (sum(front.connection.readers for front in fronts), "Streams that have a reader."),
        "agents": (sum(not back.asleep for back in hub.backs), "Agents that run."),
        "agents_asleep": (sum(back.asleep for back in hub.backs), "Agents that are started when they are needed."),
        "sessions": (len(hub.rooms), "Sessions that are open."),
        "turns": (sum(room.running for room in hub.rooms.values()), "Turns that run."),
        "questions": (sum(room.waits for room in hub.rooms.values()), "Sessions that wait for a client's answer."),
        "held_bytes": (sum(window.size for window in windows), "Messages kept for replay."),
        "unread_bytes": (sum(unread), "Messages that wait for a reader, of all streams."),
        "unread_bytes_most": (max(unread, default=0), "The same of the stream that is furthest behind."),
        "streams_behind": (sum(window.behind for window in windows), "Streams whose reader the agent waits for."),
    }
    for name, (value, about) in gauges.items():
        yield from _head(name, "gauge", about)
        yield f"dragoman_{name} {value}"
    measured = hub.measured
    yield from _head("turns_ended_total", "counter", "Turns by the way they ended.")
    for end, count in sorted(measured.ends.items()):
        yield f'dragoman_turns_ended_total{{end="{end}"}} {count}'
    yield from _head("refused_total", "counter", "Requests by the status they were refused with.")
    for status, count in sorted(measured.refused.items()):
        yield f'dragoman_refused_total{{status="{status}"}} {count}'
    yield from _head("events_total", "counter", "What happened since the start.")
    for name in sorted(hub.counts):
        yield f'dragoman_events_total{{event="{name}"}} {hub.counts[name]}'
    for name, histogram in (("chunk_seconds", measured.chunk), ("turn_seconds", measured.turn)):
        yield from _head(name, "histogram", _HELP[name])
        yield from histogram.lines(f"dragoman_{name}")
    yield from _head("answer_seconds", "histogram", _HELP["answer_seconds"])
    for method, histogram in sorted(measured.answers.items()):
        yield from histogram.lines("dragoman_answer_seconds", f'method="{method}"')


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP dragoman_{name} {about}"
    yield f"# TYPE dragoman_{name} {kind}"

"""What the server tells a Prometheus: how many, how much, how long; never what.

Every label has few values: a method of the protocol, a stop reason, an HTTP status. A client cannot add one.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.events import STOP_REASONS

if TYPE_CHECKING:
    from dragoman.gateway.hub import Hub

# Seconds. A chunk should pass in well under 20 ms; an answer may need a process to start; a turn may take hours.
CHUNK: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
ANSWER: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
TURN: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
_ENDS: Final = STOP_REASONS | {"error"}
_HELP: Final = {
    "chunk_seconds": "From the agent's word to the client's socket, for the oldest word of each write.",
    "answer_seconds": "From a request of a client to its answer; a prompt is answered when it is accepted.",
    "turn_seconds": "From the beginning of a turn to its end.",
}
# The method of a request in metrics and logs: one of a fixed list, so that a client cannot add names.
_NAMES: Final[dict[type[Request], str]] = {
    ask.Login: "auth/login",
    ask.Logout: "auth/logout",
    ask.GetAuthStatus: "auth/status",
    ask.NewSession: "session/new",
    ask.ForkSession: "session/fork",
    ask.ListSessions: "session/list",
    ask.CloseSession: "session/close",
    ask.DeleteSession: "session/delete",
    ask.GetSessionStatus: "session/status",
    ask.SetOption: "session/set_config_option",
    ask.PromptRequest: "session/prompt",
}


class Histogram:
    """Observations counted by upper bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Add an observation."""
        # A value on a bound belongs to the bucket of that bound (`le`), which is what `bisect_left` finds.
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Yield the lines that Prometheus reads. `labels` is empty, or `key="value"`."""
        before = f"{labels}," if labels else ""
        total = 0
        for bound, count in zip((*self._bounds, None), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{before}le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}'
        after = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{after} {self._sum:.6f}"
        yield f"{name}_count{after} {total}"


class Metrics:
    """What was measured since the start of the server."""

    def __init__(self) -> None:
        self.chunk: Final = Histogram(CHUNK)
        self.turn: Final = Histogram(TURN)
        self.answers: Final[dict[str, Histogram]] = {}
        self.ends: Final[Counter[str]] = Counter()
        self.refused: Final[Counter[int]] = Counter()

    def on_reply(self, method: str, seconds: float) -> None:
        """Count a reply. `method` is a name of `method_of`, never the client's own."""
        # Made with the first reply: a method that is never used has no series.
        histogram = self.answers.get(method)
        if histogram is None:
            histogram = self.answers[method] = Histogram(ANSWER)
        histogram.observe(seconds)

    def on_turn_end(self, stop_reason: object, seconds: float) -> None:
        """Count a turn that is over, and how it ended."""
        self.turn.observe(seconds)
        # A stop reason comes from the agent, so it may be anything: unknown ones are one label.
        self.ends[stop_reason if isinstance(stop_reason, str) and stop_reason in _ENDS else "other"] += 1


def method_of(request: Request) -> str:
    """Return the method of a request, as version 2 names it; "other" for what is not in the list."""
    if isinstance(request, ask.ResumeSession):
        return "session/load" if request.replay_from else "session/resume"
    return _NAMES.get(type(request), "other")


def metrics_of(hub: "Hub") -> bytes:
    """Return all metrics in the exposition format of Prometheus, version 0.0.4."""
    return ("\n".join(_lines(hub)) + "\n").encode()


def _lines(hub: "Hub") -> Iterator[str]:
    connections = [client_side.connection for client_side in hub.connections.values()]
    buffers = hub.connections.buffers()
    unread = [buffer.unread for buffer in buffers]
    gauges = {
        "connections": (len(connections), "Connections that are open or can be resumed."),
        "streams": (sum(one.readers for one in connections), "Streams that have a reader."),
        "agents": (hub.agents.processes, "Agents that run."),
        "agents_asleep": (len(hub.agents) - hub.agents.processes, "Agents that are started when they are needed."),
        "sessions": (len(hub.sessions), "Sessions that are open."),
        "turns": (len(hub.sessions.running()), "Turns that run."),
        "questions": (
            sum(one.has_questions for one in hub.sessions.values()),
            "Sessions that wait for a client's answer.",
        ),
        "held_bytes": (sum(buffer.size for buffer in buffers), "Messages kept for replay."),
        "unread_bytes": (sum(unread), "Messages that wait for a reader, of all streams."),
        "unread_bytes_most": (max(unread, default=0), "The same of the stream that is furthest behind."),
        "streams_behind": (sum(buffer.is_behind for buffer in buffers), "Streams whose reader the agent waits for."),
    }
    for name, (value, about) in gauges.items():
        yield from _head(name, "gauge", about)
        yield f"dragoman_{name} {value}"
    measured, counts = hub.monitor.metrics, hub.monitor.counts
    yield from _head("turns_ended_total", "counter", "Turns by the way they ended.")
    for end, count in sorted(measured.ends.items()):
        yield f'dragoman_turns_ended_total{{end="{end}"}} {count}'
    yield from _head("refused_total", "counter", "Requests by the status they were refused with.")
    for status, count in sorted(measured.refused.items()):
        yield f'dragoman_refused_total{{status="{status}"}} {count}'
    yield from _head("events_total", "counter", "What happened since the start.")
    for name in sorted(counts):
        yield f'dragoman_events_total{{event="{name}"}} {counts[name]}'
    for name, histogram in (("chunk_seconds", measured.chunk), ("turn_seconds", measured.turn)):
        yield from _head(name, "histogram", _HELP[name])
        yield from histogram.lines(f"dragoman_{name}")
    yield from _head("answer_seconds", "histogram", _HELP["answer_seconds"])
    for method, histogram in sorted(measured.answers.items()):
        yield from histogram.lines("dragoman_answer_seconds", f'method="{method}"')


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP dragoman_{name} {about}"
    yield f"# TYPE dragoman_{name} {kind}"

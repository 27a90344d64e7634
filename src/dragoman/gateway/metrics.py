"""What the server tells a Prometheus: how many, how much, how long; never what.

Every label has few values: a method of the protocol, a stop reason, an HTTP status. A client cannot add one.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.events import STOP_REASONS

if TYPE_CHECKING:
    from prometheus_client import Metric

    from dragoman.gateway.hub import Hub
    from dragoman.gateway.monitor import Monitor

# Seconds. A chunk should pass in well under 20 ms; an answer may need a process to start; a turn may take hours.
CHUNK: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
ANSWER: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
TURN: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
_ENDS: Final = STOP_REASONS | {"error"}
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
    ask.SteerTurn: "session/steering",
    ask.RewindSession: "session/rewind",
}


class Metrics:
    """What was measured since the start of the server, in a registry of its own, without the metrics of other code."""

    def __init__(self) -> None:
        # Here and not above: only a server that runs needs the library.
        import prometheus_client as prometheus

        registry = self.registry = prometheus.CollectorRegistry()
        self.chunk: Final = ChunkTimes()
        registry.register(self.chunk)
        self.turn: Final = prometheus.Histogram(
            "dragoman_turn_seconds", "From the beginning of a turn to its end.", buckets=TURN, registry=registry
        )
        # A method that is never used, like an end or a status, has no series: those are made when they are first seen.
        self.answers: Final = prometheus.Histogram(
            "dragoman_answer_seconds",
            "From a request of a client to its answer; a prompt is answered when it is accepted.",
            ["method"],
            buckets=ANSWER,
            registry=registry,
        )
        self.ends: Final = prometheus.Counter(
            "dragoman_turns_ended", "Turns by the way they ended.", ["end"], registry=registry
        )
        self.refused: Final = prometheus.Counter(
            "dragoman_refused", "Requests by the status they were refused with.", ["status"], registry=registry
        )

    def on_reply(self, method: str, seconds: float) -> None:
        """Count a reply. `method` is a name of `method_of`, never the client's own."""
        self.answers.labels(method).observe(seconds)

    def on_turn_end(self, stop_reason: object, seconds: float) -> None:
        """Count a turn that is over, and how it ended."""
        self.turn.observe(seconds)
        # A stop reason comes from the agent, so it may be anything: unknown ones are one label.
        self.ends.labels(stop_reason if isinstance(stop_reason, str) and stop_reason in _ENDS else "other").inc()


class ChunkTimes:
    """How long chunks were on their way. A `Collector` of the library that makes its histogram when it is asked for:
    chunks come by the hundred thousand, and to count one in a histogram of the library takes as long as to send it."""

    def __init__(self) -> None:
        self._counts = [0] * (len(CHUNK) + 1)  # by bucket, each without those below it
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a chunk that was so many seconds on its way."""
        self._counts[bisect_left(CHUNK, seconds)] += 1
        self._seconds += seconds

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import HistogramMetricFamily
        from prometheus_client.utils import floatToGoString

        about = "From the agent's word to the client's socket, for the oldest word of each write."
        names = [*map(floatToGoString, CHUNK), "+Inf"]
        buckets = list(zip(names, accumulate(self._counts), strict=True))
        yield HistogramMetricFamily("dragoman_chunk_seconds", about, buckets=buckets, sum_value=self._seconds)


def method_of(request: Request) -> str:
    """Return the method of a request, as version 2 names it; "other" for what is not in the list."""
    if isinstance(request, ask.ResumeSession):
        return "session/load" if request.replay_from else "session/resume"
    return _NAMES.get(type(request), "other")


def metrics_of(hubs: "Collection[Hub]", monitor: "Monitor") -> bytes:
    """Return the metrics of all agents together in the exposition format of Prometheus, version 0.0.4."""
    from prometheus_client import generate_latest

    return generate_latest(_HubCollector(hubs, monitor))


class _HubCollector:
    """What is counted when it is asked for, and then what was measured; a `Collector` of the library."""

    def __init__(self, hubs: "Collection[Hub]", monitor: "Monitor") -> None:
        self._hubs = hubs
        self._monitor = monitor

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, (value, about) in _gauges(self._hubs).items():
            yield GaugeMetricFamily(f"dragoman_{name}", about, value)
        events = CounterMetricFamily("dragoman_events", "What happened since the start.", labels=["event"])
        for name, count in sorted(self._monitor.counts.items()):
            events.add_metric([name], count)
        yield events
        for metric in self._monitor.metrics.registry.collect():
            # Without the times at which series were created: they would be one more series beside each.
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def _gauges(hubs: "Collection[Hub]") -> dict[str, tuple[int, str]]:
    connections = [client_side.connection for hub in hubs for client_side in hub.connections.values()]
    # Looked at when they are asked for: a number that is kept up to date is wrong for good after one path that forgot
    # it.
    sessions = [shared for hub in hubs for shared in hub.sessions.values()]
    buffers = [buffer for hub in hubs for buffer in hub.connections.buffers()]
    # Without the streams to other nodes: those are agents too, and have no process here that could be started.
    agents = sum(not one.is_of_other_node for hub in hubs for one in hub.agents)
    processes = sum(hub.agents.processes for hub in hubs)
    unread = [buffer.unread for buffer in buffers]
    return {
        "connections": (len(connections), "Connections that are open or can be resumed."),
        "streams": (sum(one.readers for one in connections), "Streams that have a reader."),
        "agents": (processes, "Agents that run."),
        "agents_asleep": (agents - processes, "Agents that are started when they are needed."),
        "sessions": (len(sessions), "Sessions that are open."),
        "turns": (sum(shared.is_running for shared in sessions), "Turns that run."),
        "questions": (
            sum(one.has_questions for one in sessions),
            "Sessions that wait for a client's answer.",
        ),
        "held_bytes": (sum(buffer.size for buffer in buffers), "Messages kept for replay."),
        "unread_bytes": (sum(unread), "Messages that wait for a reader, of all streams."),
        "unread_bytes_most": (max(unread, default=0), "The same of the stream that is furthest behind."),
        "streams_behind": (sum(buffer.is_behind for buffer in buffers), "Streams whose reader the agent waits for."),
    }

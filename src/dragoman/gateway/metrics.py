"""What the server tells a Prometheus: how many, how much, never what."""

from collections.abc import Iterator

from dragoman.gateway.hub import Hub


def metrics_of(hub: Hub) -> bytes:
    """The exposition format, version 0.0.4."""
    return ("\n".join(_lines(hub)) + "\n").encode()


def _lines(hub: Hub) -> Iterator[str]:
    fronts = list(hub.connections.values())
    windows = [window for front in fronts for window in (front.connection.main, *front.connection.sessions.values())]
    gauges = {
        "connections": (len(fronts), "Connections that are open or can be resumed."),
        "streams": (sum(front.connection.readers for front in fronts), "Streams that somebody reads."),
        "agents": (len(hub.backs), "Agents at work."),
        "sessions": (len(hub.rooms), "Sessions that are open."),
        "turns": (sum(room.running for room in hub.rooms.values()), "Turns that run."),
        "held_bytes": (sum(window.size for window in windows), "Messages kept for replay."),
    }
    for name, (value, about) in gauges.items():
        yield f"# HELP dragoman_{name} {about}"
        yield f"# TYPE dragoman_{name} gauge"
        yield f"dragoman_{name} {value}"
    yield "# HELP dragoman_events_total What happened since the start."
    yield "# TYPE dragoman_events_total counter"
    for name in sorted(hub.counts):
        yield f'dragoman_events_total{{event="{name}"}} {hub.counts[name]}'

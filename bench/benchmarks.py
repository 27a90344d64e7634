"""What is measured: each benchmark measures one peer once and hands back its figures."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bench import harness, limits
from bench.harness import Child, Guardian, PeerFailed
from bench.limits import Sizes
from bench.peers.outcome import percentiles
from bench.roster import RAW_AGENT, Peer

Figures = dict[str, float]
Measure = Callable[[Guardian, Peer, Sizes], Figures]

FIRST_REQUEST_ID: Final = 1_000_001
"""Ids of seven digits: an answer is recognised by its id's bytes alone."""

OTHER_UPDATES: Final = 8
"""A peer may add a few updates of its own (a title, commands, usage) to a turn of N chunks, never fewer than N."""


@dataclass(frozen=True)
class Figure:
    """One column of a benchmark's table."""

    key: str
    title: str
    better: Literal["more", "less"]
    decimals: int = 0
    is_cpu: bool = False
    """CPU time of the peer alone: what other jobs on the machine disturb least."""


@dataclass(frozen=True)
class Benchmark:
    name: str
    title: str
    figures: tuple[Figure, ...]
    """The first one is what ratios are made of."""
    measure: Measure
    without: frozenset[str] = frozenset()
    """Peers that it says nothing about."""

    @property
    def cpu(self) -> Figure | None:
        return next((figure for figure in self.figures if figure.is_cpu), None)

    def repetitions(self, sizes: Sizes) -> int:
        return sizes.starts if self.name == "start" else sizes.repetitions


def start(guardian: Guardian, peer: Peer, _: Sizes) -> Figures:
    began = time.perf_counter()
    with Child(guardian, peer.agent, peer.environment, limits.START_SECONDS) as child:
        child.send(harness.initialize_request())
        answer = child.read_line()
        wall = time.perf_counter() - began
        if b'"result"' not in answer:
            raise PeerFailed(f"initialize answered {answer[:200]!r}")
        return {"wall_ms": wall * 1e3, "cpu_ms": child.kill().cpu_seconds * 1e3}


def stream_agent(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with Child(guardian, peer.agent, peer.environment) as child:
        prompt = harness.prompt_request(harness.open_session(child), f"stream {sizes.chunks} {limits.CHUNK_TEXT}")
        cpu, began = child.cpu(), time.perf_counter()
        child.send(prompt)
        heard = harness.hear_turn(child)
        wall = time.perf_counter() - began
        expect_updates(sizes.chunks, heard.updates)
        return {
            "per_second": sizes.chunks / wall,
            "cpu_s": (child.cpu() - cpu) * 100_000 / sizes.chunks,
            "line_bytes": heard.size / sizes.chunks,
        }


def stream_client(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    return _streamed(guardian, peer, RAW_AGENT, sizes)


def stream_both(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    return _streamed(guardian, peer, peer.agent, sizes)


def sequential_agent(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with harness.one_core(), Child(guardian, peer.agent, peer.environment) as child:
        session_id = harness.open_session(child)
        numbers = range(FIRST_REQUEST_ID, FIRST_REQUEST_ID + sizes.requests)
        lines = [(str(number).encode(), harness.mode_request(session_id, number)) for number in numbers]
        return percentiles([_round_trip(child, number, line) for number, line in lines])


def sequential_client(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with harness.one_core():
        return _ask_client(guardian, peer, "sequential", sizes.requests, RAW_AGENT)


def sequential_both(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    # An extension, because ours would say more than the others where a session has modes: options have a method there.
    with harness.one_core():
        return _ask_client(guardian, peer, "echo", sizes.requests, peer.agent)


def mode_both(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with harness.one_core():
        return _ask_client(guardian, peer, "sequential", sizes.requests, peer.agent)


def inflight_both(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    return _ask_client(guardian, peer, "inflight", sizes.requests, peer.agent)


def inflight(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with Child(guardian, peer.agent, peer.environment) as child:
        session_id = harness.open_session(child)
        numbers = range(FIRST_REQUEST_ID, FIRST_REQUEST_ID + sizes.requests)
        lines = [harness.mode_request(session_id, number) for number in numbers]
        cpu, began = child.cpu(), time.perf_counter()
        _keep_in_flight(child, lines)
        wall = time.perf_counter() - began
        return {"per_second": len(lines) / wall, "cpu_us": (child.cpu() - cpu) / len(lines) * 1e6}


def big_agent(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with Child(guardian, peer.agent, peer.environment) as child:
        prompt = harness.prompt_request(harness.open_session(child), f"big {sizes.big_bytes}")
        began = time.perf_counter()
        child.send(prompt)
        heard = harness.hear_turn(child)
        wall = time.perf_counter() - began
        if heard.size < sizes.big_bytes:
            raise PeerFailed(f"sent {heard.size:,} bytes of {sizes.big_bytes:,}")
        return {"wall_ms": wall * 1e3}


def big_client(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    outcome = _ask_client(guardian, peer, "big", sizes.big_bytes, (*RAW_AGENT, str(sizes.big_bytes)))
    expect_updates(1, int(outcome["seen"]))
    return {"wall_ms": outcome["seconds"] * 1e3, "cpu_ms": outcome["cpu"] * 1e3}


def first_diff(guardian: Guardian, peer: Peer, _: Sizes) -> Figures:
    """The first tool call that a new client receives: what it imports for it is in the figure."""
    outcome = _ask_client(guardian, peer, "big", limits.SMALL_DIFF_BYTES, (*RAW_AGENT, str(limits.SMALL_DIFF_BYTES)))
    expect_updates(1, int(outcome["seen"]))
    return {"wall_ms": outcome["seconds"] * 1e3, "cpu_ms": outcome["cpu"] * 1e3}


def sessions(guardian: Guardian, peer: Peer, sizes: Sizes) -> Figures:
    with Child(guardian, peer.agent, peer.environment) as child:
        harness.open_session(child)
        before = child.resident_bytes()
        for number in range(sizes.sessions):
            harness.new_session(child, FIRST_REQUEST_ID + number)
        after = child.resident_bytes()
        return {
            "session_kib": (after - before) / sizes.sessions / 1024,
            "before_mb": before / 1e6,
            "after_mb": after / 1e6,
        }


def expect_updates(expected: int, seen: int) -> None:
    """Merged or lost updates would make a rate meaningless, so they are a failure."""
    if not expected <= seen <= expected + OTHER_UPDATES:
        raise PeerFailed(f"{seen:,} updates seen, {expected:,} expected")


def _streamed(guardian: Guardian, peer: Peer, agent: Sequence[str], sizes: Sizes) -> Figures:
    outcome = _ask_client(guardian, peer, "stream", sizes.chunks, agent)
    expect_updates(sizes.chunks, int(outcome["seen"]))
    return {
        "per_second": sizes.chunks / outcome["seconds"],
        "cpu_s": outcome["cpu"] * 100_000 / sizes.chunks,
    }


def _ask_client(guardian: Guardian, peer: Peer, scenario: str, count: int, agent: Sequence[str]) -> Figures:
    command = (*peer.client, scenario, str(count), limits.CHUNK_TEXT, "--", *agent)
    with Child(guardian, command, peer.environment) as child:
        outcome: Figures = json.loads(child.read_line())
        child.wait(limits.FAREWELL_SECONDS)
        return outcome


def _round_trip(child: Child, number: bytes, line: bytes) -> int:
    began = time.perf_counter_ns()
    child.send(line)
    heard = child.read()
    while number not in heard or not heard.endswith(b"\n"):
        heard += child.read()
    taken = time.perf_counter_ns() - began
    if b'"error"' in heard:
        raise PeerFailed(f"session/set_mode answered {heard[:200]!r}")
    return taken


def _keep_in_flight(child: Child, lines: Sequence[bytes]) -> None:
    child.send(b"".join(lines[: limits.IN_FLIGHT]))
    sent, answered, rest = limits.IN_FLIGHT, 0, b""
    while answered < len(lines):
        whole, _, rest = (rest + child.read()).rpartition(b"\n")
        if b'"error"' in whole:
            raise PeerFailed(f"session/set_mode answered {whole[:200]!r}")
        answered += whole.count(b'"result"')
        child.send(b"".join(lines[sent : answered + limits.IN_FLIGHT]))
        sent = min(answered + limits.IN_FLIGHT, len(lines))


MESSAGES: Final = Figure("per_second", "messages/s", "more")
CPU: Final = Figure("cpu_s", "CPU s per 100,000", "less", 3, is_cpu=True)
ROUND_TRIP: Final = (
    Figure("p50_us", "p50 us", "less", 1),
    Figure("p99_us", "p99 us", "less", 1),
    Figure("per_second", "requests/s", "more"),
)
WALL_MS: Final = Figure("wall_ms", "ms", "less", 1)
CPU_MS: Final = Figure("cpu_ms", "CPU ms", "less", 2, is_cpu=True)
NO_FLOOR: Final = frozenset({"floor"})

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    each.name: each
    for each in (
        Benchmark(
            "start",
            "spawn to initialize answered",
            (WALL_MS, Figure("cpu_ms", "child CPU ms", "less", 1, is_cpu=True)),
            start,
        ),
        Benchmark(
            "stream-agent",
            "text chunks, agent to a raw reader",
            (MESSAGES, CPU, Figure("line_bytes", "bytes a line", "less")),
            stream_agent,
        ),
        Benchmark("stream-client", "text chunks, a raw writer to the client's handler", (MESSAGES, CPU), stream_client),
        Benchmark("stream-both", "text chunks, own agent to own client (client CPU)", (MESSAGES, CPU), stream_both),
        Benchmark(
            "sequential-agent", "session/set_mode, one in flight, one core, agent side", ROUND_TRIP, sequential_agent
        ),
        Benchmark(
            "sequential-client", "session/set_mode, one in flight, one core, client side", ROUND_TRIP, sequential_client
        ),
        Benchmark(
            "sequential-both", "an extension method, one in flight, one core, both ends", ROUND_TRIP, sequential_both
        ),
        Benchmark(
            "inflight",
            f"session/set_mode, {limits.IN_FLIGHT} in flight, agent side",
            (Figure("per_second", "requests/s", "more"), Figure("cpu_us", "CPU us a request", "less", 1, is_cpu=True)),
            inflight,
        ),
        Benchmark("mode-both", "session/set_mode, one in flight, one core, both ends", ROUND_TRIP, mode_both),
        Benchmark(
            "inflight-both",
            f"session/set_mode, {limits.IN_FLIGHT} in flight, both ends",
            (Figure("per_second", "requests/s", "more"),),
            inflight_both,
        ),
        Benchmark("big-agent", "one diff of 10 MB, agent to a raw reader", (WALL_MS,), big_agent),
        Benchmark(
            "big-client", "one diff of 10 MB, a raw writer to the client's handler", (WALL_MS, CPU_MS), big_client
        ),
        Benchmark(
            "first-diff",
            "the first message after start, a diff of 70 kB, to the client's handler",
            (Figure("wall_ms", "ms", "less", 2), CPU_MS),
            first_diff,
        ),
        Benchmark(
            "sessions",
            "resident memory with many sessions open",
            (
                Figure("after_mb", "MB after", "less", 1),
                Figure("before_mb", "MB before", "less", 1),
                Figure("session_kib", "KiB a session", "less", 2),
            ),
            sessions,
            without=NO_FLOOR,
        ),
    )
}

"""`python -m bench.load`: a stored session told again by `session/load`, beside the live streaming that made it.

Speed is the events that happened, by the seconds it took to stream them or to tell them again: a replay may say a
thousand pieces as one message, and that is its good right. Exit status: 0 the promise is met, 1 it is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from bench import harness, install
from bench.harness import Child, Guardian
from bench.lines import Line, told
from bench.roster import PEERS

EVENTS: Final = 100_000
REPETITIONS: Final = 3
KINDS: Final = {
    "text": "long messages and a few tool calls",
    "messages": "messages of one piece each",
    "calls": "a word and a tool call in turn",
}
SLOWER: Final = 2.0
"""A session loads at no less than half the speed of live streaming."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.load", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, once")
    quick = parser.parse_args(arguments).quick
    guardian = Guardian()
    try:
        return told(lines(guardian, EVENTS // 10 if quick else EVENTS, 1 if quick else REPETITIONS))
    finally:
        guardian.close()


def lines(guardian: Guardian, count: int, repetitions: int) -> Iterator[Line]:
    for kind, title in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            live: list[float] = []
            load: list[float] = []
            grown: list[float] = []
            for turn in range(repetitions):
                place = Path(folder) / str(turn)
                session, seconds = stream(guardian, place, kind, count)
                live.append(seconds)
                seconds, memory = tell_again(guardian, place, session)
                load.append(seconds)
                grown.append(memory)
        yield Line(f"live: {count:,} events, {title}", count / median(live) / 1e3, "k/s")
        yield Line("  loaded by a new process", count / median(load) / 1e3, "k/s")
        yield Line("  memory it took", median(grown) / 1e6, "MB")
        yield Line("  times slower than live", median(load) / median(live), "", SLOWER)


def agent(guardian: Guardian, place: Path) -> Child:
    command = [sys.executable, "-m", "bench.load_agent", str(place)]
    return Child(guardian, command, PEERS["ours"].environment)


def stream(guardian: Guardian, place: Path, kind: str, count: int) -> tuple[str, float]:
    """The session, and how long it took to live it."""
    with agent(guardian, place) as child:
        session = harness.open_session(child)
        began = time.perf_counter()
        child.send(harness.prompt_request(session, f"{kind} {count}"))
        harness.hear_turn(child)
        seconds = time.perf_counter() - began
        child.call(3, "session/close", {"sessionId": session})
    return session, seconds


def tell_again(guardian: Guardian, place: Path, session: str) -> tuple[float, float]:
    """How long it took, and by how many bytes the process has grown in the end."""
    with agent(guardian, place) as child:
        child.call(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        before = child.resident_bytes()
        params = {"sessionId": session, "cwd": str(install.ROOT), "mcpServers": []}
        began = time.perf_counter()
        child.send(harness.request(harness.PROMPT_ID, "session/load", params))
        harness.hear_turn(child)
        return time.perf_counter() - began, child.resident_bytes() - before


if __name__ == "__main__":
    sys.exit(main())

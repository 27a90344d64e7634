"""`python -m bench.models`: what the agent costs beside a hosted model, against a model server in this process.

`--before FOLDER` names the `src` of another checkout, whose agent is measured in turns with this one. Exit status: 0
the promises are met, 1 one is missed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench import harness, install
from bench.harness import Child, Guardian
from bench.lines import Line, told
from bench.model_server import DELTAS, ModelServer
from bench.roster import PEERS

REPETITIONS: Final = 5
LATER: Final = 5

PROMISES: Final[dict[str, tuple[str, float]]] = {
    "session/new answered": ("ms", 40),
    "CPU from the start until it rests after session/new": ("s", 0.5),
    "without pauses: start to the first request": ("ms", 569),
    "first delta to first chunk, first prompt": ("ms", 5),
    "first delta to first chunk, later": ("ms", 1),
    f"CPU for {DELTAS:,} deltas at once": ("s", 0.06),
    "read a file to the next request, second time": ("ms", 10),
    "run `true` to the next request, second time": ("ms", 20),
    "resident after the session": ("MB", 90),
}
"""Unit and promise of each figure, medians on two cores; docs/performance.md."""

WIRES: Final = {
    "chat": ("fake/model", ""),
    "responses": ("openai/gpt-5", "OPENAI_BASE_URL"),
    "messages": ("anthropic/claude-opus-4-8", "ANTHROPIC_BASE_URL"),
    "gemini": ("google/gemini-2.5-flash", "GOOGLE_GEMINI_BASE_URL"),
}
"""The model that is named for each wire form, and the variable with its address; chat has it in config.toml."""


@dataclass(frozen=True)
class Agent:
    """How one agent is started beside one server."""

    guardian: Guardian
    source: Path
    home: Path
    server: ModelServer
    wire: str

    def start(self) -> Child:
        model, variable = WIRES[self.wire]
        self.home.mkdir(parents=True, exist_ok=True)
        address = self.server.url + ("/v1" if self.wire in ("chat", "responses") else "")
        text = f'[providers.fake]\nbase_url = "{address}"\n' if self.wire == "chat" else ""
        (self.home / "config.toml").write_text(text, encoding="utf-8")
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key")
        environment = {
            **PEERS["ours"].environment,
            **({} if self.wire == "chat" else keys),
            **({variable: address} if variable else {}),
            "PYTHONPATH": f"{self.source}:{install.ROOT}",
            "DRAGOMAN_HOME": str(self.home),
        }
        command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--mode", "full-access", "--model", model]
        return Child(self.guardian, command, environment)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.models", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--before", type=Path, help="the src of another checkout, to be measured in turns")
    parser.add_argument("--wire", choices=sorted(WIRES), action="append", help="a wire form; default: all of them")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    options = parser.parse_args(arguments)
    guardian = Guardian()
    try:
        with tempfile.TemporaryDirectory() as folder, ModelServer() as server:
            return told(
                line
                for wire in options.wire or WIRES
                for line in lines(guardian, Path(folder), server, wire, options.before, options.repetitions)
            )
    finally:
        guardian.close()


def lines(
    guardian: Guardian, folder: Path, server: ModelServer, wire: str, before: Path | None, repetitions: int
) -> Iterator[Line]:
    now = Agent(guardian, install.ROOT / "src", folder / wire, server, wire)
    other = Agent(guardian, before.resolve(), folder / f"{wire}-before", server, wire) if before else None
    agents = [agent for agent in (other, now) if agent]
    found: dict[Path, list[dict[str, float]]] = {agent.source: [] for agent in agents}
    for agent in agents:
        figures(agent)  # off the record: bytecode is written, files are in the cache
    for _ in range(repetitions):
        for agent in agents:
            found[agent.source].append(figures(agent))
    for what, (unit, promise) in PROMISES.items():
        if other is not None:
            yield Line(f"{wire}, before: {what}", median(run[what] for run in found[other.source]), unit)
        yield Line(f"{wire}: {what}", median(run[what] for run in found[now.source]), unit, promise)


def figures(agent: Agent) -> dict[str, float]:
    """Run two sessions: one that is prompted at once, and one whose steps are measured one by one."""
    names = iter(PROMISES)
    hurried = without_pauses(agent)
    with agent.start() as child:
        child.call(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        rested_cpu(child)
        asked = time.perf_counter()
        session = harness.new_session(child, 2)
        taken = [(time.perf_counter() - asked) * 1e3, rested_cpu(child), hurried]
        first = first_chunk(agent, child, session)
        taken += [first, median(first_chunk(agent, child, session) for _ in range(LATER))]
        before = child.cpu()
        turn(child, session, "many")
        taken.append(rested_cpu(child) - before)
        for tool in ("read", "run"):
            turn(child, session, tool)
            turn(child, session, tool)
            taken.append((agent.server.arrived - agent.server.called) * 1e3)
        taken.append(child.resident_bytes() / 1e6)
    return dict(zip(names, taken, strict=True))


def without_pauses(agent: Agent) -> float:
    """Milliseconds from the start of the process to the request's arrival, with every message sent at once."""
    began = time.perf_counter()
    with agent.start() as child:
        session = harness.open_session(child)
        turn(child, session, "hi")
        return (agent.server.arrived - began) * 1e3


def first_chunk(agent: Agent, child: Child, session: str) -> float:
    """Milliseconds from the server's write of the first delta to the editor's reading of it."""
    child.send(harness.prompt_request(session, "hi"))
    while b'"agent_message_chunk"' not in (lines := child.read_line()):
        pass
    taken = (time.perf_counter() - agent.server.wrote) * 1e3
    while b'"stopReason"' not in lines:  # what one read brings may hold the end as well
        lines = child.read_line()
    return taken


def turn(child: Child, session: str, prompt: str) -> None:
    child.send(harness.prompt_request(session, prompt))
    harness.hear_turn(child)


def rested_cpu(child: Child) -> float:
    """CPU seconds when it does nothing any more: none used in half a second."""
    before = -1.0
    while (used := child.cpu()) - before > 0.002:
        before = used
        time.sleep(0.5)
    return used


if __name__ == "__main__":
    print(json.dumps({"python": sys.version.split()[0]}), file=sys.stderr)
    sys.exit(main())

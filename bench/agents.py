"""`python -m bench.agents`: our coding agent beside others, each as a process against one model server of ours.

What the harness around a model costs: how long until the model is asked, until its words reach the client, from a tool
call to the next request; how much is sent; how much of it a provider's cache can use again; memory and CPU of the
process tree. Agents take turns within a repetition, each with a new home, and the medians are printed. Exit status: 0,
or 1 if one that was asked for by name could not run.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.agent_model import FILE_TEXT, MARK, PROMPT, TimedModel, equal_share
from bench.agent_roster import CONTENDERS, Contender
from bench.process_tree import Tree, tree_of
from dragoman import Conversation, RequestPermission, connect, events
from dragoman.errors import DragomanError
from tests.support.upstream import upstream
from tools.peers import Missing

REPETITIONS: Final = 5
SECONDS: Final = 120.0
# Until an agent rests: what it does behind its answers is not part of the next figure.
REST_SECONDS: Final = 0.2
ROWS: Final = {
    "initialize": ("spawn to initialize answered", "ms"),
    "session": ("session/new answered", "ms"),
    "first_request": ("first prompt to the model's first request", "ms"),
    "later_request": ("later prompt to the model's request", "ms"),
    "first_word": ("model's byte to the client, first", "ms"),
    "later_word": ("model's byte to the client, later", "ms"),
    "tool_call": ("tool call to the next request", "ms"),
    "requests_first": ("requests for the first prompt", ""),
    "requests_later": ("requests for a later prompt", ""),
    "first_size": ("size of the first request", "KiB"),
    "prefix": ("prefix that stays equal", "%"),
    "memory": ("memory of the process tree (PSS)", "MiB"),
    "cpu": ("CPU of the whole session", "s"),
}
Figures = dict[str, float]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="bench.agents", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", default="", metavar="NAME,...", help=f"of {', '.join(CONTENDERS)}; all")
    parser.add_argument("--repeat", type=int, default=REPETITIONS, metavar="N", help=f"repetitions; {REPETITIONS}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every repetition here")
    options = parser.parse_args(words)
    chosen = options.agents.split(",") if options.agents else list(CONTENDERS)
    if unknown := set(chosen) - CONTENDERS.keys():
        parser.error(f"{', '.join(sorted(unknown))} is none of {', '.join(CONTENDERS)}")
    measured, missing = measure_all([CONTENDERS[name] for name in chosen], options.repeat)
    print(table(measured))
    for name, reason in missing.items():
        print(f"{name} could not run: {reason}")
    if options.json is not None:
        options.json.write_text(json.dumps({"figures": measured, "missing": missing}, indent=1) + "\n")
    return 1 if missing and options.agents else 0


def measure_all(chosen: Sequence[Contender], repeat: int) -> tuple[dict[str, list[Figures]], dict[str, str]]:
    """Return the figures of each agent, and why others have none. One that fails once is left out."""
    measured: dict[str, list[Figures]] = {}
    missing: dict[str, str] = {}
    for number in range(repeat + 1):  # the first is off the record: it writes caches of bytecode
        for agent in chosen:
            if agent.name in missing:
                continue
            print(f"\r\033[K{number}/{repeat} {agent.name}", end="", file=sys.stderr, flush=True)
            try:
                if number == 0:
                    agent.prepare()
                figures = asyncio.run(asyncio.wait_for(measure(agent), SECONDS))
            except (Missing, DragomanError, OSError, TimeoutError, LookupError, ValueError) as error:
                missing[agent.name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                measured.pop(agent.name, None)
                continue
            if number:
                measured.setdefault(agent.name, []).append(figures)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return measured, missing


async def measure(agent: Contender) -> Figures:
    """Return the figures of one process of an agent over four prompts."""
    with tempfile.TemporaryDirectory(prefix="dragoman-agents-", ignore_cleanup_errors=True) as name:
        home, work = Path(name, "home"), Path(name, "work")
        home.mkdir()
        work.mkdir()
        (work / "README.md").write_text(f"{FILE_TEXT}\n")
        model = TimedModel(agent.voice)
        async with upstream(model, strict=False) as server:
            began = time.perf_counter()
            command, environment = agent.command(), agent.environment(home, server.url)
            async with connect(command, cwd=str(work), env=environment, permission=_yes, start_timeout=60) as client:
                figures = {"initialize": 1000 * (time.perf_counter() - began)}
                if agent.login is not None:
                    await client.login(agent.login)
                began = time.perf_counter()
                session = await client.new_session(work)
                figures["session"] = 1000 * (time.perf_counter() - began)
                await _rest()
                return figures | await _talk(agent, model, session, work / "README.md")


async def _talk(agent: Contender, model: TimedModel, session: Conversation, file: Path) -> Figures:
    first = await _prompt(model, session)
    requests_first = model.requests
    await _prompt(model, session)
    model.call = agent.reading(file)
    await _prompt(model, session)
    call, behind = model.main()[-2:]
    before = model.requests
    later = await _prompt(model, session)
    tree = tree_of(os.getpid())
    bodies = [one.body for one in model.main()]
    shares = [equal_share(one, other) for one, other in itertools.pairwise(bodies)]
    return {
        "first_request": first[0],
        "later_request": later[0],
        "first_word": first[1],
        "later_word": later[1],
        "tool_call": 1000 * (behind.arrived - call.done),
        "requests_first": requests_first,
        "requests_later": model.requests - before,
        "first_size": model.asked[0].size / 1024,
        "prefix": 100 * sum(shares) / len(shares),
        "memory": tree.memory_bytes / (1 << 20),
        "cpu": tree.cpu_seconds,
    }


async def _prompt(model: TimedModel, session: Conversation) -> tuple[float, float]:
    """Have a turn; return the milliseconds to its first request, and from the model's first word to its first chunk."""
    count, began, heard = len(model.asked), time.perf_counter(), 0.0
    async for event in session.prompt(PROMPT):
        if not heard and isinstance(event, events.AgentMessageChunk) and event.text.strip()[:1] == MARK[0]:
            heard = time.perf_counter()
    asked = model.asked[count]
    await _rest()
    return 1000 * (asked.arrived - began), 1000 * (heard - asked.text_written)


async def _rest() -> None:
    """Wait until the agent uses no CPU any more, a second at most."""
    before = Tree(0, -1.0)
    for _ in range(5):
        await asyncio.sleep(REST_SECONDS)
        now = tree_of(os.getpid())
        if now.cpu_seconds - before.cpu_seconds < 0.02:
            return
        before = now


async def _yes(request: RequestPermission) -> str | None:
    return next((option.option_id for option in request.options if option.allows), None)


def table(measured: dict[str, list[Figures]]) -> str:
    """Return the medians, an agent in each column."""
    lines = [["", *measured]]
    for row, (title, unit) in ROWS.items():
        cells = [f"{median(one[row] for one in runs):.{_digits(row)}f}" for runs in measured.values()]
        lines.append([f"{title}, {unit}" if unit else title, *cells])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    )


def _digits(row: str) -> int:
    return {"cpu": 2, "memory": 0, "requests_first": 0, "requests_later": 0}.get(row, 1)


if __name__ == "__main__":
    sys.exit(main())

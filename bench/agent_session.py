"""What `bench.agents` measures of one agent, in three processes against a model of ours.

The first is prompted at once. The second is left alone between its steps: greeting, session, prompts, tools, a flood of
text, a cancel, and a kill in the middle of a reply. The third loads the session of the second.
"""

import asyncio
import contextlib
import itertools
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.agent_model import FILE_TEXT, HELD_WORDS, MARK, PROMPT, TimedModel, equal_share
from bench.agent_roster import Contender
from bench.process_tree import Tree, kill_tree, tree_of
from dragoman import Conversation, RequestPermission, connect, events
from dragoman.client.client import Client
from dragoman.errors import DragomanError
from tests.support.fake_model import ToolCall
from tests.support.upstream import upstream

Figures = dict[str, float]
# In one response: enough that the clock of /proc, a hundred ticks a second, is fine enough for a thousand.
DELTAS: Final = 5_000
LONG_PROMPT: Final = f"{PROMPT} Take your time."
# Until an agent rests: what it does behind its answers is not part of the next figure.
REST_SECONDS: Final = 0.2
_REST_ROUNDS: Final = 25
# For a cancel, and for a session to be loaded: an agent that does not answer has no figure.
ANSWER_SECONDS: Final = 30.0


class Place(NamedTuple):
    """An agent with a new home, a folder to work in, and its model."""

    agent: Contender
    model: TimedModel
    home: Path
    work: Path
    url: str

    def connect(self) -> AbstractAsyncContextManager[Client]:
        """Start the agent as a process."""
        environment = self.agent.environment(self.home, self.url)
        return connect(self.agent.command(), cwd=str(self.work), env=environment, permission=_yes, start_timeout=60)

    async def login(self, client: Client) -> None:
        if self.agent.login is not None:
            await client.login(self.agent.login)


async def measure(agent: Contender) -> Figures:
    """Return the figures of one agent."""
    async with _place(agent) as place:
        hurried = await _without_pauses(place)
    async with _place(agent) as place:
        used, began = tree_of(os.getpid()).cpu_seconds, time.perf_counter()
        async with place.connect() as client:
            figures = {"hurried": hurried, "initialize": _ms(began)}
            await place.login(client)
            began = time.perf_counter()
            session = await client.new_session(place.work)
            figures["session"] = _ms(began)
            await _rest()
            figures["rest_cpu"] = tree_of(os.getpid()).cpu_seconds - used
            figures |= await _talk(place, session)
            figures |= await _flood(place, session)
            figures |= _memory(tree_of(os.getpid()))
            figures |= await _bounded(_cancel(place, session))
            await _kill(place, session)
        return figures | await _bounded(_load(place, session.id))


@asynccontextmanager
async def _place(agent: Contender) -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory(prefix="dragoman-agents-", ignore_cleanup_errors=True) as name:
        home, work = Path(name, "home"), Path(name, "work")
        home.mkdir()
        work.mkdir()
        (work / "README.md").write_text(f"{FILE_TEXT}\n")
        model = TimedModel(agent.voice)
        async with upstream(model, strict=False) as server:
            yield Place(agent, model, home, work, server.url)


async def _without_pauses(place: Place) -> float:
    """Return the milliseconds from the start to the first request, where each answer is followed by the next call."""
    began = time.perf_counter()
    async with place.connect() as client:
        await place.login(client)
        session = await client.new_session(place.work)
        await session.ask(PROMPT)
    return 1000 * (place.model.asked[0].arrived - began)


async def _talk(place: Place, session: Conversation) -> Figures:
    """Four kinds of prompts: the first, a later one, one that reads a file, one that runs a command."""
    agent, model = place.agent, place.model
    first = await _prompt(model, session)
    requests_first = model.requests
    await _prompt(model, session)
    tools: Figures = {}
    for name, call in (("read", agent.reading(place.work / "README.md")), ("run", agent.running)):
        tools[name] = await _call(model, session, call)
        tools[f"{name}_again"] = await _call(model, session, call)
    before = model.requests
    later = await _prompt(model, session)
    bodies = [one.body for one in model.main()]
    shares = [equal_share(one, other) for one, other in itertools.pairwise(bodies)]
    return tools | {
        "first_request": first[0],
        "later_request": later[0],
        "first_word": first[1],
        "later_word": later[1],
        "requests_first": requests_first,
        "requests_later": model.requests - before,
        "first_size": model.asked[0].size / 1024,
        "prefix": 100 * sum(shares) / len(shares),
        "cpu": tree_of(os.getpid()).cpu_seconds,
    }


async def _call(model: TimedModel, session: Conversation, call: ToolCall) -> float:
    """Return the milliseconds from a tool call's last byte to the request with its result."""
    model.call = call
    await _prompt(model, session)
    called, behind = model.main()[-2:]
    return 1000 * (behind.arrived - called.done)


async def _prompt(model: TimedModel, session: Conversation) -> tuple[float, float]:
    """Have a turn; return the milliseconds to its first request, and from the model's first word to its first chunk."""
    count, began, heard = len(model.asked), time.perf_counter(), 0.0
    async for event in session.prompt(PROMPT):
        if not heard and isinstance(event, events.AgentMessageChunk) and event.text.strip()[:1] == MARK[0]:
            heard = time.perf_counter()
    asked = model.asked[count]
    await _rest()
    return 1000 * (asked.arrived - began), 1000 * (heard - asked.text_written)


async def _flood(place: Place, session: Conversation) -> Figures:
    """Many deltas in one write: what a thousand of them cost, and how many chunks they become."""
    before, chunks = tree_of(os.getpid()).cpu_seconds, 0
    place.model.deltas = DELTAS
    async for event in session.prompt(PROMPT):
        chunks += isinstance(event, events.AgentMessageChunk)
    await _rest()
    used = tree_of(os.getpid()).cpu_seconds - before
    return {"deltas_cpu": 1000 * used / DELTAS, "chunks": 1000 * chunks / DELTAS}


def _memory(tree: Tree) -> Figures:
    return {"memory": tree.memory_bytes / (1 << 20), "resident": tree.resident_bytes / 1e6}


async def _cancel(place: Place, session: Conversation) -> Figures:
    """A cancel in the middle of a reply, to the end of the turn."""
    began = 0.0
    place.model.holds = True
    async for event in session.prompt(LONG_PROMPT):
        if not began and isinstance(event, events.AgentMessageChunk):
            began = time.perf_counter()
            await session.cancel()
    return {"cancel": _ms(began)} if began else {}


async def _kill(place: Place, session: Conversation) -> None:
    """Kill the agent in the middle of a reply, with all that it has started."""
    place.model.holds = True
    with contextlib.suppress(DragomanError):
        async for event in session.prompt(LONG_PROMPT):
            if isinstance(event, events.AgentMessageChunk):
                kill_tree(os.getpid())


async def _load(place: Place, session_id: str) -> Figures:
    """Load the session in a new process: how long that takes, and how much of three things the model is told then."""
    async with place.connect() as client:
        await place.login(client)
        began = time.perf_counter()
        session = await client.load_session(session_id, place.work)
        taken = _ms(began)
        count = len(place.model.main())
        await session.ask(PROMPT)
        told = json.dumps(place.model.main()[count].body)
        return {"load": taken, "told": sum(words in told for words in (MARK, LONG_PROMPT, HELD_WORDS))}


async def _bounded(figures: Coroutine[Any, Any, Figures]) -> Figures:
    """Return no figures where an agent cannot do it."""
    with contextlib.suppress(DragomanError, TimeoutError, LookupError):
        return await asyncio.wait_for(figures, ANSWER_SECONDS)
    return {}


async def _rest() -> None:
    """Wait until the agent uses no CPU any more, five seconds at most."""
    before = Tree(0, 0, -1.0)
    for _ in range(_REST_ROUNDS):
        await asyncio.sleep(REST_SECONDS)
        now = tree_of(os.getpid())
        if now.cpu_seconds - before.cpu_seconds < 0.02:
            return
        before = now


async def _yes(request: RequestPermission) -> str | None:
    return next((option.option_id for option in request.options if option.allows), None)


def _ms(began: float) -> float:
    return 1000 * (time.perf_counter() - began)

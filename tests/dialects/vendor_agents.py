"""What the tests of the named dialects share: a raw client of an agent of ours that speaks one, and the parts of it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw

from dragoman.agent.agent import Agent, agent_core
from dragoman.agent.session import Prompt, Session
from dragoman.dialects.contract import Dialect, NotificationMessage
from dragoman.dialects.vendors.named import load_dialect
from dragoman.errors import PeerMistake
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.options import Choice, Select
from tests.dialects.joined_dialects import AGENT, CLIENT
from tests.dialects.schemas import text
from tests.support.messages import Message
from tests.support.raw_peer import PIPE, RawPeer

MODES: list[Any] = [Choice(name, name.title()) for name in ("ask", "read-only", "safe", "sandbox", "workspace-write")]
MODES += [Choice(name, name.title()) for name in ("plan", "full-access")]
MODE = Select("mode", "Mode", "ask", MODES, category="mode")
MODEL = Select("model", "Model", "p/a", [Choice("p/a", "A"), Choice("p/b", "B")], category="model")


def agent_of(name: str) -> Dialect:
    return load_dialect(name).agent(CLIENT, AGENT)


def client_of(name: str) -> Dialect:
    return load_dialect(name).client(CLIENT, AGENT)


def heard(dialect: Dialect, method: str, params: Any, id: int = 1) -> Any:
    return dialect.decode_request(id, method, Raw(text(params)))


def refusal(dialect: Dialect, method: str, params: Any) -> tuple[int, object]:
    try:
        heard(dialect, method, params)
    except PeerMistake as mistake:
        return mistake.code, mistake.data
    raise AssertionError(f"{method} was not refused")


def updates(dialect: Dialect, *events: AnyEvent) -> list[Any]:
    """What is told of these, as updates."""
    outs = [out for event in events for out in dialect.encode_event("s", event)]
    return [json.loads(out.params)["update"] for out in outs if isinstance(out, NotificationMessage)]


def asked(dialect: Dialect, request: Request) -> tuple[str, Any]:
    call = dialect.encode_request(request)
    return call.method, json.loads(call.params)


def an_agent(name: str | None, folder: Path | None = None, **more: Any) -> Agent:
    """An agent with modes and models; with a folder it keeps its sessions there. It says what it was asked."""
    store = None if folder is None else SqliteStore(folder)
    agent = Agent("ours", version="7", dialect=name, options=[MODE, MODEL], store=store, **more)

    @agent.prompt
    async def echo(session: Session, prompt: Prompt) -> None:
        await session.think("Hm.")
        await session.say(prompt.text)

    return agent


@asynccontextmanager
async def talking(agent: Agent) -> AsyncIterator[RawPeer]:
    """A raw client that has said nothing yet. At the end it leaves, and the agent must too."""
    ours, theirs = memory_pair(PIPE)
    serving = asyncio.ensure_future(agent.serve(ours))
    wire = RawPeer(theirs)
    try:
        yield wire
    finally:
        await wire.leave()
        async with asyncio.timeout(30):
            await serving
        store = agent_core(agent).open_store()
        if isinstance(store, SqliteStore):
            await store.close()


class Caller:
    """Asks one thing after the other."""

    def __init__(self, wire: RawPeer) -> None:
        self.wire = wire
        self._last = 0

    async def ask(self, method: str, **params: Any) -> Message:
        """The whole answer."""
        self._last += 1
        self.wire.say({"id": self._last, "method": method, "params": params})
        return await self.wire.answer(self._last)

    async def result(self, method: str, **params: Any) -> Any:
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: Any) -> Any:
        answer = await self.ask(method, **params)
        assert "error" in answer, answer
        return answer["error"]

    async def hello(self, **more: Any) -> Any:
        return await self.result("initialize", **{"protocolVersion": 1, "clientCapabilities": {}, **more})

    async def new(self, **more: Any) -> Any:
        return await self.result("session/new", **{"cwd": os.getcwd(), "mcpServers": [], **more})

    def told(self) -> list[Any]:
        """Every update so far, without its session."""
        return [m["params"]["update"] for m in self.wire.heard if m.get("method") == "session/update"]


HELLO_WORLD = [{"type": "text", "text": "hello"}]

"""A link with a recording handler above it and the raw wire at its other end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.dialects.contract import Id
from dragoman.errors import (
    LinkClosed,
)
from dragoman.link import Link, Trace
from dragoman.transports.memory import NO_FAULTS, Faults, MemoryTransport, memory_pair
from dragoman.vocabulary.asking import ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from tests.support.messages import Message, greeting, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import until


class Above:
    """The layer above a link, which writes down what it is told and answers as it is told to."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.noises: list[str] = []
        self.bugs: list[Exception] = []
        self.closed: list[LinkClosed] = []
        self.answer: Callable[[Request], Reply | Awaitable[Reply]] = lambda request: ExtensionResult("done")

    def on_initialize(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        return AgentHello(Implementation("above", "1"))

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        self.log.append(request)
        return self.answer(request)

    def on_notification(self, note: Note) -> None:
        self.log.append(note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.log.append((session_id, event))

    def on_noise(self, reason: str) -> None:
        self.noises.append(reason)

    def on_bug(self, error: Exception) -> None:
        self.bugs.append(error)

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        self.closed.append(error)
        return None


class End:
    """A link of ours and the raw wire at its other end."""

    def __init__(self, link: Link, above: Above, wire: RawPeer, transport: MemoryTransport) -> None:
        self.link = link
        self.above = above
        self.wire = wire
        self.transport = transport


@asynccontextmanager
async def agent_link(
    version: int = 2, *, capacity: int = PIPE, trace: Trace | None = None, faults: Faults = NO_FAULTS, **settings: Any
) -> AsyncIterator[End]:
    """A link in the agent's role that has been greeted."""
    ours, theirs = memory_pair(capacity, to_left=faults)
    above = Above()
    link = Link(ours, above, "agent", trace=trace, **settings)
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(version))
    await wire.answer(0)
    try:
        yield End(link, above, wire, ours)
    finally:
        await link.close()
        await wire.leave()


@asynccontextmanager
async def client_link(version: int = 2, *, capacity: int = PIPE, **settings: Any) -> AsyncIterator[End]:
    """A link in the client's role that has been answered."""
    ours, theirs = memory_pair(capacity)
    above = Above()
    link = Link(ours, above, "client", **settings)
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    wire.say({"id": (await wire.hear())["id"], "result": greeting(version)})
    await greeted
    try:
        yield End(link, above, wire, ours)
    finally:
        await link.close()
        await wire.leave()


def ping(id: object = 1, **params: object) -> Message:
    return {"id": id, "method": "_ping", "params": params}


def chunk(text: str, session_id: str = "s", message_id: str = "m") -> Message:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content}
    return {"method": "session/update", "params": {"sessionId": session_id, "update": update}}


async def wait_for_ever(request: Request) -> Reply:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def codes(messages: list[Message]) -> list[int]:
    return [m["error"]["code"] for m in messages if "error" in m]


async def next_call(wire: RawPeer, method: str = "") -> Message:
    while True:
        message = await wire.hear()
        if "method" in message and message["method"] not in ("initialize", "$/cancel_request"):
            return message


async def next_call_of(wire: RawPeer, method: str) -> Message:
    def found() -> list[Message]:
        return [m for m in wire.heard if m.get("method") == method]

    await until(lambda: bool(found()))
    return found()[-1]

"""Each state of a link and each kind of message: what is received, what may be sent, and where a state may lead."""

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from dragoman.errors import LinkClosed, PeerError, UsageError
from dragoman.link import Link, LinkState, Role
from dragoman.link.state import NEXT, PERMITTED, Reception
from dragoman.transports.contract import Receiver
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from tests.support.links import Above
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio

NEW, GREETING, OPEN, ENDING, CLOSED = LinkState
INITIALIZE = {"id": "i", "method": "initialize", "params": {"protocolVersion": 1}}
REQUEST = {"id": "r", "method": "_ask", "params": {}}
NOTIFICATION = {"method": "_note", "params": {}}
HELLO = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
ALREADY = {"code": -32600, "message": "Already initialized"}
TOO_EARLY = {"code": -32600, "message": "Not initialized"}
NOT_FOUND = {"code": -32601, "message": "Method not found"}


class Pipe:
    """A transport that keeps what is written; nothing is at its other end."""

    def __init__(self) -> None:
        self.written = b""

    def start(self, receiver: Receiver) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close_writing(self) -> None: ...

    def write(self, data: bytes | memoryview) -> int:
        self.written += bytes(data)
        return len(data)

    async def close(self) -> None: ...

    @property
    def messages(self) -> list[Any]:
        return [json.loads(line) for line in self.written.splitlines()]


class Slow(Above):
    """A handler whose hello and whose replies come when `ready` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = asyncio.Event()
        self.answer = lambda _: self._reply()

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._hello()

    async def _hello(self) -> AgentHello:
        await self.ready.wait()
        return AgentHello(Implementation("above", "1"))

    async def _reply(self) -> ExtensionResult:
        await self.ready.wait()
        return ExtensionResult("done")


class Machine:
    """A link that was brought into one state, without a peer."""

    def __init__(self, role: Role) -> None:
        self.pipe, self.above = Pipe(), Slow()
        self.link = Link(self.pipe, self.above, role)
        self.tasks: list[asyncio.Task[Any]] = []

    def receive(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.link.data_received(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def greet(self) -> None:
        if self.link.role == "agent":
            self.receive({**INITIALIZE, "id": "first"})
        else:
            self.tasks.append(asyncio.create_task(self.link.initialize(ClientHello())))
        await settled()

    async def open(self) -> None:
        await self.greet()
        if self.link.role == "agent":
            self.above.ready.set()
            await settled()
            self.above.ready.clear()
        else:
            self.receive({"id": 1, "result": HELLO})

    async def reach(self, state: LinkState) -> None:
        match state:
            case LinkState.GREETING:
                await self.greet()
            case LinkState.OPEN:
                await self.open()
            case LinkState.ENDING:
                await self.open()
                self.receive({**REQUEST, "id": "owed"})  # it is answered before the link is closed
                self.link.connection_lost(None)
                await settled()
            case LinkState.CLOSED:
                await self.open()
                await self.link.close()
        assert self.link.state is state
        await settled()
        self.pipe.written = b""

    async def end(self) -> None:
        self.above.ready.set()
        await self.link.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def machine(role: Role, state: LinkState) -> Machine:
    made = Machine(role)
    await made.reach(state)
    return made


def error(id: str, expected: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": expected}


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("role", ["agent", "client"])
async def test_initialize_in_each_state(role: Role, state: LinkState) -> None:
    made = await machine(role, state)
    made.receive(INITIALIZE)
    await settled()
    expected = {
        ("agent", NEW): [],  # the hello is awaited
        ("agent", GREETING): [],  # it is kept
        ("agent", OPEN): [error("i", ALREADY)],
        ("agent", ENDING): [error("i", ALREADY)],
        ("client", NEW): [error("i", TOO_EARLY)],
        ("client", GREETING): [error("i", TOO_EARLY)],
        ("client", OPEN): [error("i", NOT_FOUND)],
        ("client", ENDING): [error("i", NOT_FOUND)],
    }
    assert made.pipe.messages == expected.get((role, state), [])
    assert made.link.state is (GREETING if (role, state) == ("agent", NEW) else state)
    await made.end()


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("role", ["agent", "client"])
async def test_a_request_in_each_state(role: Role, state: LinkState) -> None:
    made = await machine(role, state)
    before = len(made.above.log)
    made.receive(REQUEST)
    await settled()
    is_rejected = state is NEW or (role, state) == ("client", GREETING)
    assert made.pipe.messages == ([error("r", TOO_EARLY)] if is_rejected else [])
    assert (made.above.log[before:] == [Extension("_ask", {})]) == (state in (OPEN, ENDING))
    await made.end()


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("role", ["agent", "client"])
async def test_a_notification_in_each_state(role: Role, state: LinkState) -> None:
    made = await machine(role, state)
    before = len(made.above.log)
    made.receive(NOTIFICATION)
    await settled()
    assert made.pipe.messages == []
    assert (made.above.log[before:] == [ExtensionNote("_note", {})]) == (state in (OPEN, ENDING))
    is_noise = state is NEW or (role, state) == ("client", GREETING)
    assert (made.above.noises == ["notification before initialize: _note"]) == is_noise
    await made.end()


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("role", ["agent", "client"])
async def test_what_each_state_sends(role: Role, state: LinkState) -> None:
    made = await machine(role, state)
    link, asked = made.link, None
    assert link.can_send == (state in (OPEN, ENDING))
    if state is OPEN:
        asked = asyncio.create_task(link.ask(Extension("_ask")))
        await settled()
        assert [message["method"] for message in made.pipe.messages] == ["_ask"]
    else:
        with pytest.raises(UsageError if state in (NEW, GREETING) else LinkClosed):
            await link.ask(Extension("_ask"))
    made.pipe.written = b""
    if state in (OPEN, ENDING):
        link.send_notification_now(ExtensionNote("_note"))
        await settled()
        assert [message["method"] for message in made.pipe.messages] == ["_note"]
    elif state in (NEW, GREETING):
        with pytest.raises(UsageError):
            await link.send_notification(ExtensionNote("_note"))
    else:
        with pytest.raises(LinkClosed):
            await link.send_notification(ExtensionNote("_note"))
    await made.end()
    if asked is not None:
        with pytest.raises(LinkClosed):
            await asked


@pytest.mark.parametrize("state", [GREETING, OPEN, ENDING, CLOSED])
async def test_initialize_is_sent_once(state: LinkState) -> None:
    made = await machine("client", state)
    with pytest.raises(LinkClosed if state in (ENDING, CLOSED) else UsageError):
        await made.link.initialize(ClientHello())
    await made.end()


async def test_frames_kept_while_the_hello_is_awaited_are_received_in_order_when_it_is_there() -> None:
    made = await machine("agent", GREETING)
    made.receive(NOTIFICATION, REQUEST, {**NOTIFICATION, "method": "_last"})
    await settled()
    assert made.above.log == []
    made.above.ready.set()
    await settled()
    assert made.above.log == [ExtensionNote("_note", {}), Extension("_ask", {}), ExtensionNote("_last", {})]
    assert [message["id"] for message in made.pipe.messages] == ["first", "r"]
    await made.end()


async def test_input_that_ends_while_the_hello_is_awaited_is_answered_whole() -> None:
    made = await machine("agent", GREETING)
    made.receive(REQUEST)
    made.link.connection_lost(None)
    await settled()
    assert made.link.state is GREETING
    made.above.ready.set()
    await made.link.wait_until_closed()
    assert [(message["id"], "result" in message) for message in made.pipe.messages] == [("first", True), ("r", True)]
    assert made.link.state is CLOSED


async def test_a_hello_that_is_refused_leaves_the_link_new_and_it_can_be_tried_again() -> None:
    made = await machine("client", GREETING)
    made.receive({"id": 1, "error": {"code": -32000, "message": "log in first"}})
    with pytest.raises(PeerError):
        await made.tasks.pop()
    assert made.link.state is NEW
    again = asyncio.create_task(made.link.initialize(ClientHello()))
    await settled()
    made.receive({"id": 2, "result": HELLO})
    await again
    assert made.link.state is OPEN
    await made.end()


async def test_a_malformed_initialize_leaves_the_agent_new() -> None:
    made = await machine("agent", NEW)
    made.receive({**INITIALIZE, "params": {"protocolVersion": "one"}})
    await settled()
    assert [message["error"]["code"] for message in made.pipe.messages] == [-32602]
    assert made.link.state is NEW
    await made.open()
    assert made.link.state is OPEN
    await made.end()


def test_the_table_has_a_row_for_every_state_of_both_roles() -> None:
    assert {role: set(rows) for role, rows in PERMITTED.items()} == {"agent": set(LinkState), "client": set(LinkState)}
    assert set(NEXT) == set(LinkState)


def test_a_state_that_sends_requests_handles_them_and_only_new_greets() -> None:
    for rows in PERMITTED.values():
        for state, row in rows.items():
            assert row.sends_requests == (state is OPEN)
            assert not row.sends_requests or row.sends_others
            assert (row.request is Reception.HANDLE) == (state in (OPEN, ENDING))
    greeting = [
        (role, state) for role, rows in PERMITTED.items() for state in rows if rows[state].initialize.name == "GREET"
    ]
    assert greeting == [("agent", NEW)]


def test_every_state_leads_to_closed_and_closed_to_none() -> None:
    assert NEXT[CLOSED] == frozenset()
    for state in LinkState:
        reached, new = {state}, {state}
        while new := {after for one in new for after in NEXT[one]} - reached:
            reached |= new
        assert CLOSED in reached


async def test_a_change_that_is_not_in_the_table_is_a_mistake_of_ours() -> None:
    made = await machine("agent", OPEN)
    with pytest.raises(RuntimeError, match="from open to new"):
        made.link._enter(NEW)
    await made.end()


async def test_its_repr_shows_state_role_dialect_and_counts() -> None:
    made = await machine("agent", NEW)
    assert repr(made.link) == "<Link new, agent, no dialect yet, 0 calls out, 0 requests in, 0 bytes queued>"
    await made.open()
    made.receive(REQUEST)
    assert repr(made.link) == "<Link open, agent, v1, 0 calls out, 1 requests in, 0 bytes queued>"
    made.link._stop_reading()
    assert repr(made.link).endswith("0 bytes queued, not reading>")
    await made.end()
    assert repr(made.link).startswith("<Link closed, agent, v1")
    assert repr(made.link.outbox).startswith("<Outbox closed")


async def test_every_change_of_state_is_logged_and_nothing_of_a_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman.link")
    made = await machine("agent", NEW)
    await made.open()
    made.receive({**REQUEST, "params": {"secret": "words"}})
    made.above.ready.set()
    await until(lambda: len(made.pipe.messages) == 2)
    await made.end()
    states = [record.message.split()[1].rstrip(",") for record in caplog.records]
    assert states == ["greeting", "open", "ending", "closed"]
    assert "secret" not in caplog.text

"""Two peers with a bridge between them: raw JSON lines on both sides, in every pair of versions."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.bridge import Bridge
from dragoman.transports.contract import Transport
from dragoman.transports.memory import NO_FAULTS, Faults, memory_pair

Message = dict[str, Any]


PIPE = 64 * 1024
PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2)]


every_pair = pytest.mark.parametrize(("front", "back"), PAIRS)


# For what takes long: here each version is on each side, and the slow lane has the pairs of one version too.
every_translation = pytest.mark.parametrize(
    ("front", "back"), [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] == pair[1])) for pair in PAIRS]
)


class Ended(Exception):
    """The connection is over."""


class Peer:
    """A program at one end of a connection. It speaks JSON lines and keeps no promises."""

    def __init__(self, transport: Transport) -> None:
        self.heard: list[Message] = []
        self.said: list[Message] = []
        self.unsent = memoryview(b"")
        self.leaves_at: int | None = None
        self.fell = False
        self._transport = transport
        self._part = bytearray()
        self._all_said = asyncio.Event()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        transport.start(self)

    def data_received(self, data: bytes) -> None:
        first, *lines = data.split(b"\n")
        self._part += first
        for line in lines:
            self._lines.put_nowait(bytes(self._part))
            self._part = bytearray(line)

    def writable(self) -> None:
        self.unsent = self.unsent[self._transport.write(self.unsent) :]
        if not self.unsent:
            self._all_said.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._lines.put_nowait(None)

    async def leave(self) -> None:
        await self._transport.close()

    async def leave_when_all_is_said(self) -> None:
        if self.unsent:
            self._all_said.clear()
            await self._all_said.wait()
        await self.leave()

    def fall_silent(self) -> None:
        """Say nothing any more, and go on reading."""
        self._transport.close_writing()

    def deaf(self) -> None:
        """Read nothing from now on."""
        self._transport.pause_reading()

    def listen(self) -> None:
        self._transport.resume_reading()

    def say(self, *messages: Message) -> None:
        """Say these in one breath, or as many as it lives to say."""
        alive = len(messages) if self.leaves_at is None else max(self.leaves_at - len(self.heard) - len(self.said), 0)
        cut, messages = alive < len(messages), messages[:alive]
        self.said.extend(messages)
        text = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
        self.unsent = memoryview(bytes(self.unsent) + text)
        self.unsent = self.unsent[self._transport.write(self.unsent) :]
        if cut:
            self.fell = True
            self._leaving = asyncio.ensure_future(self.leave())
            raise Ended

    async def hear(self) -> Message:
        """The next message, without its version number."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
            raise Ended
        message: Message = json.loads(line)
        assert message.pop("jsonrpc") == "2.0"
        self.heard.append(message)
        if self.leaves_at is not None and len(self.heard) + len(self.said) > self.leaves_at:
            self.fell = True
            await self.leave()
            raise Ended
        return message

    async def hear_many(self, count: int) -> list[Message]:
        return [await self.hear() for _ in range(count)]

    async def ended(self) -> list[Message]:
        """What is still said, up to the end."""
        last: list[Message] = []
        try:
            while True:
                last.append(await self.hear())
        except Ended:
            return last


@asynccontextmanager
async def joined(
    *, to_editor: Faults = NO_FAULTS, to_front: Faults = NO_FAULTS, to_back: Faults = NO_FAULTS, **settings: Any
) -> AsyncIterator[tuple[Peer, Peer]]:
    """An editor and an agent with a bridge between them; it must end with them, and without a mistake of its own."""
    mistakes: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context))
    ours, front = memory_pair(PIPE, to_left=to_editor, to_right=to_front)
    back, theirs = memory_pair(PIPE, to_left=to_back)
    running = asyncio.ensure_future(Bridge(front, back, **settings).run())
    editor, agent = Peer(ours), Peer(theirs)
    try:
        yield editor, agent
    finally:
        await editor.leave()
        await agent.leave()
        await running
    assert mistakes == []


@asynccontextmanager
async def in_session(
    front: int, back: int, *, to_editor: Faults = NO_FAULTS, **agent_can: Any
) -> AsyncIterator[tuple[Peer, Peer]]:
    """The same, after the handshake and with session `s` open. The last number used is 2, on both sides."""
    async with joined(to_editor=to_editor) as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[front]))
        await agent.hear()
        agent.say(result(1, **agent_hello(back, **agent_can)))
        await editor.hear()
        editor.say(request(2, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(result(2, sessionId="s"))
        await editor.hear()
        yield editor, agent


def request(id: int | str, method: str, /, **params: Any) -> Message:
    return {"id": id, "method": method, "params": params}


def note(method: str, /, **params: Any) -> Message:
    return {"method": method, "params": params}


def result(id: int | str, /, **fields: Any) -> Message:
    return {"id": id, "result": fields}


def error(id: int | str, code: int, message: str, data: Any = None) -> Message:
    body = {"code": code, "message": message}
    return {"id": id, "error": body if data is None else {**body, "data": data}}


def update(kind: str, /, **fields: Any) -> Message:
    return note("session/update", sessionId="s", update={"sessionUpdate": kind, **fields})


def state(name: str, /, **fields: Any) -> Message:
    return update("state_update", state=name, **fields)


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def prompt(id: int, words: str = "hi") -> Message:
    return request(id, "session/prompt", sessionId="s", prompt=[text(words)])


EDITOR = {
    1: {
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": True,
            "elicitation": {"form": {}},
        },
        "clientInfo": {"name": "ed", "version": "1"},
    },
    2: {"protocolVersion": 2, "info": {"name": "ed", "version": "1"}, "capabilities": {"elicitation": {"form": {}}}},
}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
ENTRIES = [{"content": "look", "priority": "high", "status": "pending"}]


def agent_hello(version: int, **can: Any) -> Message:
    if version == 1:
        session: Message = {name: {} for name in ("resume", "close", "list")}
        known = {"loadSession": True, "sessionCapabilities": session, **can}
        return {"protocolVersion": 1, "agentCapabilities": known, "agentInfo": {"name": "ag", "version": "2"}}
    known = {"session": {"mcp": {"stdio": {}}}, **can}
    return {"protocolVersion": 2, "capabilities": known, "info": {"name": "ag", "version": "2"}}


def permission(id: int | str, version: int, title: str = "Run ls") -> Message:
    """The question, as an agent of this version asks it."""
    if version == 1:
        call = {"toolCallId": "t", "title": title}
        return request(id, "session/request_permission", sessionId="s", toolCall=call, options=OPTIONS)
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": title}}
    return request(id, "session/request_permission", sessionId="s", title=title, subject=subject, options=OPTIONS)


def chosen(id: int | str, option: str) -> Message:
    return result(id, outcome={"outcome": "selected", "optionId": option})


DISMISSED = {"outcome": {"outcome": "cancelled"}}
THOUGHT, HELLO = {"content": text("hm")}, {"content": text("hello")}
OURS = "dragoman-1"  # what a version 1 prompt is called for those who need a name
RUN_LS = {"toolCallId": "t", "title": "Run ls", "kind": "execute", "status": "pending"}
RAN = {"toolCallId": "t", "status": "completed"}
ITEMS = {"type": "items", "planId": "p", "entries": ENTRIES}
QUESTION = 7  # the id under which the agents ask for permission
# What the agents say to a prompt they heard under id 3, until they ask, and after they were answered.
BEFORE = {
    1: [
        update("agent_thought_chunk", messageId="m8", **THOUGHT),
        update("agent_message_chunk", messageId="m9", **HELLO),
        update("tool_call", **RUN_LS),
        permission(QUESTION, 1),
    ],
    2: [
        result(3, messageId="u"),
        update("user_message", messageId="u", content=[text("hi")]),
        state("running"),
        update("agent_thought_chunk", messageId="m8", **THOUGHT),
        update("agent_message_chunk", messageId="m9", **HELLO),
        update("tool_call_update", **RUN_LS),
        state("requires_action"),
        permission(QUESTION, 2),
    ],
}
AFTER = {
    1: [
        update("tool_call_update", **RAN),
        update("plan", entries=ENTRIES),
        update("usage_update", used=5, size=10),
        result(3, stopReason="end_turn", usage=USAGE),
    ],
    2: [
        state("running"),
        update("tool_call_update", **RAN),
        update("plan_update", plan=ITEMS),
        update("usage_update", used=5, size=10),
        state("idle", stopReason="end_turn", usage=USAGE),
    ],
}
# What the editors hear of it.
HEARD_BEFORE = {
    (1, 1): [*BEFORE[1][:-1], permission(1, 1)],
    (1, 2): [*BEFORE[1][:-1], permission(1, 1)],
    (2, 1): [
        result(3, messageId=OURS),
        update("user_message", messageId=OURS, content=[text("hi")]),
        *BEFORE[2][2:-1],
        permission(1, 2),
    ],
    (2, 2): [*BEFORE[2][:-1], permission(1, 2)],
}
CANCELLED_END = {1: result(3, stopReason="cancelled"), 2: state("idle", stopReason="cancelled")}
OPEN = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
LOAD = {1: request(3, "session/load", **OPEN), 2: request(3, "session/resume", **OPEN, replayFrom={"type": "start"})}

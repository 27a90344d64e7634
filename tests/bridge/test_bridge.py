"""The bridge between two peers that know nothing of us: raw JSON lines on both sides, in every pair of versions.

Among them: what passes a bridge of one version unharmed, that every call and
turn ends once whatever happens at whichever message, that a waiting editor waits for the end, that nothing but a yes
is a yes.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import limits
from dragoman.bridge import GONE, UNFORWARDED_BYTES, UNREADABLE, Bridge
from dragoman.bridge.forwarding import ForwardedRequest, OpenWork
from dragoman.transports.contract import Transport
from dragoman.transports.memory import NO_FAULTS, Faults, memory_pair
from dragoman.vocabulary.requests import ListSessions
from tests.support.waiting import settled

Message = dict[str, Any]
PIPE = 64 * 1024
PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2)]
every_pair = pytest.mark.parametrize(("front", "back"), PAIRS)
# For what takes long: here each version is on each side, and the slow lane has the pairs of one version too.
every_translation = pytest.mark.parametrize(
    ("front", "back"), [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] == pair[1])) for pair in PAIRS]
)

# -- peers -----------------------------------------------------------------------------------------------------------


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


# -- words -----------------------------------------------------------------------------------------------------------


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


# -- hello -----------------------------------------------------------------------------------------------------------

NO_PROMPT_EXTRAS = {"image": False, "audio": False, "embeddedContext": False}
# What the editor is told, by its version and the agent's.
TOLD = {
    (1, 1): {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": NO_PROMPT_EXTRAS,
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"resume": {}, "close": {}, "list": {}},
            "auth": {},
            "_x": 1,
        },
        "authMethods": [],
        "agentInfo": {"name": "ag", "version": "2"},
    },
    (2, 1): {
        "protocolVersion": 2,
        "capabilities": {"session": {"prompt": {}, "mcp": {"stdio": {}}}, "_x": 1},
        "authMethods": [],
        "info": {"name": "ag", "version": "2"},
    },
}
TOLD[1, 2] = TOLD[1, 1]
TOLD[2, 2] = TOLD[2, 1]


@every_pair
async def test_each_side_is_greeted_with_what_the_other_said(front: int, back: int) -> None:
    async with joined() as (editor, agent):
        editor.say(request("a", "initialize", **EDITOR[front]))
        hello = await agent.hear()
        agent.say(result(hello["id"], **agent_hello(back, _x=1)))
        answer = await editor.hear()

    params = hello["params"]
    assert (hello["id"], hello["method"], params["protocolVersion"]) == (1, "initialize", 2)
    assert params["clientInfo"] == params["info"] == {"name": "ed", "version": "1"}
    assert params["clientCapabilities"]["terminal"] == (front == 1)
    assert params["clientCapabilities"]["fs"] == {"readTextFile": front == 1, "writeTextFile": front == 1}
    assert params["capabilities"] == {"elicitation": {"form": {}}}
    assert answer == result("a", **TOLD[front, back])


@every_pair
async def test_what_comes_right_behind_initialize_waits_for_the_agent_and_keeps_its_order(
    front: int, back: int
) -> None:
    async with joined() as (editor, agent):
        editor.say(
            request(1, "initialize", **EDITOR[front]),
            request(2, "_one"),
            note("_two"),
            request(3, "initialize", **EDITOR[front]),
            request(4, "session/new", cwd="/w", mcpServers=[]),
        )
        assert (await agent.hear())["method"] == "initialize"
        agent.say(result(1, **agent_hello(back)))
        heard = await agent.hear_many(3)
        answers = await editor.hear_many(2)

    assert [message["method"] for message in heard] == ["_one", "_two", "session/new"]
    assert answers == [
        result(1, **{**TOLD[front, back], **_without_x(TOLD[front, back])}),
        error(3, -32600, "Already initialized"),
    ]


def _without_x(hello: Message) -> Message:
    key = "agentCapabilities" if hello["protocolVersion"] == 1 else "capabilities"
    return {key: {name: value for name, value in hello[key].items() if name != "_x"}}


async def test_an_agent_that_refuses_the_hello_is_heard_and_another_hello_may_follow() -> None:
    async with joined() as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[1]))
        await agent.hear()
        agent.say(error(1, -32000, "Log in first", {"how": "there"}))
        assert await editor.hear() == error(1, -32000, "Log in first", {"how": "there"})
        editor.say(request(2, "initialize", **EDITOR[1]))
        assert (await agent.hear())["id"] == 2
        agent.say(result(2, **agent_hello(1, _x=1)))
        assert await editor.hear() == result(2, **TOLD[1, 1])


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"result": {"protocolVersion": 99, "info": {}}}, -32022, "The agent speaks another protocol version"),
        ({"result": {"protocolVersion": "two"}}, -32603, UNREADABLE),
        ({"result": 7}, -32603, UNREADABLE),
    ],
)
async def test_an_unreadable_initialize_is_an_error_for_the_editor(answer: Message, code: int, message: str) -> None:
    async with joined() as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[1]))
        await agent.hear()
        agent.say({"id": 1, **answer})
        assert await editor.hear() == error(1, code, message)


async def test_an_agent_that_never_answers_the_hello_is_not_waited_for_without_end() -> None:
    async with joined(start_timeout=0) as (editor, _):
        editor.say(request(1, "initialize", **EDITOR[2]))
        assert await editor.hear() == error(1, -32603, "The agent did not answer initialize in time")


@pytest.fixture(autouse=True)
def unsalted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that a bridge makes up are the same in every run."""
    monkeypatch.setattr("dragoman.link.link._new_salt", str)


# -- a turn ----------------------------------------------------------------------------------------------------------

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
HEARD_AFTER = {
    (1, 1): AFTER[1],
    (1, 2): AFTER[1],
    (2, 1): [*AFTER[2][:2], update("plan_update", plan={**ITEMS, "planId": "main"}), *AFTER[2][3:]],
    (2, 2): AFTER[2],
}


@every_pair
async def test_a_turn_is_heard_in_the_editors_own_version(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        assert await agent.hear() == prompt(3)
        agent.say(*BEFORE[back])
        assert await editor.hear_many(len(HEARD_BEFORE[front, back])) == HEARD_BEFORE[front, back]
        editor.say(chosen(1, "yes"))
        assert await agent.hear() == chosen(QUESTION, "yes")
        agent.say(*AFTER[back])
        assert await editor.hear_many(len(HEARD_AFTER[front, back])) == HEARD_AFTER[front, back]


@pytest.mark.requirement("L4")
async def test_a_version_1_prompt_is_answered_at_idle_and_not_when_the_agent_accepts_it() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(result(3, messageId="u"), state("running"))
        editor.say(request(4, "_still_there"))
        assert await agent.hear() == request(4, "_still_there")
        agent.say(result(4), update("agent_message_chunk", messageId="a", content=text("1")))
        agent.say(update("agent_message_chunk", messageId="a", content=text("2")))
        agent.say(state("idle", stopReason="refusal"))
        assert await editor.hear_many(4) == [
            result(4),
            update("agent_message_chunk", messageId="a", content=text("1")),
            update("agent_message_chunk", messageId="a", content=text("2")),
            result(3, stopReason="refusal"),
        ]


async def test_a_version_2_prompt_is_accepted_before_its_version_1_agent_says_anything() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(prompt(3))
        assert await editor.hear_many(3) == [
            result(3, messageId=OURS),
            update("user_message", messageId=OURS, content=[text("hi")]),
            state("running"),
        ]
        assert agent.heard[-1]["method"] == "session/new"
        assert await agent.hear() == prompt(3)


CANCELLED_END = {1: result(3, stopReason="cancelled"), 2: state("idle", stopReason="cancelled")}


@every_pair
async def test_a_cancelled_turn_ends_once_and_as_cancelled(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*BEFORE[back])
        await editor.hear_many(len(HEARD_BEFORE[front, back]))
        editor.say(note("session/cancel", sessionId="s"), result(1, **DISMISSED))
        assert await agent.hear_many(2) == [note("session/cancel", sessionId="s"), result(QUESTION, **DISMISSED)]
        agent.say(CANCELLED_END[back])
        running = [state("running")] if (front, back) == (2, 1) else []  # said for an agent that cannot
        assert await editor.hear_many(len(running) + 1) == [*running, CANCELLED_END[front]]


@every_pair
async def test_a_prompt_and_its_cancellation_in_one_breath_keep_their_order(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3, "x" * 200_000), note("session/cancel", sessionId="s"))
        assert await agent.hear_many(2) == [prompt(3, "x" * 200_000), note("session/cancel", sessionId="s")]


FAILURE = {"code": -32603, "message": "No luck", "data": {"reason": "network"}}
FAILED_END = {
    1: {"id": 3, "error": FAILURE},
    2: state("idle", stopReason="error", error=FAILURE),
}


@every_pair
async def test_a_turn_that_fails_says_why_and_leaves_the_session_usable(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*([] if back == 1 else [result(3, messageId="u")]), FAILED_END[back])
        accepted = 0 if front == 1 else 3 if back == 1 else 1
        assert (await editor.hear_many(accepted + 1))[-1] == FAILED_END[front]
        editor.say(prompt(4, "again"))
        assert await agent.hear() == prompt(4, "again")


@every_pair
async def test_a_prompt_that_is_refused_is_an_error_or_a_turn_that_failed(front: int, back: int) -> None:
    refused = error(3, -32002, "Session not found", {"sessionId": "s"})
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(refused)
        if (front, back) == (2, 1):
            # It was accepted when it was sent; a turn is all that can fail.
            assert (await editor.hear_many(4))[-1] == state("idle", stopReason="error", error=refused["error"])
        else:
            assert await editor.hear() == refused


async def test_a_second_prompt_for_a_version_1_agent_that_works_is_refused_and_ends_nothing() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(prompt(3))
        await editor.hear_many(3)
        editor.say(prompt(4, "and this"))
        assert await editor.hear() == error(4, -32600, "The session is busy", {"reason": "busy"})
        await agent.hear()
        agent.say(result(3, stopReason="end_turn"))
        assert await editor.hear() == state("idle", stopReason="end_turn")
        editor.say(prompt(5, "now"))
        assert await agent.hear() == prompt(4, "now")


# -- sessions --------------------------------------------------------------------------------------------------------

OPEN = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
LOAD = {1: request(3, "session/load", **OPEN), 2: request(3, "session/resume", **OPEN, replayFrom={"type": "start"})}
STORY = {
    1: [update("user_message_chunk", messageId="u", content=text("hi")), update("plan", entries=ENTRIES)],
    2: [update("user_message", messageId="u", content=[text("hi")]), update("plan_update", plan=ITEMS)],
}
# A version 1 wire has no whole messages, and its one plan has no name.
RETOLD = {
    (1, 1): STORY[1],
    (1, 2): STORY[1],
    (2, 1): [STORY[2][0], update("plan_update", plan={**ITEMS, "planId": "main"}), state("idle")],
    (2, 2): [*STORY[2], state("idle")],
}


@every_pair
async def test_a_stored_session_is_told_before_its_loading_is_answered(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(LOAD[front])
        assert await agent.hear() == LOAD[back]
        agent.say(*STORY[back], *([state("idle")] if back == 2 else ()), result(3))
        expected = [*RETOLD[front, back], result(3)]
        assert await editor.hear_many(len(expected)) == expected


async def test_two_bridges_do_not_name_two_messages_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    names = []
    for _ in range(2):
        async with in_session(2, 1) as (editor, agent):
            editor.say(prompt(3, "hi"))
            await agent.hear()
            names.append((await editor.hear())["result"]["messageId"])
    assert len(set(names)) == 2


@every_pair
async def test_what_is_said_behind_an_answer_stays_behind_it(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(note("_before"), result(3, sessionId="s2"), note("_behind"), update("usage_update", used=1, size=2))
        assert await editor.hear_many(4) == [
            note("_before"),
            result(3, sessionId="s2"),
            note("_behind"),
            update("usage_update", used=1, size=2),
        ]


async def test_a_session_resumed_without_its_story_is_not_told_when_the_agent_can_only_load() -> None:
    async with in_session(2, 1, sessionCapabilities={}) as (editor, agent):
        editor.say(request(3, "session/resume", **OPEN))
        assert await agent.hear() == LOAD[1]
        agent.say(*STORY[1], result(3), update("usage_update", used=1, size=2))
        assert await editor.hear_many(3) == [state("idle"), result(3), update("usage_update", used=1, size=2)]


async def test_closing_a_session_is_a_cancel_for_an_agent_that_cannot_close() -> None:
    async with in_session(2, 1, sessionCapabilities={}) as (editor, agent):
        editor.say(request(3, "session/close", sessionId="s"))
        assert await agent.hear() == note("session/cancel", sessionId="s")
        assert await editor.hear() == result(3)


MODES = [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]


def mode(version: int, value: str, config_id: str = "mode") -> Message:
    """The mode as an option of this version."""
    choices = [{"value": choice["id"], "name": choice["name"]} for choice in MODES]
    return {
        "type": "select",
        "id" if version == 1 else "configId": config_id,
        "name": "Mode",
        "category": "mode",
        "currentValue": value,
        "options": choices,
    }


def modes(value: str) -> Message:
    return {"currentModeId": value, "availableModes": MODES}


async def test_a_version_1_mode_is_an_option_for_a_version_2_editor() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w"))
        await agent.hear()
        agent.say(result(3, sessionId="s", modes=modes("ask")))
        assert await editor.hear() == result(3, sessionId="s", configOptions=[mode(2, "ask")])
        editor.say(request(4, "session/set_config_option", sessionId="s", configId="mode", type="id", value="go"))
        assert await agent.hear() == request(4, "session/set_mode", sessionId="s", modeId="go")
        agent.say(result(4), update("current_mode_update", currentModeId="ask"))
        assert await editor.hear_many(2) == [
            result(4, configOptions=[mode(2, "go")]),
            update("config_option_update", configOptions=[mode(2, "ask")]),
        ]


async def test_a_version_2_mode_option_is_also_a_mode_for_a_version_1_editor() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(result(3, sessionId="s", configOptions=[mode(2, "ask", "m")]))
        assert await editor.hear() == result(3, sessionId="s", modes=modes("ask"), configOptions=[mode(1, "ask", "m")])
        editor.say(request(4, "session/set_mode", sessionId="s", modeId="go"))
        assert await agent.hear() == request(
            4, "session/set_config_option", sessionId="s", configId="m", type="id", value="go"
        )
        agent.say(result(4, configOptions=[mode(2, "go", "m")]))
        agent.say(update("config_option_update", configOptions=[mode(2, "ask", "m")]))
        assert await editor.hear_many(4) == [
            result(4),
            update("config_option_update", configOptions=[mode(1, "go", "m")]),
            update("config_option_update", configOptions=[mode(1, "ask", "m")]),
            update("current_mode_update", currentModeId="ask"),
        ]


# -- requests, notes, errors, ids ------------------------------------------------------------------------------------


@every_pair
async def test_extensions_pass_both_ways_with_their_errors_and_nobody_sees_the_others_ids(
    front: int, back: int
) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("mine", "_to_agent", deep={"x": [1, None]}), note("_news", n=1))
        assert await agent.hear_many(2) == [request(3, "_to_agent", deep={"x": [1, None]}), note("_news", n=1)]
        agent.say(request("yours", "_to_editor", q=1), note("_tidings"), error(3, -32099, "No", {"why": [1]}))
        assert await editor.hear_many(3) == [
            request(1, "_to_editor", q=1),
            note("_tidings"),
            error("mine", -32099, "No", {"why": [1]}),
        ]
        editor.say(error(1, -5, "Never", "because"))
        assert await agent.hear() == error("yours", -5, "Never", "because")


@every_pair
async def test_a_question_and_its_completion_pass_to_the_editor(front: int, back: int) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = {"mode": "form", "message": "Who?", "sessionId": "s", "requestedSchema": form}
    async with in_session(front, back) as (editor, agent):
        agent.say(request("q", "elicitation/create", **question), note("elicitation/complete", elicitationId="e"))
        assert await editor.hear_many(2) == [
            request(1, "elicitation/create", **question),
            note("elicitation/complete", elicitationId="e"),
        ]
        editor.say(result(1, action="accept", content={"name": "me"}))
        assert await agent.hear() == result("q", action="accept", content={"name": "me"})


async def test_files_and_terminals_pass_between_two_sides_of_version_1() -> None:
    async with in_session(1, 1) as (editor, agent):
        agent.say(
            request("r", "fs/read_text_file", sessionId="s", path="/w/a", line=2),
            request("t", "terminal/create", sessionId="s", command="ls"),
        )
        assert await editor.hear_many(2) == [
            request(1, "fs/read_text_file", sessionId="s", path="/w/a", line=2),
            request(2, "terminal/create", sessionId="s", command="ls"),
        ]
        editor.say(result(2, terminalId="7"), result(1, content="unsaved"))
        assert await agent.hear_many(2) == [result("t", terminalId="7"), result("r", content="unsaved")]


async def test_files_are_never_asked_of_a_version_2_editor() -> None:
    async with in_session(2, 1) as (editor, agent):
        agent.say(request("r", "fs/read_text_file", sessionId="s", path="/w/a"), note("_next"))
        assert await agent.hear() == error("r", -32601, "Method not found")
        assert await editor.hear() == note("_next")


async def test_what_the_agents_version_has_no_word_for_is_an_unknown_method() -> None:
    async with in_session(2, 1) as (editor, _):
        editor.say(request(3, "tool_call/cancel", sessionId="s", toolCallId="t"))
        assert await editor.hear() == error(3, -32601, "The other side does not offer this")


@every_pair
async def test_a_request_that_the_editor_cancels_is_cancelled_at_the_agent(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(9, "_slow"))
        assert await agent.hear() == request(3, "_slow")
        editor.say(note("$/cancel_request", requestId=9))
        assert await agent.hear() == note("$/cancel_request", requestId=3)
        assert await editor.hear() == error(9, -32800, "Request cancelled")
        agent.say(result(3, late=True), note("_next"))
        assert await editor.hear() == note("_next")


@every_pair
async def test_a_request_cancelled_in_the_same_breath_is_answered_once(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(9, "_slow"), note("$/cancel_request", requestId=9), request(10, "_next"))
        assert await editor.hear() == error(9, -32800, "Request cancelled")
        heard = [await agent.hear()]
        while heard[-1]["method"] != "_next":
            heard.append(await agent.hear())
        agent.say(result(heard[-1]["id"]))
        assert await editor.hear() == result(10)


@every_pair
async def test_a_permission_that_the_agent_withdraws_is_withdrawn_from_the_editor(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        assert await editor.hear() == permission(1, front)
        agent.say(note("$/cancel_request", requestId="p"))
        assert await editor.hear() == note("$/cancel_request", requestId=1)
        assert await agent.hear() == error("p", -32800, "Request cancelled")
        editor.say(chosen(1, "yes"), note("_next"))
        assert await agent.hear() == note("_next")


async def test_giving_up_on_a_version_1_prompt_cancels_its_turn() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(result(3, messageId="u"), state("running"), note("_runs"))
        await editor.hear()
        editor.say(note("$/cancel_request", requestId=3))
        assert await agent.hear() == note("session/cancel", sessionId="s")
        agent.say(state("idle", stopReason="cancelled"))
        assert await editor.hear() == result(3, stopReason="cancelled")


def question_about(number: int | str, mode: str = "form") -> Message:
    schema = {"requestedSchema": {"type": "object", "properties": {}}} if mode == "form" else {"how": "aloud"}
    return {"mode": mode, "message": "Which?", "requestId": number, **schema}


@every_pair
@pytest.mark.parametrize("mode", ["form", "_voice"])
async def test_a_question_about_a_request_names_it_as_the_editor_does(front: int, back: int, mode: str) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("mine", "_slow"))
        await agent.hear()
        agent.say(request("q", "elicitation/create", **question_about(3, mode)))
        assert await editor.hear() == request(1, "elicitation/create", **question_about("mine", mode))
        editor.say(result(1, action="decline"))
        assert await agent.hear() == result("q", action="decline")


@pytest.mark.parametrize("front", [1, 2])
@pytest.mark.parametrize("mode", ["form", "_voice"])
async def test_a_question_about_a_prompt_is_about_its_session_where_the_prompt_has_its_answer(
    front: int, mode: str
) -> None:
    async with in_session(front, 1) as (editor, agent):
        editor.say(prompt(30))
        await agent.hear()
        agent.say(request("q", "elicitation/create", **question_about(3, mode)))
        asked = question_about(30, mode)
        if front == 2:
            asked = {**{name: value for name, value in asked.items() if name != "requestId"}, "sessionId": "s"}
        assert (await editor.hear_many(1 if front == 1 else 4))[-1] == request(1, "elicitation/create", **asked)


@every_pair
@pytest.mark.parametrize("number", [2, 99, "3"])
async def test_a_question_about_a_request_that_is_over_or_never_was_is_cancelled(
    front: int, back: int, number: int | str
) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(request("q", "elicitation/create", **question_about(number)), note("_next"))
        assert await agent.hear() == result("q", action="cancel")
        assert await editor.hear() == note("_next")


async def test_too_many_requests_are_refused_and_what_ends_work_still_passes() -> None:
    async with in_session(2, 1) as (editor, agent):
        for number in range(limits.IN_FLIGHT + 1):
            words = [text("hi")]
            editor.say(request(number + 3, "session/prompt", sessionId=f"s{number}", prompt=words))
            answer = await editor.hear()
            if number < limits.IN_FLIGHT:
                await editor.hear_many(2)
        editor.say(note("session/cancel", sessionId="s0"))
        heard = await agent.hear_many(limits.IN_FLIGHT + 1)
    assert answer == error(limits.IN_FLIGHT + 3, -32001, "Too many requests in flight", {"retry": True})
    assert heard[-1] == note("session/cancel", sessionId="s0")


# -- one version on both sides ---------------------------------------------------------------------------------------

ODD = {"_meta": {"k": [1]}, "odd": {"deep": None}}


@pytest.mark.requirement("L2")
@pytest.mark.parametrize("version", [1, 2])
async def test_unknown_fields_and_methods_pass_a_bridge_of_one_version(version: int) -> None:
    async with in_session(version, version) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[], **ODD))
        assert await agent.hear() == request(3, "session/new", cwd="/w", mcpServers=[], **ODD)
        said = [
            result(3, sessionId="s", **ODD),
            update("agent_message_chunk", messageId="a", content={**text("x"), **ODD}, **ODD),
            update("_invented", anything=[1, {"two": 3}], **ODD),
            update("usage_update", used=1, size=2, **ODD),
            update(
                "tool_call_update" if version == 2 else "tool_call",
                **RUN_LS,
                content=[{"type": "content", "content": {**text("y"), **ODD}, **ODD}],
                **ODD,
            ),
        ]
        agent.say(*said)
        assert await editor.hear_many(len(said)) == said
        asked = permission("p", version)
        agent.say({**asked, "params": {**asked["params"], **ODD}})
        assert await editor.hear() == {**asked, "id": 1, "params": {**asked["params"], **ODD}}
        editor.say(result(1, outcome={"outcome": "selected", "optionId": "no", **ODD}, **ODD))
        assert await agent.hear() == result("p", outcome={"outcome": "selected", "optionId": "no", **ODD}, **ODD)


# -- nothing but a yes is a yes --------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Message, Message | None]] = {
    # what the editor answers -> what the agent hears; None: an error
    "yes": (
        {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}},
        {"outcome": "selected", "optionId": "yes"},
    ),
    "no": (
        {"result": {"outcome": {"outcome": "selected", "optionId": "no"}}},
        {"outcome": "selected", "optionId": "no"},
    ),
    "dismissed": ({"result": DISMISSED}, DISMISSED["outcome"]),
    "not offered": ({"result": {"outcome": {"outcome": "selected", "optionId": "allow"}}}, DISMISSED["outcome"]),
    "nothing chosen": ({"result": {"outcome": {"outcome": "selected"}}}, None),
    "bare word": ({"result": {"outcome": "yes"}}, None),
    "empty": ({"result": {}}, None),
    "null": ({"result": None}, None),
    "true": ({"result": True}, None),
    "list": ({"result": [{"outcome": "selected", "optionId": "yes"}]}, None),
    "error": ({"error": {"code": -1, "message": "yes"}}, None),
}


@pytest.mark.requirement("L5")
@every_pair
@pytest.mark.parametrize("case", ANSWERS)
async def test_only_an_offered_choice_is_passed_on(front: int, back: int, case: str) -> None:
    answered, heard = ANSWERS[case]
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        # The second answer comes too late to change the first, whatever the first was.
        editor.say({"id": 1, **answered}, chosen(1, "yes"), note("_next"))
        answer, following = await agent.hear_many(2)
    assert (answer["id"], following) == ("p", note("_next"))
    if heard is None:
        assert answer == {"id": "p", "error": answered.get("error", {"code": -32603, "message": UNREADABLE})}
    else:
        assert answer == result("p", outcome=heard)


@pytest.mark.requirement("L5")
@pytest.mark.parametrize(("back", "heard"), [(1, DISMISSED["outcome"]), (2, {"outcome": "_allow_all", "more": 1})])
async def test_an_unknown_outcome_stays_unknown_or_is_cancelled(back: int, heard: Message) -> None:
    async with in_session(2, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        editor.say(result(1, outcome={"outcome": "_allow_all", "more": 1}))
        assert await agent.hear() == result("p", outcome=heard)


@pytest.mark.requirement("L5")
@every_pair
async def test_an_option_offered_under_two_meanings_cannot_be_chosen(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        asked = permission("p", back)
        asked["params"]["options"] = [{**option, "optionId": "same"} for option in OPTIONS]
        agent.say(asked)
        await editor.hear()
        editor.say(chosen(1, "same"))
        assert await agent.hear() == result("p", **DISMISSED)


@pytest.mark.requirement("L5")
@every_pair
async def test_a_permission_whose_editor_leaves_is_cancelled(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        await editor.leave()
        assert await agent.ended() == [result("p", **DISMISSED)]


@pytest.mark.requirement("L5")
@every_pair
async def test_a_permission_whose_agent_leaves_is_withdrawn(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        await agent.leave()
        assert await editor.ended() == [note("$/cancel_request", requestId=1)]


@pytest.mark.requirement("L5")
@every_pair
async def test_one_yes_answers_one_question(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back), permission("p", back), permission("q", back))
        assert [message["id"] for message in await editor.hear_many(2)] == [1, 2]
        assert (await agent.hear())["error"]["code"] == -32600  # asked twice under one id
        editor.say(chosen(1, "yes"), chosen(1, "yes"), chosen(2, "no"))
        assert await agent.hear_many(2) == [chosen("p", "yes"), chosen("q", "no")]


# -- one end, whatever happens and whenever --------------------------------------------------------------------------


class Editor:
    """A whole visit: hello, a session, a turn with a permission, a request, a second turn."""

    def __init__(self, peer: Peer, version: int) -> None:
        self.peer = peer
        self.version = version
        self.asked = 0
        self.cancels_at: int | None = None
        self.fails_at: int | None = None
        self.questions = 0

    async def visit(self) -> None:
        await self.ask("initialize", **EDITOR[self.version])
        await self.ask("session/new", cwd="/w", mcpServers=[])
        for _ in range(2):
            answer = await self.ask("session/prompt", sessionId="s", prompt=[text("hi")])
            while self.version == 2 and "result" in answer and not self._is_idle(await self.step()):
                pass
            await self.ask("_between")

    async def ask(self, method: str, **params: Any) -> Message:
        self.asked += 1
        self.peer.say(request(self.asked, method, **params))
        while True:
            message = await self.step()
            if "method" not in message and message["id"] == self.asked:
                return message

    async def step(self) -> Message:
        message = await self.peer.hear()
        if len(self.peer.heard) == self.cancels_at:
            self.peer.say(note("session/cancel", sessionId="s"))
        if message.get("method") == "session/request_permission":
            self.questions += 1
            refused = error(message["id"], -32603, "Broken")
            self.peer.say(refused if self.questions == self.fails_at else chosen(message["id"], "yes"))
        return message

    def _is_idle(self, message: Message) -> bool:
        return bool(message.get("params", {}).get("update", {}).get("stopReason"))


class Program:
    """An agent for that visit: it answers what it is asked, and does what `BEFORE` and `AFTER` say on a prompt."""

    def __init__(self, peer: Peer, version: int) -> None:
        self.peer = peer
        self.version = version
        self.fails_at: int | None = None
        self.requests = 0
        self.cancelled = False
        self.questions = 0

    async def work(self) -> None:
        while True:
            message = await self.peer.hear()
            self._notice(message)
            if "id" in message:
                self.requests += 1
                await self._answer(message)

    async def _answer(self, message: Message) -> None:
        if self.requests == self.fails_at:
            self.peer.say(error(message["id"], -32603, "Broken"))
        elif message["method"] == "initialize":
            self.peer.say(result(message["id"], **agent_hello(self.version)))
        elif message["method"] == "session/prompt":
            await self._turn(message["id"])
        else:
            self.peer.say(result(message["id"], sessionId="s"))

    async def _turn(self, number: int) -> None:
        self.cancelled = False
        self.questions += 1
        ids: dict[int, int | str] = {3: number, QUESTION: f"q{self.questions}"}
        self.peer.say(*(_renumbered(said, ids) for said in BEFORE[self.version]))
        while "method" in (answer := await self.peer.hear()):
            self._notice(answer)
        if self.cancelled:
            self.peer.say(_renumbered(CANCELLED_END[self.version], ids))
        else:
            self.peer.say(*(_renumbered(said, ids) for said in AFTER[self.version]))

    def _notice(self, message: Message) -> None:
        if message.get("method") == "session/cancel":
            self.cancelled = True


def _renumbered(message: Message, ids: dict[int, int | str]) -> Message:
    return {**message, "id": ids[message["id"]]} if "id" in message else message


async def visit(
    front: int, back: int, arrange: Callable[[Editor, Program], None], **faults: Faults
) -> tuple[Editor, Program]:
    """Play the visit with a fault in it, to the end of all three."""
    async with joined(**faults) as (left, right):
        editor, program = Editor(left, front), Program(right, back)
        arrange(editor, program)

        async def play(script: Any, peer: Peer) -> None:
            try:
                await script
                await peer.leave()
            except Ended:
                pass

        visiting = asyncio.ensure_future(play(editor.visit(), left))
        working = asyncio.ensure_future(play(program.work(), right))
        await asyncio.wait([visiting, working])
    return editor, program


def answers(peer: Peer) -> Counter[Any]:
    return Counter(message["id"] for message in peer.heard if "method" not in message)


def assert_one_end_each(editor: Editor, program: Program) -> None:
    """Every request and every turn that could be heard has exactly one end, and only a yes was a yes."""
    assert set(answers(editor.peer).values()) | set(answers(program.peer).values()) <= {1}
    if not editor.peer.fell:
        # Whatever the agent heard before it went, or was going to hear, the editor was answered.
        assert answers(editor.peer).total() >= sum("id" in m and "method" in m for m in program.peer.heard)
        assert ends(editor.peer) == turns(editor)
    if not program.peer.fell:
        asked = sum("id" in m and "method" in m for m in program.peer.said)
        assert answers(program.peer).total() == asked
    allowed = sum(m.get("result", {}).get("outcome", {}).get("optionId") == "yes" for m in editor.peer.said)
    heard = sum(m.get("result", {}).get("outcome", {}).get("optionId") == "yes" for m in program.peer.heard)
    assert heard <= allowed


def turns(editor: Editor) -> int:
    """The turns that began, as far as the editor knows."""
    prompts = {m["id"] for m in editor.peer.said if m.get("method") == "session/prompt"}
    if editor.version == 1:
        return 0
    return sum(m.get("id") in prompts and "result" in m for m in editor.peer.heard)


def ends(peer: Peer) -> int:
    return sum(bool(m.get("params", {}).get("update", {}).get("stopReason")) for m in peer.heard)


@pytest.mark.requirement("L3")
@every_translation
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_leaves_at_any_message_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    index = 0
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            (program if who == "agent" else editor).peer.leaves_at = index

        editor, program = await visit(front, back, arrange)
        if not (program if who == "agent" else editor).peer.fell:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index > 20


@pytest.mark.requirement("L3")
@every_translation
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_is_cut_off_at_any_byte_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    cuts = [*range(0, 2_000, 83), 2_000]
    for cut in cuts:
        fault = Faults(dropped_after=cut)

        def arrange(editor: Editor, program: Program) -> None:
            (program if who == "agent" else editor).peer.fell = True

        faults = {"to_back": fault} if who == "agent" else {"to_front": fault}
        assert_one_end_each(*await visit(front, back, arrange, **faults))


@pytest.mark.requirement("L3")
@every_pair
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_fails_at_any_request_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    index = 1
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            if who == "agent":
                program.fails_at = index
            else:
                editor.fails_at = index

        editor, program = await visit(front, back, arrange)
        if (program.requests if who == "agent" else editor.questions) < index:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index == (7 if who == "agent" else 3)


@pytest.mark.requirement("L3")
@every_translation
async def test_a_cancel_at_any_message_leaves_one_end(front: int, back: int) -> None:
    index = 1
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            editor.cancels_at = index

        editor, program = await visit(front, back, arrange)
        if len(editor.peer.heard) < index:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index > 20


@every_pair
async def test_an_agent_that_leaves_in_a_turn_ends_it_with_an_error_before_the_end(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*BEFORE[back][:-1])
        await editor.hear_many(len(HEARD_BEFORE[front, back]) - (2 if (front, back) == (2, 1) else 1))
        await agent.leave()
        failure = {"code": -32603, "message": GONE}
        end = error(3, -32603, GONE) if front == 1 else state("idle", stopReason="error", error=failure)
        assert await editor.ended() == [end]


async def test_work_without_a_prompt_is_ended_too_when_its_agent_leaves() -> None:
    async with in_session(2, 2) as (editor, agent):
        agent.say(state("running"), state("idle"), state("running"))
        await agent.leave()
        end = state("idle", stopReason="error", error={"code": -32603, "message": GONE})
        assert await editor.ended() == [state("running"), state("idle"), state("running"), end]


async def test_a_closed_session_has_no_turn_to_end_when_its_agent_leaves() -> None:
    async with in_session(2, 2) as (editor, agent):
        editor.say(prompt(3), request(4, "session/close", sessionId="s"))
        await agent.hear_many(2)
        agent.say(result(3, messageId="u"), state("running"), result(4), note("_last"))
        assert (await editor.hear_many(4))[2:] == [result(4), note("_last")]
        await agent.leave()
        assert await editor.ended() == []


@every_pair
async def test_an_agent_that_leaves_owes_no_answer_and_ends_no_finished_turn(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("x", "_slow"), note("_news"))
        await agent.hear_many(2)
        agent.say(note("_last"))
        await agent.leave()
        assert await editor.ended() == [note("_last"), error("x", -32603, GONE)]


@every_pair
async def test_an_editor_that_only_stops_speaking_still_hears_what_it_asked_for(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("x", "_slow"))
        editor.fall_silent()
        await agent.hear()
        agent.say(permission("p", back), note("_last"), result(3))
        assert await editor.ended() == [note("_last"), result("x")]
        assert await agent.ended() == [result("p", **DISMISSED)]


@every_pair
async def test_what_the_editor_said_before_it_left_reaches_the_agent(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(note("_one"), note("session/cancel", sessionId="s"), note("_two"))
        await editor.leave()
        assert await agent.ended() == [note("_one"), note("session/cancel", sessionId="s"), note("_two")]


# -- back-pressure ---------------------------------------------------------------------------------------------------


COUNT = 300
SIZE = 36_000
MUCH = COUNT * SIZE
# The outbox, what waits before it, and the pipes.
HELD = limits.OUTBOX_BYTES + UNFORWARDED_BYTES + limits.MIB


@pytest.mark.parametrize(("front", "back", "loading"), [(1, 2, True), (2, 2, False)])
async def test_an_editor_that_does_not_read_stops_the_agent_and_loses_nothing(
    front: int, back: int, loading: bool
) -> None:
    chunks = [update("agent_message_chunk", messageId="a", content=text(f"{n} {'x' * SIZE}")) for n in range(COUNT)]
    async with in_session(front, back) as (editor, agent):
        if loading:
            editor.say(LOAD[front])  # while somebody waits for an answer the limit is the same
            await agent.hear()
        for _ in range(2):
            editor.deaf()
            agent.say(*chunks)
            assert MUCH - await stuck(agent) < HELD
            editor.listen()
            assert await editor.hear_many(COUNT) == chunks


async def stuck(peer: Peer) -> int:
    """How much of what it says has not left when nothing moves any more."""
    await settled()
    return len(peer.unsent)


@pytest.mark.parametrize(("front", "back"), [(1, 2), (2, 1)])
async def test_an_agent_that_does_not_read_stops_the_editor_and_loses_nothing(front: int, back: int) -> None:
    notes = [note("_much", n=n, data="x" * SIZE) for n in range(COUNT)]
    async with in_session(front, back) as (editor, agent):
        for _ in range(2):
            agent.deaf()
            editor.say(*notes)
            assert MUCH - await stuck(editor) < HELD
            agent.listen()
            assert await agent.hear_many(COUNT) == notes


async def test_a_slow_editor_may_read_on_for_as_long_as_it_reads_when_the_agent_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 0.1)
    chunks = [update("agent_message_chunk", messageId="a", content=text("x" * SIZE))] * 175
    async with in_session(2, 2, to_editor=Faults(per_turn=400)) as (editor, agent):
        agent.say(*chunks)
        await agent.leave_when_all_is_said()
        assert await editor.ended() == chunks


@every_pair
async def test_a_request_that_never_reached_the_agent_is_answered(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.deaf()
        editor.say(*[note("_much", data="x" * SIZE)] * 150, request("x", "_late"), request("y", "_later"))
        await stuck(editor)
        await agent.leave()
        assert await editor.ended() == [error("x", -32603, GONE), error("y", -32603, GONE)]


@pytest.mark.parametrize(("front", "back"), [(1, 2), (2, 1)])
async def test_one_message_larger_than_all_limits_but_its_own_passes(
    front: int, back: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INBOX_BYTES", limits.OUTBOX_BYTES)
    large = update("agent_message_chunk", messageId="a", content=text("x" * (limits.INBOX_BYTES + limits.MIB)))
    async with in_session(front, back) as (editor, agent):
        agent.say(note("_first"), large, note("_last"))
        assert await editor.hear() == note("_first")
        assert await editor.hear() == large
        assert await editor.hear() == note("_last")


async def test_a_request_that_is_asked_again_is_known_by_its_last_number_alone() -> None:
    unfinished = OpenWork()
    side: Any = SimpleNamespace(on_sent=unfinished.add, on_end=unfinished.remove)
    crossing = ForwardedRequest(side, side, ListSessions(), 7)
    crossing.on_sent(1)
    crossing.on_sent(2)
    assert unfinished.find(1) is None
    assert unfinished.find(2) is crossing

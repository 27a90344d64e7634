"""The link: ordered in, ordered out, bounded both ways; every call ends once."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake.first_bytes import greet
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import (
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
    VersionMismatch,
)
from dragoman.link import Link, Trace
from dragoman.transports.memory import NO_FAULTS, Faults, MemoryTransport, memory_pair
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from dragoman.vocabulary.requests import CancelTurn, CloseSession, ListSessions, NewSession, SessionInfo, SessionList
from tests.support.raw_peer import PIPE, Message, RawPeer, greeting, hello
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio
both_versions = pytest.mark.parametrize("version", [1, 2])


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


# -- hearing ---------------------------------------------------------------------------------------------------------


@both_versions
async def test_what_is_heard_is_handed_up_in_its_order(version: int) -> None:
    async with client_link(version) as end:
        asked = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await end.wire.hear())["id"]
        at_the_answer: list[int] = []
        asked.add_done_callback(lambda _: at_the_answer.append(len(end.above.log)))
        many = [chunk(str(n)) for n in range(1000)]
        end.wire.say(*many, {"method": "_note", "params": {}}, {"id": number, "result": 1})
        assert await asked == ExtensionResult(1)
        assert at_the_answer == [1001]
        expected = [("s", AgentMessageChunk(Text(str(n)), message_id="m")) for n in range(1000)]
        assert end.above.log[:-1] == expected
        assert end.above.log[-1] == ExtensionNote("_note", {})


@both_versions
async def test_an_answer_is_told_at_its_place_among_the_events(version: int) -> None:
    async with client_link(version) as end:
        log = end.above.log
        asked = asyncio.ensure_future(end.link.ask(Extension("_a"), on_reply=log.append))
        number = (await end.wire.hear())["id"]
        end.wire.say(chunk("before"), {"id": number, "result": 1}, chunk("after"))
        await asked
        await until(lambda: len(log) == 3)
        assert [type(one) for one in log] == [tuple, ExtensionResult, tuple]


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("pieces", [1, 7, 4096])
async def test_torn_bytes_are_heard_like_whole_ones(pieces: int) -> None:
    ours, theirs = memory_pair(PIPE, to_left=Faults(pieces=pieces))
    above = Above()
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1), ping(2, text="ü" * 50), {"method": "_note", "params": {}})
    assert (await wire.answer(2))["result"] == "done"
    await until(lambda: len(above.log) == 3)
    assert above.log == [Extension("_ping", {}), Extension("_ping", {"text": "ü" * 50}), ExtensionNote("_note", {})]
    await link.close()


async def test_content_length_is_answered_in_kind() -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "agent")
    link.start()
    received = bytearray()

    class Bytes(RawPeer):
        def data_received(self, data: bytes) -> None:
            received.extend(data)

    wire = Bytes(theirs)
    body = json.dumps({"jsonrpc": "2.0", **hello(1)}).encode()
    wire.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    await until(lambda: b'"protocolVersion":1' in received)
    assert received.startswith(b"Content-Length: ")
    await link.close()


@pytest.mark.requirement("C1")
async def test_nothing_is_done_before_initialize_and_a_second_one_is_refused() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(ping(1), {"method": "_note", "params": {}}, hello(1), {**hello(1), "id": 2}, ping(3))
    await wire.answer(3)
    assert [(m["id"], m.get("error", {}).get("code")) for m in wire.heard] == [
        (1, -32600),
        (0, None),
        (2, -32600),
        (3, None),
    ]
    assert above.log == [Extension("_ping", {})]
    with pytest.raises(UsageError, match="before initialize"):
        Link(memory_pair(1)[0], above, "agent").text_stream("s", "agent_message_chunk", "m")
    await link.close()


async def test_an_agent_that_asks_before_it_has_answered_initialize_is_refused() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    wire.say(ping(1))
    assert (await wire.answer(1))["error"]["code"] == -32600
    assert above.bugs == []
    await link.close()


async def test_what_follows_the_answer_to_initialize_in_the_same_breath_is_heard() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    number = (await wire.hear())["id"]
    wire.say({"id": number, "result": greeting(2)}, {"method": "_note", "params": {}}, chunk("x"))
    await greeted
    assert above.log == [ExtensionNote("_note", {}), ("s", AgentMessageChunk(Text("x"), message_id="m"))]
    await link.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"result": greeting(2)}, VersionMismatch),
        ({"result": {"protocolVersion": "x"}}, PeerError),
        ({"result": 5}, PeerError),
        ({"error": {"code": -32022, "message": "Unsupported protocol version"}}, VersionMismatch),
        ({"error": {"code": -32603, "message": "Internal error"}}, RequestFailed),
    ],
)
async def test_an_agent_that_cannot_be_spoken_with_says_so_once(answer: Message, error: type[Exception]) -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "client", spoken=(1,))
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    wire.say({"id": (await wire.hear())["id"], **answer})
    with pytest.raises(error):
        await greeted
    await link.close()


async def test_while_our_own_hello_is_awaited_what_is_heard_waits_in_order() -> None:
    ours, theirs = memory_pair(PIPE)
    above = Above()
    ready: asyncio.Future[AgentHello] = asyncio.get_running_loop().create_future()
    above.on_initialize = lambda hello: ready  # type: ignore[method-assign]
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1), *[{"method": "_note", "params": {}}] * 300)
    await settled()
    assert (wire.heard, above.log) == ([], [])
    ready.set_result(AgentHello(Implementation("late", "1")))
    await until(lambda: len(above.log) == 301)
    await wire.answer(1)
    assert [m["id"] for m in wire.heard] == [0, 1]
    await link.close()


# -- bad input -------------------------------------------------------------------------------------------------------


async def test_bad_input_gets_a_code_and_the_link_lives() -> None:
    async with agent_link() as end:
        end.wire.write(b"hello\n[]\n42\n")
        end.wire.say(
            {"id": 1, "method": "no/such"}, {"id": 2, "method": 7}, {"method": "no/such"}, {"id": 9, "result": 1}
        )
        end.wire.say({"id": 3, "method": "session/prompt", "params": {"sessionId": 5}}, ping(4))
        await end.wire.answer(4)
        assert codes(end.wire.heard) == [-32700, -32600, -32600, -32601, -32600, -32602]
        assert len(end.above.noises) == 2 and end.above.bugs == []


@pytest.mark.requirement("B15")
async def test_a_handlers_bug_is_told_without_its_text() -> None:
    async with agent_link() as end:

        def fail(request: Request) -> Reply:
            raise OSError("/secret")

        async def fail_later(request: Request) -> Reply:
            raise OSError("/secret")

        answers: list[Callable[[Request], Reply | Awaitable[Reply]]] = [fail, fail_later]
        for number, answer in enumerate(answers, 1):
            end.above.answer = answer
            end.wire.say(ping(number))
            error = (await end.wire.answer(number))["error"]
            assert error == {"code": -32603, "message": "Internal error"}
        assert [str(bug) for bug in end.above.bugs] == ["/secret", "/secret"]


async def test_an_answer_that_cannot_be_said_is_a_failure_and_not_a_silence() -> None:
    async with agent_link() as end:
        end.above.answer = lambda request: ExtensionResult(object())
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"]["code"] == -32603
        assert len(end.above.bugs) == 1


async def test_a_handler_that_raises_in_passing_does_not_harm_the_next_message() -> None:
    async with agent_link() as end:
        heard: list[Note] = []

        def on_notification(note: Note) -> None:
            heard.append(note)
            raise ValueError("bug")

        end.above.on_notification = on_notification  # type: ignore[method-assign]
        end.wire.say({"method": "_a", "params": {}}, {"method": "_b", "params": {}}, ping(1))
        await end.wire.answer(1)
        assert (len(heard), len(end.above.bugs)) == (2, 2)


@pytest.mark.requirement("A7")
async def test_a_frame_over_the_limit_is_refused_and_one_at_the_limit_is_heard() -> None:
    async with agent_link(frame_limit=1000) as end:
        for size, id in ((1000, 1), (1001, 2), (900, 3)):
            line = json.dumps({"jsonrpc": "2.0", **ping(id, pad="")}).encode()
            end.wire.write(line.replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * (size - len(line)))) + b"\n")
        await end.wire.answer(3)
        assert (await end.wire.answer(1))["result"] == "done"
        refused = [m for m in end.wire.heard if "error" in m]
        assert [(m["id"], m["error"]["code"], m["error"]["data"]) for m in refused] == [(None, -32600, {"limit": 1000})]


@pytest.mark.requirement("B13")
async def test_answers_in_any_order_find_their_callers() -> None:
    async with client_link() as end:
        calls = [asyncio.ensure_future(end.link.ask(Extension("_a", {"n": n}))) for n in range(100)]
        await until(lambda: len(end.wire.heard) == 101)
        for asked in reversed(end.wire.heard[1:]):
            end.wire.say({"id": asked["id"], "result": asked["params"]["n"]})
        assert [await call for call in calls] == [ExtensionResult(n) for n in range(100)]


@pytest.mark.parametrize(
    "answer", [{"error": {"code": -5, "message": "no"}}, {"error": {"code": -5, "message": "no", "data": [1]}}]
)
async def test_a_refusal_reaches_its_caller_whole(answer: Message) -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await _next_call(end.wire))["id"], **answer})
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.message, caught.value.data) == (-5, "no", answer["error"].get("data"))


async def test_an_answer_that_makes_no_sense_ends_the_call() -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(NewSession("/")))
        end.wire.say({"id": (await _next_call(end.wire))["id"], "result": {"sessionId": 5}})
        with pytest.raises(PeerError):
            await call


class Watching:
    """Whoever must know when a request leaves and when it is answered."""

    def __init__(self) -> None:
        self.log: list[object] = []

    def on_sent(self, number: int) -> None:
        self.log.append(number)

    def on_reply(self) -> None:
        self.log.append("heard")


NOT_FOUND = {"code": -32601, "message": "Method not found"}
RENAMING = "iac-code"  # a dialect in which a list has two names


async def _refuse(wire: RawPeer, **error: Any) -> tuple[int, str]:
    """The next call, refused: its number and its name."""
    call = await _next_call(wire)
    wire.say({"id": call["id"], "error": {**NOT_FOUND, **error}})
    return call["id"], call["method"]


@pytest.mark.requirement("8.1.12")
async def test_what_a_peer_does_not_know_is_asked_under_its_other_name() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        watch = Watching()
        replies: list[Reply] = []
        call = asyncio.ensure_future(end.link.ask(ListSessions("/"), watch, replies.append))
        first, name = await _refuse(end.wire)
        again = await _next_call(end.wire)
        assert (name, again["method"], again["params"]) == ("session/list", "sessions/list", {"cwd": "/"})
        end.wire.say({"id": again["id"], "result": {"sessions": [{"sessionId": "s"}]}})
        found = SessionList([SessionInfo("s", "/")])
        assert await call == found
        # It is one request, asked under two names: the refusal was no answer.
        assert (again["id"], watch.log, replies) == (first, [first, "heard"], [found])


@pytest.mark.requirement("8.1.12")
async def test_what_fails_under_both_names_has_failed() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        watch = Watching()
        call = asyncio.ensure_future(end.link.ask(ListSessions("/"), watch))
        first = await _refuse(end.wire)
        second = await _refuse(end.wire, data="second")
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.data) == (-32601, "second")
        assert [first[1], second[1]] == ["session/list", "sessions/list"]
        assert (second[0], watch.log) == (first[0], [first[0], "heard"])
        # And from now on there is one name.
        later = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        assert (await _refuse(end.wire))[1] == "sessions/list"
        with pytest.raises(RequestFailed):
            await later
        assert len(end.wire.heard) == 4


@pytest.mark.requirement("8.1.12")
async def test_two_that_are_refused_together_are_both_asked_again() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        calls = [asyncio.ensure_future(end.link.ask(ListSessions("/"))) for _ in range(2)]
        asked = [await _next_call(end.wire) for _ in calls]
        end.wire.say(*({"id": call["id"], "error": NOT_FOUND} for call in asked))
        for _ in calls:
            again = await _next_call(end.wire)
            assert again["method"] == "sessions/list"
            end.wire.say({"id": again["id"], "result": {"sessions": []}})
        assert [await call for call in calls] == [SessionList([])] * 2


@pytest.mark.requirement("8.1.12")
async def test_any_other_failure_is_the_failure_at_once() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        call = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        await _refuse(end.wire, code=-32603)
        with pytest.raises(RequestFailed):
            await call
        assert len(end.wire.heard) == 2


async def test_a_call_given_up_before_it_is_asked_again_is_not() -> None:
    async with client_link(1, dialect=RENAMING) as end:
        call = asyncio.ensure_future(end.link.ask(ListSessions("/")))
        asked = await _next_call(end.wire)
        call.cancel()
        assert (await end.wire.hear())["method"] == "$/cancel_request"
        end.wire.say({"id": asked["id"], "error": NOT_FOUND}, {"method": "_note", "params": {}})
        await until(lambda: bool(end.above.log))
        assert call.cancelled()
        assert len(end.wire.heard) == 3


async def test_everywhere_else_a_refusal_is_a_refusal() -> None:
    async with client_link(1) as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_list")))
        await _refuse(end.wire)
        with pytest.raises(RequestFailed):
            await call
        assert len(end.wire.heard) == 2


@both_versions
async def test_a_text_that_is_no_unicode_is_our_callers_mistake(version: int) -> None:
    async with client_link(version) as end:
        for request in (NewSession("/\udcff"), Extension("_a", {"half": "\ud800"})):
            with pytest.raises(UsageError, match="no Unicode"):
                await end.link.ask(request)
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await _next_call(end.wire))["id"], "result": 1})
        assert await call == ExtensionResult(1)


async def _next_call(wire: RawPeer, method: str = "") -> Message:
    while True:
        message = await wire.hear()
        if "method" in message and message["method"] not in ("initialize", "$/cancel_request"):
            return message


# -- cancelling ------------------------------------------------------------------------------------------------------


async def test_a_cancelled_call_is_cancelled_at_the_peer_and_its_late_answer_ignored() -> None:
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await _next_call(end.wire))["id"]
        call.cancel()
        withdrawn = await end.wire.hear()
        assert withdrawn == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}}
        end.wire.say({"id": number, "result": "late"}, {"method": "_note", "params": {}})
        await until(lambda: bool(end.above.log))
        assert call.cancelled()
        assert end.above.noises == []  # it was to be expected


@pytest.mark.parametrize("when", ["same breath", "while it runs"])
async def test_a_request_that_the_peer_cancels_is_answered_so(when: str) -> None:
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(ping(1))
        if when != "same breath":
            await until(lambda: bool(end.above.log))
            await settled()
        end.wire.say({"method": "$/cancel_request", "params": {"requestId": 1}})
        error = (await end.wire.answer(1))["error"]
        assert error == {"code": -32800, "message": "Request cancelled"}
        end.wire.say({"method": "$/cancel_request", "params": {"requestId": 1}}, ping(1))
        await settled()
        assert len(await end.wire.answers(1)) == 1  # the id is free again, and its second request runs


async def test_a_call_cancelled_while_it_waits_for_room_is_never_sent_and_leaves_its_slot() -> None:
    async with client_link() as end:
        end.wire.pause()
        end.link.send_notification_now(ExtensionNote("_fill", {"x": "x" * (limits.OUTBOX_BYTES + PIPE)}))
        waiting = [asyncio.ensure_future(end.link.ask(Extension("_never"))) for _ in range(limits.IN_FLIGHT + 5)]
        await settled()
        for call in waiting:
            call.cancel()
        await asyncio.wait(waiting)
        assert not end.link.busy
        end.wire.resume()
        call = asyncio.ensure_future(end.link.ask(Extension("_b")))
        asked = await _next_call_of(end.wire, "_b")
        end.wire.say({"id": asked["id"], "result": 1})
        assert await call == ExtensionResult(1)
        assert "_never" not in {m.get("method") for m in end.wire.heard}


async def _next_call_of(wire: RawPeer, method: str) -> Message:
    def found() -> list[Message]:
        return [m for m in wire.heard if m.get("method") == method]

    await until(lambda: bool(found()))
    return found()[-1]


# -- how much is in flight -------------------------------------------------------------------------------------------


async def test_we_keep_at_most_128_of_our_own_unanswered_and_closing_and_listing_pass() -> None:
    async with client_link() as end:
        calls = [asyncio.ensure_future(end.link.ask(Extension("_a", {"n": n}))) for n in range(200)]
        await settled()

        def asked() -> list[Message]:
            return [m for m in end.wire.heard if m.get("method") == "_a"]

        assert (len(asked()), end.link.busy) == (limits.IN_FLIGHT, True)
        listing = asyncio.ensure_future(end.link.ask(ListSessions()))
        closing = asyncio.ensure_future(end.link.ask(CloseSession("s")))
        end.wire.say({"id": (await _next_call_of(end.wire, "session/list"))["id"], "result": {"sessions": []}})
        end.wire.say({"id": (await _next_call_of(end.wire, "session/close"))["id"], "result": {}})
        assert await listing == SessionList([])
        await closing
        answered = 0
        while answered < 200:
            for one in asked()[answered:]:
                end.wire.say({"id": one["id"], "result": one["params"]["n"]})
                answered += 1
            await settled()
        assert [await call for call in calls] == [ExtensionResult(n) for n in range(200)]
        assert not end.link.busy


async def test_128_requests_are_worked_on_and_the_next_is_told_to_retry() -> None:
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(*[ping(n) for n in range(1, 130)])
        refused = await end.wire.answer(129)
        assert refused["error"] == {"code": -32001, "message": "Too many requests in flight", "data": {"retry": True}}
        assert len(end.above.log) == limits.IN_FLIGHT
        end.wire.say({"method": "session/cancel", "params": {"sessionId": "s"}})
        end.wire.say({"id": 200, "method": "session/list", "params": {}})
        await until(lambda: len(end.above.log) == limits.IN_FLIGHT + 2)
        assert end.above.log[-2:] == [CancelTurn("s"), ListSessions()]
        for id in (5, 200):
            end.wire.say({"method": "$/cancel_request", "params": {"requestId": id}})
            assert (await end.wire.answer(id))["error"]["code"] == -32800
        end.above.answer = lambda request: ExtensionResult("room again")
        end.wire.say(ping(130))
        assert (await end.wire.answer(130))["result"] == "room again"


# -- pressure --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D1")
async def test_a_client_that_never_reads_pauses_the_producer_and_it_goes_on_when_it_reads() -> None:
    async with agent_link() as end:
        end.wire.pause()
        told = 0

        async def stream() -> None:
            nonlocal told
            text = end.link.text_stream("s", "agent_message_chunk", "m")
            for _ in range(8_000):
                if text.put("x" * 1000):
                    await text.breathe()
                told += 1

        producing = asyncio.ensure_future(stream())
        await settled()
        paused_at = told
        assert end.link.outbox.size <= limits.OUTBOX_BYTES + 2000
        await settled()
        assert (told, producing.done()) == (paused_at, False)
        end.wire.say(ping(1))  # what is heard is still heard
        await until(lambda: len(end.above.log) == 1)
        end.wire.resume()
        await producing
        await until(lambda: len([m for m in end.wire.heard if "method" in m]) == 8_000)


@pytest.mark.requirement("D1")
async def test_many_producers_together_hold_no_more_than_one() -> None:
    async with agent_link() as end:
        end.wire.pause()

        async def stream(session_id: str) -> None:
            for _ in range(1000):
                await end.link.send_event(session_id, AgentMessageChunk(Text("x" * 1000), message_id="m"))

        tracemalloc.start()
        producing = [asyncio.ensure_future(stream(f"s{n}")) for n in range(100)]
        before = tracemalloc.get_traced_memory()[0]
        await settled()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert end.link.outbox.size <= limits.OUTBOX_BYTES
        assert held < limits.OUTBOX_BYTES + 2 * limits.MIB
        for one in producing:
            one.cancel()
        await asyncio.wait(producing)


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("flood", "refuses"),
    [
        pytest.param(ping, True, id="requests that are answered at once"),
        pytest.param(lambda n: {"id": n, "method": "session/list", "params": {}}, False, id="requests without a limit"),
        pytest.param(lambda n: {"id": n, "method": "no/such"}, True, id="unknown methods"),
        pytest.param(lambda n: {"id": n, "method": 7}, True, id="no requests at all"),
    ],
)
async def test_a_client_that_floods_and_never_reads_is_not_read_either_until_it_reads(
    flood: Callable[[int], Message], refuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFUSAL_BYTES", limits.REFUSAL_BYTES // 16)  # so that a smaller flood is one
    count = 3_000
    async with agent_link(capacity=16 * limits.KIB) as end:
        end.above.answer = lambda request: (
            SessionList([SessionInfo("s" * 4000, "/")])
            if isinstance(request, ListSessions)
            else ExtensionResult("x" * 4000)
        )
        lines = b"".join(json.dumps({"jsonrpc": "2.0", **flood(n)}).encode() + b"\n" for n in range(1, count + 1))
        end.wire.pause()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        end.wire.write(lines)
        await settled()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        unread = end.wire.unsent
        assert unread > 0
        assert held < 8 * limits.MIB
        await settled()
        assert end.wire.unsent == unread
        end.wire.resume()
        await until(lambda: len(end.wire.heard) == count + 1)
        ids = [m["id"] for m in end.wire.heard[1:]]
        assert sorted(ids) == list(range(1, count + 1))
        assert (codes(end.wire.heard) != []) == refuses


@pytest.mark.requirement("D2")
async def test_a_refusal_above_a_large_frame_does_not_stop_the_reader() -> None:
    async with agent_link() as end:
        end.wire.pause()
        await end.link.send_event("s", AgentMessageChunk(Text("x" * (3 * limits.OUTBOX_BYTES)), message_id="m"))
        end.wire.say({"id": 1, "method": "no/such"}, {"method": "session/cancel", "params": {"sessionId": "s"}})
        await until(lambda: CancelTurn("s") in end.above.log)


@pytest.mark.requirement("D2")
async def test_a_cancel_is_heard_while_the_outbox_is_full_and_128_requests_wait() -> None:
    async with agent_link() as end:
        end.wire.pause()
        end.above.answer = lambda request: ExtensionResult("x" * 100_000)
        end.wire.say(*[ping(n) for n in range(1, 1000)], {"method": "session/cancel", "params": {"sessionId": "s"}})
        await until(lambda: CancelTurn("s") in end.above.log)
        assert end.link.outbox.size <= limits.OUTBOX_BYTES + limits.REFUSAL_BYTES


@pytest.mark.requirement("D3")
async def test_a_sender_waits_for_an_agent_that_never_reads() -> None:
    async with client_link() as end:
        end.wire.pause()
        said = 0

        async def send() -> None:
            nonlocal said
            for _ in range(2_000):
                await end.link.send_notification(ExtensionNote("_note", {"x": "x" * 4000}))
                said += 1

        sending = asyncio.ensure_future(send())
        await settled()
        assert end.link.outbox.size <= limits.OUTBOX_BYTES and said < 1250
        end.wire.say(chunk("still heard"))
        await until(lambda: len(end.above.log) == 1)
        end.wire.resume()
        await sending
        await until(lambda: sum(m.get("method") == "_note" for m in end.wire.heard) == 2_000)


@pytest.mark.requirement("D4")
async def test_two_of_our_links_that_both_write_before_they_read_make_progress() -> None:
    left, right = memory_pair(4_000)
    front, back = Above(), Above()
    agent, client = Link(left, back, "agent"), Link(right, front, "client")
    agent.start()
    client.start()
    await client.initialize(ClientHello())
    size = 3 * limits.OUTBOX_BYTES // 100  # forty of them are more than an outbox holds
    back.answer = front.answer = lambda request: ExtensionResult("y" * size)

    async def ask(link: Link) -> Reply:
        return await link.ask(Extension("_big", {"x": "x" * size}))

    async with asyncio.timeout(30):
        answers = await asyncio.gather(*(ask(link) for link in [agent, client] * 40))
    assert answers == [ExtensionResult("y" * size)] * 80
    await client.close()
    await agent.close()


async def test_a_layer_that_does_not_take_what_it_is_told_makes_the_peer_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOX_BYTES", 100_000)
    async with client_link() as end:
        end.wire.say(*[chunk("x" * 1000) for _ in range(1000)])
        await settled()
        heard = len(end.above.log)
        assert 90 < heard < 300
        end.link.consume()
        await settled()
        assert heard < len(end.above.log) < 2 * heard + 100
        # While somebody waits for an answer it is read, whatever lies before it.
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        end.wire.say({"id": (await _next_call_of(end.wire, "_a"))["id"], "result": 1})
        assert await call == ExtensionResult(1)
        assert len(end.above.log) == 1000


async def test_a_flood_that_nobody_reads_while_an_answer_is_waited_for_ends_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.link.link._FLOOD_BYTES", 500_000)
    monkeypatch.setattr(limits, "INBOX_BYTES", 100_000)
    async with client_link() as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        await _next_call_of(end.wire, "_a")
        end.wire.say(*[chunk("x" * 1000) for _ in range(1000)])
        with pytest.raises(LinkClosed, match="more than was consumed"):
            await call
        assert len(end.above.log) < 700


# -- large frames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [False, True], ids=["by the link", "before there was a link"])
async def test_a_link_that_is_told_no_limit_takes_frames_of_64_mib(early: bool) -> None:
    """However `initialize` is answered, and in both framings."""
    line = json.dumps({"jsonrpc": "2.0", **hello(2)}).encode() + b"\n"
    greeted = greet(line, SPOKEN, lambda: AgentHello(Implementation("above", "1"))) if early else None
    assert (greeted is not None) == early
    ours, _ = memory_pair(PIPE)
    link = Link(ours, Above(), "agent", greeted=greeted)
    framer = link._framer
    assert framer._lines._limit == framer._blocks._limit == limits.FRAME_BYTES == 64 * limits.MIB
    await link.close()


@pytest.mark.parametrize(
    ("passes", "limit", "refused"), [(7, 8, 9), pytest.param(60, 64, 65, marks=pytest.mark.slow)], ids=str
)
async def test_what_is_under_the_limit_passes_and_what_is_over_is_refused_with_a_code_without_being_kept(
    passes: int, limit: int, refused: int
) -> None:
    """Of the limit that there is, 64 MiB, and of a smaller one."""
    async with agent_link(capacity=limits.MIB, frame_limit=limit * limits.MIB) as end:
        end.above.answer = lambda request: ExtensionResult(len(str(request.params)))  # type: ignore[attr-defined]
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"_big","params":{"text":"', b'"}}\n'
        end.wire.write(head + b"x" * (passes * limits.MIB) + tail)
        assert (await end.wire.answer(1))["result"] > passes * limits.MIB
        end.above.log.clear()
        tracemalloc.start()
        sent = b"x" * limits.MIB
        before = tracemalloc.get_traced_memory()[0]
        end.wire.write(head.replace(b"1,", b"2,"))
        for _ in range(refused):
            end.wire.write(sent)
            await until(lambda: not end.wire.unsent)
        end.wire.write(tail)
        end.wire.say(ping(3))
        assert (await end.wire.answer(3))["result"] < 100
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        assert codes(end.wire.heard) == [-32600]
        # What an unfinished line holds is a bytearray, which grows by an eighth at a time.
        assert peak < (limit * 9 / 8 + 8) * limits.MIB


@pytest.mark.parametrize("size", [3 * limits.OUTBOX_BYTES, pytest.param(60 * limits.MIB, marks=pytest.mark.slow)])
async def test_an_empty_outbox_takes_a_frame_much_larger_than_itself(size: int) -> None:
    """Any frame that a peer takes, however little the outbox holds otherwise."""
    async with agent_link(capacity=limits.MIB) as end:
        await end.link.send_event("s", AgentMessageChunk(Text("x" * size), message_id="m"))
        assert end.link.outbox.size > size - limits.MIB
        await until(lambda: len(end.wire.heard) == 2)
        assert len(end.wire.heard[1]["params"]["update"]["content"]["text"]) == size


async def test_what_no_peer_would_take_is_our_callers_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FRAME_BYTES", 1000)
    async with agent_link() as end:
        with pytest.raises(UsageError, match="split it"):
            await end.link.send_event("s", AgentMessageChunk(Text("x" * 1001), message_id="m"))
        with pytest.raises(UsageError, match="split it"):
            await end.link.ask(Extension("_a", {"x": "x" * 1001}))
        end.above.answer = lambda request: ExtensionResult("x" * 1001)
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"] == {"code": -32603, "message": "The answer is too large"}
        assert not end.link.busy


@pytest.mark.requirement("A14")
async def test_json_of_others_that_has_newlines_leaves_on_one_line() -> None:
    async with agent_link() as end:
        dialect = end.link.dialect
        dialect.encode_reply = lambda id, request, reply: [dialect_answer(id)]  # type: ignore[method-assign]
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["result"] == {"a": "b\nc"}


def dialect_answer(id: Id) -> Any:
    from dragoman.dialects.contract import ResultMessage

    return ResultMessage(id, b'{\r\n "a":\n "b\\nc"\n}')


async def test_an_answer_that_is_too_large_fails_its_call_with_a_code() -> None:
    async with client_link(frame_limit=10_000) as end:
        call = asyncio.ensure_future(end.link.ask(Extension("_a")))
        number = (await _next_call(end.wire))["id"]
        end.wire.write(b'{"jsonrpc":"2.0","id":%d,"result":"%b"}\n' % (number, b"x" * 10_000))
        with pytest.raises(RequestFailed) as caught:
            await call
        assert (caught.value.code, caught.value.message) == (-32600, "The answer is too large")
        assert caught.value.data == {"limit": 10_000}
        # And the link goes on.
        again = asyncio.ensure_future(end.link.ask(Extension("_b")))
        end.wire.say({"id": (await _next_call(end.wire))["id"], "result": 1})
        assert await again == ExtensionResult(1)
        assert [message for message in end.wire.heard if "error" in message] == []


# -- the trace -------------------------------------------------------------------------------------------------------


async def test_the_trace_sees_every_frame_in_both_directions_in_order() -> None:
    seen: list[tuple[str, Any]] = []
    async with agent_link(trace=lambda direction, frame: seen.append((direction, json.loads(frame)))) as end:
        end.wire.say(ping(1), {"method": "_note", "params": {}})
        await end.wire.answer(1)
        await end.link.send_event("s", AgentMessageChunk(Text("x"), message_id="m"))
        await until(lambda: len(end.wire.heard) == 3)
        assert [frame for direction, frame in seen if direction == "out"] == end.wire.heard
        assert [frame.get("method") for direction, frame in seen if direction == "in"] == [
            "initialize",
            "_ping",
            "_note",
        ]


async def test_a_trace_that_fails_is_reported_once_and_harms_nothing() -> None:
    def broken(direction: str, frame: bytes) -> None:
        raise OSError("disk full")

    async with agent_link(trace=broken) as end:
        end.wire.say(ping(1), ping(2))
        assert (await end.wire.answer(2))["result"] == "done"
        assert [str(bug) for bug in end.above.bugs] == ["disk full"]


# -- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("how", ["EOF", "dropped", "closed"])
async def test_every_pending_call_fails_once_and_later_ones_at_once(how: str) -> None:
    ours, theirs = memory_pair(PIPE, to_right=Faults(dropped_after=2000 if how == "dropped" else None))
    above = Above()
    link = Link(ours, above, "client")
    link.start()
    wire = RawPeer(theirs)
    greeted = asyncio.ensure_future(link.initialize(ClientHello()))
    wire.say({"id": (await wire.hear())["id"], "result": greeting(2)})
    await greeted
    calls = [asyncio.ensure_future(link.ask(Extension("_a"))) for _ in range(200)]
    await settled()
    if how == "EOF":
        wire.end()
    elif how == "closed":
        await link.close()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(end) for end in ends} == {LinkClosed}
    await link.wait_until_closed()
    with pytest.raises(LinkClosed):
        await link.ask(Extension("_a"))
    with pytest.raises(LinkClosed):
        await link.send_notification(ExtensionNote("_a"))
    assert (len(above.closed), link.closed) == (1, True)
    await link.close()
    await link.close()


async def test_after_eof_what_was_asked_before_it_is_still_answered() -> None:
    async with agent_link() as end:
        going = asyncio.Event()

        async def later(request: Request) -> Reply:
            await going.wait()
            return ExtensionResult("still")

        end.above.answer = later
        end.wire.say(*[ping(n) for n in range(1, 6)])
        end.wire.end()
        await until(lambda: bool(end.above.closed))
        going.set()
        await until(lambda: end.wire.lost == [None])
        assert [m["result"] for m in end.wire.heard[1:]] == ["still"] * 5


async def test_after_eof_a_handler_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EOF_ANSWER_SECONDS", 0.02)
    async with agent_link() as end:
        end.above.answer = wait_for_ever
        end.wire.say(ping(1))
        end.wire.end()
        await end.link.wait_until_closed()
        assert end.link.closed


async def test_a_loss_drops_what_waits_and_cancels_what_runs() -> None:
    ours, theirs = memory_pair(PIPE, to_left=Faults(dropped_after=600))
    above = Above()
    ended = []

    async def work(request: Request) -> Reply:
        try:
            return await wait_for_ever(request)
        except asyncio.CancelledError:
            ended.append(1)
            raise

    above.answer = work
    link = Link(ours, above, "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say(hello(1), ping(1))
    await until(lambda: bool(above.log))
    wire.say(ping(2, pad="x" * 600))
    await link.wait_until_closed()
    assert (ended, len(above.closed), link.closed) == ([1], 1, True)


async def test_finishing_answers_what_was_asked_and_hears_no_more() -> None:
    async with agent_link() as end:
        going = asyncio.Event()

        async def later(request: Request) -> Reply:
            await going.wait()
            return ExtensionResult("answered")

        end.above.answer = later
        end.wire.say(ping(1))
        await until(lambda: len(end.above.log) == 1)
        finishing = asyncio.ensure_future(end.link.finish())
        await settled()
        end.wire.say(ping(2))
        await settled()
        going.set()
        await finishing
        await until(lambda: end.wire.lost == [None])
        assert [m["id"] for m in end.wire.heard] == [0, 1]
        assert len(end.above.log) == 1


async def test_closing_says_what_waits_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_link(capacity=100) as end:
        await end.link.send_notification(ExtensionNote("_last", {"x": "x" * 10_000}))
        await end.link.close()
        await until(lambda: "_last" in {m.get("method") for m in end.wire.heard})
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 0.02)
    async with client_link(capacity=100) as end:
        end.wire.pause()
        await end.link.send_notification(ExtensionNote("_last", {"x": "x" * 10_000}))
        await end.link.close()
        assert end.link.closed

"""Properties of framer and peer together: any bytes give messages or coded errors, and every call ends once."""

import json
from collections import deque
from itertools import pairwise
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from dragoman.errors import (
    CANCELLED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
)
from dragoman.wire.framing import Framer, Style, frame
from dragoman.wire.jsonrpc import (
    Answered,
    CallFailed,
    CancelAsked,
    IgnoredMessage,
    Incoming,
    JsonRpcPeer,
    Notification,
    RequestEnvelope,
    SendBack,
)

LIMIT = 300
WAITERS = ("a", "b")

CORPUS: list[bytes] = [
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}',
    b'{"jsonrpc": "2.0", "id": "x", "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}',
    b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"h\\u00e9\\ud83d"}]}}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"text":"é\u2028"}}'.encode(),
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}',
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no","data":null}}',
    b'{"jsonrpc":"2.0","id":null,"method":"a"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"a"}]',
    b"[" * 130 + b"]" * 130,
    b"x" * (LIMIT + 1),
    b"hello",
    b"",
]
BITS = st.sampled_from(
    [
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x00",
        b'"',
        b"\\",
        b"\\ud800",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"NaN",
        b"1.0",
        b"-",
        b"null",
        b'"id":1,',
        b'"id":2',
        b'"jsonrpc":"2.0",',
        b"Content-Length: 3\r\n\r\n",
    ]
) | st.binary(max_size=3)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A message with a few wounds."""
    data = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.integers(0, 4)))
        data = data[:at] + draw(BITS) + data[to:]
    return data


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """What a confused or hostile peer may send: wounded messages in either framing, or any bytes."""
    style: Style = draw(st.sampled_from(["ndjson", "content-length"]))
    return b"".join(frame(each, style) for each in draw(st.lists(mutated(), max_size=6))) + draw(st.binary(max_size=9))


@st.composite
def torn(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    data = draw(streams() | st.binary(max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return data, [data[start:end] for start, end in pairwise([0, *cuts, len(data)])]


def received(chunks: list[bytes], *, answers_noise: bool) -> list[Incoming[str]]:
    """What a peer with two calls waiting makes of a stream. It answers nothing, so its limit is met as well."""
    framer = Framer(limit=LIMIT, header_limit=64)
    peer: JsonRpcPeer[str] = JsonRpcPeer(answers_noise=answers_noise, in_flight=2)
    for waiter in WAITERS:
        peer.call("a", b"{}", waiter)
    return [peer.receive(item) for chunk in chunks for item in framer.feed(chunk)]


OURS = {PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, TOO_MANY_IN_FLIGHT}


def check(incoming: Incoming[str]) -> None:
    """Everything handed up is sound: it can be read by a second parser and written again."""
    match incoming:
        case RequestEnvelope(id, method, params) if id is None or isinstance(id, (int, str)):
            json.dumps([id, method], ensure_ascii=False).encode()
            assert not params or isinstance(json.loads(bytes(params)), dict)
        case Notification(method, params):
            method.encode()
            assert not params or isinstance(json.loads(bytes(params)), dict)
        case Answered(waiter, result):
            assert waiter in WAITERS
            json.loads(bytes(result))
        case CallFailed(waiter, code, message, _):
            assert waiter in WAITERS
            assert isinstance(code, int)
            message.encode()
        case SendBack(payload):
            answer = json.loads(payload)
            assert answer.keys() == {"jsonrpc", "id", "error"}
            assert answer["error"]["code"] in OURS
            assert b"\n" not in payload
        case CancelAsked() | IgnoredMessage():
            pass
        case _:
            pytest.fail(f"not an incoming: {incoming!r}")


@pytest.mark.requirement("A17")
@given(torn(), st.booleans())
def test_any_bytes_give_messages_or_coded_errors_and_torn_equals_whole(
    stream: tuple[bytes, list[bytes]], answers_noise: bool
) -> None:
    data, chunks = stream
    whole = received([data], answers_noise=answers_noise)
    for incoming in whole:
        event(type(incoming).__name__)
        check(incoming)
    assert received(chunks, answers_noise=answers_noise) == whole
    assert received([data[at : at + 1] for at in range(len(data))], answers_noise=answers_noise) == whole


@pytest.mark.requirement("A17")
@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_thousands_of_wounded_frames_raise_nothing(count: int) -> None:
    """The same promise with fewer questions asked, for volume; `./dev fuzz` runs the property above for longer."""
    random = Random(17)
    alphabet = [
        *(bytes([byte]) for byte in range(256)),
        b'"id":',
        b"\\ud800",
        b'"method":"a"',
        b"1e9",
        b'"params":{}',
        b'"',
    ]
    peer: JsonRpcPeer[str] = JsonRpcPeer(answers_noise=True, in_flight=10**9)
    for _ in range(count):
        wounded = random.choice(CORPUS)
        for _ in range(random.randint(1, 3)):
            at = random.randint(0, len(wounded))
            wounded = wounded[:at] + random.choice(alphabet) + wounded[at + random.randint(0, 2) :]
        check(peer.receive(wounded))


SIDES = st.integers(0, 1)
NOISE = st.sampled_from(
    [
        *(b"hello", b"[]", b"42", b'{"jsonrpc":"2.0","id":1,"error":"x"}', b'{"jsonrpc":"2.0","id":999,"result":{}}'),
        *(b'{"jsonrpc":"2.0","id":"q","method":7}', b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}'),
        *(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":999}}', b'{"id":"q","method":"a"}'),
    ]
)


class TwoPeers(RuleBasedStateMachine):
    """Two peers on two pipes, in any interleaving of what programs and faults do to them."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.peers: list[JsonRpcPeer[str]] = [
            JsonRpcPeer(answers_noise=side == 0, in_flight=3, unlimited=frozenset({"free"})) for side in (0, 1)
        ]
        self.framers = [Framer(limit=1000), Framer(limit=1000)]
        self.pipes: list[deque[bytes]] = [deque(), deque()]  # what is on its way to each side
        self.owed: list[list[RequestEnvelope]] = [[], []]
        self.ends: dict[str, list[str]] = {}
        self.closed = [False, False]

    def send(self, side: int, payload: bytes | None) -> None:
        if payload is not None:
            self.pipes[1 - side].append(frame(payload, "ndjson"))

    def end(self, waiter: str, how: str) -> None:
        self.ends[waiter].append(how)

    @rule(target=calls, side=SIDES, method=st.sampled_from(["a", "free"]))
    def call(self, side: int, method: str) -> tuple[int, int, str]:
        waiter = f"w{len(self.ends)}"
        try:
            number, payload = self.peers[side].call(method, json.dumps({"for": waiter}).encode(), waiter)
        except LinkClosed:
            assert self.closed[side]
            return side, 0, ""
        self.ends[waiter] = []
        self.send(side, payload)
        return side, number, waiter

    @rule(side=SIDES, tear=st.integers(0, 40))
    def deliver(self, side: int, tear: int) -> None:
        """The next bytes arrive, perhaps in two pieces."""
        if not self.pipes[side]:
            return
        data = self.pipes[side].popleft()
        for item in self.framers[side].feed(data[:tear]) + self.framers[side].feed(data[tear:]):
            self.handle(side, self.peers[side].receive(item))

    def handle(self, side: int, incoming: Incoming[str]) -> None:
        match incoming:
            case RequestEnvelope():
                self.owed[side].append(incoming)
            case Answered(waiter, result):
                assert json.loads(bytes(result)) == {"for": waiter}
                self.end(waiter, "answered")
            case CallFailed(waiter, code, _, _):
                assert code in (CANCELLED, TOO_MANY_IN_FLIGHT)
                self.end(waiter, "refused")
            case SendBack(payload):
                self.send(side, payload)
            case CancelAsked(id):
                assert any(request.id == id for request in self.owed[side])
            case IgnoredMessage():
                pass
            case _:
                pytest.fail(f"nobody sent {incoming!r}")

    @rule(side=SIDES, which=st.integers(0, 9), well=st.booleans())
    def answer(self, side: int, which: int, well: bool) -> None:
        """A handler is done, in any order. After a close it still says so, without a reader."""
        if not self.owed[side]:
            return
        request = self.owed[side].pop(which % len(self.owed[side]))
        peer = self.peers[side]
        sent = peer.answer(request.id, request.params) if well else peer.fail(request.id, CANCELLED, "cancelled")
        assert (sent is None) == self.closed[side]
        self.send(side, sent)

    @rule(call=calls)
    def cancel(self, call: tuple[int, int, str]) -> None:
        side, number, _ = call
        if number and not self.closed[side]:
            self.send(side, self.peers[side].cancel_call(number))

    @rule(call=consumes(calls))
    def stop_waiting(self, call: tuple[int, int, str]) -> None:
        side, number, waiter = call
        if number and not self.ends[waiter]:
            self.peers[side].stop_waiting(number)
            self.end(waiter, "abandoned")

    @rule(side=SIDES, noise=NOISE)
    def say_noise(self, side: int, noise: bytes) -> None:
        """One side's program prints, or is wrong; it does not forge the ids of its own calls."""
        self.send(side, noise)

    @precondition(lambda self: len(self.ends) > 3)
    @rule(side=SIDES)
    def close(self, side: int) -> None:
        for waiter in self.peers[side].close():
            self.end(waiter, "closed")
        self.closed[side] = True

    @invariant()
    def no_call_ends_twice(self) -> None:
        assert all(len(ends) <= 1 for ends in self.ends.values())

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        for side in (0, 1):
            assert self.peers[side].owed == (0 if self.closed[side] else len(self.owed[side]))
        open_calls = sum(not ends for ends in self.ends.values())
        assert sum(peer.waiting for peer in self.peers) == open_calls

    def teardown(self) -> None:
        """Everything on its way arrives, everyone answers, both sides close: then every call has ended once."""
        while any(self.pipes) or any(self.owed):
            for side in (0, 1):
                self.deliver(side, 0)
                self.answer(side, 0, True)
        if not any(self.closed):
            assert all(self.ends.values())
        for side in (0, 1):
            self.close(side)
        assert all(len(ends) == 1 for ends in self.ends.values())


TestTwoPeers = TwoPeers.TestCase
TestTwoPeers.settings = settings(stateful_step_count=40)

"""The JSON-RPC peer, a pure core: every request is answered once, every call ends once."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman import limits
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    TOO_MANY_IN_FLIGHT,
    FrameTooLarge,
    LinkClosed,
    PeerMistake,
    UsageError,
    wire_error,
)
from dragoman.wire import jsonrpc
from dragoman.wire.envelope import answered_id
from dragoman.wire.framing import Framer
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


def agent(**options: Any) -> JsonRpcPeer[str]:
    return JsonRpcPeer(answers_noise=True, **options)


def client(**options: Any) -> JsonRpcPeer[str]:
    return JsonRpcPeer(answers_noise=False, **options)


def ask(id: object = 1, method: str = "a") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).encode()


def reply(id: object, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def refusal(incoming: Incoming[str]) -> tuple[object, int]:
    """The id and the code of what must go back."""
    assert isinstance(incoming, SendBack)
    answer = json.loads(incoming.payload)
    assert answer.keys() == {"jsonrpc", "id", "error"}
    return answer["id"], answer["error"]["code"]


def oversized() -> bytes | PeerMistake:
    return Framer(limit=1).feed(b"22\n")[0]


def test_what_we_say_is_exact() -> None:
    peer = client()
    assert peer.call("a/b", b'{"c":1}', "w") == (1, b'{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"c":1}}')
    assert peer.call("a/b", b"", "w") == (2, b'{"jsonrpc":"2.0","id":2,"method":"a/b"}')
    assert peer.notify("a/b", b"{}") == b'{"jsonrpc":"2.0","method":"a/b","params":{}}'
    assert peer.notify("a/b", b"") == b'{"jsonrpc":"2.0","method":"a/b"}'
    assert peer.cancel_call(2) == b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}'
    peer.receive(ask(7))
    peer.receive(ask('"é'))
    assert peer.answer(7, b"null") == b'{"jsonrpc":"2.0","id":7,"result":null}'
    failed = peer.fail('"é', -1, "no", {"d": Raw(b"[1]")})
    assert failed == '{"jsonrpc":"2.0","id":"\\"é","error":{"code":-1,"message":"no","data":{"d":[1]}}}'.encode()


def test_names_that_a_peer_invents_do_not_pile_up() -> None:
    peer = client()
    for number in range(1000):
        assert json.loads(peer.notify(f"_{number}", b"{}"))["method"] == f"_{number}"
    assert json.loads(peer.notify('"\n', b"{}"))["method"] == '"\n'
    assert len(jsonrpc._heads) <= jsonrpc._HEADS


@pytest.mark.requirement("A1", "A2", "B1", "B2", "B6")
@pytest.mark.parametrize(
    ("frame", "sent"),
    [
        pytest.param(b"hello", (None, PARSE_ERROR), id="no JSON"),
        pytest.param(b'"\xff"', (None, PARSE_ERROR), id="no UTF-8"),
        pytest.param(b"42", (None, INVALID_REQUEST), id="a number"),
        pytest.param(b"[]", (None, INVALID_REQUEST), id="an empty array"),
        pytest.param(b'{"level":"info"}', (None, INVALID_REQUEST), id="no envelope"),
    ],
)
def test_noise_is_answered_by_an_agent_and_read_over_by_a_client(frame: bytes, sent: tuple[object, int]) -> None:
    assert refusal(agent().receive(frame)) == sent
    assert isinstance(client().receive(frame), IgnoredMessage)


def test_a_client_too_answers_where_an_id_tells_who_waits() -> None:
    assert refusal(client().receive(b'{"jsonrpc":"2.0","id":3,"method":7}')) == (3, INVALID_REQUEST)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("peer", [agent(), client()], ids=["agent", "client"])
def test_an_oversized_frame_is_refused_with_its_limit(peer: JsonRpcPeer[str]) -> None:
    sent = peer.receive(oversized())
    assert refusal(sent) == (None, INVALID_REQUEST)
    assert isinstance(sent, SendBack)
    assert json.loads(sent.payload)["error"]["data"] == {"limit": 1}


def test_a_bad_header_is_noise() -> None:
    bad = Framer(limit=9).feed(b"Content-Length: x\r\n")[0]
    assert refusal(agent().receive(bad)) == (None, PARSE_ERROR)
    assert isinstance(client().receive(bad), IgnoredMessage)


@pytest.mark.requirement("A6")
def test_a_thousand_requests_are_answered_in_their_order() -> None:
    peer = agent()
    requests = [peer.receive(ask(number)) for number in range(3)]
    assert requests == [RequestEnvelope(number, "a", Raw(b"{}")) for number in range(3)]
    for number in range(3, 1003):
        assert isinstance(peer.receive(ask(number)), RequestEnvelope)
        assert json.loads(peer.answer(number, b"{}") or b"")["id"] == number
    assert peer.owed == 3


@pytest.mark.requirement("A12")
def test_text_that_cannot_be_written_never_stops_an_answer() -> None:
    peer = agent()
    peer.receive(ask(1))
    sent = peer.fail(1, -1, "\ud800 \ud83d\ude00", {"a": "\ud800"})
    assert json.loads(sent or b"") == {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "\ufffd 😀"}}


@pytest.mark.requirement("A13")
def test_text_comes_back_as_it_was_sent() -> None:
    text = '{"a":"\u2028\u0085\\u0000\\n"}'.encode()
    peer = agent()
    request = peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a","params":' + text + b"}")
    assert isinstance(request, RequestEnvelope)
    assert peer.answer(request.id, request.params) == b'{"jsonrpc":"2.0","id":1,"result":' + text + b"}"


@pytest.mark.requirement("B4")
def test_a_batch_of_ten_thousand_is_one_refusal() -> None:
    peer = agent()
    assert refusal(peer.receive(b"[" + b",".join(ask(n) for n in range(10_000)) + b"]")) == (None, INVALID_REQUEST)
    assert peer.owed == 0


@pytest.mark.requirement("B5")
def test_a_null_id_is_a_request_or_a_mistake_as_the_version_has_it() -> None:
    peer = agent()
    assert isinstance(peer.receive(ask(None)), RequestEnvelope)
    assert peer.answer(None, b"{}") == b'{"jsonrpc":"2.0","id":null,"result":{}}'
    peer.null_ids = False
    assert refusal(peer.receive(ask(None))) == (None, INVALID_REQUEST)
    assert peer.owed == 0


@pytest.mark.requirement("B8")
def test_an_unknown_method_reaches_the_layer_that_knows_methods() -> None:
    peer = agent()
    request = peer.receive(ask(1, "_unknown/method"))
    assert request == RequestEnvelope(1, "_unknown/method", Raw(b"{}"))
    assert json.loads(peer.fail(1, METHOD_NOT_FOUND, "Method not found") or b"")["error"]["code"] == METHOD_NOT_FOUND
    assert peer.receive(peer.notify("_unknown", b"{}")) == Notification("_unknown", Raw(b"{}"))


@pytest.mark.requirement("B9")
def test_an_id_in_flight_is_not_given_twice_and_the_first_is_unharmed() -> None:
    peer = agent()
    assert isinstance(peer.receive(ask(1)), RequestEnvelope)
    assert isinstance(peer.receive(ask("1")), RequestEnvelope)  # another id: compared as JSON values
    assert refusal(peer.receive(ask(1))) == (1, INVALID_REQUEST)
    assert peer.answer(1, b"{}") is not None
    assert isinstance(peer.receive(ask(1)), RequestEnvelope)


def test_a_request_is_answered_once() -> None:
    peer = agent()
    peer.receive(ask(1))
    assert peer.fail(1, -1, "no") is not None
    with pytest.raises(UsageError, match="once"):
        peer.answer(1, b"{}")
    with pytest.raises(UsageError, match="not in flight"):
        peer.fail("1", -1, "no")


def test_an_answer_that_is_too_large_leaves_the_request_to_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = agent()
    peer.receive(ask(1))
    peer.receive(ask("one"))
    monkeypatch.setattr(limits, "FRAME_BYTES", len(b'{"jsonrpc":"2.0","id":1,"result":"12"}'))
    for id in (1, "one"):
        with pytest.raises(UsageError, match="larger than any peer takes"):
            peer.answer(id, b'"123"')
    assert peer.owed == 2
    assert peer.answer(1, b'"12"') == b'{"jsonrpc":"2.0","id":1,"result":"12"}'


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    "frame",
    [
        reply(9, {}),
        reply("1", {}),
        reply(None, {}),
        reply(0, {}),
        reply(1.0, {}),
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"error":"x"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
        b'{"id":1,"result":{}}',
    ],
)
def test_an_answer_that_fits_no_call_is_ignored_and_the_call_still_waits(frame: bytes) -> None:
    for peer in (agent(), client()):
        peer.call("a", b"{}", "w")
        assert isinstance(peer.receive(frame), IgnoredMessage)
        assert peer.receive(reply(1, {})) == Answered("w", Raw(b"{}"))


@pytest.mark.requirement("B10")
def test_a_second_answer_is_ignored() -> None:
    peer = client()
    peer.call("a", b"{}", "w")
    assert peer.receive(reply(1, 7)) == Answered("w", Raw(b"7"))
    assert peer.receive(reply(1, 8)) == IgnoredMessage("an answer to a call that is over")
    assert peer.receive(reply(2, 8)) == IgnoredMessage("an answer to a call that was never made")


def test_an_error_answer_ends_the_call() -> None:
    peer = client()
    peer.call("a", b"{}", "w")
    frame = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"log in","data":[1]}}'
    assert peer.receive(frame) == CallFailed("w", -32000, "log in", Raw(b"[1]"))
    assert peer.waiting == 0


@pytest.mark.requirement("B11")
def test_a_late_answer_is_dropped_and_meets_no_later_call() -> None:
    peer = client()
    first, _ = peer.call("a", b"{}", "first")
    peer.stop_waiting(first)
    peer.stop_waiting(first)
    second, _ = peer.call("a", b"{}", "second")
    assert isinstance(peer.receive(reply(first, 1)), IgnoredMessage)
    assert peer.receive(reply(second, 2)) == Answered("second", Raw(b"2"))


def test_a_cancelled_call_still_gets_its_answer() -> None:
    ours, theirs = client(), agent()
    number, frame = ours.call("a", b"{}", "w")
    theirs.receive(frame)
    assert theirs.receive(ours.cancel_call(number)) == CancelAsked(number)
    assert ours.receive(theirs.fail(number, -32800, "cancelled") or b"") == CallFailed("w", -32800, "cancelled")
    assert theirs.receive(ours.cancel_call(number)) == IgnoredMessage("")  # too late, and no error


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "params",
    [
        '{"requestId":9}',
        '{"requestId":"1"}',
        '{"requestId":null}',
        '{"requestId":1.0}',
        '{"requestId":true}',
        '{"requestId":[1]}',
        '{"requestId":1180591620717411303424}',
        "{}",
        "null",
        "[1]",
        '{"requestid":1}',
    ],
)
def test_a_cancellation_of_no_request_in_flight_has_no_effect(params: str) -> None:
    peer = agent()
    peer.receive(ask(1))
    peer.receive(ask(2))
    peer.answer(2, b"{}")
    frame = f'{{"jsonrpc":"2.0","method":"$/cancel_request","params":{params}}}'.encode()
    assert isinstance(peer.receive(frame), IgnoredMessage)
    assert isinstance(peer.receive(frame.replace(params.encode(), b'{"requestId":2}')), IgnoredMessage)
    assert peer.receive(frame.replace(params.encode(), b'{"requestId":1}')) == CancelAsked(1)


@pytest.mark.requirement("B12")
def test_our_own_calls_are_not_theirs_to_cancel() -> None:
    peer = agent()
    number, _ = peer.call("a", b"{}", "w")
    assert isinstance(peer.receive(peer.cancel_call(number)), IgnoredMessage)
    assert peer.waiting == 1


@pytest.mark.requirement("B13")
def test_a_thousand_answers_in_reverse_find_their_callers() -> None:
    peer = client()
    numbers = [peer.call("a", b"{}", f"w{n}")[0] for n in range(1000)]
    for n in reversed(range(1000)):
        assert peer.receive(reply(numbers[n], n)) == Answered(f"w{n}", Raw(b"%d" % n))


@pytest.mark.requirement("B14")
def test_at_the_end_every_caller_is_given_back_once() -> None:
    peer = client()
    for name in "abc":
        peer.call("a", b"{}", name)
    peer.receive(reply(2, {}))
    peer.receive(ask("x"))
    assert peer.close() == ["a", "c"]
    assert peer.close() == []
    with pytest.raises(LinkClosed):
        peer.call("a", b"{}", "d")
    assert isinstance(peer.receive(reply(1, {})), IgnoredMessage)
    assert isinstance(peer.receive(b"hello"), IgnoredMessage)
    assert peer.answer("x", b"{}") is None
    assert peer.fail("x", -1, "") is None
    assert (peer.owed, peer.waiting) == (0, 0)


@pytest.mark.requirement("B15")
def test_a_handlers_bug_says_nothing_of_itself() -> None:
    peer = agent()
    peer.receive(ask(1))
    sent = peer.fail(1, *wire_error(OSError("/secret/path")))
    assert json.loads(sent or b"")["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}


@pytest.mark.requirement("B16")
def test_what_was_sent_before_the_answer_is_received_before_it() -> None:
    ours, theirs = client(), agent()
    number, frame = ours.call("prompt", b"{}", "w")
    theirs.receive(frame)
    burst = [theirs.notify("update", b'{"n":%d}' % n) for n in range(1000)] + [theirs.answer(number, b"{}") or b""]
    lines = Framer(limit=limits.FRAME_BYTES).feed(b"\n".join(burst) + b"\n")
    received = [ours.receive(line) for line in lines]
    assert received[:-1] == [Notification("update", Raw(b'{"n":%d}' % n)) for n in range(1000)]
    assert received[-1] == Answered("w", Raw(b"{}"))


def test_requests_above_the_limit_are_told_to_retry_and_some_methods_pass() -> None:
    peer = agent(in_flight=2)
    peer.unlimited = frozenset({"session/close"})
    assert isinstance(peer.receive(ask(1)), RequestEnvelope)
    assert isinstance(peer.receive(ask(2)), RequestEnvelope)
    sent = peer.receive(ask(3))
    assert refusal(sent) == (3, TOO_MANY_IN_FLIGHT)
    assert isinstance(sent, SendBack)
    assert json.loads(sent.payload)["error"]["data"] == {"retry": True}
    assert isinstance(peer.receive(ask(4, "session/close")), RequestEnvelope)
    assert isinstance(peer.receive(peer.notify("session/cancel", b"{}")), Notification)
    assert peer.receive(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}') == CancelAsked(1)
    for number in (1, 2, 4):
        assert peer.answer(number, b"{}") is not None
    assert isinstance(peer.receive(ask(3)), RequestEnvelope)


def test_the_limit_is_that_of_the_promise() -> None:
    peer = agent()
    received = [peer.receive(ask(number)) for number in range(limits.IN_FLIGHT + 1)]
    assert [type(each) for each in received] == [RequestEnvelope] * limits.IN_FLIGHT + [SendBack]


def test_an_answer_that_is_too_large_ends_the_call_it_answers() -> None:
    peer = client()
    peer.call("a", b"{}", "w")
    mistake = FrameTooLarge(INVALID_REQUEST, "Message too large", {"limit": 9})
    mistake.head = b'{"jsonrpc":"2.0","id":1,"result":{"te'
    assert peer.receive(mistake) == CallFailed("w", INVALID_REQUEST, "The answer is too large", Raw(b'{"limit":9}'))
    assert peer.waiting == 0


@pytest.mark.parametrize(
    ("head", "id"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":"xx', 12),
        (b'{"jsonrpc": "2.0", "id": 12, "result": [', 12),
        (b'{"id":12,"jsonrpc":"2.0","error":{"code":1', 12),
        (b'{"jsonrpc":"2.0","result":"xxxxx', None),
        (b'{"jsonrpc":"2.0","result":"xx","id":12', None),
        (b'{"jsonrpc":"2.0","id":"12","result":"xx', None),
        (b'{"jsonrpc":"2.0","id":12,"method":"a","params":{"result":1', None),
        (b'{"jsonrpc":"2.0","id":12,"method":"a","result":1', None),
        (b'{"jsonrpc":"2.0","id":1', None),
        (b"", None),
    ],
)
def test_whose_answer_it_is_can_be_seen_where_the_id_comes_first(head: bytes, id: int | None) -> None:
    assert answered_id(head) == id


def test_the_answer_to_a_call_that_was_given_up_is_nothing_to_wonder_about_once() -> None:
    peer = client()
    number, _ = peer.call("a", b"{}", "w")
    peer.stop_waiting(number)
    assert peer.receive(reply(number, 1)) == IgnoredMessage("")
    assert peer.receive(reply(number, 1)) == IgnoredMessage("an answer to a call that is over")

"""One frame becomes one message, or a refusal with a code."""

import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman import limits
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from dragoman.wire import envelope
from dragoman.wire.envelope import (
    NOTHING,
    BadMessage,
    ErrorResponse,
    Id,
    Message,
    Notification,
    RequestEnvelope,
    ResultResponse,
    parse,
)

MAX = 2**63 - 1


class Bad(NamedTuple):
    """A refusal, as a value."""

    code: int
    id: Id = None
    answerable: bool = True


def outcome(frame: bytes) -> Message | Bad:
    try:
        return parse(frame)
    except BadMessage as bad:
        return Bad(bad.code, bad.id, bad.answerable)


NOT_JSON = Bad(PARSE_ERROR)
INVALID = Bad(INVALID_REQUEST)
SILENT = Bad(INVALID_REQUEST, answerable=False)

GOOD: list[tuple[bytes, Message]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{}}', RequestEnvelope(1, "a", Raw(b"{}"))),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"b": 1}}', RequestEnvelope(1, "a", Raw(b'{"b": 1}'))),
    (b'{"jsonrpc": "2.0", "id": "x", "method": "a", "params": {}}', RequestEnvelope("x", "a", Raw(b"{}"))),
    (b'{"params":{"a":[]},"method":"a","id":"x","jsonrpc":"2.0"}', RequestEnvelope("x", "a", Raw(b'{"a":[]}'))),
    (b'{"jsonrpc":"2.0","method":"a","params":{},"id":1}', RequestEnvelope(1, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":1,"method":"a"}', RequestEnvelope(1, "a", NOTHING)),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":null}', RequestEnvelope(1, "a", NOTHING)),
    (b'{"jsonrpc":"2.0","id":1,"method":"","params":{}}', RequestEnvelope(1, "", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":"","method":"a","params":{}}', RequestEnvelope("", "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":"1","method":"a","params":{}}', RequestEnvelope("1", "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":null,"method":"a","params":{}}', RequestEnvelope(None, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":-7,"method":"a","params":{}}', RequestEnvelope(-7, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":%d,"method":"a","params":{}}' % MAX, RequestEnvelope(MAX, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":%d,"method":"a","params":{}}' % (-MAX - 1), RequestEnvelope(-MAX - 1, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":-0,"method":"a","params":{}}', RequestEnvelope(0, "a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","method":"a","params":{}}', Notification("a", Raw(b"{}"))),
    (b'{"jsonrpc": "2.0", "method": "a", "params": {}}', Notification("a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","method":"a"}', Notification("a", NOTHING)),
    (b'{"jsonrpc":"2.0","method":"a","params":null}', Notification("a", NOTHING)),
    (b'\t{"jsonrpc":"2.0","method":"a","params":{}} \r', Notification("a", Raw(b"{}"))),
    (b'{"json\\u0072pc":"\\u0032.0","m\\u0065thod":"\\u0061","params":{}}', Notification("a", Raw(b"{}"))),
    ('{"jsonrpc":"2.0","method":"é","params":{"a":"é"}}'.encode(), Notification("é", Raw('{"a":"é"}'.encode()))),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', ResultResponse(1, Raw(b"{}"))),
    (b'{"jsonrpc": "2.0", "id": 1, "result": null}', ResultResponse(1, Raw(b"null"))),
    (b'{"result":[1],"id":"x","jsonrpc":"2.0"}', ResultResponse("x", Raw(b"[1]"))),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', ErrorResponse(1, -32601, "no")),
    (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"","data":{"a":1}}}',
        ErrorResponse(None, 1, "", Raw(b'{"a":1}')),
    ),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":null}}', ErrorResponse(1, 1, "")),
    # JSON-RPC 1 wrote both members, one of them null.
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', ResultResponse(1, Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"a"}}', ErrorResponse(1, 1, "a")),
    # Unknown members are read over, whatever they are and however often.
    (b'{"jsonrpc":"2.0","method":"a","params":{},"_meta":{"id":1},"_meta":2}', Notification("a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","Id":1,"method":"a","params":{}}', Notification("a", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","method":"a","abcd":{}}', Notification("a", NOTHING)),
    # What is out of range stays unread here; the typed reader refuses it.
    (
        b'{"jsonrpc":"2.0","method":"a","params":{"a":[1e400,%s,-0]}}' % (b"9" * 5000),
        Notification("a", Raw(b'{"a":[1e400,%s,-0]}' % (b"9" * 5000))),
    ),
    # In params the last one wins, and that is for the typed reader as well.
    (b'{"jsonrpc":"2.0","method":"a","params":{"a":1,"a":2}}', Notification("a", Raw(b'{"a":1,"a":2}'))),
    # Only a newline ends a line.
    (
        '{"jsonrpc":"2.0","method":"a","params":{"a":"\u2028\u0085\\u0000"}}'.encode(),
        Notification("a", Raw('{"a":"\u2028\u0085\\u0000"}'.encode())),
    ),
]


@pytest.mark.requirement("A10", "A11", "A13")
@pytest.mark.parametrize(("frame", "message"), GOOD)
def test_a_message_is_read(frame: bytes, message: Message) -> None:
    assert parse(frame) == message


@pytest.mark.parametrize("frame", [frame for frame, _ in GOOD])
def test_the_hot_path_reads_what_the_precise_reader_reads(frame: bytes) -> None:
    assert parse(frame) == envelope._read(frame)


def call(id: bytes = b"1", method: bytes = b'"a"', rest: bytes = b',"params":{}') -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"method":' + method + rest + b"}"


REFUSED: dict[str, list[tuple[bytes, Bad]]] = {
    "not JSON": [
        (b"hello", NOT_JSON),
        (b"", NOT_JSON),
        (b"{", NOT_JSON),
        (b'{"jsonrpc":"2.0","method":"a"', NOT_JSON),
        (call() + b"x", NOT_JSON),
        (call() + call(), NOT_JSON),
        (call()[:-1] + b",}", NOT_JSON),
        (b'{"id":true,oops', NOT_JSON),  # wrong before it is broken: still broken
        (b"[1,", NOT_JSON),
        (b"'a'", NOT_JSON),
        (call(rest=b',"params":{"a":01}'), NOT_JSON),
        (call(rest=b',"params":{"a":"\x01"}'), NOT_JSON),
        (call(rest=b',"params":{"a":"\\x41"}'), NOT_JSON),
        (call(rest=b',"params":{"a":"\n"}'), NOT_JSON),
        (b"\0", NOT_JSON),
        (b"\xef\xbb\xbf" + call(), NOT_JSON),
        (b'{"a":"\\ud800\0"}', NOT_JSON),
    ],
    "invalid UTF-8": [
        (call(rest=b',"params":{"a":"\xff"}'), NOT_JSON),
        (call(rest=b',"params":{"\xc3":1}'), NOT_JSON),
        (call(rest=b',"\xff":1'), NOT_JSON),
        (call(method=b'"\xff"'), NOT_JSON),
        (call() + b"\xc3", NOT_JSON),
        (call(rest=b',"params":{"a":"\xed\xa0\x80"}'), NOT_JSON),  # a surrogate in UTF-8's clothes
        (call(rest=b',"params":{"a":"' + b"\xc3\xa9" * limits.MIB + b'\xff"}'), NOT_JSON),
    ],
    "numbers": [
        (call(rest=b',"params":{"a":NaN}'), NOT_JSON),
        (call(rest=b',"params":{"a":Infinity}'), NOT_JSON),
        (call(rest=b',"params":{"a":-Infinity}'), NOT_JSON),
        (call(b"NaN"), NOT_JSON),
        (call(b"1.0"), INVALID),
        (call(b"1e0"), INVALID),
        (call(b"1e3"), INVALID),
        (call(b"1e400"), INVALID),
        (call(b"%d" % (MAX + 1)), INVALID),
        (call(b"%d" % (-MAX - 2)), INVALID),
        (call(b"9" * 5000), INVALID),
    ],
    "envelope keys twice": [
        (call(rest=b',"id":1'), INVALID),
        (call(rest=b',"id":2'), INVALID),
        (call(rest=b',"\\u0069d":2'), INVALID),
        (call(rest=b',"method":"a"'), Bad(INVALID_REQUEST, 1)),
        (call(rest=b',"m\\u0065thod":"b"'), Bad(INVALID_REQUEST, 1)),
        (call(rest=b',"jsonrpc":"2.0"'), Bad(INVALID_REQUEST, 1)),
        (call(rest=b',"params":{},"params":{}'), Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {}, "params": {}}', Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc": "2.0","method": "a","params": {},"params":{}}', INVALID),
        # Just as long as `json.dumps` would have made it.
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a","params":{}}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"id":1,"result":{}}', SILENT),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""},"error":{}}', Bad(INVALID_REQUEST, 1, False)),
    ],
    "lone surrogates in names": [
        (call(b'"\\ud800"'), INVALID),
        (call(b'"\\uDC00\\uD800"'), INVALID),
        (call(method=b'"\\ud800"'), Bad(INVALID_REQUEST, 1)),
        (call(b'"x"', b'"a\\uDFFFb"'), Bad(INVALID_REQUEST, "x")),
        (call(b'"\\ud800"', b"7"), INVALID),
        (call(b"{}", b'"\\ud800"'), INVALID),
        (b'{"jsonrpc":"2.0","id":"\\ud800","result":{}}', SILENT),
    ],
    "no object": [(frame, INVALID) for frame in (b"42", b"null", b'"x"', b"true", b" 1.5 ")],
    "an array": [(frame, INVALID) for frame in (b"[]", b" [1]", b"[" + call() + b"," + call(b"2") + b"]")],
    "ids": [(call(id), INVALID) for id in (b"{}", b"[]", b"true", b"false", b"1.5", b'{"a":1}', b"[1]")],
    "the envelope": [
        (b"{}", INVALID),
        (b'{"id":1,"method":"a","params":{}}', Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":"1.0","id":1,"method":"a","params":{}}', Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":2.0,"id":"x","method":"a","params":{}}', Bad(INVALID_REQUEST, "x")),
        (b'{"jsonrpc":null,"method":"a","params":{}}', INVALID),
        (call(method=b"7"), Bad(INVALID_REQUEST, 1)),
        (call(method=b"null"), Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":"2.0","id":1}', Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":"2.0","id":1,"params":{}}', Bad(INVALID_REQUEST, 1)),
        (call(rest=b',"params":{},"result":1'), Bad(INVALID_REQUEST, 1)),
        (call(rest=b',"error":{}'), Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":"2.0","method":"a","result":{}}', INVALID),
        # Just as long as if nothing were missing: the length alone proves nothing.
        (b'{"id":1,"id":22222222,"method":"a","params":{}}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"errr":{}}', Bad(INVALID_REQUEST, 1)),
        (b"{" + b",".join(b'"%d":1' % n for n in range(1000)) + b"}", INVALID),
        (b"{" + b",".join(b'"%d":1' % n for n in range(1000)) + b",}", NOT_JSON),
    ],
    "keys in another case": [
        (b'{"jsonrpc":"2.0","id":1,"Method":"a","params":{}}', Bad(INVALID_REQUEST, 1)),
        (b'{"JSONRPC":"2.0","id":1,"method":"a","params":{}}', Bad(INVALID_REQUEST, 1)),
        (b'{"jsonrpc":"2.0","id":1,"RESULT":{}}', Bad(INVALID_REQUEST, 1)),
    ],
    "params that are no object": [
        (call(rest=b',"params":[]'), Bad(INVALID_PARAMS, 1)),
        (call(rest=b',"params":[{}]'), Bad(INVALID_PARAMS, 1)),
        (call(rest=b',"params":7'), Bad(INVALID_PARAMS, 1)),
        (call(b"null", rest=b',"params":"a"'), Bad(INVALID_PARAMS)),
        (b'{"jsonrpc":"2.0","method":"a","params":[{}]}', Bad(INVALID_PARAMS, answerable=False)),
    ],
    "answers": [
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"a"}}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":"x"}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"id":777,"error":"x"}', Bad(INVALID_REQUEST, 777, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":null}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"a"}}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":7}}', Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":""}}' % 2**70, Bad(INVALID_REQUEST, 1, False)),
        (b'{"jsonrpc":"2.0","result":{}}', SILENT),
        (b'{"jsonrpc":"2.0","id":1.0,"result":{}}', SILENT),
        (b'{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":""}}', SILENT),
    ],
}


@pytest.mark.requirement("A1", "A2", "A10", "A11", "A12", "B1", "B2", "B3", "B5", "B6", "B7", "B10")
@pytest.mark.parametrize(
    ("frame", "bad"), [pytest.param(*case, id=f"{row} {n}") for row in REFUSED for n, case in enumerate(REFUSED[row])]
)
def test_what_is_no_message_is_refused_with_a_code(frame: bytes, bad: Bad) -> None:
    assert outcome(frame) == bad


def test_unknown_members_are_read_over_up_to_a_bound() -> None:
    def with_members(count: int) -> bytes:
        return call(rest=b',"params":{}' + b"".join(b',"%d":1' % number for number in range(count)))

    assert parse(with_members(60)) == RequestEnvelope(1, "a", Raw(b"{}"))
    assert outcome(with_members(61)) == INVALID


@pytest.mark.requirement("A12")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"\ud800", rb"\ufffd"),
        (rb"\uDC00x", rb"\ufffdx"),
        (rb"\ud83d\ude00", rb"\ud83d\ude00"),
        (rb"\uD83D\uDE00", rb"\uD83D\uDE00"),
        (rb"\ud83d\ud83d\ude00\ude00", rb"\ufffd\ud83d\ude00\ufffd"),
        (rb"\ude00\ud83d", rb"\ufffd\ufffd"),
        (rb"\\ud800", rb"\\ud800"),
        (rb"\\\ud800", rb"\\\ufffd"),
        (rb"\ud83d\\ude00", rb"\ufffd\\ude00"),
        (rb"\ud83dude00", rb"\ufffdude00"),
    ],
)
def test_a_lone_surrogate_in_text_becomes_a_replacement_character(text: bytes, read: bytes) -> None:
    message = parse(call(rest=b',"params":{"a":"' + text + b'"}'))
    assert message == RequestEnvelope(1, "a", Raw(b'{"a":"' + read + b'"}'))
    assert json.loads(read.join([b'"', b'"'])).encode()


@pytest.mark.requirement("A12")
@pytest.mark.parametrize("lone", [b"\\ud800", b"\\uDfff"])
def test_a_lone_surrogate_far_inside_a_large_frame_becomes_a_replacement_character(lone: bytes) -> None:
    line = b"x" * 79 + b"\\n"  # a backslash in every line, as in the text of a file
    text = line * (2 * limits.MIB // len(line))
    message = parse(call(rest=b',"params":{"a":"' + text + lone + text + b'"}'))
    assert isinstance(message, RequestEnvelope)
    assert bytes(message.params) == b'{"a":"' + text + b"\\ufffd" + text + b'"}'


@pytest.mark.requirement("A12")
def test_a_replacement_character_that_was_sent_as_such_is_a_name() -> None:
    frame = call(rb'"\ufffd"', rb'"\ufffd"', rb',"params":{"a":"\ud800"}')
    assert parse(frame) == RequestEnvelope("\ufffd", "\ufffd", Raw(rb'{"a":"\ufffd"}'))


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    """A call that is `depth` brackets deep; the message and its params are two of them."""
    inner = depth - 2
    return call(rest=b',"params":{"a":' + opening * inner + b"1" + closing * inner + b"}")


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'["[",{"]":', b"}]")])
@pytest.mark.parametrize("depth", [126, 128, 130, 1_000, 100_000, 1_000_000])
def test_nesting_is_allowed_up_to_the_limit_exactly(depth: int, opening: bytes, closing: bytes) -> None:
    each = closing.count(b"]") + closing.count(b"}")
    bad = Bad(INVALID_REQUEST) if depth > limits.NESTING_DEPTH else None
    found = outcome(nested(2 + (depth - 2) // each, opening, closing))
    assert isinstance(found, RequestEnvelope) if bad is None else found == bad


@pytest.mark.requirement("A9")
def test_one_too_deep_is_too_deep() -> None:
    assert isinstance(outcome(nested(128, b"[", b"]")), RequestEnvelope)
    assert outcome(nested(129, b"[", b"]")) == INVALID


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("tower", "height"),
    [(b"[]", 1), (b"[[]]", 2), (b"[" * 9 + b"]" * 9, 9), (b"[" * 120 + b"]" * 120, 120), (b"[[[],[]],[]]", 3)],
)
def test_many_brackets_side_by_side_are_not_deep(tower: bytes, height: int) -> None:
    wide = b",".join([tower] * 500)
    below = limits.NESTING_DEPTH - 2 - height
    high = b"[" * below + wide + b"]" * below
    assert isinstance(outcome(call(rest=b',"params":{"a":' + high + b"}")), RequestEnvelope)
    assert outcome(call(rest=b',"params":{"a":[' + high + b"]}")) == INVALID


@pytest.mark.requirement("A9")
@pytest.mark.parametrize("text", [b"[" * 500, b"{" * 500, b'\\"' + b"[" * 500, b'\\\\\\"' + b"{[" * 99, b"\\\\"])
def test_brackets_in_text_do_not_count(text: bytes) -> None:
    params = b'{"a":"' + text + b'","b":"' + text + b'"}'
    assert parse(call(rest=b',"params":' + params)) == RequestEnvelope(1, "a", Raw(params))


@pytest.mark.requirement("A9")
def test_a_backslash_at_the_end_of_a_text_does_not_hide_what_follows() -> None:
    deep = b"[" * 127 + b"]" * 127
    assert outcome(call(rest=rb',"params":{"a":"\\","b":' + deep + b"}")) == INVALID


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("shift", [0, 1])
def test_a_character_across_the_pieces_a_large_frame_is_read_in_is_valid(shift: int) -> None:
    text = b"x" * shift + "é".encode() * limits.MIB
    assert isinstance(outcome(call(rest=b',"params":{"a":"' + text + b'"}')), RequestEnvelope)


@pytest.mark.requirement("A9")
@pytest.mark.parametrize("shift", range(6))
def test_strings_are_told_apart_across_the_pieces_a_large_frame_is_read_in(shift: int) -> None:
    text = b"x" * (limits.MIB - 60 + shift) + b'\\\\\\"[' * 60
    frame = call(rest=b',"params":{"a":"' + text + b'","b":' + b"[" * 126 + b"]" * 126 + b"}")
    assert isinstance(outcome(frame), RequestEnvelope)
    assert outcome(frame.replace(b"[]", b"[[]]")) == INVALID


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("frame", "refusal"),
    [
        # Too deep is said at once, before it is known whether it would ever close.
        (b"[" * 10**6, INVALID),
        (b'{"a":' * 10**5, INVALID),
        (b'{"a":"\\"' + b"[" * 500 + b'\\"}', NOT_JSON),
        (b"]" * 500, NOT_JSON),
    ],
    ids=["arrays", "objects", "a text", "only ends"],
)
def test_what_never_closes_is_refused(frame: bytes, refusal: Bad) -> None:
    assert outcome(frame) == refusal


KEYS = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "Method", "", "_meta", "m\\u0065thod", "\\ud800"]
)
VALUES = st.sampled_from(
    [
        '"2.0"',
        "1",
        "-0",
        "1.0",
        "1e3",
        str(2**63),
        "null",
        "true",
        '"a"',
        '"\\u0061"',
        '"\\ud800"',
        "{}",
        "[{}]",
        "[]",
        '{"code":1,"message":"a"}',
        '{"id": 1}',
        "NaN",
        '"é"',
        "[" * 130 + "]" * 130,
    ]
)
SPACE = st.sampled_from(["", "", " ", "  \t"])


@st.composite
def nearly_messages(draw: st.DrawFn) -> bytes:
    """Objects of plausible members: most of the ways in which a message can be nearly right."""
    gap, after = draw(SPACE), draw(SPACE)
    members = [("jsonrpc", '"2.0"')] * draw(st.integers(0, 1)) + draw(st.lists(st.tuples(KEYS, VALUES), max_size=6))
    members = draw(st.permutations(members))
    body = f",{gap}".join(f'"{key}":{after}{value}' for key, value in members)
    return f"{gap}{{{body}}}{after}".encode()


@given(nearly_messages())
def test_the_hot_path_and_the_precise_reader_agree_on_every_frame(frame: bytes) -> None:
    """Where both get as far: the checks before them are the same."""
    found = outcome(frame)
    if b"\\ud800" in frame or frame.count(b"[") > limits.NESTING_DEPTH:
        return
    try:
        expected: Message | Bad = envelope._read(frame)
    except BadMessage as bad:
        expected = Bad(bad.code, bad.id, bad.answerable)
    assert found == expected


def _no_constant(name: str) -> None:
    raise ValueError(name)


@pytest.mark.requirement("A17")
@given(nearly_messages() | st.binary(max_size=40) | st.text('{}[]":,\\u0d81e-.ntfalsr \t', max_size=30).map(str.encode))
def test_exactly_what_is_not_json_is_a_parse_error(frame: bytes) -> None:
    """Against a second parser."""
    found = outcome(frame)
    try:
        json.loads(frame.decode(), parse_constant=_no_constant)
    except ValueError:
        assert found == NOT_JSON or frame.count(b"[") > limits.NESTING_DEPTH
    else:
        assert found != NOT_JSON

"""What is turned away before it is decoded."""

import time
from collections.abc import Callable

import pytest

from dragoman.errors import INVALID_REQUEST, PARSE_ERROR
from dragoman.gateway.envelope import peek
from dragoman.gateway.precheck import VALUES, precheck


@pytest.mark.parametrize("frame", [b"{", b"[", b" \t\r\n{}", b"", b" \n"])
def test_what_may_be_a_message_comes_in(frame: bytes) -> None:
    assert precheck(frame) is None


@pytest.mark.parametrize(
    "frame", [b"Content-Length: 2", b"  Content-Length: 2", b'"x"', b"1", b"\xef\xbb\xbf{}", b"\0{"]
)
def test_what_cannot_be_a_message_is_no_json(frame: bytes) -> None:
    turned_away = precheck(frame)
    assert turned_away is not None
    assert (turned_away.code, turned_away.status) == (PARSE_ERROR, 400)


@pytest.mark.parametrize("value", [b"[]", b"{}", b'""', b"0", b'{"k":0}'])
def test_so_many_values_are_too_many(value: bytes) -> None:
    cost = 1 if value == b"0" else 3 if len(value) > 2 else 2  # with its comma
    most = (VALUES - 1) // cost
    assert precheck(b"[" + (value + b",") * most + b"0" * VALUES) is None
    turned_away = precheck(b"[" + (value + b",") * (most + 1) + b"0" * VALUES)
    assert turned_away is not None
    assert (turned_away.code, turned_away.status) == (INVALID_REQUEST, 413)


@pytest.mark.parametrize("text", [b"[{,", rb"\"[{,", rb"\\\",", rb"\u005b,[[["])
def test_what_stands_in_a_text_is_no_value(text: bytes) -> None:
    assert precheck(b'{"text":"' + text * VALUES + b'"}') is None


N = 16 * 1024 * 1024
# Made when they are used: together they are the memory of another test run.
WORST: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * (N // 3),
    "strings": lambda: b"[" + b'"ab",' * (N // 5),
    "quotes": lambda: b"[" + b'""' * (N // 2),
    "prose": lambda: b'{"a":"' + b"hello, world " * (N // 13) + b'"}',
    "escapes": lambda: b'{"a":"' + b"," * VALUES + rb"\n" * (N // 2) + b'"}',
    "a string that does not end": lambda: b"[" + b"," * (VALUES // 2) + b'"' + rb"\"" * (N // 2),
    "a string that ends in the middle of an escape": lambda: b"[" + b"," * (VALUES // 2) + b'"' + b"," * N + b"\\",
}


@pytest.mark.parametrize("worst", WORST)
def test_counting_is_fast(worst: str) -> None:
    frame = WORST[worst]()
    began = time.process_time()
    precheck(frame)
    assert time.process_time() - began < 1  # decoding what is precheck takes seconds, and so would counting it badly


def test_a_glance_decodes_nothing_that_is_no_plain_value() -> None:
    wide = b"[" + b"[]," * 1_000_000 + b"[]]"
    for name in (b"sessionId", b"protocolVersion"):
        began = time.process_time()
        found = peek(b'{"id":1,"method":"m","params":{"%b":%b}}' % (name, wide))
        assert (found.method, found.session_id, found.version) == ("m", None, 0)
        assert time.process_time() - began < 0.1

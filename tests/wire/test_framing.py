"""Framing: which bytes are one frame, whatever pieces they arrive in."""

import tracemalloc
from collections.abc import Iterable
from typing import NoReturn

import pytest

from dragoman import limits
from dragoman.errors import INVALID_REQUEST, PARSE_ERROR, FrameTooLarge, LargeFrameHead, PeerMistake
from dragoman.wire.framing import Framer, Style, frame

LIMIT = 64
BOM = b"\xef\xbb\xbf"


def framed(chunks: Iterable[bytes], *, limit: int = LIMIT, header_limit: int = 256) -> list[bytes | int]:
    """The frames of a stream, with a refusal as its code."""
    framer = Framer(limit=limit, header_limit=header_limit)
    found = [item for chunk in chunks for item in framer.feed(chunk)] + framer.eof()
    told = [item for item in found if not isinstance(item, LargeFrameHead)]
    return [item.code if isinstance(item, PeerMistake) else item for item in told]


def bytewise(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


def block(body: bytes, header: bytes = b"Content-Length") -> bytes:
    return header + b": " + str(len(body)).encode() + b"\r\n\r\n" + body


# One row: what is read, what comes out. Every row is also fed byte by byte, and cut in two everywhere.
STREAMS: dict[str, tuple[bytes, list[bytes | int]]] = {
    "one line": (b'{"a":1}\n', [b'{"a":1}']),
    "two lines": (b"1\n2\n", [b"1", b"2"]),
    "a byte order mark is skipped": (BOM + b"{}\n", [b"{}"]),
    "only the first one is": (BOM + BOM + b"{}\n", [BOM + b"{}"]),
    "only before the first frame": (b"1\n" + BOM + b"2\n", [b"1", BOM + b"2"]),
    "before headers too": (BOM + block(b"{}"), [b"{}"]),
    "half of one is text": (b"\xef\xbb1\n", [b"\xef\xbb1"]),
    "blank lines": (b"\n\n \r\n\t\n1\n\n \n2\n\r\n", [b"1", b"2"]),
    "spaces around": (b"1\n  2 \n\t3\r\n", [b"1", b"  2 ", b"\t3\r"]),
    "blank lines in a long read": (b"x" * 60 + b"\n  \n\r\n1\n", [b"x" * 60, b"1"]),
    "CRLF": (b"1\r\n2\r\n", [b"1\r", b"2\r"]),
    "other control characters are not blank": (b"1\n\x0b\n\x00\n", [b"1", b"\x0b", b"\x00"]),
    "one below the limit": (b"x" * (LIMIT - 1) + b"\n1\n", [b"x" * (LIMIT - 1), b"1"]),
    "the limit": (b"x" * LIMIT + b"\n1\n", [b"x" * LIMIT, b"1"]),
    "one above the limit": (b"x" * (LIMIT + 1) + b"\n1\n", [INVALID_REQUEST, b"1"]),
    "twice in a row": (b"x" * 99 + b"\n" + b"y" * 200 + b"\n1\n", [INVALID_REQUEST, INVALID_REQUEST, b"1"]),
    "between frames": (b"1\n" + b"x" * 300 + b"\n2\n", [b"1", INVALID_REQUEST, b"2"]),
    "without an end": (b"x" * 500, [INVALID_REQUEST]),
    "only a newline ends a line": ("\u2028\u0085\x00\n".encode(), ["\u2028\u0085\x00".encode()]),
    "the end in mid-message": (b"1\n22", [b"1"]),
    "the end before anything": (b"", []),
    "the end in a header": (block(b"1") + b"Content-Len", [b"1"]),
    "the end in a body": (block(b"1") + block(b"22")[:-1], [b"1"]),
    "a text that begins like a header": (b"contents\n1\n", [b"contents", b"1"]),
    "a word that begins like a header, then the end": (b"conte", []),
    "headers": (block(b"{}") + block(b"[1]"), [b"{}", b"[1]"]),
    "headers in any case": (block(b"{}", b"cOnTeNt-lEnGtH"), [b"{}"]),
    "headers after blank lines": (b"\n\r\n " + block(b"{}"), [b"{}"]),
    "headers with blank lines between": (block(b"{}") + b"\r\n\n" + block(b"1"), [b"{}", b"1"]),
    "headers with bare newlines": (b"Content-Length: 2\n\n{}", [b"{}"]),
    "headers without a space": (b"Content-Length:2\r\n\r\n{}", [b"{}"]),
    "headers with others": (b"Content-Type: x; charset=utf-8\r\nContent-Length: 2\r\nX-A: b\r\n\r\n{}", [b"{}"]),
    "a body with newlines": (block(b"{\n\n}\n") + block(b"1"), [b"{\n\n}\n", b"1"]),
    "a body of no bytes": (block(b"") + block(b"1"), [b"", b"1"]),
    "the same length twice": (b"Content-Length: 1\r\nContent-Length: 01\r\n\r\n7", [b"7"]),
    "a body of the limit": (block(b"x" * LIMIT), [b"x" * LIMIT]),
    "a body above the limit": (block(b"x" * (LIMIT + 1)) + block(b"1"), [INVALID_REQUEST, b"1"]),
    "two lengths": (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n12" + block(b"3"), [PARSE_ERROR]),
    "a bad header, then a body, then a good one": (
        b'Content-Length: x\r\n\r\n{"a":1}' + block(b"2"),
        [PARSE_ERROR, b"2"],
    ),
    "no length": (b"Content-Type: x\r\n\r\n[]" + block(b"2"), [PARSE_ERROR, b"2"]),
    "a negative length": (b"Content-Length: -1\r\n\r\n" + block(b"2"), [PARSE_ERROR, b"2"]),
    "a signed length": (b"Content-Length: +1\r\n\r\n" + block(b"2"), [PARSE_ERROR, b"2"]),
    "an empty length": (b"Content-Length:\r\n\r\n" + block(b"2"), [PARSE_ERROR, b"2"]),
    "a length of 200 digits": (b"Content-Length: " + b"1" * 200 + b"\r\n\r\n" + block(b"2"), [INVALID_REQUEST]),
    "a length of 200 zeros": (b"Content-Length: " + b"0" * 200 + b"1\r\n\r\n7" + block(b"2"), [b"7", b"2"]),
    "a length that cannot be skipped": (b"Content-Length: 10995116277760\r\n\r\n" + block(b"2"), [INVALID_REQUEST]),
    "a length above the limit, before its body": (b"Content-Length: 65\r\n\r\n", [INVALID_REQUEST]),
    "a line among headers": (b'Content-Length: 2\r\n{"a": 1}\r\n\r\n' + block(b"2"), [PARSE_ERROR, b"2"]),
    "a word among headers": (b"Content-Length: 2\r\nhello\r\n\r\n" + block(b"2"), [PARSE_ERROR, b"2"]),
    "a header line without end": (b"Content-" + b"x" * 999 + b"\n" + block(b"2"), [PARSE_ERROR, b"2"]),
    "headers without end": (b"Content-A: b\n" * 99 + block(b"2"), [PARSE_ERROR, b"2"]),
    "the overlong line is not taken for a beginning": (
        b"Content-A: " + b"x" * 400 + b" Content-Length: 1\n\n7" + block(b"2"),
        [PARSE_ERROR],
    ),
    "a length named in a lost body": (b'Content-Length: x\n\n{"a":"Content-Length: 1"}\n\n7', [PARSE_ERROR]),
    "found behind a long lost body": (b"Content-Length: x\n\n[" + b"1" * 999 + b"]" + block(b"2"), [PARSE_ERROR, b"2"]),
    "a body longer than announced": (b"Content-Length: 1\n\n7{}" + block(b"2"), [b"7", PARSE_ERROR, b"2"]),
    "a word that only seems to begin its line": (
        b"Content-Length: x\n\n" + b"y" * 50 + b"Content-Length: 1".ljust(128) + b"\n\n7",
        [PARSE_ERROR],
    ),
}


@pytest.mark.requirement("A5", "A3", "A4", "A7", "A8", "A13", "A15")
@pytest.mark.parametrize("stream", STREAMS)
def test_the_same_frames_come_out_however_the_bytes_are_torn(stream: str) -> None:
    data, expected = STREAMS[stream]
    assert framed([data]) == expected
    assert framed(bytewise(data)) == expected
    for cut in range(len(data)):
        assert framed([data[:cut], data[cut:]]) == expected, cut


@pytest.mark.requirement("A6")
def test_a_thousand_lines_in_one_read_come_out_in_order() -> None:
    lines = [b"%d" % number for number in range(1000)]
    assert framed([b"\n".join(lines) + b"\n"], limit=limits.MIB) == lines


@pytest.mark.requirement("A7")
def test_the_refusal_says_the_limit() -> None:
    refusal = Framer(limit=10).feed(b"x" * 11)[0]
    assert isinstance(refusal, FrameTooLarge)
    assert (refusal.code, refusal.message, refusal.data) == (INVALID_REQUEST, "Message too large", {"limit": 10})


@pytest.mark.parametrize("tear", [1, 7, 100, 4096])
@pytest.mark.parametrize("stream", [b"%b\n", b"Content-Length: 4000\r\n\r\n%b"], ids=["line", "body"])
def test_of_what_is_refused_the_head_is_kept_and_nothing_more(stream: bytes, tear: int) -> None:
    head = b'{"jsonrpc":"2.0","id":1,"result":"'
    data = stream % (head + b"x" * (4000 - len(head)))
    framer = Framer(limit=1000)
    found = [found for at in range(0, len(data), tear) for found in framer.feed(data[at : at + tear])]
    refusal = found.pop()
    assert isinstance(refusal, FrameTooLarge)
    assert refusal.head == (head + b"x" * 1000)[:128]
    # Of a body the length is refused first, and the head is no second refusal.
    assert [type(each) for each in found] == ([FrameTooLarge] if isinstance(refusal, LargeFrameHead) else [])
    assert framer.pending == 0


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("opening", [b"[", b"Content-Length: 1073741824\r\n\r\n"], ids=["line", "body"])
@pytest.mark.parametrize("mebibytes", [64, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_gigabyte_without_end_is_refused_once_and_never_held(opening: bytes, mebibytes: int) -> None:
    """All of it, or as much of it as would be noticed if it were held."""
    limit = 4 * limits.MIB
    framer = Framer(limit=limit)
    chunk = b"x" * limits.READ_BYTES
    tracemalloc.start()
    found = framer.feed(opening)
    for _ in range(limits.MIB * mebibytes // limits.READ_BYTES):
        found += framer.feed(chunk)
        assert framer.pending <= limit
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(item) for item in found if not isinstance(item, LargeFrameHead)] == [FrameTooLarge]
    assert framer.pending == 0
    assert peak <= limit + 8 * limits.MIB


@pytest.mark.requirement("A8")
def test_a_lost_stream_is_not_held_either() -> None:
    framer = Framer(limit=LIMIT)
    framer.feed(b"Content-Length: x\r\n\r\n")
    for _ in range(100):
        assert framer.feed(b"y" * limits.READ_BYTES) == []
        assert framer.pending < limits.KIB


def test_a_long_line_in_small_pieces_costs_no_more_than_its_length() -> None:
    """Not quadratic: 4 MiB in pieces of 64 bytes would otherwise take minutes."""
    framer = Framer(limit=limits.FRAME_BYTES)
    for _ in range(65536):
        assert framer.feed(b"x" * 64) == []
    assert [len(item) for item in framer.feed(b"\n") if isinstance(item, bytes)] == [4 * limits.MIB]


@pytest.mark.requirement("8.3.1")
@pytest.mark.parametrize(
    ("opening", "style"),
    [
        (b"", None),
        (b"\n \r\n", None),
        (BOM, None),
        (b"C", None),
        (b"content", None),
        (b"Content-", "content-length"),
        (b"\r\nCONTENT-", "content-length"),
        (b"{", "ndjson"),
        (BOM + b"[", "ndjson"),
        (b"contents", "ndjson"),
        (b"hello", "ndjson"),
    ],
)
def test_the_first_bytes_that_are_not_blank_decide_the_style(opening: bytes, style: Style | None) -> None:
    framer = Framer(limit=LIMIT)
    framer.feed(opening)
    assert framer.style == style


@pytest.mark.requirement("A15")
@pytest.mark.parametrize(
    ("stream", "pending"), [(b"1\n", 0), (b"1\n22", 2), (b"Con", 3), (block(b"22")[:-1], 1), (b"x" * 99, 0)]
)
def test_an_unfinished_message_is_seen_but_not_dispatched(stream: bytes, pending: int) -> None:
    framer = Framer(limit=LIMIT)
    framer.feed(stream)
    assert framer.eof() == []
    assert framer.pending == pending


@pytest.mark.parametrize("style", ["ndjson", "content-length"])
@pytest.mark.parametrize("payload", [b"{}", '{"é":"\u2028"}'.encode()])
def test_what_goes_out_comes_in(style: Style, payload: bytes) -> None:
    out = frame(payload, style)
    assert framed([out, out]) == [payload, payload]


@pytest.mark.requirement("A14")
def test_a_newline_in_our_own_output_never_ends_a_line() -> None:
    assert frame(b'{\r\n "a": 1\n}', "ndjson") == b'{   "a": 1 }\n'
    assert frame(b"{\n}", "ndjson") == b"{ }\n"
    assert frame(b"{\r}", "ndjson") == b"{ }\n"
    assert frame(b"{\n}", "content-length") == b"Content-Length: 3\r\n\r\n{\n}"


@pytest.mark.requirement("D13")
def test_a_line_there_is_no_room_for_is_refused_and_the_next_one_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is short, and the stream goes on at the next line."""
    framer = Framer(limit=1000, header_limit=256)
    assert framer.feed(b'{"first": "') == []

    def no_room(data: bytes) -> NoReturn:
        raise MemoryError

    with monkeypatch.context() as poor:
        poor.setattr(framer._lines, "_feed", no_room)
        (refused,) = framer.feed(b"x" * 100)
    assert isinstance(refused, PeerMistake)
    assert framer.feed(b'the rest"}\n{"second": 2}\n') == [b'{"second": 2}']

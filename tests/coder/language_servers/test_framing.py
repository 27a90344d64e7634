"""Bytes of a language server become messages, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.coder.language_servers.framing import (
    BODY_BYTES,
    HEADER_BYTES,
    NOISE_BYTES,
    Frames,
    FramingError,
    frame,
)


@given(st.lists(st.binary(min_size=1, max_size=50)), st.lists(st.integers(1, 40)))
def test_bodies_are_the_same_however_their_bytes_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    data, frames, found = b"".join(map(frame, bodies)), Frames(), []
    for cut in [*cuts, len(data)]:
        found += frames.feed(data[:cut])
        data = data[cut:]
    assert found == bodies


def test_other_headers_and_words_between_messages_are_skipped() -> None:
    data = b"starting up\nContent-Type: x\r\ncontent-length: 2\r\n\r\n{}bye\n" + frame(b"[]")
    assert Frames().feed(data) == [b"{}", b"[]"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Content-Length: %d\r\n" % (BODY_BYTES + 1), "too large"),
        (b"x" * (HEADER_BYTES + 1), "without an end"),
        (b"noise\n" * (NOISE_BYTES // 6 + 1), "no messages"),
    ],
)
@pytest.mark.requirement("LSP4")
def test_what_has_no_bound_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FramingError, match=reason):
        Frames().feed(data)

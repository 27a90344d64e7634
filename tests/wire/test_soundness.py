"""What is looked at without reading it, against readers that look at every character."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.limits import MIB
from dragoman.wire.soundness import is_deeper, is_utf8, with_surrogates_filled

VALUES = st.recursive(
    st.none() | st.text('[]{}"\\a', max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('[{"\\', max_size=2), inner, max_size=3),
    max_leaves=20,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max((depth_of(inner) for inner in value), default=0) if isinstance(value, list) else 0


@given(VALUES, st.integers(0, 4))
def test_depth_is_what_a_reader_of_the_value_counts(value: Any, allowed: int) -> None:
    assert is_deeper(json.dumps(value).encode(), allowed) == (depth_of(value) > allowed)


@pytest.mark.parametrize("flat", [b"[],", b"[[],[]],", b'{"]":[]},'])
def test_depth_is_exact_beside_many_brackets(flat: bytes) -> None:
    beside = b"[" + flat * 10_000 + b"[" * 20 + b"]" * 20 + b"]"
    assert is_deeper(beside, 20)
    assert not is_deeper(beside, 21)


@given(st.binary(max_size=12))
def test_utf8_is_what_decodes(data: bytes) -> None:
    try:
        data.decode()
        decodes = True
    except UnicodeDecodeError:
        decodes = False
    assert is_utf8(data) == decodes


@pytest.mark.parametrize(("tail", "sound"), [("é".encode(), True), (b"\xc3", False), (b"\xa9", False)])
@pytest.mark.parametrize("shift", [0, 1])
def test_utf8_is_looked_at_to_the_end_of_a_large_frame(shift: int, tail: bytes, sound: bool) -> None:
    assert is_utf8(b"x" * shift + "é".encode() * MIB + tail) is sound


@given(st.lists(st.sampled_from([r"\ud800", r"\uDBFF", r"\udc00", r"\uDfff", r"\u0064", r"\\", "ud800", "a"])))
def test_exactly_the_lone_surrogates_are_filled(pieces: list[str]) -> None:
    text = json.loads(f'"{"".join(pieces)}"')
    expected = re.sub("[\ud800-\udfff]", "\ufffd", text)
    filled = with_surrogates_filled(f'"{"".join(pieces)}"'.encode(), b"fffd")
    assert json.loads(filled) == expected


def test_where_nothing_is_alone_nothing_changes() -> None:
    frame = rb'{"a":"\ud83d\ude00 \\ud800"}'
    assert with_surrogates_filled(frame, b"fffd") == frame

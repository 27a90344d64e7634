"""What a person typed, as text that can be sent."""

import pytest

from dragoman.cli.decode_input import decode_input


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("plain", "plain"),
        ("café \U0001f600", "café \U0001f600"),
        ("caf\udce9", "caf\ufffd"),
        ("caf\udcc3\udca9", "café"),  # a locale that is not UTF-8
    ],
)
def test_bytes_that_were_not_read_are_read_as_utf8_or_replaced(typed: str, text: str) -> None:
    assert decode_input(typed) == text

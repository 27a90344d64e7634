"""The picture of the terminal: drawn as the screen is, and taken from a program that still behaves so."""

import re

import pytest

from tests.support.needs import need
from tools.picture import ENDS, INK, PALETTE, drawn, watched


def test_letters_stand_where_they_stood_in_their_colours_also_into_the_next_line() -> None:
    picture = drawn("plain \x1b[32m<green>\nstill\x1b[0m plain\n")
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)".* fill="(#\w+)">(.*)</text>', picture)
    assert [(colour, text) for _, _, colour, text in texts] == [
        (INK, "plain"),
        (PALETTE[2], "&lt;green&gt;"),
        (PALETTE[2], "still"),
        (INK, "plain"),
    ]
    assert texts[0][1] == texts[1][1] != texts[2][1]
    assert float(texts[0][0]) < float(texts[1][0])


@pytest.mark.slow
def test_what_the_picture_shows_still_happens() -> None:
    need("tmux")
    assert ENDS in re.sub(r"\x1b\[[\d;]*m", "", watched()).replace("\n", " ")

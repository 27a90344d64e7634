"""Display terminals as text: bounded, and nothing in it can move a cursor."""

import base64
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.codec.terminal_display import KEPT_BYTES, TerminalDisplay, without_terminals
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.tools import Cancellable, ContentItem, ExitStatus, TerminalItem, TerminalOutput


def base(data: bytes) -> str:
    return base64.b64encode(data).decode()


def shown(*pieces: bytes) -> str:
    screen = TerminalDisplay("t")
    for piece in pieces:
        screen.apply(TerminalOutputChunk("t", base(piece)))
    return screen.draw()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPdata\x1b\\x", "x"),
        (b"\x1b(Bx\x1b=y\x1b7z", "xyz"),
        (b"\x1b[?1049h\x1b[2J\x1b[Hx", "x"),
        (b"\xc2\x9b31mx", "31mx"),
        (b"a\x08b\x00c\x7f", "abc"),
        (b"10%\r50%\r100%\ndone", "100%\ndone"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"bar\r", "bar"),
        (b"half \xc3", "half \ufffd"),
        (b"\x1b]0;never closed", ""),
        (b"\x1b", ""),
    ],
)
def test_what_a_terminal_shows_is_plain_text(output: bytes, text: str) -> None:
    assert shown(output) == text


def test_a_character_may_be_split_between_chunks() -> None:
    assert shown(b"\xc3", b"\xa9", b"\x1b[3", b"1mx") == "éx"


@given(st.binary(max_size=200))
def test_nothing_that_a_terminal_would_obey_survives(output: bytes) -> None:
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown(output)) is None


def test_only_the_end_of_a_long_output_is_kept() -> None:
    assert shown(b"x" * KEPT_BYTES, b"end") == "[earlier output cut]\n" + "x" * (KEPT_BYTES - 3) + "end"


def test_output_made_to_be_slow_is_read_in_no_time() -> None:
    begun = time.process_time()
    for attack in (b"\x1b]", b"\x1b[", b"\x1bP", b"\r", b"0", b"\x1b[0;"):
        shown(attack * (KEPT_BYTES // len(attack)))
    assert time.process_time() - begun < 2


def test_an_update_replaces_and_clears() -> None:
    screen = TerminalDisplay("t")
    screen.apply(TerminalUpdate("t", command="ls", output=TerminalOutput(base(b"a"))))
    assert screen.draw() == "$ ls\na"
    screen.apply(TerminalUpdate("t", output=TerminalOutput(base(b"b"))))
    assert screen.draw() == "$ ls\nb"
    screen.apply(TerminalUpdate("t", command=None, output=None))
    assert screen.draw() == ""


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (ExitStatus(exit_code=0), ""),
        (ExitStatus(exit_code=3), "\n[exit code 3]"),
        (ExitStatus(signal="SIGKILL"), "\n[ended by SIGKILL]"),
        (ExitStatus(signal="\x1b[2JX"), "\n[ended by X]"),
        (ExitStatus(), ""),
    ],
)
def test_how_it_ended_is_shown_and_it_is_done(status: ExitStatus, text: str) -> None:
    screen = TerminalDisplay("t")
    screen.apply(TerminalUpdate("t", exit_status=status))
    assert (screen.draw(), screen.state.has_ended) == (text, True)


@pytest.mark.parametrize("data", ["not base64!", "YQ", "YQ==\n", "é"])
def test_bytes_that_are_none_are_skipped(data: str) -> None:
    screen = TerminalDisplay("t")
    assert screen.apply(TerminalOutputChunk("t", data)) is False
    assert screen.draw() == ""


def test_a_command_cannot_hide_what_it_is() -> None:
    screen = TerminalDisplay("t")
    screen.apply(TerminalUpdate("t", command="rm -rf / \x1b[2K\rls"))
    assert "\x1b" not in screen.draw()


def test_a_terminal_without_a_description_shows_nothing() -> None:
    text = ContentItem(Text("a"))
    assert without_terminals([text, TerminalItem("t")], {}) == [text, ContentItem(Text(""))]


def test_a_change_that_is_not_drawn_is_not_worth_drawing() -> None:
    screen = TerminalDisplay("t")
    assert screen.apply(TerminalUpdate("t", command="make"))
    screen.draw()
    assert not screen.apply(TerminalUpdate("t", capabilities=Cancellable()))
    assert screen.apply(TerminalUpdate("t", exit_status=ExitStatus(1)))

"""Words of an agent: inert whatever they are, whole or in pieces."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.terminal.sanitize import FRAME, SanitizingStream, sanitize, sanitize_line, sanitize_output
from dragoman.host.text import MARKS

# Text as it comes, and text made of what is dangerous.
WORDS = st.text(max_size=60) | st.text(
    alphabet="ab \n\t\r\x1b[]0;m\x07\x08\x7f\x9b\u0301\u200b\u200d\ufe0f\u202e\u2028\ufeff╔═║‖🧑", max_size=60
)


def is_inert(shown: str, *, lines: bool = True) -> bool:
    kept = "\n\t\u200c\u200d" if lines else "\u200c\u200d"
    kinds = {unicodedata.category(character) for character in shown if character not in kept}
    return not kinds & {"Cc", "Cs", "Zl", "Zp"} and not set(shown) & {*FRAME, *"\u202e\u200b\ufeff\u2066‖"}


@given(WORDS)
def test_nothing_acts_and_nothing_frames(words: str) -> None:
    assert is_inert(sanitize(words))
    assert is_inert(sanitize_output(words))
    assert is_inert(sanitize_line(words), lines=False)


@given(st.lists(WORDS, max_size=8))
def test_pieces_are_as_inert_as_the_whole(pieces: list[str]) -> None:
    stream = SanitizingStream()
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.finish()
    assert is_inert(shown)
    assert shown == sanitize("".join(pieces))


def test_a_letter_carries_a_few_marks_and_no_more() -> None:
    heap = "e" + "\u0301" * 1000 + "f"
    assert sanitize(heap) == "e" + "\u0301" * MARKS + "…f"
    stream = SanitizingStream()
    assert "".join(stream.feed(character) for character in heap) == sanitize(heap)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Grüße, 你好, שלום, e\u0301, 👩‍👩‍👧‍👧\n\t┌─┐ │x│ └─┘ ≠\r\n".replace("\r\n", "\n")
    assert sanitize(text) == text


def test_a_line_end_of_two_characters_may_be_cut() -> None:
    stream = SanitizingStream()
    assert stream.feed("a\r") + stream.feed("\nb\r") + stream.finish() == "a\nb\\x0d"


def test_a_program_that_writes_over_its_line_hides_nothing() -> None:
    assert sanitize_output("10%\r20%\x1b[K\r\n\x1b[32mdone\x1b[0m") == "10%\n20%\ndone"

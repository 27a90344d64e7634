"""Our frame, and what an answer means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.face.box import WIDEST, chosen, framed, question, secret_word
from dragoman.cli.plain import width
from dragoman.vocabulary.services import CommandSubject, PermissionOption, RequestPermission

OPTIONS = [
    PermissionOption("always", "Always", "allow_always"),
    PermissionOption("once", "Once", "allow_once"),
    PermissionOption("no", "No", "reject_once"),
]


@pytest.mark.parametrize(
    ("words", "meant"),
    [("1", "always"), (" 2 ", "once"), ("y", "once"), ("YES", "once"), ("n", "no"), ("No", "no")]
    + [(words, None) for words in ("", "0", "4", "yy", "ok", "allow", "-1", "1.", "١٢٣٤", "99999999999999999999")],
)
def test_an_answer_means_an_option_or_nothing(words: str, meant: str | None) -> None:
    option = chosen(words, OPTIONS)
    assert (None if option is None else option.option_id) == meant


def test_yes_means_nothing_where_it_could_mean_two_things() -> None:
    twice = [*OPTIONS, PermissionOption("once again", "Once", "allow_once")]
    assert chosen("y", twice) is None
    assert chosen("y", OPTIONS[:1]) is None  # for ever is more than yes


@given(st.lists(st.text(max_size=200), max_size=5), st.integers(10, 300))
def test_every_line_of_the_frame_is_as_wide_as_the_others(texts: list[str], columns: int) -> None:
    asked = RequestPermission("s", " ".join(texts), OPTIONS, subject=CommandSubject("\n".join(texts), "/"))
    box = framed("dragoman asks", question(asked), columns)
    assert {width(line) for line in box} == {width(box[0])}
    assert width(box[0]) <= min(max(columns - 1, 20), WIDEST)
    assert all(line[0] == "║" == line[-1] for line in box[1:-1])


def test_the_word_is_another_each_time() -> None:
    assert len({secret_word() for _ in range(50)}) > 30

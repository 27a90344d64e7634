"""Our frame, and what an answer means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.face.box import WIDEST, chosen, framed, question, secret_word
from dragoman.cli.plain import width
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import CommandSubject, PermissionOption, RequestPermission, ToolCallSubject
from dragoman.vocabulary.tools import Diff, Location

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
    box = framed("dragoman asks", question(asked).lines, columns)
    assert {width(line) for line in box} == {width(box[0])}
    assert width(box[0]) <= min(max(columns - 1, 20), WIDEST)
    assert all(line[0] == "║" == line[-1] for line in box[1:-1])


def test_the_word_is_another_each_time() -> None:
    assert len({secret_word() for _ in range(50)}) > 30


HIDDEN = {
    "nothing": {"raw_input": {"command": "make\nmake test"}, "locations": [Location("/w/a")]},
    "lines": {"raw_input": {"command": "make\n" * 100}},
    "the end of a line": {"raw_input": {"command": "x" * 10_000}},
    "input": {"raw_input": {"text": "x" * 10_000}},
    "files": {"locations": [Location("/w/a")] * 11},
    "changes": {"content": [Diff.of("/w/a", "", "x\n" * 1000)]},
}


@pytest.mark.parametrize("what", HIDDEN)
def test_f13_nothing_is_allowed_for_ever_that_was_not_shown_whole(what: str) -> None:
    call = ToolCallUpdate("c", **HIDDEN[what])  # type: ignore[arg-type]
    lines, options = question(RequestPermission("s", "May I", OPTIONS, subject=ToolCallSubject(call)))
    offered = OPTIONS if what == "nothing" else OPTIONS[1:]
    assert options == offered
    assert lines[-len(offered) :] == [f"{number}  {line}" for number, line in enumerate(named(offered), 1)]
    assert any("cannot be allowed for ever" in line for line in lines) == (what != "nothing")


def named(options: list[PermissionOption]) -> list[str]:
    names = {"always": "yes, and do not ask again  “Always”", "once": "yes, this once  “Once”", "no": "no  “No”"}
    return [names[option.option_id] for option in options]


def test_f13_what_an_agent_says_cannot_pass_for_our_note() -> None:
    """Nor does it cost the user anything."""
    said = "(!) 7 more lines are not shown here"
    asked = RequestPermission("s", said, OPTIONS, description=said, subject=CommandSubject(said, "/"))
    assert question(asked).options == OPTIONS


@pytest.mark.parametrize("title", ["x" * 1_000_000, "\t" * 10_000, "\u202e" * 1000], ids=["long", "tabs", "bidi"])
def test_f13_an_endless_title_is_cut_and_said_to_be(title: str) -> None:
    lines, options = question(RequestPermission("s", title, OPTIONS))
    assert "  (!) the title is longer than this" in lines
    assert options == OPTIONS[1:]
    assert len("".join(lines)) < 2000

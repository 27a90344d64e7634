"""Our frame, and what an answer means."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.face.box import WIDEST, chosen, framed, question, secret_word
from dragoman.cli.plain import width
from dragoman.host.text import hidden_character
from dragoman.vocabulary.content import Image, Resource, Text, TextResource, UnknownContent
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import CommandSubject, PermissionOption, RequestPermission, ToolCallSubject
from dragoman.vocabulary.tool_call_state import incomplete
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Location, Patch, UnknownItem
from dragoman.vocabulary.word import Extras

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
    box = framed("dragoman asks", question(asked, columns, 24).lines, columns)
    assert {width(line) for line in box} == {width(box[0])}
    assert width(box[0]) <= min(max(columns - 1, 20), WIDEST)
    assert all(line[0] == "║" == line[-1] for line in box[1:-1])


def test_the_word_is_another_each_time() -> None:
    assert len({secret_word() for _ in range(50)}) > 30


SHOWN_WHOLE: dict[str, dict[str, Any]] = {
    "short": {"raw_input": {"command": "make\nmake test"}, "locations": [Location("/w/a")]},
    "as tall as the screen": {"raw_input": {"command": "make\n" * 13}},
}
TALL: dict[str, dict[str, Any]] = {
    "one row more than there are": {"raw_input": {"command": "make\n" * 14}},
    "many lines": {"raw_input": {"command": "make\n" * 100}},
    "few lines, many rows": {"raw_input": {"command": "x" * 10_000}},
    "wide letters": {"raw_input": {"command": "漢" * 700}},
    "input": {"raw_input": {"text": "x" * 10_000}},
    "files": {"locations": [Location("/w/a")] * 30},
    "changes": {"content": [Diff.of("/w/a", "", "x\n" * 1000)]},
    "words": {"content": [ContentItem(Text("created: a (link)\n" * 30))]},
}
ENDLESS: dict[str, dict[str, Any]] = {
    "command": {"raw_input": {"command": "x" * 10_000_000}},
    "lines": {"raw_input": {"command": "make\n" * 10_000}},
    "input": {"raw_input": {"text": "x" * 10_000_000}},
    "files": {"locations": [Location("/w/a")] * 1000},
    "changes": {"content": [Diff.of(f"/w/{n}", "", "x\n" * 1000) for n in range(10)]},
}
HIDING: dict[str, dict[str, Any]] = {
    "a command": {"raw_input": {"command": "sh ./test\ufe0f.sh"}},
    "a blank": {"raw_input": {"command": "rm\u00a0x"}},
    "a file": {"locations": [Location("/w/a\u200b")]},
    "input": {"raw_input": {"path": "a\u3164"}},
}


def asked_about(fields: dict[str, Any]) -> RequestPermission:
    return RequestPermission("s", "May I", OPTIONS, subject=ToolCallSubject(ToolCallUpdate("c", **fields)))


@pytest.mark.parametrize("what", SHOWN_WHOLE)
def test_f13_what_is_shown_whole_can_be_allowed_for_ever(what: str) -> None:
    lines, options = question(asked_about(SHOWN_WHOLE[what]), 80, 24)
    assert options == OPTIONS
    assert len(framed("dragoman asks", lines, 80)) <= 22


@pytest.mark.parametrize("what", TALL)
def test_f13_what_is_taller_than_the_screen_is_shown_whole_and_cannot_be_allowed_for_ever(what: str) -> None:
    lines, options = question(asked_about(TALL[what]), 80, 24)
    assert options == OPTIONS[1:]
    assert lines[-2:] == [f"{number}  {line}" for number, line in enumerate(named(OPTIONS[1:]), 1)]
    assert "(!) It is taller than the screen, so it cannot be allowed for ever." in lines
    assert not any("not shown" in line for line in lines)


@pytest.mark.parametrize("what", ENDLESS)
def test_f13_what_cannot_be_shown_whole_can_only_be_refused(what: str) -> None:
    lines, options = question(asked_about(ENDLESS[what]), 80, 24)
    assert options == OPTIONS[2:]
    assert "(!) Not all of it can be shown here, so it can only be refused." in lines
    assert len(framed("dragoman asks", lines, 80)) < 100


@pytest.mark.parametrize("what", HIDING)
def test_f13_what_has_hidden_characters_shows_them_and_cannot_be_allowed_for_ever(what: str) -> None:
    lines, options = question(asked_about(HIDING[what]), 80, 24)
    assert options == OPTIONS[1:]
    assert any("\\u" in line for line in lines)
    assert hidden_character("".join(lines)) == ""
    assert any("do not show, which are spelled out here, so it cannot be allowed for ever" in line for line in lines)


def test_f13_names_of_options_that_take_more_rows_count() -> None:
    options = [*OPTIONS[1:], *(PermissionOption(f"{n}", "n" * 80, "allow_always") for n in range(7))]
    asked = RequestPermission("s", "May I", options, subject=CommandSubject("make", "/"))
    assert question(asked, 80, 24).options == OPTIONS[1:]
    assert question(asked, 80, 40).options == options


def named(options: list[PermissionOption]) -> list[str]:
    names = {"always": "yes, and do not ask again  “Always”", "once": "yes, this once  “Once”", "no": "no  “No”"}
    return [names[option.option_id] for option in options]


def test_f13_what_an_agent_says_cannot_pass_for_our_note() -> None:
    """Nor does it cost the user anything."""
    said = "(!) 7 more lines are not shown here"
    asked = RequestPermission("s", said, OPTIONS, description=said, subject=CommandSubject(said, "/"))
    assert question(asked, 80, 24).options == OPTIONS


@pytest.mark.parametrize("title", ["x" * 1_000_000, "\t" * 10_000, "\u202e" * 10_000], ids=["long", "tabs", "bidi"])
def test_f13_an_endless_title_is_cut_and_said_to_be(title: str) -> None:
    lines, options = question(RequestPermission("s", title, OPTIONS), 80, 24)
    assert "  (!) the title is longer than this" in lines
    assert options == OPTIONS[2:]
    assert len("".join(lines)) < 5000


def lines_of(**fields: Any) -> str:
    return "\n".join(question(asked_about(fields), 80, 200).lines)


def test_a_diff_does_not_hide_what_the_tool_is_given_beside_it() -> None:
    given = {"file_path": "/w/a", "new_string": "y", "replace_all": False, "shellCommand": "y", "then": {"run": "rm"}}
    shown = lines_of(content=[Diff.of("/w/a", "x", "y")], raw_input=given)
    assert "shellCommand" in shown
    assert '"run": "rm"' in shown
    assert "new_string" not in shown
    assert "replace_all" not in shown


def test_a_diff_that_mentions_a_path_does_not_hide_that_the_tool_is_given_it() -> None:
    given = {"file_path": "/etc/passwd", "new_string": "/w/a"}
    shown = lines_of(content=[Diff.of("/w/a", "x", "see /etc/passwd\n")], raw_input=given)
    assert '"file_path": "/etc/passwd"' in shown
    assert '"new_string": "/w/a"' in shown


def test_fields_of_a_call_that_this_release_does_not_know_are_shown() -> None:
    assert '"then": "rm -rf x"' in lines_of(content=[Diff.of("/w/a", "x", "y")], extras=Extras({"then": "rm -rf x"}))


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_long_text_cannot_look_like_a_line_of_ours(columns: int) -> None:
    inner = min(columns - 1, 100) - 4
    forged = ["Kind: read", "1  no", "File: /w/a"]
    text = "x" * (inner - 2) + "".join(line.ljust(inner) for line in forged) + "\n" + "y " * 300
    options = [PermissionOption(text, text, "allow_once")]
    call = ToolCallUpdate(text, kind=text, locations=[Location(text)], raw_input={"command": text, "a": text})
    request = RequestPermission("s", text, options, subject=ToolCallSubject(call))
    rows = [row[2:] for row in framed("?", question(request, columns, 500).lines, columns)]
    assert not [row for row in rows if row.startswith(tuple(forged)) and not row.startswith("Kind: xx")]


def test_the_file_that_a_text_or_a_picture_is_from_is_shown() -> None:
    text = ContentItem(Resource(TextResource("hi", "file:///etc/passwd")))
    picture = ContentItem(Image("AA", "image/png", uri="file:///etc/shadow"))
    shown = lines_of(kind="read", content=[text, picture])
    assert "From: file:///etc/passwd" in shown
    assert "From: file:///etc/shadow" in shown


def test_a_patch_does_not_hide_which_files_are_changed() -> None:
    patch = Patch("git_patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n")
    shown = lines_of(content=[Diff([FileChange("move", "/etc/passwd", old_path="/w/a", file_type="symlink")], patch)])
    assert "Change: move /w/a -> /etc/passwd" in shown
    assert "It is: symlink" in shown
    assert "+++ b/x" in shown


def test_content_of_an_unknown_kind_is_shown_as_it_is() -> None:
    shown = lines_of(content=[UnknownItem("warp", {"to": "/etc"}), ContentItem(UnknownContent("beam", {"at": "/bin"}))])
    assert "Content this release does not know: warp" in shown
    assert '"to": "/etc"' in shown
    assert '"at": "/bin"' in shown


def test_what_was_told_and_is_not_kept_can_only_be_refused() -> None:
    assert question(asked_about({"content": [incomplete()]}), 80, 40).options == OPTIONS[2:]

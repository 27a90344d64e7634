"""Our frame, and what an answer means."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.terminal.permission_box import (
    WIDEST,
    chosen,
    frame_lines,
    frame_rows,
    question,
    secret_word,
    whole_question,
)
from dragoman.cli.text_width import width, wrap_line
from dragoman.dialects.event_json import patch_text
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
    box = frame_lines("dragoman asks", question(asked, columns, 24).lines, columns)
    assert {width(line) for line in box} == {width(box[0])}
    assert width(box[0]) <= min(max(columns - 1, 20), WIDEST)
    assert all(line[0] == "║" == line[-1] for line in box[1:-1])


def test_the_word_is_another_each_time() -> None:
    assert len({secret_word() for _ in range(50)}) > 30


SHOWN_WHOLE: dict[str, dict[str, Any]] = {
    "short": {"raw_input": {"command": "make\nmake test"}, "locations": [Location("/w/a")]},
    "as tall as the screen": {"raw_input": {"command": "make\n" * 14}},
}
TALL: dict[str, dict[str, Any]] = {
    "one row more than there are": {"raw_input": {"command": "make\n" * 15}},
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


@pytest.mark.requirement("F13")
@pytest.mark.parametrize("what", SHOWN_WHOLE)
def test_what_is_shown_whole_can_be_allowed_for_ever(what: str) -> None:
    asked = question(asked_about(SHOWN_WHOLE[what]), 80, 24)
    assert (asked.open, asked.hides, asked.keys) == (OPTIONS, False, "1-3, y or n")
    assert len(frame_lines("dragoman asks", asked.lines, 80)) <= 22


@pytest.mark.requirement("F13")
@pytest.mark.parametrize("what", TALL | ENDLESS)
def test_what_does_not_fit_on_the_screen_can_be_allowed_only_when_all_of_it_was_shown(what: str) -> None:
    request = asked_about((TALL | ENDLESS)[what])
    before = question(request, 80, 24)
    assert (before.open, before.hides, before.keys) == (OPTIONS[2:], True, "3, v or n")
    assert [before.chosen(words) for words in ("1", "2", "y", "3", "n")] == [None, None, None, OPTIONS[2], OPTIONS[2]]
    assert before.instead("x") == "That is no answer; type 3, v or n."
    assert before.instead("y") == "That cannot be chosen: not all of it is shown yet, and v shows it."
    assert any("not shown here; v shows all of it." in line for line in before.lines)
    after = question(request, 80, 24, viewed=True)
    assert (after.open, after.keys) == (OPTIONS, "1-3, v, y or n")
    for asked in (before, after):
        assert len(frame_lines("dragoman asks", asked.lines, 80)) <= 22
        assert asked.lines[0] == "The agent asks for permission: May I"


@pytest.mark.parametrize("what", SHOWN_WHOLE | TALL)
def test_all_of_a_question_is_what_is_asked_and_nothing_less(what: str) -> None:
    request = asked_about((SHOWN_WHOLE | TALL)[what])
    whole = list(whole_question(request))
    assert whole == question(request, 80, 5000).lines[: len(whole)]


@pytest.mark.parametrize("what", ENDLESS)
def test_all_of_an_endless_question_is_made_as_it_is_read(what: str) -> None:
    rows = frame_rows("dragoman asks", whole_question(asked_about(ENDLESS[what])), 80)
    assert {width(row) for row in islice(rows, 1000)} == {79}
    assert not any("not shown" in line for line in islice(whole_question(asked_about(ENDLESS[what])), 100))


@pytest.mark.requirement("F13")
@pytest.mark.parametrize("what", HIDING)
def test_what_has_hidden_characters_shows_them_and_cannot_be_allowed_for_ever(what: str) -> None:
    asked = question(asked_about(HIDING[what]), 80, 24)
    assert (asked.open, asked.keys) == (OPTIONS[1:], "2-3, y or n")
    assert any("\\u" in line for line in asked.lines)
    assert hidden_character("".join(asked.lines)) == ""
    sentence = "it has characters that do not show, which are spelled out here"
    assert any(f"(!) I{sentence[1:]}, so it cannot be allowed for ever." == line for line in asked.lines)
    assert asked.instead("1") == f"That cannot be chosen: {sentence}."
    assert question(asked_about(HIDING[what]), 80, 24, viewed=True).open == OPTIONS[1:]


def test_the_number_of_an_answer_that_cannot_be_chosen_means_nothing_else() -> None:
    once, always, no, never = (
        PermissionOption("once", "", "allow_once"),
        PermissionOption("always", "", "allow_always"),
        PermissionOption("no", "", "reject_once"),
        PermissionOption("never", "", "reject_always"),
    )
    call = ToolCallUpdate("c", raw_input={"command": "sh ./test\ufe0f.sh"})
    asked = question(RequestPermission("s", "May I", [once, always, no, never], subject=ToolCallSubject(call)), 80, 24)
    assert asked.lines[-4:] == [
        "1  yes, this once",
        "2  (not for this)",
        "3  no; write what to do instead behind it",
        "4  no, never",
    ]
    assert [asked.chosen(number) for number in "1234"] == [once, None, no, never]
    assert asked.keys == "1, 3, 4, y or n"
    assert asked.instead("x") == "That is no answer; type 1, 3, 4, y or n."


def test_only_answers_that_can_be_given_are_named() -> None:
    twice = [*OPTIONS[1:], PermissionOption("no 2", "Not now", "reject_once")]
    command = CommandSubject("make", "/")
    assert question(RequestPermission("s", "May I", twice, subject=command), 80, 24).keys == "1-3 or y"
    assert question(RequestPermission("s", "May I", OPTIONS[:1], subject=command), 80, 24).keys == "1 or n"
    assert question(RequestPermission("s", "May I", [], subject=command), 80, 24).keys == "n"


def test_the_name_of_an_option_is_shown_to_its_end_and_one_without_an_end_is_marked() -> None:
    rules = " and ".join(f"`tool-{n} run --with-words …`" for n in range(10))
    long = PermissionOption("always", f"Always allow {rules} for this session", "allow_always")
    endless = PermissionOption("always", "Always " * 1000, "allow_always")
    subject = CommandSubject("make", "/")
    assert (
        question(RequestPermission("s", "May I", [long], subject=subject), 80, 40)
        .lines[-1]
        .endswith("`tool-9 run --with-words …` for this session”")
    )
    shown = question(RequestPermission("s", "May I", [endless], subject=subject), 80, 40).lines[-1]
    assert shown.endswith("…”")
    assert len(shown) < 450


@pytest.mark.requirement("F13")
def test_names_of_options_that_take_more_rows_count() -> None:
    options = [*OPTIONS[1:], *(PermissionOption(f"{n}", "n" * 80, "allow_always") for n in range(7))]
    asked = RequestPermission("s", "May I", options, subject=CommandSubject("make", "/"))
    assert question(asked, 80, 24).open == [OPTIONS[2]]
    assert question(asked, 80, 40).open == options


def ours(rule: str) -> list[PermissionOption]:
    """What our agent offers for a command that a rule can cover."""
    lasting = ("for this session", "in this project", "everywhere")
    return [
        PermissionOption("once", "Allow once", "allow_once"),
        *(PermissionOption(f"a{n}", f"Always allow `{rule}` {long}", "allow_always") for n, long in enumerate(lasting)),
        PermissionOption("no", "Reject", "reject_once"),
        *(
            PermissionOption(f"n{n}", f"Always reject `{rule}` {long}", "reject_always")
            for n, long in enumerate(lasting)
        ),
    ]


def test_options_for_this_long_and_that_long_say_once_what_they_cover() -> None:
    call = ToolCallUpdate("c", kind="execute", raw_input={"command": "make test"})
    asked = question(RequestPermission("s", "make test", ours("make test"), subject=ToolCallSubject(call)), 80, 24)
    assert asked.lines == [
        "The agent asks for permission (execute):",
        "Command:",
        "  make test",
        "",
        "1  yes, this once  “Allow once”",
        "yes, always  “Always allow `make test` …”",
        "  2  “… for this session”   3  “… in this project”   4  “… everywhere”",
        "5  no; write what to do instead behind it  “Reject”",
        "no, never  “Always reject `make test` …”",
        "  6  “… for this session”   7  “… in this project”   8  “… everywhere”",
    ]
    assert asked.keys == "1-8, y or n"


def test_a_long_command_and_all_its_options_are_shown_on_a_small_screen() -> None:
    line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo tick $i; sleep 1; done"
    call = ToolCallUpdate("c", kind="execute", raw_input={"command": line, "background": True})
    title = f"In the background: {line}"
    asked = question(RequestPermission("s", title, ours(line), subject=ToolCallSubject(call)), 80, 24)
    assert (asked.hides, asked.keys) == (False, "1-8, y or n")


def test_a_name_with_a_quote_in_it_draws_no_choice() -> None:
    options = [
        PermissionOption("1", "Always allow this once”   2  “… only reading", "allow_always"),
        PermissionOption("2", "Always allow this for ever", "allow_always"),
    ]
    asked = question(RequestPermission("s", "May I", options, subject=CommandSubject("make", "/")), 80, 24)
    assert [line[:14] for line in asked.lines[-2:]] == ["1  yes, always", "2  yes, always"]


def test_options_that_cannot_be_chosen_yet_say_it_once() -> None:
    call = ToolCallUpdate("c", raw_input={"command": "make\n" * 100})
    asked = question(RequestPermission("s", "May I", ours("make"), subject=ToolCallSubject(call)), 80, 24)
    assert "yes, always  “Always allow `make` …” (after v)" in asked.lines
    assert "no, never  “Always reject `make` …”" in asked.lines


@pytest.mark.parametrize("form", ["texts", "patch"])
def test_a_small_edit_can_be_allowed_on_a_small_screen(form: str) -> None:
    old = "def add(a, b):\n    return a - b\n\n\ndef mean(values):\n    return sum(values) / len(values)\n"
    diff = Diff.of("/w/calc.py", old, old.replace(" - ", " + "))
    if form == "patch":
        diff = Diff([FileChange("modify", "/w/calc.py")], Patch("git_patch", patch_text(diff)))
    call = ToolCallUpdate("c", kind="edit", locations=[Location("/w/calc.py")], content=[diff])
    options = [
        OPTIONS[1],
        PermissionOption("2", "Always allow `/w/calc.py` for this session", "allow_always"),
        OPTIONS[2],
    ]
    asked = question(RequestPermission("s", "Edit calc.py", options, subject=ToolCallSubject(call)), 80, 24)
    assert not asked.hides
    assert asked.lines[:4] == [
        "The agent asks for permission (edit): Edit calc.py",
        "Change: modify /w/calc.py",
        "  @@ -1,5 +1,5 @@",
        "   def add(a, b):",
    ]


@pytest.mark.parametrize(
    "header",
    [
        "diff --git /w/a /w/b\n--- /w/a\n+++ /w/a\n",
        "diff --git /w/a /w/a\nold mode 100644\nnew mode 100755\n--- /w/a\n+++ /w/a\n",
        "diff --git /w/a /w/a\n--- /w/a\n+++ /etc/passwd\n",
        "--- /w/a\n+++ /w/a\n",
    ],
)
def test_the_head_of_a_patch_that_says_more_is_shown(header: str) -> None:
    patch = Patch("git_patch", f"{header}@@ -1 +1 @@\n-x\n+y\n")
    asked = question(asked_about({"content": [Diff([FileChange("modify", "/w/a")], patch)]}), 80, 24)
    assert [line.strip() for line in asked.lines[2 : 2 + header.count("\n")]] == header.splitlines()


def test_a_removed_line_that_looks_like_a_head_is_shown() -> None:
    patch = Patch("git_patch", "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n--- /w/a\n+++ /w/a\n")
    asked = question(asked_about({"content": [Diff([FileChange("modify", "/w/a")], patch)]}), 80, 24)
    assert asked.lines[2:5] == ["  @@ -1 +1 @@", "  --- /w/a", "  +++ /w/a"]


@pytest.mark.requirement("F13")
def test_what_an_agent_says_cannot_pass_for_our_note() -> None:
    """Nor does it cost the user anything."""
    said = "(!) 7 more lines are not shown here"
    asked = RequestPermission("s", said, OPTIONS, description=said, subject=CommandSubject(said, "/"))
    assert question(asked, 80, 24).open == OPTIONS


@pytest.mark.requirement("F13")
@pytest.mark.parametrize("title", ["x" * 1_000_000, "\t" * 10_000, "\u202e" * 10_000], ids=["long", "tabs", "bidi"])
def test_an_endless_title_is_cut_and_said_to_be(title: str) -> None:
    asked = question(RequestPermission("s", title, OPTIONS), 80, 24)
    assert asked.hides
    assert asked.open == OPTIONS[2:]
    assert len("".join(asked.lines)) < 5000


def lines_of(**fields: Any) -> str:
    return "\n".join(question(asked_about(fields), 80, 200).lines)


def test_a_diff_does_not_hide_what_the_tool_is_given_beside_it() -> None:
    given = {"file_path": "/w/a", "new_string": "y", "replace_all": False, "shellCommand": "y", "then": {"run": "rm"}}
    shown = lines_of(content=[Diff.of("/w/a", "x", "y")], raw_input=given)
    assert "shellCommand" in shown
    assert '"run": "rm"' in shown
    assert "new_string" not in shown
    assert "replace_all" not in shown


PATCH = """\
diff --git /w/a /w/a
--- /w/a
+++ /w/a
@@ -1,3 +1,3 @@
 one
-two
+2
 three
\\ No newline at end of file
"""


def test_a_patch_tells_the_texts_of_its_hunks_and_no_others() -> None:
    change = Diff([FileChange("modify", "/w/a")], Patch("git_patch", PATCH))
    told = {"path": "/w/a", "old_string": "one\ntwo\n", "new_string": "2\nthree"}
    assert "Input" not in lines_of(content=[change], raw_input=told)
    for untold in ({"old_string": "four"}, {"content": "three\n"}, {"run": "2"}):
        assert "Input: " in lines_of(content=[change], raw_input=untold)
    longer = Diff([FileChange("modify", "/w/a")], Patch("git_patch", PATCH.replace("-1,3 +1,3", "-1,9 +1,9")))
    assert "Input: " in lines_of(content=[longer], raw_input={"new_string": "2"})


def test_several_edits_that_the_patch_tells_are_not_shown_twice() -> None:
    change = Diff([FileChange("modify", "/w/a")], Patch("git_patch", PATCH))
    told = [{"old_string": "one\ntwo", "new_string": "one\n2", "replace_all": False}, {"old_string": "three"}]
    assert "Input" not in lines_of(content=[change], raw_input={"path": "/w/a", "edits": told})
    for untold in ({"old_string": "four"}, {"path": "/w/b"}, {"run": "2"}, "rm", [{"then": "rm"}]):
        assert "Input:" in lines_of(content=[change], raw_input={"path": "/w/a", "edits": [*told, untold]})


def test_of_a_patch_of_the_tool_only_what_the_diff_does_not_tell_is_shown() -> None:
    change = Diff([FileChange("modify", "/w/a")], Patch("git_patch", PATCH))
    patch = "*** Begin Patch\n*** Update File: a\n@@ one\n-two\n+2\n three\n*** End Patch"
    assert 'Input: {"patch": "*** Update File: a"}' in lines_of(content=[change], raw_input={"patch": patch})
    other = patch.replace("+2", "+2\n+four").replace("three", "three\n@@ five")
    shown = lines_of(content=[change], raw_input={"patch": other})
    assert r'"patch": "*** Update File: a\n+four\n@@ five"' in shown
    assert "Begin Patch" in lines_of(content=[change], raw_input={"patch": f"x\n{patch}"})


def test_a_short_new_file_of_a_version_2_agent_can_be_allowed_on_a_small_screen() -> None:
    """Its text stands there once, and its path twice."""
    path = "/home/ada/work/calc/src/calc/new_file.py"
    header = f"diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n+++ {path}\n@@ -0,0 +1,4 @@\n"
    patch = Patch("git_patch", header + "+one\n+two\n+three\n+four\n")
    call = ToolCallUpdate(
        "c",
        kind="edit",
        locations=[Location(path)],
        content=[Diff([FileChange("add", path)], patch)],
        raw_input={"path": "src/calc/new_file.py", "content": "one\ntwo\nthree\nfour\n"},
    )
    options = [
        PermissionOption("1", "Allow once", "allow_once"),
        PermissionOption("2", f"Always allow `{path}` for this session", "allow_always"),
        PermissionOption("3", "Reject", "reject_once"),
    ]
    asked = question(RequestPermission("s", "Write", options, subject=ToolCallSubject(call)), 80, 24)
    assert (asked.hides, asked.keys) == (False, "1-3, y or n")
    assert f"Change: add {path}" in asked.lines
    assert not any(line.startswith("File: ") for line in asked.lines)
    assert 'Input: {"path": "src/calc/new_file.py"}' in asked.lines


def test_a_diff_that_mentions_a_path_does_not_hide_that_the_tool_is_given_it() -> None:
    given = {"file_path": "/etc/passwd", "new_string": "/w/a"}
    shown = lines_of(content=[Diff.of("/w/a", "x", "see /etc/passwd\n")], raw_input=given)
    assert '"file_path": "/etc/passwd"' in shown
    assert '"new_string": "/w/a"' in shown


def test_fields_of_a_call_that_this_release_does_not_know_are_shown() -> None:
    assert '"then": "rm -rf x"' in lines_of(content=[Diff.of("/w/a", "x", "y")], extras=Extras({"then": "rm -rf x"}))


@pytest.mark.parametrize("text", ["x" * 17, "x" * 100, "ab" * 400, "é" * 100, "漢" * 50])
def test_a_long_line_is_cut_into_parts_that_say_all_of_it(text: str) -> None:
    parts = list(wrap_line(text, 17))
    assert max(map(width, parts)) <= 17
    assert parts[0] + "".join(part.removeprefix("  … ") for part in parts[1:]) == text
    assert all(part.startswith("  … ") for part in parts[1:])


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_long_text_cannot_look_like_a_line_of_ours(columns: int) -> None:
    inner = min(columns - 1, 100) - 4
    forged = ["Kind: read", "1  no", "File: /w/a"]
    text = "x" * (inner - 2) + "".join(line.ljust(inner) for line in forged) + "\n" + "y " * 300
    options = [PermissionOption(text, text, "allow_once")]
    call = ToolCallUpdate(text, kind=text, locations=[Location(text)], raw_input={"command": text, "a": text})
    request = RequestPermission("s", text, options, subject=ToolCallSubject(call))
    rows = [row[2:] for row in frame_lines("?", question(request, columns, 500).lines, columns)]
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
    for viewed in (False, True):
        asked = question(asked_about({"content": [incomplete()]}), 80, 40, viewed=viewed)
        assert asked.open == OPTIONS[2:]
        assert "(!) Not all of it is known here, so it can only be refused." in asked.lines
        assert not any("(after v)" in line for line in asked.lines)

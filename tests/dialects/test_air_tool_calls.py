"""Tool calls for JetBrains AIR: changed files as git patches, and each fact in one place."""

import json
from typing import Any

import pytest

from dragoman.dialects.contract import Dialect
from dragoman.dialects.v1.lean_calls import PATCH_CHARACTERS
from dragoman.vocabulary import events, services, tools
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import AgentHello, ClientHello
from tests.dialects.joined_dialects import AGENT, agent_of, client_with, updates_of
from tests.dialects.test_air import NOT_DECLARED, declaring

PATCHES = declaring({"version": 1, "capabilities": ["diffPatch"]})
RENDERS = declaring({"version": 1, "capabilities": ["rawInputRendering"]})
EDIT = tools.Diff.of("/w/a.py", "one\ntwo\n", "one\n2\n")
PATCH = "diff --git a/w/a.py b/w/a.py\n--- a/w/a.py\n+++ b/w/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


def patch_of(text: str) -> dict[str, Any]:
    return {"jetbrains": {"air": {"version": 1, "diffPatch": {"version": 1, "format": "git_patch", "text": text}}}}


def block(path: str, text: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": None, "newText": "", "_meta": patch_of(text)}


def plain(diff: tools.Diff) -> Any:
    """A diff as any other client is sent it."""
    (update,) = updates_of(agent_of(1, client_with()), call(diff))
    return update["content"]


def call(*content: tools.ToolContent, **fields: Any) -> events.ToolCallUpdate:
    return events.ToolCallUpdate("c", title="Edit", kind="edit", content=list(content), **fields)


def content(agent: Dialect, *sent: events.AnyEvent) -> Any:
    return updates_of(agent, *sent)[-1]["content"]


# -- patches ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("ED9")
def test_a_changed_file_is_a_git_patch_beside_placeholders() -> None:
    assert content(agent_of(1, PATCHES), call(EDIT)) == [block("/w/a.py", PATCH)]


@pytest.mark.requirement("ED9")
def test_every_file_of_a_diff_has_a_patch_of_its_own() -> None:
    changes: list[tools.FileChange | tools.UnknownChange] = [
        tools.FileChange("add", "/w/n", old_text=None, new_text="n\n"),
        tools.FileChange("delete", "/w/d", old_text="d\n"),
        tools.FileChange("move", "/w/t", "/w/f", old_text="x\n", new_text="y\n"),
    ]
    added = "diff --git a/w/n b/w/n\nnew file mode 100644\n--- /dev/null\n+++ b/w/n\n@@ -0,0 +1 @@\n+n\n"
    deleted = "diff --git a/w/d b/w/d\ndeleted file mode 100644\n--- a/w/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n"
    moved = "diff --git a/w/f b/w/t\nrename from w/f\nrename to w/t\n--- a/w/f\n+++ b/w/t\n@@ -1 +1 @@\n-x\n+y\n"
    assert content(agent_of(1, PATCHES), call(tools.Diff(changes))) == [
        block("/w/n", added),
        block("/w/d", deleted),
        block("/w/t", moved),
    ]


@pytest.mark.requirement("ED9")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\r\n", "b\r\n"),
        ("a\n", "b\r"),
        ("\0", "a\n"),
        (None, ""),
        ("same\n", "same\n"),
        ("", "x" * PATCH_CHARACTERS),
        ("x\n" * PATCH_CHARACTERS, "y\n" * PATCH_CHARACTERS),
    ],
    ids=["CRLF", "a lone CR", "binary", "empty", "unchanged", "a large patch", "large texts"],
)
def test_a_diff_without_an_exact_patch_stays_as_it_is(old: str | None, new: str) -> None:
    diff = tools.Diff.of("/w/a.py", old, new)
    assert content(agent_of(1, PATCHES), call(diff)) == plain(diff)


def test_what_has_no_patch_stands_behind_what_has_one() -> None:
    crlf = tools.FileChange("modify", "/w/crlf", old_text="a\r\n", new_text="b\r\n")
    whole = tools.Diff([crlf, *EDIT.changes])
    assert content(agent_of(1, PATCHES), call(whole)) == [block("/w/a.py", PATCH), *plain(tools.Diff([crlf]))]


def test_a_patch_that_an_agent_has_made_itself_is_left_alone() -> None:
    theirs = tools.Diff.of("/w/a.py", None, "")
    theirs = tools.Diff(theirs.changes, meta=patch_of("theirs"))
    assert content(agent_of(1, PATCHES), call(theirs)) == [block("/w/a.py", "theirs")]


@pytest.mark.requirement("ED9")
def test_a_diff_that_is_appended_is_a_patch_as_well() -> None:
    agent = agent_of(1, PATCHES)
    two = tools.Diff([*EDIT.changes, *EDIT.changes])
    said: list[tools.ToolContent] = [tools.ContentItem(Text("first")), EDIT, two]
    updates_of(agent, events.ToolCallUpdate("c", title="Edit"))
    sent = [content(agent, events.ToolCallContentChunk("c", item)) for item in said]
    text = {"type": "content", "content": {"type": "text", "text": "first"}}
    assert sent == [[text], [text, block("/w/a.py", PATCH)], [text, *[block("/w/a.py", PATCH)] * 3]]


@pytest.mark.requirement("ED9")
def test_the_user_is_asked_about_the_patch() -> None:
    subject = services.ToolCallSubject(call(EDIT, raw_input={"path": "/w/a.py", "old_string": "two"}))
    request = services.RequestPermission("s", "Edit a.py", [], subject=subject)
    asked = json.loads(agent_of(1, PATCHES).encode_request(request).params)["toolCall"]
    assert (asked["content"], asked["rawInput"]) == ([block("/w/a.py", PATCH)], {"path": "/w/a.py"})


@pytest.mark.requirement("ED4")
@pytest.mark.parametrize("air", [*NOT_DECLARED, {"version": 1, "capabilities": ["rawInputRendering"]}], ids=str)
def test_a_client_that_has_not_declared_patches_is_sent_the_texts(air: Any) -> None:
    assert content(agent_of(1, declaring(air)), call(EDIT)) == plain(EDIT)


def test_an_agent_that_speaks_to_air_itself_has_its_calls_left_alone() -> None:
    theirs = AgentHello(None, AGENT.capabilities, meta={"jetbrains": {"air": {"version": 1}}})
    raw = {"content": "one\n2\n"}
    (update,) = updates_of(agent_of(1, PATCHES, theirs), call(EDIT, raw_input=raw))
    assert (update["content"], update["rawInput"]) == (plain(EDIT), raw)


# -- what is said once -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("ED10")
@pytest.mark.parametrize("client", [PATCHES, RENDERS, declaring({})], ids=["patches", "renders", "neither"])
def test_text_that_a_diff_shows_is_not_in_the_input(client: ClientHello) -> None:
    raw = {"path": "/w/a.py", "content": "one\n2\n", "old_string": "two", "replace_all": False}
    (update,) = updates_of(agent_of(1, client), call(EDIT, raw_input=raw))
    assert update["rawInput"] == {"path": "/w/a.py", "replace_all": False}


def test_an_input_that_comes_after_the_diff_has_no_text_either() -> None:
    agent = agent_of(1, PATCHES)
    updates_of(agent, call(EDIT))
    (update,) = updates_of(agent, events.ToolCallUpdate("c", raw_input={"path": "/w/a.py", "edits": [{}]}))
    assert update["rawInput"] == {"path": "/w/a.py"}


@pytest.mark.parametrize("raw", [{"content": "a"}, ["a"], "a", 5])
def test_the_input_of_a_call_without_a_diff_stays_whole(raw: Any) -> None:
    (update,) = updates_of(agent_of(1, PATCHES), events.ToolCallUpdate("c", title="t", raw_input=raw))
    assert update["rawInput"] == raw


COPIES = ["Find the bug.", "```\nFind the bug.\n```", "````md\nFind the bug.\n````", " Find the bug.\n"]


@pytest.mark.requirement("ED10")
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("raw", [{"prompt": "Find the bug.\n"}, {"tasks": [{"prompt": "Find the bug."}]}])
def test_a_text_that_stands_in_the_input_is_not_content_as_well(copy: str, raw: Any) -> None:
    shown = [tools.ContentItem(Text(copy)), tools.ContentItem(Text("Reason: it is asked for"))]
    (update,) = updates_of(agent_of(1, RENDERS), call(*shown, raw_input=raw))
    assert [item["content"]["text"] for item in update["content"]] == ["Reason: it is asked for"]


@pytest.mark.requirement("ED4", "ED10")
@pytest.mark.parametrize("air", NOT_DECLARED, ids=str)
def test_a_client_that_does_not_render_input_is_sent_the_copy(air: Any) -> None:
    shown = tools.ContentItem(Text("Find the bug."))
    (update,) = updates_of(agent_of(1, declaring(air)), call(shown, raw_input={"prompt": "Find the bug."}))
    assert [item["content"]["text"] for item in update["content"]] == ["Find the bug."]


@pytest.mark.requirement("ED10")
@pytest.mark.parametrize(("client", "shows"), [(RENDERS, False), (PATCHES, True)], ids=["renders", "does not"])
def test_the_command_of_a_question_is_in_the_input_or_in_the_content_too(client: ClientHello, shows: bool) -> None:
    subject = services.CommandSubject("make", "/w")
    request = services.RequestPermission("s", "Run make", [], description="It builds.", subject=subject)
    asked = json.loads(agent_of(1, client).encode_request(request).params)["toolCall"]
    assert asked["rawInput"] == {"command": "make", "cwd": "/w"}
    texts = [item["content"]["text"] for item in asked["content"]]
    assert texts == ["It builds.", *["make\n(in /w)"] * shows]

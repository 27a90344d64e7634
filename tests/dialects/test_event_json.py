"""Events as programs read them: what version 2 says, whatever kind of event it is."""

import pytest

from dragoman.dialects.event_json import info_json, patch_text, update_json
from dragoman.store.contract import SessionMeta
from dragoman.store.session_list import info_of
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import Diff, FileChange, Patch, UnknownChange


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            events.AgentMessageChunk(Text("hi"), "m1"),
            b'{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"hi"}}',
        ),
        (
            events.Idle(stop_reason="end_turn"),
            b'{"sessionUpdate":"state_update","stopReason":"end_turn","state":"idle"}',
        ),
        (
            events.ToolCallUpdate("c1", status=None),
            b'{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":null}',
        ),
        (events.UnknownEvent("new_thing", {"a": 1}), b'{"a":1,"sessionUpdate":"new_thing"}'),
        (events.UnknownEvent("user_message", {"a": 1}), None),
    ],
)
def test_an_event_is_one_line_under_the_name_it_has_in_version_2(event: events.AnyEvent, said: bytes | None) -> None:
    assert update_json(event) == said


def test_a_session_is_what_a_list_shows_of_it() -> None:
    meta = SessionMeta("s1", "/work", ("/more",), "Title", activity=1_000_000_000_000_000, archived=True)
    assert info_json(info_of(meta)) == (
        b'{"sessionId":"s1","cwd":"/work","additionalDirectories":["/more"],"title":"Title",'
        b'"updatedAt":"2001-09-09T01:46:40Z","archived":true}'
    )


def test_a_diff_is_read_as_its_patch_or_made_one() -> None:
    assert patch_text(Diff([FileChange("modify", "/a")], Patch("git_patch", "the patch"))) == "the patch"
    assert patch_text(Diff.of("/a", None, "x\n")).endswith("@@ -0,0 +1 @@\n+x\n")
    assert patch_text(Diff([FileChange("delete", "/a"), UnknownChange("burn", {})])) == "delete /a\nburn\n"

"""Updates as some agents write them: odd spellings, missing wrappers and ids."""

from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.tolerance import updates as tolerance
from dragoman.vocabulary import events
from dragoman.vocabulary.word import Extras
from tests.dialects.schemas import raw, read


@pytest.mark.parametrize(
    "params", [{"update": 1}, {"update": {"content": 1}}, {"update": {"sessionUpdate": "dance"}}, [1], {}]
)
def test_an_update_that_means_nothing_is_left_as_it_is(params: Any) -> None:
    assert tolerance.corrected_update(raw(params)) is None


def test_params_that_are_no_json_mean_nothing() -> None:
    assert tolerance.corrected_update(Raw(b'{"update": ')) is None
    assert tolerance.corrected_permission(Raw(b"[" * 100_000)) is None


def test_an_update_without_its_wrapper_is_wrapped() -> None:
    bare = {"sessionId": "s", "_meta": {"a": 1}, "sessionUpdate": "tool_call", "toolCallId": "c", "error": "no"}
    assert read(tolerance.corrected_update(raw(bare))) == {
        "sessionId": "s",
        "_meta": {"a": 1},
        "update": {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "c",
            "status": "failed",
            "rawOutput": {"error": "no"},
        },
    }


def test_odd_fields_of_a_call_are_taken_for_what_they_mean() -> None:
    plain_call = tools_call()
    assert tolerance.corrected_call(plain_call) is plain_call
    unknown = tools_call(extras=Extras({"colour": "red"}))
    assert tolerance.corrected_call(unknown) is unknown
    odd: dict[str, object] = {
        "toolName": "grep",
        "input": {"a": 1},
        "output": "found",
        "error": "broken",
        "colour": "red",
    }
    heard = tolerance.corrected_call(tools_call(extras=Extras(odd)))
    assert (heard.title, heard.raw_input, heard.raw_output, heard.status) == ("grep", {"a": 1}, "found", "failed")
    assert heard.extras == Extras({"colour": "red"})
    said = tolerance.corrected_call(
        tools_call(title="Find", raw_input=1, raw_output=2, extras=Extras({**odd, "error": 1}))
    )
    assert (said.title, said.raw_input, said.raw_output, said.status) == ("Find", 1, 2, UNSET)
    failed = tolerance.corrected_call(tools_call(raw_output=2, extras=Extras({"error": "broken"})))
    assert (failed.raw_output, failed.status, failed.extras) == (2, "failed", UNSET)
    assert tolerance.corrected_call(tools_call(extras=Extras({"error": "broken"}))).raw_output == {"error": "broken"}


def tools_call(**fields: Any) -> events.ToolCallUpdate:
    return events.ToolCallUpdate("c", **fields)


def test_a_permission_gets_the_id_it_lacks() -> None:
    assert tolerance.corrected_permission(raw({"toolCall": None})) is None
    named = read(tolerance.corrected_permission(raw({"toolCall": {"toolName": "rm"}})))
    assert named == {"toolCall": {"title": "rm", "toolCallId": "permission: rm"}}
    kept = read(tolerance.corrected_permission(raw({"toolCall": {"toolCallId": "c", "input": 1}})))
    assert kept == {"toolCall": {"toolCallId": "c", "rawInput": 1}}

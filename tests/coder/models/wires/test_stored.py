"""Responses in the logs of sessions: those of earlier releases are read, and what cannot be read is left alone."""

from typing import Any

import msgspec
import pytest

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.models.endpoints import Endpoint, Family
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.provider_connection import WIRES
from dragoman.coder.models.wires.stored import StoredCall, StoredMessage, StoredText, decode_stored, encode_stored
from dragoman.vocabulary.content import Text
from tests.support.provider_rules import refusal

# As 0.1 has written them, with everything that it wrote.
FIELDS = {
    "timestamp": "2026-11-18T19:59:01.664261Z",
    "kind": "response",
    "provider_url": "http://127.0.0.1:1/v1/",
    "provider_response_id": "r1",
    "state": "complete",
}
CALL = {"tool_name": "read_file", "args": '{"path": "x"}', "tool_call_id": "c1", "part_kind": "tool-call"}
WRITTEN: dict[Family, dict[str, Any]] = {
    "openai": {
        "parts": [
            {
                "content": "Let me",
                "id": "rs_1",
                "signature": "SEALED",
                "provider_name": "openai",
                "part_kind": "thinking",
            },
            {"content": "see", "id": "rs_1", "provider_name": "openai", "part_kind": "thinking"},
            {"content": "Reading", "id": "msg_1", "provider_name": "openai", "part_kind": "text"},
            {**CALL, "id": "fc_1", "provider_name": "openai"},
        ],
        "model_name": "gpt-5",
        "provider_name": "openai",
        "canonical_system": "openai",
        "provider_details": {"timestamp": "1970-01-01T00:00:01Z", "finish_reason": "completed"},
        "finish_reason": "stop",
        **FIELDS,
    },
    "anthropic": {
        "parts": [
            {"content": "", "id": "redacted_thinking", "signature": "HIDDEN", "part_kind": "thinking"},
            {"content": "Let me see", "signature": "SEALED", "part_kind": "thinking"},
            {"content": "Reading", "part_kind": "text"},
            CALL,
        ],
        "model_name": "claude-opus-4-8",
        "provider_name": "anthropic",
        **FIELDS,
    },
    "google": {
        "parts": [
            {"content": "Let me see", "part_kind": "thinking"},
            {"content": "Reading", "part_kind": "text"},
            {**CALL, "args": {"path": "x"}, "provider_details": {"thought_signature": "U0VBTEVE"}},
        ],
        "model_name": "gemini-2.5-flash",
        **FIELDS,
    },
    "compatible": {
        "parts": [
            {
                "content": "Let me see",
                "id": "reasoning_content",
                "provider_name": "compatible",
                "part_kind": "thinking",
            },
            {"content": "Reading", "part_kind": "text"},
            CALL,
        ],
        **FIELDS,
    },
}
SENT: dict[Family, tuple[str, str, list[object]]] = {
    "openai": (
        "gpt-5",
        "input",
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Let me"}, {"type": "summary_text", "text": "see"}],
                "encrypted_content": "SEALED",
            },
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Reading", "annotations": []}],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "read_file",
                "id": "fc_1",
                "arguments": '{"path": "x"}',
            },
        ],
    ),
    "anthropic": (
        "claude-opus-4-8",
        "messages",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "redacted_thinking", "data": "HIDDEN"},
                    {"type": "thinking", "thinking": "Let me see", "signature": "SEALED"},
                    {"type": "text", "text": "Reading"},
                    {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "x"}},
                ],
            }
        ],
    ),
    "google": (
        "gemini-2.5-flash",
        "contents",
        [
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see", "thought": True},
                    {"text": "Reading"},
                    {
                        "functionCall": {"id": "c1", "name": "read_file", "args": {"path": "x"}},
                        "thoughtSignature": "U0VBTEVE",
                    },
                ],
            }
        ],
    ),
    "compatible": (
        "m",
        "messages",
        [
            {
                "role": "assistant",
                "reasoning_content": "Let me see",
                "content": "Reading",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path": "x"}'},
                    }
                ],
            }
        ],
    ),
}


def sent(family: Family, raw: object) -> list[object]:
    """What is sent of a conversation with this response, in the place of the response."""
    name, field, _ = SENT[family]
    wire = WIRES[family](Endpoint(family, family, name, "http://x", None), ModelFacts())
    call = ContextToolCall("c1", "read_file", {"path": "x"})
    items: list[Item] = [
        ContextUserMessage("m1", [Text("hi")]),
        ContextAssistantMessage("Reading", "Let me see", [call], raw),
        ContextToolResult("c1", "read_file", "RESULT"),
    ]
    posted = wire.encode(ModelRequest(items, (), ""))
    body = msgspec.json.decode(posted.body)
    assert refusal(posted.path, body | {"tools": [{}]}) is None
    turns: list[object] = body[field][1:-1]
    return turns


@pytest.mark.parametrize("family", WRITTEN)
def test_a_response_that_an_earlier_release_has_stored_goes_back_as_it_came(family: Family) -> None:
    assert sent(family, {"by": family, "message": WRITTEN[family]}) == SENT[family][2]


UNREADABLE: list[object] = [
    None,
    "text",
    {"by": "another", "message": WRITTEN["openai"]},
    {"message": WRITTEN["openai"]},
    {"by": "SELF", "message": {"kind": "response", "parts": [{"part_kind": "file", "content": {}}, CALL]}},
    {"by": "SELF", "message": {"kind": "response", "parts": [{"part_kind": "text", "content": 7}, CALL]}},
    {"by": "SELF", "message": {"kind": "request", "parts": [CALL]}},
    {"by": "SELF", "message": {"kind": "response", "parts": [{**CALL, "tool_call_id": "another"}]}},
]


@pytest.mark.parametrize("family", WRITTEN)
@pytest.mark.parametrize("raw", UNREADABLE)
def test_what_cannot_be_read_goes_as_text_and_calls(family: Family, raw: object) -> None:
    mine = {**raw, "by": family} if isinstance(raw, dict) and raw.get("by") == "SELF" else raw
    assert sent(family, mine) == sent(family, None)
    assert "SEALED" not in str(sent(family, mine)) and "Reading" in str(sent(family, mine))


def test_what_is_stored_is_read_again() -> None:
    message = StoredMessage([StoredText(content="a", id="m"), StoredCall(tool_name="t", args="{}", tool_call_id="c")])
    assert decode_stored(encode_stored(message, "mine"), "mine") == message
    assert decode_stored(encode_stored(message, "mine"), "yours") is None


def test_the_stored_form_is_one_that_the_library_reads() -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    for written in WRITTEN.values():
        message = decode_stored({"by": "x", "message": written}, "x")
        assert message is not None
        [read] = ModelMessagesTypeAdapter.validate_python([encode_stored(message, "x")["message"]])
        assert [part.part_kind for part in read.parts] == [part["part_kind"] for part in written["parts"]]

"""The event streams of the three providers that speak in their own way."""

import json
from typing import Any

from tests.support.upstream import Reply, data, streams


def named(kind: str, **fields: Any) -> bytes:
    """One event with a name, as OpenAI's responses and Anthropic's messages have them."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


# -- OpenAI's responses ----------------------------------------------------------------------------------------------


def openai_response(status: str, output: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 100,
        "total_tokens": 1100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 10},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status != "in_progress" else None,
        **fields,
    }


def openai_thinks_says_and_calls(finish: str = "completed", **last: Any) -> Reply:
    """A thought with a sealed signature, a sentence, a call."""
    thought: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": None}
    sealed = thought | {"summary": [{"type": "summary_text", "text": "Let me see"}], "encrypted_content": "SEALED"}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    text = {"type": "output_text", "text": "Reading", "annotations": []}
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": ""}
    done_call = call | {"arguments": '{"path": "x"}', "status": "completed"}
    said = message | {"status": "completed", "content": [text]}
    summary = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    words = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    arguments = {"item_id": "fc_1", "output_index": 2}
    events = [
        named("response.created", response=openai_response("in_progress", [])),
        named("response.output_item.added", output_index=0, item=thought),
        named("response.reasoning_summary_part.added", **summary, part={"type": "summary_text", "text": ""}),
        named("response.reasoning_summary_text.delta", **summary, delta="Let me "),
        named("response.reasoning_summary_text.delta", **summary, delta="see"),
        named("response.reasoning_summary_text.done", **summary, text="Let me see"),
        named("response.output_item.done", output_index=0, item=sealed),
        named("response.output_item.added", output_index=1, item=message),
        named("response.content_part.added", **words, part=text | {"text": ""}),
        named("response.output_text.delta", **words, delta="Rea", logprobs=[]),
        named("response.output_text.delta", **words, delta="ding", logprobs=[]),
        named("response.output_text.done", **words, text="Reading", logprobs=[]),
        named("response.output_item.done", output_index=1, item=said),
        named("response.output_item.added", output_index=2, item=call),
        named("response.function_call_arguments.delta", **arguments, delta='{"path"'),
        named("response.function_call_arguments.delta", **arguments, delta=': "x"}'),
        named("response.function_call_arguments.done", **arguments, arguments='{"path": "x"}'),
        named("response.output_item.done", output_index=2, item=done_call),
        named(f"response.{finish}", response=openai_response(finish, [sealed, said, done_call], **last)),
    ]
    numbered = [event.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, event in enumerate(events)]
    return streams(*numbered)


# -- Anthropic's messages --------------------------------------------------------------------------------------------


def anthropic_begins() -> bytes:
    usage = {"input_tokens": 1000, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": []}
    return named("message_start", message=message | {"stop_reason": None, "stop_sequence": None, "usage": usage})


def anthropic_block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    events = [named("content_block_start", index=index, content_block=block)]
    events += [named("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join([*events, named("content_block_stop", index=index)])


def anthropic_ends(reason: str) -> bytes:
    end = named("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 100})
    return end + named("message_stop")


def anthropic_thinks_says_and_calls() -> Reply:
    return streams(
        anthropic_begins(),
        named("ping"),
        anthropic_block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "see"},
            {"type": "signature_delta", "signature": "SEALED"},
        ),
        anthropic_block(
            1,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "Rea"},
            {"type": "text_delta", "text": "ding"},
        ),
        anthropic_block(
            2,
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"path"'},
            {"type": "input_json_delta", "partial_json": ': "x"}'},
        ),
        anthropic_ends("tool_use"),
    )


# -- Google's streamGenerateContent ----------------------------------------------------------------------------------


def gemini(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 90, "thoughtsTokenCount": 10, "totalTokenCount": 1100}
    body = {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r1", "usageMetadata": usage}
    return data(body | fields)


def gemini_thinks_says_and_calls() -> Reply:
    call = {"functionCall": {"name": "read_file", "args": {"path": "x"}}, "thoughtSignature": "U0VBTEVE"}
    return streams(
        gemini({"text": "Let me see", "thought": True}),
        gemini({"text": "Rea"}),
        gemini({"text": "ding"}),
        gemini(call, finish="STOP"),
    )

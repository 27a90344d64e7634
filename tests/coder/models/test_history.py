"""A response goes back in its provider's own form, without what the provider refuses to read again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult
from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle
from tests.coder.models.asking import PATIENT, ask, connected, endpoint, said
from tests.support.conversation import TOLD
from tests.support.provider_streams import (
    anthropic_begins,
    anthropic_block,
    anthropic_ends,
    gemini,
    named,
    openai_response,
)
from tests.support.upstream import DONE, Reply, chat, chat_call, chat_says, streams, upstream
from tests.support.whole_agent import events_of, whole

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def spoken(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


def reason(events: list[AnyEvent]) -> object:
    assert isinstance(events[-1], Idle)
    return events[-1].stop_reason


# -- answers of the providers ----------------------------------------------------------------------------------------


def text_block(index: int, text: str) -> bytes:
    return anthropic_block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def thought_block(index: int) -> bytes:
    signed = {"type": "signature_delta", "signature": f"SEALED{index}"}
    start = {"type": "thinking", "thinking": "", "signature": ""}
    return anthropic_block(index, start, {"type": "thinking_delta", "thinking": "Let me see"}, signed)


def call_block(index: int, arguments: str, call_id: str = "toolu_1") -> bytes:
    start = {"type": "tool_use", "id": call_id, "name": "read_file", "input": {}}
    return anthropic_block(index, start, {"type": "input_json_delta", "partial_json": arguments})


def claude(*blocks: bytes, stop: str = "end_turn") -> Reply:
    return streams(anthropic_begins(), *blocks, anthropic_ends(stop))


def openai_thought(number: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "Let me see"}]
    return {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": "SEALED"}


def openai_message(text: str = "Reading") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def openai_call(arguments: str, number: int = 1) -> dict[str, Any]:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {**ids, "type": "function_call", "name": "read_file", "arguments": arguments, "status": "completed"}


EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": [], "encrypted_content": None},
    "message": {"content": []},
    "function_call": {"arguments": ""},
}


def openai(*items: dict[str, Any], is_cut_off: bool = False) -> Reply:
    """A stream of whole items."""
    events = [named("response.created", response=openai_response("in_progress", []))]
    for at, item in enumerate(items):
        start = item | EMPTY[item["type"]]
        events.append(named("response.output_item.added", output_index=at, item=start))
        place = {"item_id": item["id"], "output_index": at}
        if item["type"] == "message":
            [part] = item["content"]
            begun = place | {"content_index": 0}
            events.append(named("response.content_part.added", **begun, part=part | {"text": ""}))
            events.append(named("response.output_text.delta", **begun, delta=part["text"], logprobs=[]))
        if item["type"] == "function_call":
            events.append(named("response.function_call_arguments.delta", **place, delta=item["arguments"]))
        events.append(named("response.output_item.done", output_index=at, item=item))
    end = "incomplete" if is_cut_off else "completed"
    cut = {"incomplete_details": {"reason": "max_output_tokens"}} if is_cut_off else {}
    events.append(named(f"response.{end}", response=openai_response(end, list(items), **cut)))
    return streams(
        *(event.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, event in enumerate(events))
    )


def anthropic_history(body: dict[str, Any]) -> list[list[str]]:
    """The types of the blocks of each message; text stands for itself."""
    return [
        [block.get("text", block["type"]) for block in message["content"] if not block.get("text", "").startswith(TOLD)]
        for message in body["messages"]
    ]


def openai_history(body: dict[str, Any]) -> list[str]:
    return [item.get("id") or item.get("role") or item["type"] for item in body["input"] if TOLD not in str(item)]


# -- thoughts without what they were thought for ---------------------------------------------------------------------

CUT_OFF: dict[str, tuple[Family, str, Reply, object]] = {
    "anthropic, in a thought": (
        "anthropic",
        "claude-opus-4-8",
        claude(text_block(0, "Reading"), thought_block(1), stop="max_tokens"),
        [["go"], ["Reading"], ["next"]],
    ),
    "anthropic, in a call": (
        "anthropic",
        "claude-opus-4-8",
        claude(text_block(0, "Reading"), thought_block(1), call_block(2, '{"pa'), stop="max_tokens"),
        [["go"], ["Reading"], ["next"]],
    ),
    "anthropic, after a call": (
        "anthropic",
        "claude-opus-4-8",
        claude(thought_block(0), text_block(1, "Reading"), call_block(2, '{"path": "x"}'), stop="max_tokens"),
        [["go"], ["thinking", "Reading"], ["next"]],
    ),
    "openai, in a thought": (
        "openai",
        "gpt-5",
        openai(openai_message(), openai_thought(1), is_cut_off=True),
        ["user", "msg_1", "user"],
    ),
    "openai, in a call": (
        "openai",
        "gpt-5",
        openai(openai_message(), openai_thought(1), openai_call('{"pa'), is_cut_off=True),
        ["user", "msg_1", "user"],
    ),
    "openai, a call between thoughts": (
        "openai",
        "gpt-5",
        openai(openai_thought(1), openai_call("{}"), openai_thought(2), openai_message(), is_cut_off=True),
        ["user", "rs_2", "msg_1", "user"],
    ),
}


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(("family", "name", "reply", "sent"), CUT_OFF.values(), ids=CUT_OFF)
async def test_after_an_answer_that_was_cut_off_the_session_goes_on(
    tmp_path: Path, protocol: int, family: Family, name: str, reply: Reply, sent: object
) -> None:
    says: dict[str, Callable[[str], Reply]] = {
        "anthropic": lambda text: claude(text_block(0, text)),
        "openai": lambda text: openai(openai_message(text)),
    }
    read = {"anthropic": anthropic_history, "openai": openai_history}[family]
    async with upstream(reply, says[family]("back"), says[family]("summary"), says[family]("again")) as server:
        model = ProviderModel(endpoint(server, family, name), PATIENT)
        async with whole(tmp_path, lambda _: model, protocol=protocol) as (_, session):
            assert reason(await events_of(session, "go")) == "max_tokens"
            assert spoken(await events_of(session, "next")) == "back"
            assert "was summed up" in spoken(await events_of(session, "/compact"))
            assert spoken(await events_of(session, "more")) == "again"
    assert server.refusals == []
    assert read(server.requests[1].body) == sent


async def test_of_thoughts_in_a_row_openai_gets_the_one_that_its_answer_belongs_to(tmp_path: Path) -> None:
    both = openai(openai_thought(1), openai_thought(2), openai_message())
    async with upstream(both, openai(openai_message("back"))) as server:
        model = ProviderModel(endpoint(server, "openai", "gpt-5"), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "go")
            assert spoken(await events_of(session, "next")) == "back"
    assert openai_history(server.requests[1].body) == ["user", "rs_2", "msg_1", "user"]


async def test_thoughts_in_a_row_go_back_to_anthropic_as_they_came(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    hidden = anthropic_block(1, {"type": "redacted_thinking", "data": "HIDDEN"})
    calls = claude(thought_block(0), hidden, thought_block(2), call_block(3, '{"path": "x"}'), stop="tool_use")
    async with upstream(calls, claude(text_block(0, "back"))) as server:
        model = ProviderModel(endpoint(server, "anthropic", "claude-opus-4-8"), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            assert spoken(await events_of(session, "go")) == "back"
    assert anthropic_history(server.requests[1].body)[1] == ["thinking", "redacted_thinking", "thinking", "tool_use"]


# -- blank text ------------------------------------------------------------------------------------------------------


def gemini_calls() -> Reply:
    call = {"functionCall": {"name": "read_file", "args": {"path": "x"}}, "thoughtSignature": "U0VBTEVE"}
    return streams(gemini({"text": "Let me see", "thought": True}), gemini({"text": "\n"}), gemini(call, finish="STOP"))


def chat_calls() -> Reply:
    call = chat_call(0, id="c1", type="function", function={"name": "read_file", "arguments": '{"path": "x"}'})
    return streams(chat({"content": "\n\n"}), call, chat({}, "tool_calls"), DONE)


BLANK: dict[Family, tuple[str, Reply, Reply]] = {
    "anthropic": (
        "claude-opus-4-8",
        claude(thought_block(0), text_block(1, "\n\n"), call_block(2, '{"path": "x"}'), stop="tool_use"),
        claude(text_block(0, "back")),
    ),
    "openai": (
        "gpt-5",
        openai(openai_thought(1), openai_message("\n\n"), openai_call('{"path": "x"}')),
        openai(openai_message("back")),
    ),
    "google": ("gemini-2.5-flash", gemini_calls(), streams(gemini({"text": "back"}, finish="STOP"))),
    "compatible": ("m", chat_calls(), chat_says("back")),
}


@pytest.mark.parametrize("family", BLANK)
async def test_blank_text_beside_a_call_does_not_go_back(tmp_path: Path, family: Family) -> None:
    (tmp_path / "x").write_text("CONTENT")
    name, calls, says = BLANK[family]
    async with upstream(calls, says) as server:
        model = ProviderModel(endpoint(server, family, name), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            assert spoken(await events_of(session, "go")).strip() == "back"
    assert server.refusals == []
    body = server.requests[1].body
    turns = json.dumps(body.get("messages") or body.get("input") or body.get("contents"))
    assert ("CONTENT" in turns, '"\\n\\n"' in turns, '"\\n"' in turns) == (True, False, False)


async def test_blank_text_beside_an_image_does_not_go_to_the_model(tmp_path: Path) -> None:
    async with upstream(claude(text_block(0, "a pixel"))) as server:
        model = ProviderModel(endpoint(server, "anthropic", "claude-opus-4-8"), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            events = await session.prompt([Text(" \n"), Image(PIXEL, "image/png")]).read()
            assert events.text == "a pixel"
            assert spoken(await events_of(session, " \n")) == "a pixel"
    assert server.refusals == []
    assert anthropic_history(server.requests[0].body) == [["image"]]


# -- pictures --------------------------------------------------------------------------------------------------------


async def test_images_that_tools_return_stand_behind_all_results_at_chat_completions() -> None:
    calls = [ContextToolCall(f"c{n}", "look", {}) for n in range(2)]
    shots = [ContextToolResult(call.id, "look", "a picture", content=[Image(PIXEL, "image/png")]) for call in calls]
    async with upstream(chat_says("two pixels")) as server, connected(endpoint(server, images=True)) as model:
        await ask(model, said("look"), ContextAssistantMessage("", "", calls), *shots)
    messages = server.requests[0].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert str(messages[-1]).count(PIXEL) == 2


async def test_a_gif_that_gemini_refuses_is_left_out_and_the_session_goes_on(tmp_path: Path) -> None:
    async with upstream(streams(gemini({"text": "back"}, finish="STOP"))) as server:
        model = ProviderModel(endpoint(server, "google", "gemini-2.5-flash"), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            with pytest.raises(RequestFailed, match=r"MIME type: image/gif. The model does not see 1 file"):
                await session.prompt([Text("what is this?"), Image(GIF, "image/gif")]).read()
            assert spoken(await events_of(session, "next")) == "back"
    assert "what is this?" in str(server.requests[1].body)

"""A plain answer of each API, whole or cut in the middle, with the usage that a test wants reported."""

from collections.abc import Callable
from typing import Any, Final

from dragoman.coder.models.endpoints import Family
from tests.support.provider_streams import anthropic_begins, anthropic_block, anthropic_ends, gemini, named
from tests.support.upstream import DONE, Exchange, Reply, chat, chat_usage


def _anthropic(text: str) -> list[bytes]:
    block = anthropic_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    return [anthropic_begins(), block, anthropic_ends("end_turn")]


def _openai(text: str) -> list[bytes]:
    part = {"type": "output_text", "text": text, "annotations": []}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    done = message | {"status": "completed", "content": [part]}
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    response = {"id": "resp_1", "object": "response", "model": "gpt-5", "output": [done], "usage": usage}
    return [
        named("response.output_item.added", output_index=0, item=message | {"content": []}),
        named("response.output_text.delta", **place, delta=text, logprobs=[]),
        named("response.output_item.done", output_index=0, item=done),
        named("response.completed", response=response | {"status": "completed"}),
    ]


def _gemini(text: str) -> list[bytes]:
    return [gemini({"text": text}), gemini({"text": ""}, finish="STOP")]


def _chat(text: str) -> list[bytes]:
    return [chat({"content": text}), chat({}, "stop"), chat_usage(1000, 100), DONE]


EVENTS: Final[dict[Family, Callable[[str], list[bytes]]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _gemini,
    "compatible": _chat,
}


def answer(family: Family, text: str) -> Reply:
    """A whole answer."""

    async def reply(exchange: Exchange) -> None:
        await exchange.stream(EVENTS[family](text))

    return reply


def cut(family: Family, text: str) -> Reply:
    """The beginning of an answer, and then the connection is reset."""

    async def reply(exchange: Exchange) -> None:
        await exchange.begin_stream()
        events = EVENTS[family](text)
        for event in events[: -1 if family in ("anthropic", "google") else -2]:
            await exchange.chunk(event)
        exchange.reset()
        raise ConnectionResetError

    return reply

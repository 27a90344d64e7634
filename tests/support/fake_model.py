"""A model on loopback for agents with a client of their own: it speaks the APIs of Google, OpenAI and Anthropic.

What is asked in a turn is answered with what the test wants said next. What an agent asks on the side, such as a title
for the session, gets a word that means nothing.
"""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.provider_streams import (
    anthropic_begins,
    anthropic_block,
    anthropic_ends,
    gemini,
    named,
    openai_response,
)
from tests.support.upstream import DONE, Exchange, Reply, Request, chat, chat_call, chat_usage, streams

# To a model that Gemini CLI asks which model to ask; it then asks its usual one.
ASIDE = {"candidates": [{"content": {"role": "model", "parts": [{"text": "{}"}]}, "finishReason": "STOP"}]}
# Between two words of a model that drips: as slow as a slow model, and no slower than a test may be.
DRIP_SECONDS = 0.05
# Agents know a message and a call by its id again.
_NUMBERS = itertools.count(1)


class ToolCall(NamedTuple):
    """What a model wants done."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Voice:
    """How one API is spoken: a whole message, the beginning of one that says something, and the end of that.

    The last event of `opening` is the piece of text, and may come again; `ending` is given all the text that was said.
    """

    streams_at: str
    message: Callable[[str, ToolCall | None], list[bytes]]
    opening: Callable[[str], list[bytes]]
    ending: Callable[[str], list[bytes]]


class FakeModel:
    """A reply for `upstream`: every request of a turn takes the next of what it plays."""

    def __init__(self, voice: Voice) -> None:
        self.asked: list[Request] = []
        # Set when an agent has left a stream that would never have ended.
        self.left = asyncio.Event()
        self._voice = voice
        self._plays: deque[Reply] = deque()

    def plays(self, *replies: Reply) -> None:
        """What is said from now on; what was left of the last turn is not."""
        self._plays = deque(replies)

    def says(self, text: str, call: ToolCall | None = None) -> Reply:
        return streams(*self._voice.message(text, call))

    def waits(self, text: str) -> Reply:
        """Says something, and never comes to an end."""

        async def reply(exchange: Exchange) -> None:
            await exchange.begin_stream()
            for event in self._voice.opening(text):
                await exchange.chunk(event)
            await exchange.hung_up()
            self.left.set()

        return reply

    def drips(self, text: str) -> Reply:
        """Says the same again and again, for an agent that sees a cancel only when its model says something."""

        async def reply(exchange: Exchange) -> None:
            await exchange.begin_stream()
            gone = asyncio.ensure_future(exchange.hung_up())
            try:
                while not gone.done():
                    for event in self._voice.opening(text):
                        await exchange.chunk(event)
                    await asyncio.wait([gone], timeout=DRIP_SECONDS)
            except ConnectionError:
                pass
            finally:
                gone.cancel()
                self.left.set()

        return reply

    async def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if self._voice.streams_at not in request.path:
            await exchange.answer(200, ASIDE)
        elif not request.body.get("tools"):
            await self.says("Aside")(exchange)
        else:
            self.asked.append(request)
            reply = self._plays.popleft() if self._plays else self.says("Nobody told me what to say.")
            await reply(exchange)


# -- Google's streamGenerateContent ----------------------------------------------------------------------------------


def _gemini_message(text: str, call: ToolCall | None) -> list[bytes]:
    if call is None:
        return [gemini({"text": text}, finish="STOP")]
    return [gemini({"text": text}), gemini({"functionCall": {"name": call.tool, "args": call.input}}, finish="STOP")]


GEMINI = Voice(
    ":streamGenerateContent",
    _gemini_message,
    opening=lambda text: [gemini({"text": text})],
    ending=lambda text: _gemini_message(" ", None),  # a last piece without text is refused by its own client
)


# -- OpenAI's chat completions ---------------------------------------------------------------------------------------


def _chat_message(text: str, call: ToolCall | None) -> list[bytes]:
    said = [chat({"content": text})]
    if call is None:
        return [*said, *_chat_ending(text)]
    wanted = {"name": call.tool, "arguments": json.dumps(call.input)}
    called = chat_call(0, id=f"call_{next(_NUMBERS)}", type="function", function=wanted)
    return [*said, called, chat({}, "tool_calls"), chat_usage(7, 3), DONE]


def _chat_ending(text: str) -> list[bytes]:
    return [chat({}, "stop"), chat_usage(7, 3), DONE]


CHAT = Voice("/chat/completions", _chat_message, lambda text: [chat({"content": text})], _chat_ending)


# -- OpenAI's responses ---------------------------------------------------------------------------------------------


def _responses_message(text: str, call: ToolCall | None) -> list[bytes]:
    words = {"type": "output_text", "text": text, "annotations": []}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    output: list[dict[str, Any]] = [message | {"content": [words]}]
    events = [
        named("response.created", response=openai_response("in_progress", [])),
        named("response.output_item.added", output_index=0, item=message | {"status": "in_progress", "content": []}),
        named("response.content_part.added", **place, part=words | {"text": ""}),
        named("response.output_text.delta", **place, delta=text, logprobs=[]),
        named("response.output_text.done", **place, text=text, logprobs=[]),
        named("response.output_item.done", output_index=0, item=output[0]),
    ]
    if call is not None:
        done = {"id": "fc_1", "type": "function_call", "call_id": f"call_{next(_NUMBERS)}", "name": call.tool}
        done |= {"arguments": json.dumps(call.input), "status": "completed"}
        output.append(done)
        events.append(named("response.output_item.added", output_index=1, item=done | {"arguments": ""}))
        given = {"item_id": "fc_1", "output_index": 1}
        events.append(named("response.function_call_arguments.done", **given, arguments=done["arguments"]))
        events.append(named("response.output_item.done", output_index=1, item=done))
    events.append(named("response.completed", response=openai_response("completed", output)))
    return [event.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, event in enumerate(events)]


RESPONSES = Voice(
    "/responses",
    _responses_message,
    opening=lambda text: _responses_message(text, None)[:4],
    ending=lambda text: _responses_message(text, None)[4:],
)


# -- Anthropic's messages --------------------------------------------------------------------------------------------


def _anthropic_begins() -> bytes:
    return anthropic_begins().replace(b'"msg_1"', b'"msg_%d"' % next(_NUMBERS))


def _anthropic_message(text: str, call: ToolCall | None) -> list[bytes]:
    words, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    said = [_anthropic_begins(), anthropic_block(0, words, delta)]
    if call is None:
        return [*said, anthropic_ends("end_turn")]
    block = {"type": "tool_use", "id": f"toolu_{next(_NUMBERS)}", "name": call.tool, "input": {}}
    wanted = {"type": "input_json_delta", "partial_json": json.dumps(call.input)}
    return [*said, anthropic_block(1, block, wanted), anthropic_ends("tool_use")]


def _anthropic_opening(text: str) -> list[bytes]:
    block, said = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    begun = named("content_block_start", index=0, content_block=block)
    return [_anthropic_begins(), begun, named("content_block_delta", index=0, delta=said)]


ANTHROPIC = Voice(
    "/v1/messages?",
    _anthropic_message,
    _anthropic_opening,
    ending=lambda text: [named("content_block_stop", index=0), anthropic_ends("end_turn")],
)

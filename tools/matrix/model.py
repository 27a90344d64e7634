"""The model of every agent in the matrix: four APIs on loopback, and three prompts that it knows.

What an agent asks on the side, such as a title, gets a word. The answer hangs on the last words of the user alone, so
that any number of agents can ask at the same time.
"""

import asyncio
import json
import re
from typing import Final

from tests.support.fake_model import ANTHROPIC, ASIDE, CHAT, GEMINI, RESPONSES, FakeModel, ToolCall, Voice
from tests.support.upstream import Exchange

SHORT: Final = "matrix short: say hello"
SLOW: Final = "matrix slow: think for a long time"
PERMISSION: Final = "matrix permission: write the file"
_VOICES: Final = (GEMINI, CHAT, RESPONSES, ANTHROPIC)
# An agent that does not hang up is left alone after this; a row waits less.
_SLOW_SECONDS: Final = 60.0
_DRIP_SECONDS: Final = 0.2
_RESULT: Final = re.compile(r'"role": "tool"|tool_result|function_call_output|functionResponse')


class MatrixModel:
    """A reply for `upstream`. `call` is what the agent's tool for files is asked to do."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    async def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        voice = next((one for one in _VOICES if one.streams_at in request.path), None)
        if voice is None:
            await exchange.answer(200, ASIDE)
            return
        model = FakeModel(voice)
        last = _last_words(request.body)
        if _RESULT.search(last):
            await model.says("It is done.")(exchange)
        elif "matrix slow" in last:
            await _slow(voice, exchange)
        elif "matrix permission" in last and request.body.get("tools"):
            await model.says("I will write it.", self._call)(exchange)
        else:
            await model.says("Hello there.")(exchange)


async def _slow(voice: Voice, exchange: Exchange) -> None:
    """Say something again and again: some agents see a cancel only when their model says something."""
    await exchange.begin_stream()
    gone = asyncio.ensure_future(exchange.hung_up())
    opening = voice.opening("Still at it. ")
    try:
        async with asyncio.timeout(_SLOW_SECONDS):
            for event in opening:
                await exchange.chunk(event)
            while not gone.done():
                await asyncio.sleep(_DRIP_SECONDS)
                await exchange.chunk(opening[-1])
    except (TimeoutError, ConnectionError):
        pass
    finally:
        gone.cancel()


def _last_words(body: dict[str, object]) -> str:
    turns = body.get("messages") or body.get("input") or body.get("contents") or []
    if isinstance(turns, str):
        return turns
    assert isinstance(turns, list)
    # A provider's own remarks may stand behind the user's words.
    return json.dumps(turns[-2:]) if turns and not _RESULT.search(json.dumps(turns[-1])) else json.dumps(turns[-1:])

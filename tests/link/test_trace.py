"""The trace sees every frame, and cannot harm the link."""

import json
from typing import Any

import pytest

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk
from tests.support.links import agent_link, ping
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


async def test_the_trace_sees_every_frame_in_both_directions_in_order() -> None:
    seen: list[tuple[str, Any]] = []
    async with agent_link(trace=lambda direction, frame: seen.append((direction, json.loads(frame)))) as end:
        end.wire.say(ping(1), {"method": "_note", "params": {}})
        await end.wire.answer(1)
        await end.link.send_event("s", AgentMessageChunk(Text("x"), message_id="m"))
        await until(lambda: len(end.wire.heard) == 3)
        assert [frame for direction, frame in seen if direction == "out"] == end.wire.heard
        assert [frame.get("method") for direction, frame in seen if direction == "in"] == [
            "initialize",
            "_ping",
            "_note",
        ]


async def test_a_trace_that_fails_is_reported_once_and_harms_nothing() -> None:
    def broken(direction: str, frame: bytes) -> None:
        raise OSError("disk full")

    async with agent_link(trace=broken) as end:
        end.wire.say(ping(1), ping(2))
        assert (await end.wire.answer(2))["result"] == "done"
        assert [str(bug) for bug in end.above.bugs] == ["disk full"]

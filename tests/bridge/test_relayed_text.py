"""A bridge passes text on as it came, in the frames of the other side's version."""

import json

import pytest

from tests.support.bridge_peers import in_session, prompt, text, update
from tests.support.messages import Message

PIECES = ["a", "b", "é\n", '"\\', "\U0001f600", "{}", "", "last"]


@pytest.mark.parametrize(("editor_version", "agent_version"), [(1, 1), (2, 2), (1, 2), (2, 1)])
async def test_every_piece_of_a_message_reaches_the_editor_in_order(editor_version: int, agent_version: int) -> None:
    async with in_session(editor_version, agent_version) as (editor, agent):
        editor.say(prompt(5))
        await agent.hear()
        agent.say(*(update("agent_message_chunk", messageId="m", content=text(piece)) for piece in PIECES))
        agent.say(update("agent_thought_chunk", messageId="t", content=text("thought")))
        heard: list[Message] = []
        while len(heard) <= len(PIECES):
            found = (await editor.hear()).get("params", {}).get("update", {})
            if found.get("sessionUpdate") in ("agent_message_chunk", "agent_thought_chunk"):
                heard.append(found)
    assert [json.dumps(found["content"]) for found in heard] == [json.dumps(text(p)) for p in [*PIECES, "thought"]]
    assert [found["messageId"] for found in heard] == ["m"] * len(PIECES) + ["t"]

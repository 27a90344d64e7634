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


@pytest.mark.requirement("K21")
@pytest.mark.parametrize(("editor_version", "agent_version"), [(1, 1), (2, 2), (1, 2), (2, 1)])
async def test_tool_calls_pass_as_they_came_between_sides_of_one_version(
    editor_version: int, agent_version: int
) -> None:
    kinds = {"tool_call", "tool_call_update"}
    async with in_session(editor_version, agent_version) as (editor, agent):
        editor.say(prompt(5))
        await agent.hear()
        # In another order of the fields than ours.
        for title in ("one", "two"):
            agent.say(update("tool_call_update", title=title, toolCallId="c", status="in_progress"))
        agent.say(update("tool_call_update", status="completed", toolCallId="c"))
        heard: list[Message] = []
        while len(heard) < 3:
            found = (await editor.hear()).get("params", {}).get("update", {})
            heard += [found] if found.get("sessionUpdate") in kinds else []
    assert [(found.get("title"), found["status"]) for found in heard] == [
        ("one", "in_progress"),
        ("two", "in_progress"),
        (None, "completed"),
    ]
    as_it_came = ["sessionUpdate", "title", "toolCallId", "status"]
    assert (list(heard[1]) == as_it_came) == (editor_version == agent_version)

"""Sessions through a bridge: load, resume, close, modes and options."""

import pytest

from tests.support.bridge_peers import (
    ENTRIES,
    ITEMS,
    LOAD,
    OPEN,
    Message,
    every_pair,
    in_session,
    note,
    prompt,
    request,
    result,
    state,
    text,
    update,
)

STORY = {
    1: [update("user_message_chunk", messageId="u", content=text("hi")), update("plan", entries=ENTRIES)],
    2: [update("user_message", messageId="u", content=[text("hi")]), update("plan_update", plan=ITEMS)],
}
# A version 1 wire has no whole messages, and its one plan has no name.
RETOLD = {
    (1, 1): STORY[1],
    (1, 2): STORY[1],
    (2, 1): [STORY[2][0], update("plan_update", plan={**ITEMS, "planId": "main"}), state("idle")],
    (2, 2): [*STORY[2], state("idle")],
}


@every_pair
async def test_a_stored_session_is_told_before_its_loading_is_answered(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(LOAD[front])
        assert await agent.hear() == LOAD[back]
        agent.say(*STORY[back], *([state("idle")] if back == 2 else ()), result(3))
        expected = [*RETOLD[front, back], result(3)]
        assert await editor.hear_many(len(expected)) == expected


async def test_two_bridges_do_not_name_two_messages_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    names = []
    for _ in range(2):
        async with in_session(2, 1) as (editor, agent):
            editor.say(prompt(3, "hi"))
            await agent.hear()
            names.append((await editor.hear())["result"]["messageId"])
    assert len(set(names)) == 2


@every_pair
async def test_what_is_said_behind_an_answer_stays_behind_it(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(note("_before"), result(3, sessionId="s2"), note("_behind"), update("usage_update", used=1, size=2))
        assert await editor.hear_many(4) == [
            note("_before"),
            result(3, sessionId="s2"),
            note("_behind"),
            update("usage_update", used=1, size=2),
        ]


async def test_a_session_resumed_without_its_story_is_not_told_when_the_agent_can_only_load() -> None:
    async with in_session(2, 1, sessionCapabilities={}) as (editor, agent):
        editor.say(request(3, "session/resume", **OPEN))
        assert await agent.hear() == LOAD[1]
        agent.say(*STORY[1], result(3), update("usage_update", used=1, size=2))
        assert await editor.hear_many(3) == [state("idle"), result(3), update("usage_update", used=1, size=2)]


async def test_closing_a_session_is_a_cancel_for_an_agent_that_cannot_close() -> None:
    async with in_session(2, 1, sessionCapabilities={}) as (editor, agent):
        editor.say(request(3, "session/close", sessionId="s"))
        assert await agent.hear() == note("session/cancel", sessionId="s")
        assert await editor.hear() == result(3)


MODES = [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]


def mode(version: int, value: str, config_id: str = "mode") -> Message:
    """The mode as an option of this version."""
    choices = [{"value": choice["id"], "name": choice["name"]} for choice in MODES]
    return {
        "type": "select",
        "id" if version == 1 else "configId": config_id,
        "name": "Mode",
        "category": "mode",
        "currentValue": value,
        "options": choices,
    }


def modes(value: str) -> Message:
    return {"currentModeId": value, "availableModes": MODES}


async def test_a_version_1_mode_is_an_option_for_a_version_2_editor() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w"))
        await agent.hear()
        agent.say(result(3, sessionId="s", modes=modes("ask")))
        assert await editor.hear() == result(3, sessionId="s", configOptions=[mode(2, "ask")])
        editor.say(request(4, "session/set_config_option", sessionId="s", configId="mode", type="id", value="go"))
        assert await agent.hear() == request(4, "session/set_mode", sessionId="s", modeId="go")
        agent.say(result(4), update("current_mode_update", currentModeId="ask"))
        assert await editor.hear_many(2) == [
            result(4, configOptions=[mode(2, "go")]),
            update("config_option_update", configOptions=[mode(2, "ask")]),
        ]


async def test_a_version_2_mode_option_is_also_a_mode_for_a_version_1_editor() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(result(3, sessionId="s", configOptions=[mode(2, "ask", "m")]))
        assert await editor.hear() == result(3, sessionId="s", modes=modes("ask"), configOptions=[mode(1, "ask", "m")])
        editor.say(request(4, "session/set_mode", sessionId="s", modeId="go"))
        assert await agent.hear() == request(
            4, "session/set_config_option", sessionId="s", configId="m", type="id", value="go"
        )
        agent.say(result(4, configOptions=[mode(2, "go", "m")]))
        agent.say(update("config_option_update", configOptions=[mode(2, "ask", "m")]))
        assert await editor.hear_many(4) == [
            result(4),
            update("config_option_update", configOptions=[mode(1, "go", "m")]),
            update("config_option_update", configOptions=[mode(1, "ask", "m")]),
            update("current_mode_update", currentModeId="ask"),
        ]

"""`initialize` through a bridge: each side is greeted with what the other has said, in its own version."""

import pytest

from dragoman.bridge import UNREADABLE
from tests.support.bridge_peers import (
    EDITOR,
    Message,
    agent_hello,
    error,
    every_pair,
    joined,
    note,
    request,
    result,
)

NO_PROMPT_EXTRAS = {"image": False, "audio": False, "embeddedContext": False}
# What the editor is told, by its version and the agent's.
TOLD = {
    (1, 1): {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": NO_PROMPT_EXTRAS,
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"resume": {}, "close": {}, "list": {}},
            "auth": {},
            "_x": 1,
        },
        "authMethods": [],
        "agentInfo": {"name": "ag", "version": "2"},
    },
    (2, 1): {
        "protocolVersion": 2,
        "capabilities": {"session": {"prompt": {}, "mcp": {"stdio": {}}}, "_x": 1},
        "authMethods": [],
        "info": {"name": "ag", "version": "2"},
    },
}


TOLD[1, 2] = TOLD[1, 1]


TOLD[2, 2] = TOLD[2, 1]


@every_pair
async def test_each_side_is_greeted_with_what_the_other_said(front: int, back: int) -> None:
    async with joined() as (editor, agent):
        editor.say(request("a", "initialize", **EDITOR[front]))
        hello = await agent.hear()
        agent.say(result(hello["id"], **agent_hello(back, _x=1)))
        answer = await editor.hear()

    params = hello["params"]
    assert (hello["id"], hello["method"], params["protocolVersion"]) == (1, "initialize", 2)
    assert params["clientInfo"] == params["info"] == {"name": "ed", "version": "1"}
    assert params["clientCapabilities"]["terminal"] == (front == 1)
    assert params["clientCapabilities"]["fs"] == {"readTextFile": front == 1, "writeTextFile": front == 1}
    assert params["capabilities"] == {"elicitation": {"form": {}}}
    assert answer == result("a", **TOLD[front, back])


@every_pair
async def test_what_comes_right_behind_initialize_waits_for_the_agent_and_keeps_its_order(
    front: int, back: int
) -> None:
    async with joined() as (editor, agent):
        editor.say(
            request(1, "initialize", **EDITOR[front]),
            request(2, "_one"),
            note("_two"),
            request(3, "initialize", **EDITOR[front]),
            request(4, "session/new", cwd="/w", mcpServers=[]),
        )
        assert (await agent.hear())["method"] == "initialize"
        agent.say(result(1, **agent_hello(back)))
        heard = await agent.hear_many(3)
        answers = await editor.hear_many(2)

    assert [message["method"] for message in heard] == ["_one", "_two", "session/new"]
    assert answers == [
        result(1, **{**TOLD[front, back], **_without_x(TOLD[front, back])}),
        error(3, -32600, "Already initialized"),
    ]


def _without_x(hello: Message) -> Message:
    key = "agentCapabilities" if hello["protocolVersion"] == 1 else "capabilities"
    return {key: {name: value for name, value in hello[key].items() if name != "_x"}}


async def test_an_agent_that_refuses_the_hello_is_heard_and_another_hello_may_follow() -> None:
    async with joined() as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[1]))
        await agent.hear()
        agent.say(error(1, -32000, "Log in first", {"how": "there"}))
        assert await editor.hear() == error(1, -32000, "Log in first", {"how": "there"})
        editor.say(request(2, "initialize", **EDITOR[1]))
        assert (await agent.hear())["id"] == 2
        agent.say(result(2, **agent_hello(1, _x=1)))
        assert await editor.hear() == result(2, **TOLD[1, 1])


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"result": {"protocolVersion": 99, "info": {}}}, -32022, "The agent speaks another protocol version"),
        ({"result": {"protocolVersion": "two"}}, -32603, UNREADABLE),
        ({"result": 7}, -32603, UNREADABLE),
    ],
)
async def test_an_unreadable_initialize_is_an_error_for_the_editor(answer: Message, code: int, message: str) -> None:
    async with joined() as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[1]))
        await agent.hear()
        agent.say({"id": 1, **answer})
        assert await editor.hear() == error(1, code, message)


async def test_an_agent_that_never_answers_the_hello_is_not_waited_for_without_end() -> None:
    async with joined(start_timeout=0) as (editor, _):
        editor.say(request(1, "initialize", **EDITOR[2]))
        assert await editor.hear() == error(1, -32603, "The agent did not answer initialize in time")

"""A bridge with one version on both sides passes on what it does not know."""

import pytest

from tests.support.bridge_peers import RUN_LS, in_session, permission, request, result, text, update

ODD = {"_meta": {"k": [1]}, "odd": {"deep": None}}


@pytest.mark.requirement("L2")
@pytest.mark.parametrize("version", [1, 2])
async def test_unknown_fields_and_methods_pass_a_bridge_of_one_version(version: int) -> None:
    async with in_session(version, version) as (editor, agent):
        editor.say(request(3, "session/new", cwd="/w", mcpServers=[], **ODD))
        assert await agent.hear() == request(3, "session/new", cwd="/w", mcpServers=[], **ODD)
        said = [
            result(3, sessionId="s", **ODD),
            update("agent_message_chunk", messageId="a", content={**text("x"), **ODD}, **ODD),
            update("_invented", anything=[1, {"two": 3}], **ODD),
            update("usage_update", used=1, size=2, **ODD),
            update(
                "tool_call_update" if version == 2 else "tool_call",
                **RUN_LS,
                content=[{"type": "content", "content": {**text("y"), **ODD}, **ODD}],
                **ODD,
            ),
        ]
        agent.say(*said)
        assert await editor.hear_many(len(said)) == said
        asked = permission("p", version)
        agent.say({**asked, "params": {**asked["params"], **ODD}})
        assert await editor.hear() == {**asked, "id": 1, "params": {**asked["params"], **ODD}}
        editor.say(result(1, outcome={"outcome": "selected", "optionId": "no", **ODD}, **ODD))
        assert await agent.hear() == result("p", outcome={"outcome": "selected", "optionId": "no", **ODD}, **ODD)

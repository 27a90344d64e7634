"""Requests, notifications, errors and ids through a bridge, from both sides."""

import pytest

from dragoman import limits
from tests.support.bridge_peers import (
    Message,
    chosen,
    error,
    every_pair,
    in_session,
    note,
    permission,
    prompt,
    request,
    result,
    state,
    text,
)


@every_pair
async def test_extensions_pass_both_ways_with_their_errors_and_neither_side_sees_the_others_ids(
    front: int, back: int
) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("mine", "_to_agent", deep={"x": [1, None]}), note("_news", n=1))
        assert await agent.hear_many(2) == [request(3, "_to_agent", deep={"x": [1, None]}), note("_news", n=1)]
        agent.say(request("yours", "_to_editor", q=1), note("_tidings"), error(3, -32099, "No", {"why": [1]}))
        assert await editor.hear_many(3) == [
            request(1, "_to_editor", q=1),
            note("_tidings"),
            error("mine", -32099, "No", {"why": [1]}),
        ]
        editor.say(error(1, -5, "Never", "because"))
        assert await agent.hear() == error("yours", -5, "Never", "because")


@every_pair
async def test_a_question_and_its_completion_pass_to_the_editor(front: int, back: int) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = {"mode": "form", "message": "Who?", "sessionId": "s", "requestedSchema": form}
    async with in_session(front, back) as (editor, agent):
        agent.say(request("q", "elicitation/create", **question), note("elicitation/complete", elicitationId="e"))
        assert await editor.hear_many(2) == [
            request(1, "elicitation/create", **question),
            note("elicitation/complete", elicitationId="e"),
        ]
        editor.say(result(1, action="accept", content={"name": "me"}))
        assert await agent.hear() == result("q", action="accept", content={"name": "me"})


async def test_files_and_terminals_pass_between_two_sides_of_version_1() -> None:
    async with in_session(1, 1) as (editor, agent):
        agent.say(
            request("r", "fs/read_text_file", sessionId="s", path="/w/a", line=2),
            request("t", "terminal/create", sessionId="s", command="ls"),
        )
        assert await editor.hear_many(2) == [
            request(1, "fs/read_text_file", sessionId="s", path="/w/a", line=2),
            request(2, "terminal/create", sessionId="s", command="ls"),
        ]
        editor.say(result(2, terminalId="7"), result(1, content="unsaved"))
        assert await agent.hear_many(2) == [result("t", terminalId="7"), result("r", content="unsaved")]


async def test_files_are_never_asked_of_a_version_2_editor() -> None:
    async with in_session(2, 1) as (editor, agent):
        agent.say(request("r", "fs/read_text_file", sessionId="s", path="/w/a"), note("_next"))
        assert await agent.hear() == error("r", -32601, "Method not found")
        assert await editor.hear() == note("_next")


async def test_what_the_agents_version_has_no_word_for_is_an_unknown_method() -> None:
    async with in_session(2, 1) as (editor, _):
        editor.say(request(3, "tool_call/cancel", sessionId="s", toolCallId="t"))
        assert await editor.hear() == error(3, -32601, "The other side does not offer this")


@every_pair
async def test_a_request_that_the_editor_cancels_is_cancelled_at_the_agent(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(9, "_slow"))
        assert await agent.hear() == request(3, "_slow")
        editor.say(note("$/cancel_request", requestId=9))
        assert await agent.hear() == note("$/cancel_request", requestId=3)
        assert await editor.hear() == error(9, -32800, "Request cancelled")
        agent.say(result(3, late=True), note("_next"))
        assert await editor.hear() == note("_next")


@every_pair
async def test_a_request_cancelled_in_the_same_breath_is_answered_once(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request(9, "_slow"), note("$/cancel_request", requestId=9), request(10, "_next"))
        assert await editor.hear() == error(9, -32800, "Request cancelled")
        heard = [await agent.hear()]
        while heard[-1]["method"] != "_next":
            heard.append(await agent.hear())
        agent.say(result(heard[-1]["id"]))
        assert await editor.hear() == result(10)


@every_pair
async def test_a_permission_that_the_agent_withdraws_is_withdrawn_from_the_editor(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        assert await editor.hear() == permission(1, front)
        agent.say(note("$/cancel_request", requestId="p"))
        assert await editor.hear() == note("$/cancel_request", requestId=1)
        assert await agent.hear() == error("p", -32800, "Request cancelled")
        editor.say(chosen(1, "yes"), note("_next"))
        assert await agent.hear() == note("_next")


async def test_giving_up_on_a_version_1_prompt_cancels_its_turn() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(result(3, messageId="u"), state("running"), note("_runs"))
        await editor.hear()
        editor.say(note("$/cancel_request", requestId=3))
        assert await agent.hear() == note("session/cancel", sessionId="s")
        agent.say(state("idle", stopReason="cancelled"))
        assert await editor.hear() == result(3, stopReason="cancelled")


def question_about(number: int | str, mode: str = "form") -> Message:
    schema = {"requestedSchema": {"type": "object", "properties": {}}} if mode == "form" else {"how": "aloud"}
    return {"mode": mode, "message": "Which?", "requestId": number, **schema}


@every_pair
@pytest.mark.parametrize("mode", ["form", "_voice"])
async def test_a_question_about_a_request_names_it_as_the_editor_does(front: int, back: int, mode: str) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("mine", "_slow"))
        await agent.hear()
        agent.say(request("q", "elicitation/create", **question_about(3, mode)))
        assert await editor.hear() == request(1, "elicitation/create", **question_about("mine", mode))
        editor.say(result(1, action="decline"))
        assert await agent.hear() == result("q", action="decline")


@pytest.mark.parametrize("front", [1, 2])
@pytest.mark.parametrize("mode", ["form", "_voice"])
async def test_a_question_about_a_prompt_is_about_its_session_where_the_prompt_has_its_answer(
    front: int, mode: str
) -> None:
    async with in_session(front, 1) as (editor, agent):
        editor.say(prompt(30))
        await agent.hear()
        agent.say(request("q", "elicitation/create", **question_about(3, mode)))
        asked = question_about(30, mode)
        if front == 2:
            asked = {**{name: value for name, value in asked.items() if name != "requestId"}, "sessionId": "s"}
        assert (await editor.hear_many(1 if front == 1 else 4))[-1] == request(1, "elicitation/create", **asked)


@every_pair
@pytest.mark.parametrize("number", [2, 99, "3"])
async def test_a_question_about_a_request_that_is_over_or_never_was_is_cancelled(
    front: int, back: int, number: int | str
) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(request("q", "elicitation/create", **question_about(number)), note("_next"))
        assert await agent.hear() == result("q", action="cancel")
        assert await editor.hear() == note("_next")


async def test_too_many_requests_are_refused_and_what_ends_work_still_passes() -> None:
    async with in_session(2, 1) as (editor, agent):
        for number in range(limits.IN_FLIGHT + 1):
            words = [text("hi")]
            editor.say(request(number + 3, "session/prompt", sessionId=f"s{number}", prompt=words))
            answer = await editor.hear()
            if number < limits.IN_FLIGHT:
                await editor.hear_many(2)
        editor.say(note("session/cancel", sessionId="s0"))
        heard = await agent.hear_many(limits.IN_FLIGHT + 1)
    assert answer == error(limits.IN_FLIGHT + 3, -32001, "Too many requests in flight", {"retry": True})
    assert heard[-1] == note("session/cancel", sessionId="s0")


@pytest.mark.requirement("MCP7")
@every_pair
async def test_what_passes_between_an_agent_and_a_server_that_the_editor_lends_stays_as_it_is(
    front: int, back: int
) -> None:
    asked = {"serverId": "s1", "requestId": "r1", "method": "tools/call", "params": {"deep": [None, {}]}}
    told = {"serverId": "s1", "requestId": "r1", "method": "notifications/progress", "params": {"progress": 0.5}}
    async with in_session(front, back) as (editor, agent):
        agent.say(request("q", "mcp/message", **asked), request("r", "mcp/message", **asked))
        assert await editor.hear_many(2) == [request(1, "mcp/message", **asked), request(2, "mcp/message", **asked)]
        editor.say(note("mcp/message", **told), result(1, result=None), error(2, -33001, "gone"))
        assert await agent.hear_many(3) == [
            note("mcp/message", **told),
            result("q", result=None),
            error("r", -33001, "gone"),
        ]

"""Whatever an answer to a permission looks like, and whichever way it goes, it is a yes only if it is one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.dialects.contract import DecodedReply, Dialect
from dragoman.errors import PeerMistake, WireError
from dragoman.vocabulary import events, services, tools
from dragoman.vocabulary.content import Text
from tests.dialects.joined_dialects import agent_of, client_of, result_of
from tests.dialects.schemas import SHARE, assert_valid, text

YES = services.PermissionOption("yes", "Yes", "allow_once")
NO = services.PermissionOption("no", "No", "reject_once")
ODD = services.PermissionOption("odd", "Odd", "_allow_forever")
QUESTION = services.RequestPermission("s", "May I?", [YES, NO, ODD])
DISMISSED = services.PermissionAnswer(services.Dismissed())


def answered(version: int, result: bytes, question: services.RequestPermission = QUESTION) -> services.PermissionAnswer:
    reply = agent_of(version).decode_reply(question, Raw(result)).reply
    assert isinstance(reply, services.PermissionAnswer)
    return reply


@pytest.mark.parametrize("version", [1, 2])
def test_a_choice_that_was_offered_is_that_choice(version: int) -> None:
    result = b'{"outcome":{"outcome":"selected","optionId":"yes"}}'
    assert answered(version, result) == services.PermissionAnswer(services.Selected("yes"))


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "result",
    [
        b'{"outcome":{"outcome":"cancelled"}}',
        b'{"outcome":{"outcome":"selected","optionId":"maybe"}}',
        b'{"outcome":{"outcome":"selected","optionId":""}}',
        b'{"outcome":{"outcome":"selected","optionId":"YES"}}',
    ],
)
def test_a_choice_that_was_not_offered_is_no_choice(version: int, result: bytes) -> None:
    assert answered(version, result) == DISMISSED


@pytest.mark.parametrize("version", [1, 2])
def test_a_choice_between_two_options_of_one_id_is_no_choice(version: int) -> None:
    twice = services.RequestPermission("s", "May I?", [YES, services.PermissionOption("yes", "No", "reject_once")])
    assert answered(version, b'{"outcome":{"outcome":"selected","optionId":"yes"}}', twice) == DISMISSED


def test_an_option_that_could_not_be_shown_cannot_be_chosen() -> None:
    result = b'{"outcome":{"outcome":"selected","optionId":"odd"}}'
    assert answered(1, result) == DISMISSED
    assert answered(2, result) == services.PermissionAnswer(services.Selected("odd"))


@pytest.mark.requirement("8.2.13")
@pytest.mark.parametrize("version", [1, 2])
def test_an_unknown_outcome_is_unknown_and_never_said_as_a_choice(version: int) -> None:
    body: dict[str, object] = {"outcome": "_approved", "optionId": "yes"}
    found = answered(version, text({"outcome": body}))
    assert found == services.PermissionAnswer(services.UnknownOutcome("_approved", body))
    assert said(1, found) == {"outcome": {"outcome": "cancelled"}}
    assert said(2, found) == {"outcome": body}


@pytest.mark.parametrize("kind", ["selected", "cancelled"])
def test_an_unknown_outcome_under_a_known_name_is_said_as_cancelled(kind: str) -> None:
    forged = services.UnknownOutcome(kind, {"outcome": "selected", "optionId": "yes"})
    for version in (1, 2):
        assert said(version, services.PermissionAnswer(forged)) == {"outcome": {"outcome": "cancelled"}}


def test_an_unknown_outcome_is_said_under_its_own_name() -> None:
    forged = services.UnknownOutcome("_odd", {"outcome": "selected", "optionId": "yes"})
    assert said(2, services.PermissionAnswer(forged)) == {"outcome": {"outcome": "_odd", "optionId": "yes"}}


def said(version: int, answer: services.PermissionAnswer) -> Any:
    client = client_of(version)
    option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
    params = {"sessionId": "s", "options": [option], "title": "May I?", "toolCall": {"toolCallId": "c"}}
    request = client.decode_request(1, "session/request_permission", Raw(text(params)))
    assert isinstance(request, services.RequestPermission)
    return result_of(client.encode_reply(1, request, answer))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "result",
    [
        b'{"outcome":{"outcome":"cancelled"},"outcome":{"outcome":"selected","optionId":"yes"}}',
        b'{"outcome":{"outcome":"selected","optionId":"yes"},"outcome":{"outcome":"cancelled"}}',
        b'{"outcome":{"outcome":"cancelled","outcome":"selected","optionId":"yes"}}',
        b'{"outcome":{"outcome":"selected","optionId":"no","optionId":"yes"}}',
        b'{"outcome":{"outcome":"selected","optionId":"no","option\\u0049d":"yes"}}',
        b'{"outcome":{"outcome":"selected","optionId":"yes"},"_meta":{"a":1,"a":2}}',
    ],
)
def test_an_answer_with_a_key_twice_is_refused(version: int, result: bytes) -> None:
    with pytest.raises(PeerMistake) as caught:
        answered(version, result)
    assert (caught.value.code, caught.value.message) == (-32602, "Invalid permission answer")


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "result",
    [
        *(b"null", b"{}", b"[]", b"true", b'"yes"', b'"allow"', b'{"outcome":null}', b'{"outcome":"selected"}'),
        *(b'{"outcome":{}}', b'{"outcome":{"optionId":"yes"}}', b'{"outcome":{"outcome":"selected"}}'),
        *(b'{"outcome":{"outcome":"selected","optionId":["yes"]}}', b'{"outcome":{"outcome":1,"optionId":"yes"}}'),
        *(
            b'{"outcome":[{"outcome":"selected","optionId":"yes"}]}',
            b'{"optionId":"yes"}',
            b'{"outcome":{"outcome":"sel',
        ),
    ],
)
def test_a_malformed_answer_is_refused(version: int, result: bytes) -> None:
    with pytest.raises(PeerMistake):
        answered(version, result)


@pytest.mark.parametrize("version", [1, 2])
def test_a_question_that_was_cancelled_has_no_answer(version: int) -> None:
    agent = agent_of(version)
    assert agent.decode_failure(QUESTION, WireError(-32800, "cancelled")) == DecodedReply(DISMISSED)
    assert agent.decode_failure(QUESTION, WireError(-32603, "no")) is None


ids = st.sampled_from(["yes", "no", "odd", "maybe", ""])
outcomes = st.sampled_from(["selected", "cancelled", "_approved", "allow", ""])
answers = st.fixed_dictionaries({"outcome": st.fixed_dictionaries({"outcome": outcomes}, optional={"optionId": ids})})


@pytest.mark.requirement("L5")
@pytest.mark.parametrize(("near", "far"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@SHARE
@given(result=answers)
def test_no_answer_becomes_a_yes_on_any_way_through_a_bridge(near: int, far: int, result: Any) -> None:
    """The agent speaks `far`, the client `near`; only the `yes` that was chosen comes out as one."""
    agent_side, client_side = client_of(far), agent_of(near)
    asked = agent_of(far).encode_request(QUESTION)
    request = agent_side.decode_request(1, asked.method, Raw(asked.params))
    assert isinstance(request, services.RequestPermission)
    client_side.encode_request(request)
    try:
        reply = client_side.decode_reply(request, Raw(text(result))).reply
    except PeerMistake:
        return
    assert reply is not None
    final = answered_by(agent_of(far), result_of(agent_side.encode_reply(1, request, reply)))
    said_yes = result == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    assert (isinstance(final, services.Selected) and final.option_id == "yes") == said_yes


def answered_by(agent: Dialect, result: Any) -> Any:
    reply = agent.decode_reply(QUESTION, Raw(text(result))).reply
    assert isinstance(reply, services.PermissionAnswer)
    return reply.outcome


# -- what a user of version 1 is shown ------------------------------------------------------------------------------


def asked_in_v1(*told: events.AnyEvent, **fields: Any) -> Any:
    agent = agent_of(1)
    for event in told:
        agent.encode_event("s", event)
    params = json.loads(
        agent.encode_request(services.RequestPermission("s", "Delete all?", [YES, NO, ODD], **fields)).params
    )
    assert_valid(1, "RequestPermissionRequest", params)
    assert [option["optionId"] for option in params["options"]] == ["yes", "no"]
    return params["toolCall"]


def shown(words: str) -> Any:
    return {"type": "content", "content": {"type": "text", "text": words}}


@pytest.mark.usefixtures("schemas")
def test_the_question_is_the_title_whatever_the_tool_call_calls_itself() -> None:
    subject = services.ToolCallSubject(events.ToolCallUpdate("c", title="List files", kind="_odd", status="cancelled"))
    assert asked_in_v1(subject=subject) == {
        "toolCallId": "c",
        "title": "Delete all?",
        "kind": "other",
        "status": "failed",
    }


@pytest.mark.usefixtures("schemas")
def test_a_description_is_added_to_what_the_call_shows() -> None:
    told = events.ToolCallUpdate("c", title="t", content=[tools.Diff.of("/x", "a", "b")])
    diff = {"type": "diff", "path": "/x", "oldText": "a", "newText": "b"}
    subject = services.ToolCallSubject(events.ToolCallUpdate("c"))
    call = asked_in_v1(told, subject=subject, description="For good.")
    assert call == {"toolCallId": "c", "title": "Delete all?", "content": [diff, shown("For good.")]}
    own = services.ToolCallSubject(events.ToolCallUpdate("c", content=[tools.ContentItem(Text("own"))]))
    assert asked_in_v1(told, subject=own, description="For good.")["content"] == [shown("own"), shown("For good.")]


@pytest.mark.usefixtures("schemas")
def test_a_command_is_shown_as_it_will_run() -> None:
    subject = services.CommandSubject("rm -rf /", "/home", tool_call_id="c", terminal_id="t")
    assert asked_in_v1(subject=subject, description="Clean up") == {
        "toolCallId": "c",
        "title": "Delete all?",
        "kind": "execute",
        "rawInput": {"command": "rm -rf /", "cwd": "/home"},
        "content": [shown("Clean up"), shown("rm -rf /\n(in /home)")],
    }


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("fields", [None, {"type": "_page", "url": "u"}])
def test_a_question_about_something_else_is_a_call_of_its_own(fields: Any) -> None:
    """What it is about stays to be seen, whether or not it is understood."""
    subject = None if fields is None else services.UnknownSubject("_page", fields)
    given = {} if fields is None else {"rawInput": fields}
    assert asked_in_v1(subject=subject) == {"toolCallId": "permission: Delete all?", "title": "Delete all?", **given}

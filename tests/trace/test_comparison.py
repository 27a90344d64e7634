"""Two recordings compared by meaning: ids, times and the sizes of pieces of text differ from run to run."""

import json
from typing import Any

import pytest

from dragoman.trace.comparison import compare
from dragoman.trace.exchanges import exchanges_of
from dragoman.trace.normal_form import normal_messages
from dragoman.trace.records import TO_AGENT, TraceFrame
from tests.support.traces import HELLO, OPENED, Passed, chunk, prompt, to_agent, to_client, update


def frames(*passed: Passed) -> list[TraceFrame]:
    found = []
    for line, (direction, message) in enumerate(passed, 2):
        assert isinstance(message, dict)
        data = json.dumps(message).encode()
        found.append(TraceFrame(line, 1000 + line, "1", direction, data, line / 10))
    return found


def differences(one: tuple[Passed, ...], other: tuple[Passed, ...], **options: Any) -> list[str]:
    """The differences, as lines."""
    left, right = (normal_messages(exchanges_of(frames(*passed)), **options) for passed in (one, other))
    return [str(found) for found in compare(left, right)]


def opened(session: str, id: int | str = 2, cwd: str = "/w") -> tuple[Passed, ...]:
    return (
        *HELLO,
        to_agent(id=id, method="session/new", params={"cwd": cwd, "mcpServers": []}),
        to_client(id=id, result={"sessionId": session}),
    )


@pytest.mark.requirement("TR9")
def test_ids_sessions_and_pieces_of_text_are_no_difference() -> None:
    one = (*opened("s1"), *prompt(3, "go", chunk("s1", "Hel"), chunk("s1", "lo"), session="s1"))
    other = (*opened("sess_77", "b"), *prompt(9, "go", chunk("sess_77", "Hello"), session="sess_77"))
    assert differences(one, other) == []


def test_ids_of_calls_count_by_what_they_belong_to() -> None:
    def calls(*ids: str) -> tuple[Passed, ...]:
        updates = [update("s1", sessionUpdate="tool_call", toolCallId=id, title="t") for id in ids]
        return (*OPENED, *prompt(3, "go", *updates))

    assert differences(calls("a", "b"), calls("x", "y")) == []
    assert differences(calls("a", "a"), calls("x", "y")) != []


def test_times_are_no_difference() -> None:
    def titled(at: str) -> tuple[Passed, ...]:
        return (*OPENED, update("s1", sessionUpdate="session_info_update", title="t", updatedAt=at))

    assert differences(titled("2026-01-01T00:00:00Z"), titled("2027-01-01T00:00:00Z")) == []


@pytest.mark.requirement("TR9")
def test_another_text_is_named_with_both_lines() -> None:
    one, other = ((*OPENED, *prompt(3, "go", chunk("s1", text))) for text in ("yes", "no"))
    (found,) = differences(one, other)
    assert found.splitlines() == [
        "A line 7: <- update agent_message_chunk yes",
        "B line 7: <- update agent_message_chunk no",
        "  params.update.content.text: 'yes' is 'no'",
    ]


def test_what_only_one_has_is_named() -> None:
    more = (*OPENED, *prompt(3, "go", chunk("s1", "hi"), update("s1", sessionUpdate="plan", entries=[])))
    (found,) = differences((*OPENED, *prompt(3, "go", chunk("s1", "hi"))), more)
    assert found == "only B line 8: <- update plan"


def test_a_field_and_an_update_can_be_left_out() -> None:
    one, other = opened("s1", cwd="/one"), opened("s1", cwd="/other")
    assert len(differences(one, other)) == 1
    assert differences(one, other, ignored_fields=["cwd"]) == []
    told = (*OPENED, update("s1", sessionUpdate="available_commands_update", availableCommands=[]))
    assert differences(OPENED, told, ignored_methods=["available_commands_*"]) == []


def test_an_answer_belongs_to_its_request_whatever_its_id() -> None:
    ends = ({"stopReason": "end_turn"}, {"stopReason": "cancelled"})
    one, other = ((*OPENED, *prompt(3, "go")[:1], to_client(id=3, result=end)) for end in ends)
    (found,) = differences(one, other)
    assert "session/prompt" in found
    assert "result.stopReason: 'end_turn' is 'cancelled'" in found


def test_what_is_no_message_is_compared_as_it_is() -> None:
    noise = TraceFrame(4, 0, "1", TO_AGENT, b"noise", 0.1)
    one = normal_messages(exchanges_of([*frames(*HELLO), noise]))
    other = normal_messages(exchanges_of([*frames(*HELLO), noise._replace(data=b"other")]))
    assert len(list(compare(one, other))) == 1
    assert list(compare(one, one)) == []

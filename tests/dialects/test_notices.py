"""Notices for clients that take none: in a turn they are shown in words, and they are never part of a message."""

from typing import Any

import pytest

from dragoman.dialects.contract import Dialect
from dragoman.dialects.handshake.initialize import JUNE
from dragoman.dialects.v1.notices import WAITING
from dragoman.vocabulary import events, requests
from dragoman.vocabulary.content import Text
from tests.dialects import vendor_agents
from tests.dialects.joined_dialects import agent_of, client_with, updates_of
from tests.dialects.test_v1_agent import heard, prompted

RETRY = events.Notice("warning", "The rate limit is reached; trying again in 25 s (1 of 3)")


def bare() -> Dialect:
    return agent_of(1, client_with())


def shown(title: str, number: int = 1, status: str = "completed", **more: Any) -> dict[str, Any]:
    call = {"sessionUpdate": "tool_call", "toolCallId": f"notice-u-{number}", "title": title}
    return {**call, "kind": "other", "status": status, **more}


def test_in_a_turn_a_notice_is_a_finished_call_at_once() -> None:
    agent = bare()
    prompted(agent)
    agent.encode_event("s", events.Running())
    failed = events.Notice("error", "The server 'files' is gone", "It ended with code 1", meta={"k": 1})
    assert updates_of(agent, RETRY, failed, events.Notice("info", "By the way")) == [
        shown(f"Warning: {RETRY.title}"),
        shown(
            "Error: The server 'files' is gone",
            2,
            "failed",
            content=[{"type": "content", "content": {"type": "text", "text": "It ended with code 1"}}],
            _meta={"k": 1},
        ),
        shown("By the way", 3),
    ]


def test_between_turns_it_waits_for_the_next_one_and_is_shown_once() -> None:
    agent = bare()
    assert updates_of(agent, RETRY) == []
    prompted(agent)
    assert updates_of(agent, events.Running()) == [shown(f"Warning: {RETRY.title}")]
    assert updates_of(agent, events.RequiresAction(), events.Running()) == []


def test_what_waits_outlives_a_load_and_is_bounded() -> None:
    agent = bare()
    assert updates_of(agent, *[events.Notice("info", str(number)) for number in range(WAITING + 1)]) == []
    heard(agent, "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    prompted(agent, id=2)
    titles = [update["title"] for update in updates_of(agent, events.Running())]
    assert titles == [str(number) for number in range(1, WAITING + 1)]


def test_a_client_that_watches_a_turn_of_another_is_sent_its_notices_in_that_turn() -> None:
    agent = bare()
    turn: list[events.AnyEvent] = [events.UserMessage("u", [Text("hello")]), events.Running(), RETRY]
    assert updates_of(agent, *turn)[1:] == [shown(f"Warning: {RETRY.title}")]
    assert updates_of(agent, events.Idle(stop_reason="end_turn"), RETRY) == []


def test_a_client_that_names_notices_gets_them_whenever_they_come() -> None:
    said = {"sessionUpdate": "notice", "severity": "warning", "title": RETRY.title}
    assert updates_of(agent_of(1, client_with(notices=True)), RETRY) == [said]


@pytest.mark.parametrize(
    ("update", "title"),
    [
        (events.CompactionUpdate("c", "completed"), "The conversation was summarised to fit the model's context"),
        (events.CompactionUpdate("c", "failed"), "Warning: The conversation could not be summarised"),
    ],
)
def test_the_end_of_a_compaction_is_told_in_its_turn_and_in_no_replay(update: Any, title: str) -> None:
    agent = bare()
    assert updates_of(agent, update) == []
    prompted(agent)
    assert updates_of(agent, events.Running(), events.CompactionUpdate("c", "in_progress")) == []
    assert updates_of(agent, update) == [shown(title)]


def in_a_turn(name: str) -> Dialect:
    agent = vendor_agents.agent_of(name)
    params = {"sessionId": "s", "prompt": "hi" if name == "simse" else vendor_agents.HELLO_WORLD}
    request = vendor_agents.heard(agent, "session/prompt", params)
    agent.encode_reply(1, request, requests.PromptAccepted("u"))
    agent.encode_event("s", events.Running())
    return agent


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("agentao", "agent_thought_chunk", f"\n{RETRY.title}\n"),
        ("iac-code", "agent_thought_chunk", f"\n[Warning] {RETRY.title}\n"),
        ("simse", "agent_message_chunk", f"\n[{RETRY.title}]\n"),
    ],
)
def test_a_vendor_s_client_is_told_in_an_update_that_its_document_has(name: str, kind: str, words: str) -> None:
    (said,) = vendor_agents.updates(in_a_turn(name), RETRY)
    assert (said["sessionUpdate"], said["content"]["text"]) == (kind, words)


def test_elephant_shows_it_as_a_call_that_begins_and_ends() -> None:
    first, last = vendor_agents.updates(in_a_turn("elephant"), RETRY)
    assert (first["title"], first["status"], last["status"]) == (f"Warning: {RETRY.title}", "in_progress", "completed")


def test_the_june_draft_shows_it_as_a_call() -> None:
    (said,) = vendor_agents.updates(in_a_turn(JUNE), RETRY)
    assert said == {**shown(f"Warning: {RETRY.title}"), "sessionUpdate": "tool_call_update"}


def test_iac_code_reads_an_error_as_a_message() -> None:
    (said,) = vendor_agents.updates(in_a_turn("iac-code"), events.Notice("error", "It broke"))
    assert (said["sessionUpdate"], said["text"]) == ("agent_message_chunk", "[Error] It broke\n")

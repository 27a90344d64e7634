"""Version 1 as the agent: what a wire without states, patches and appends is told instead."""

import base64
import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.contract import Dialect, ErrorMessage, NotificationMessage, ResultMessage
from dragoman.dialects.v1.agent import AgentV1
from dragoman.dialects.v1.updates import GOING_ON, REMEMBERED
from dragoman.errors import PeerMistake, WireError
from dragoman.vocabulary import events, options, requests, services, tools
from dragoman.vocabulary.asking import Done, Request
from dragoman.vocabulary.content import Image, Text
from tests.dialects.joined_dialects import AGENT, CLIENT, agent_of, client_with, result_of, updates_of
from tests.dialects.schemas import text

HELLO = [{"type": "text", "text": "hello"}]
MODES: list[Any] = [options.Choice("ask", "Ask"), options.Choice("plan", "Plan", "only plans")]
MODE = options.Select("permission_mode", "Mode", "ask", MODES, category="mode")
MODEL = options.Select("model", "Model", "big", [options.Choice("big", "Big")], category="model")
SWITCH = options.Toggle("web", "Web", True)


def bare() -> Dialect:
    """An agent whose client has named no capability."""
    return agent_of(1, client_with())


def heard(dialect: Dialect, method: str, params: Any, id: int = 1) -> Any:
    return dialect.decode_request(id, method, Raw(text(params)))


def prompted(dialect: Dialect, id: int = 1, session: str = "s") -> Request:
    """A prompt that was heard and accepted as message `u`."""
    request = heard(dialect, "session/prompt", {"sessionId": session, "prompt": HELLO}, id)
    assert dialect.encode_reply(id, request, requests.PromptAccepted("u")) == []
    assert isinstance(request, Request)
    return request


def opened(dialect: Dialect, *found: options.Option, commands: Any = UNSET) -> list[Any]:
    request = heard(dialect, "session/new", {"cwd": "/", "mcpServers": []})
    return list(dialect.encode_reply(1, request, requests.SessionOpened("s", list(found), commands)))


# -- a prompt is answered when its turn ends -------------------------------------------------------------------------


def test_a_prompt_is_held_until_the_session_is_idle() -> None:
    agent = bare()
    prompted(agent, id=7)
    assert agent.encode_event("s", events.Running()) == []
    assert len(agent.encode_event("s", events.AgentMessageChunk(Text("hi"), "m"))) == 1
    assert agent.encode_event("s", events.RequiresAction()) == []
    (end,) = agent.encode_event("s", events.Idle(stop_reason="end_turn"))
    assert end == ResultMessage(7, b'{"stopReason":"end_turn"}')


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_every_end_of_version_1_is_said_as_it_is(reason: str) -> None:
    agent = bare()
    prompted(agent)
    usage = events.Usage(3, 1, 2, thought_tokens=0)
    end = events.Idle(stop_reason=reason, usage=usage, meta={"a": 1})
    assert result_of(agent.encode_event("s", end)) == {
        "stopReason": reason,
        "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 0},
        "_meta": {"a": 1},
    }


def test_a_stop_reason_without_a_word_is_end_turn_and_kept_beside_it() -> None:
    agent = bare()
    prompted(agent)
    end = events.Idle(stop_reason="_tired", meta={"a": 1})
    assert result_of(agent.encode_event("s", end)) == {
        "stopReason": "end_turn",
        "_meta": {"a": 1, "stopReason": "_tired"},
    }


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (events.Failure(-32603, "no", {"reason": "rate_limit"}), WireError(-32603, "no", {"reason": "rate_limit"})),
        (events.Failure(-32603, "who", {"reason": "auth"}), WireError(-32000, "who", {"reason": "auth"})),
        (events.Failure(-32000, "who"), WireError(-32000, "who")),
        (events.Failure(-32002, "gone"), WireError(-32002, "gone")),
        (UNSET, WireError(-32603, "Internal error")),
        (None, WireError(-32603, "Internal error")),
    ],
)
def test_a_turn_that_failed_is_an_error_and_the_session_goes_on(failure: Any, error: WireError) -> None:
    agent = bare()
    prompted(agent, id=1)
    assert agent.encode_event("s", events.Idle(stop_reason="error", error=failure)) == [ErrorMessage(1, error)]
    prompted(agent, id=2)
    assert result_of(agent.encode_event("s", events.Idle(stop_reason="end_turn"))) == {"stopReason": "end_turn"}


def test_an_idle_without_a_reason_ends_a_turn_that_has_begun() -> None:
    agent = bare()
    prompted(agent)
    assert agent.encode_event("s", events.Idle()) == []
    agent.encode_event("s", events.Running())
    assert result_of(agent.encode_event("s", events.Idle())) == {"stopReason": "end_turn"}


def test_the_end_of_an_earlier_turn_does_not_end_a_prompt_that_is_not_accepted() -> None:
    agent = bare()
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO})
    assert agent.encode_event("s", events.Idle(stop_reason="end_turn")) == []
    assert agent.encode_reply(1, request, requests.PromptAccepted("u")) == []
    assert result_of(agent.encode_event("s", events.Idle(stop_reason="refusal"))) == {"stopReason": "refusal"}


def test_a_prompt_that_is_accepted_after_its_turn_is_answered_then() -> None:
    agent = bare()
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO})
    assert agent.encode_event("s", events.UserMessage("u", [Text("hello")])) == []
    assert agent.encode_event("s", events.Idle(stop_reason="max_tokens")) == []
    assert result_of(agent.encode_reply(1, request, requests.PromptAccepted("u"))) == {"stopReason": "max_tokens"}


def test_an_idle_without_a_prompt_says_nothing() -> None:
    assert bare().encode_event("s", events.Idle(stop_reason="end_turn")) == []


@pytest.mark.requirement("8.3.10")
def test_a_second_prompt_is_refused_while_the_first_one_runs() -> None:
    agent = bare()
    prompted(agent, id=1)
    with pytest.raises(PeerMistake) as caught:
        heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO}, id=2)
    assert (caught.value.code, caught.value.data) == (-32600, {"reason": "busy"})
    assert agent.encode_event("s", events.Idle(stop_reason="end_turn")) == [
        ResultMessage(1, b'{"stopReason":"end_turn"}')
    ]


def test_prompts_of_two_sessions_run_side_by_side() -> None:
    agent = bare()
    prompted(agent, id=1, session="a")
    prompted(agent, id=2, session="b")
    assert agent.encode_event("b", events.Idle(stop_reason="end_turn")) == [
        ResultMessage(2, b'{"stopReason":"end_turn"}')
    ]
    assert agent.encode_event("a", events.Idle(stop_reason="refusal")) == [
        ResultMessage(1, b'{"stopReason":"refusal"}')
    ]


def test_a_prompt_that_was_refused_waits_for_nothing() -> None:
    agent = bare()
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO})
    error = WireError(-32002, "Session not found")
    assert agent.encode_failure(1, request, error) == [ErrorMessage(1, error)]
    prompted(agent, id=2)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(PeerMistake, match="empty"):
        heard(bare(), "session/prompt", {"sessionId": "s", "prompt": []})


def test_giving_up_on_the_prompt_cancels_the_turn_and_on_another_request_does_not() -> None:
    agent = bare()
    prompted(agent, id=5)
    assert agent.decode_cancel(5) == requests.CancelTurn("s")
    assert agent.decode_cancel(6) is None
    assert agent.decode_cancel("5") is None


@pytest.mark.requirement("8.1.11", "8.4.14")
def test_session_cancel_may_be_sent_as_a_request() -> None:
    assert heard(bare(), "session/cancel", {"sessionId": "s"}) == requests.CancelTurn("s")
    assert bare().decode_notification("session/cancel", Raw(b'{"sessionId":"s"}')) == [requests.CancelTurn("s")]


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_a_session_that_is_closed_under_its_prompt_ends_it(method: str) -> None:
    agent = agent_of(1)
    prompted(agent, id=1)
    request = heard(agent, method, {"sessionId": "s"}, id=2)
    assert agent.encode_reply(2, request, Done()) == [
        ResultMessage(1, b'{"stopReason":"cancelled"}'),
        ResultMessage(2, b"{}"),
    ]


# -- messages --------------------------------------------------------------------------------------------------------


def test_the_live_prompt_is_never_echoed() -> None:
    agent = bare()
    prompted(agent)
    live: list[events.AnyEvent] = [
        events.UserMessage("u", [Text("hello")]),
        events.UserMessageChunk(Text("hello"), "u"),
    ]
    assert updates_of(agent, *live) == []


def test_a_prompt_is_not_echoed_before_it_is_accepted() -> None:
    agent = bare()
    heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO})
    assert updates_of(agent, events.UserMessage("u", [Text("hello")])) == []


def test_what_the_user_says_while_a_turn_runs_is_told() -> None:
    agent = bare()
    prompted(agent)
    assert updates_of(agent, events.UserMessageChunk(Text("and"), "u2")) == [
        {"sessionUpdate": "user_message_chunk", "messageId": "u2", "content": {"type": "text", "text": "and"}}
    ]


def test_a_whole_message_is_told_in_chunks_and_only_once() -> None:
    agent = bare()
    whole = events.AgentMessage("m", [Text("a"), Image("aWk=", "image/png")], meta={"k": 1})
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "_meta": {"k": 1}}
    assert updates_of(agent, whole) == [
        {**chunk, "content": {"type": "text", "text": "a"}},
        {**chunk, "content": {"type": "image", "data": "aWk=", "mimeType": "image/png"}},
    ]
    replaced = [whole, events.AgentMessage("m", [Text("b")]), events.AgentMessage("m", None), events.AgentMessage("m")]
    assert updates_of(agent, *replaced) == []


def test_a_message_that_was_streamed_is_not_told_again_as_a_whole() -> None:
    agent = bare()
    assert len(updates_of(agent, events.AgentMessageChunk(Text("a"), "m"))) == 1
    assert updates_of(agent, events.AgentMessage("m", [Text("a")])) == []
    agent.text_frame("s", "agent_thought_chunk", "t")
    assert updates_of(agent, events.AgentThought("t", [Text("a")])) == []


def test_a_chunk_without_a_message_id_has_none() -> None:
    assert updates_of(bare(), events.AgentThoughtChunk(Text("hm"))) == [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    ]


def test_a_replayed_story_is_told_even_if_it_was_told_before() -> None:
    agent = agent_of(1)
    story: list[events.AnyEvent] = [events.UserMessage("u", [Text("hi")]), events.ToolCallUpdate("c", title="Read")]
    kinds = ["user_message_chunk", "tool_call"]
    assert [update["sessionUpdate"] for update in updates_of(agent, *story)] == kinds
    heard(agent, "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    assert [update["sessionUpdate"] for update in updates_of(agent, *story)] == kinds


def test_the_frame_of_a_text_chunk_is_the_frame_of_its_event() -> None:
    agent = bare()
    head, tail = agent.text_frame('s"', "agent_message_chunk", "m\n")
    (said,) = agent.encode_event('s"', events.AgentMessageChunk(Text("é\n"), "m\n"))
    assert isinstance(said, NotificationMessage)
    frame = json.loads(head + '"é\\n"'.encode() + tail)
    assert frame == {"jsonrpc": "2.0", "method": "session/update", "params": json.loads(said.params)}


# -- tool calls ------------------------------------------------------------------------------------------------------

TEXT_A = tools.ContentItem(Text("a"))
SAID_A = {"type": "content", "content": {"type": "text", "text": "a"}}


def test_a_tool_call_is_announced_once_and_then_updated() -> None:
    first = events.ToolCallUpdate("c", title="Read", kind="read", status="pending", raw_input={"path": "/x"})
    assert updates_of(bare(), first, events.ToolCallUpdate("c", status="completed")) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "Read",
            "kind": "read",
            "status": "pending",
            "rawInput": {"path": "/x"},
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
    ]


@pytest.mark.parametrize(
    ("event", "title"),
    [(events.ToolCallUpdate("c", name="read"), "read"), (events.ToolCallUpdate("c", title=None), "c")],
)
def test_a_tool_call_without_a_title_is_called_by_its_name_or_id(event: events.ToolCallUpdate, title: str) -> None:
    (said,) = updates_of(bare(), event)
    assert (said["sessionUpdate"], said["title"]) == ("tool_call", title)


@pytest.mark.parametrize(
    ("status", "said"),
    [("cancelled", "failed"), ("paused", "in_progress"), ("_odd", "in_progress"), ("completed", "completed")],
)
def test_a_status_is_the_nearest_of_four(status: str, said: str) -> None:
    assert updates_of(bare(), events.ToolCallUpdate("c", status=status))[0]["status"] == said


def test_only_lists_can_be_cleared() -> None:
    first = events.ToolCallUpdate("c", title="t", kind="read", content=[TEXT_A], locations=[tools.Location("/x")])
    cleared = events.ToolCallUpdate(
        "c", title=None, kind=None, status=None, content=None, locations=None, raw_input=None, raw_output=None
    )
    assert updates_of(bare(), first, cleared)[1] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "content": [],
        "locations": [],
    }


def test_content_that_is_appended_is_told_whole() -> None:
    agent = bare()
    diff = tools.Diff.of("/x", "1", "2")
    said = updates_of(
        agent,
        events.ToolCallUpdate("c", title="t", content=[TEXT_A]),
        events.ToolCallContentChunk("c", diff, meta={"k": 1}),
        events.ToolCallContentChunk("c", TEXT_A),
    )
    said_diff = {"type": "diff", "path": "/x", "oldText": "1", "newText": "2"}
    assert [update["content"] for update in said] == [[SAID_A], [SAID_A, said_diff], [SAID_A, said_diff, SAID_A]]
    assert said[1]["_meta"] == {"k": 1}


def test_a_content_chunk_announces_an_unknown_call() -> None:
    assert updates_of(bare(), events.ToolCallContentChunk("c", TEXT_A)) == [
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "c", "content": [SAID_A]}
    ]


def test_a_call_that_goes_on_after_the_turn_keeps_its_content() -> None:
    agent = bare()
    prompted(agent)
    agent.encode_event("s", events.ToolCallUpdate("c", title="t", status="in_progress", content=[TEXT_A]))
    agent.encode_event("s", events.Idle(stop_reason="end_turn"))
    assert updates_of(agent, events.ToolCallContentChunk("c", TEXT_A))[0]["content"] == [SAID_A, SAID_A]


# -- display terminals -----------------------------------------------------------------------------------------------


def bytes_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def shown(update: Any) -> str:
    (item,) = update["content"]
    assert item["type"] == "content"
    return str(item["content"]["text"])


def test_a_display_terminal_is_text_in_the_call_that_shows_it() -> None:
    agent = bare()
    said = updates_of(
        agent,
        events.TerminalUpdate("t", command="make"),
        events.ToolCallUpdate("c", title="Build", content=[tools.TerminalItem("t")]),
        events.TerminalOutputChunk("t", bytes_of(b"\x1b[31mred\x1b[0m\n")),
        events.TerminalUpdate("t", exit_status=tools.ExitStatus(exit_code=2)),
        events.ToolCallUpdate("c", status="failed"),
    )
    assert [shown(update) for update in said] == [
        "$ make\n",
        "$ make\nred\n\n[exit code 2]",
        "$ make\nred\n\n[exit code 2]",
    ]
    assert said[2]["status"] == "failed"


def test_a_long_output_is_told_again_only_when_it_has_grown() -> None:
    agent = bare()
    updates_of(agent, events.ToolCallUpdate("c", title="t", content=[tools.TerminalItem("t")]))
    chunk = events.TerminalOutputChunk("t", bytes_of(b"x" * 100))
    said = [update for _ in range(5_000) for update in updates_of(agent, chunk)]
    # 500 kB in 100-byte pieces: a quarter more each time up to 64 KiB, then one update for every 16 KiB.
    assert 30 < len(said) < 60
    assert max(len(shown(update)) for update in said) <= 64 * 1024 + len("[earlier output cut]\n")


def test_a_terminal_of_the_client_stays_a_terminal() -> None:
    call = events.ToolCallUpdate("c", title="t", content=[tools.ClientTerminalItem("t1")])
    assert updates_of(bare(), call)[0]["content"] == [{"type": "terminal", "terminalId": "t1"}]


# -- options, modes, commands ----------------------------------------------------------------------------------------


def test_a_new_session_tells_its_modes_and_its_options() -> None:
    (answered,) = opened(bare(), MODE, MODEL)
    assert result_of([answered]) == {
        "sessionId": "s",
        "modes": {
            "currentModeId": "ask",
            "availableModes": [
                {"id": "ask", "name": "Ask"},
                {"id": "plan", "name": "Plan", "description": "only plans"},
            ],
        },
        "configOptions": [
            {
                "type": "select",
                "id": "permission_mode",
                "name": "Mode",
                "category": "mode",
                "currentValue": "ask",
                "options": [
                    {"value": "ask", "name": "Ask"},
                    {"value": "plan", "name": "Plan", "description": "only plans"},
                ],
            },
            {
                "type": "select",
                "id": "model",
                "name": "Model",
                "category": "model",
                "currentValue": "big",
                "options": [{"value": "big", "name": "Big"}],
            },
        ],
    }


def test_a_session_without_options_tells_none() -> None:
    agent = bare()
    request = heard(agent, "session/new", {"cwd": "/", "mcpServers": []})
    assert agent.encode_reply(1, request, requests.SessionOpened("s")) == [ResultMessage(1, b'{"sessionId":"s"}')]


def test_modes_of_a_grouped_option_are_flat() -> None:
    grouped = options.Select("m", "M", "ask", [options.ChoiceGroup("g", "G", MODES)], category="mode")
    (answered,) = opened(bare(), grouped)
    assert [mode["id"] for mode in result_of([answered])["modes"]["availableModes"]] == ["ask", "plan"]


def test_a_mode_is_set_through_the_option_that_holds_it() -> None:
    agent = bare()
    opened(agent, MODE)
    request = heard(agent, "session/set_mode", {"sessionId": "s", "modeId": "plan", "_meta": {"k": 1}, "x": 2}, id=9)
    assert (request.config_id, request.value, request.meta, request.extras.fields) == (
        "permission_mode",
        "plan",
        {"k": 1},
        {"x": 2},
    )
    changed = requests.OptionsSet([options.Select("permission_mode", "Mode", "plan", MODES, category="mode")])
    answered, told = agent.encode_reply(9, request, changed)
    assert answered == ResultMessage(9, b"{}")
    # The client was shown the option as well, and has no other way to learn its value.
    assert isinstance(told, NotificationMessage)
    update = json.loads(told.params)["update"]
    assert update["sessionUpdate"] == "config_option_update"
    assert [(option["id"], option["currentValue"]) for option in update["configOptions"]] == [
        ("permission_mode", "plan")
    ]


def test_a_mode_that_the_client_has_set_is_told_once() -> None:
    agent = bare()
    plan = options.Select("permission_mode", "Mode", "plan", MODES, category="mode")

    def kinds(event: events.OptionsChanged) -> list[str]:
        return [update["sessionUpdate"] for update in updates_of(agent, event)]

    opened(agent, MODE)
    request = heard(agent, "session/set_mode", {"sessionId": "s", "modeId": "plan"})
    assert len(agent.encode_reply(1, request, requests.OptionsSet([plan]))) == 2
    assert kinds(events.OptionsChanged([plan], meta={"k": 1})) == ["config_option_update"]  # it has more to say
    opened(agent, MODE)
    request = heard(agent, "session/set_mode", {"sessionId": "s", "modeId": "plan"})
    assert len(agent.encode_reply(1, request, requests.OptionsSet([plan]))) == 2
    assert kinds(events.OptionsChanged([plan])) == []
    assert kinds(events.OptionsChanged([plan])) == ["config_option_update"]
    # The agent has told it before its answer, or nothing has changed.
    request = heard(agent, "session/set_mode", {"sessionId": "s", "modeId": "plan"})
    assert agent.encode_reply(1, request, requests.OptionsSet([plan])) == [ResultMessage(1, b"{}")]


def test_a_mode_that_changes_is_told_in_both_ways_and_one_that_does_not_in_one() -> None:
    agent = bare()
    opened(agent, MODE)
    plan = options.Select("permission_mode", "Mode", "plan", MODES, category="mode")
    kinds = [
        [update["sessionUpdate"] for update in updates_of(agent, events.OptionsChanged([option]))]
        for option in (MODE, plan, plan)
    ]
    assert kinds == [
        ["config_option_update"],
        ["config_option_update", "current_mode_update"],
        ["config_option_update"],
    ]


def test_setting_the_mode_option_tells_the_mode_after_the_answer() -> None:
    agent = bare()
    opened(agent, MODE)
    params = {"sessionId": "s", "configId": "permission_mode", "value": "plan"}
    request = heard(agent, "session/set_config_option", params)
    plan = options.Select("permission_mode", "Mode", "plan", MODES, category="mode")
    answered, told = agent.encode_reply(1, request, requests.OptionsSet([plan]))
    assert isinstance(answered, ResultMessage)
    assert isinstance(told, NotificationMessage)
    assert json.loads(told.params)["update"] == {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}


def test_a_mode_that_could_not_be_set_leaves_nothing_behind() -> None:
    agent = bare()
    assert isinstance(agent, AgentV1)
    request = heard(agent, "session/set_mode", {"sessionId": "s", "modeId": "plan"}, id=9)
    agent.encode_failure(9, request, WireError(-32602, "No such value"))
    reply = requests.OptionsSet([MODEL])
    params = {"sessionId": "s", "configId": "model", "value": "big"}
    again = heard(agent, "session/set_config_option", params, id=9)
    assert "configOptions" in result_of(agent.encode_reply(9, again, reply))


@pytest.mark.parametrize(("knows", "ids"), [(False, ["model"]), (True, ["model", "web"])])
def test_switches_are_told_only_to_a_client_that_knows_them(knows: bool, ids: list[str]) -> None:
    agent = agent_of(1, client_with(boolean_options=knows))
    answered = opened(agent, MODEL, SWITCH)[0]
    changed = updates_of(agent, events.OptionsChanged([MODEL, SWITCH]))[0]
    request = heard(agent, "session/set_config_option", {"sessionId": "s", "configId": "model", "value": "big"})
    was_set = result_of(agent.encode_reply(1, request, requests.OptionsSet([MODEL, SWITCH])))
    for said in (result_of([answered]), changed, was_set):
        assert [option["id"] for option in said["configOptions"]] == ids


def test_commands_are_told_after_the_answer_that_names_the_session() -> None:
    agent = bare()
    commands = [options.Command("plan", "Plan it", options.CommandInput("what")), options.UnknownCommand("_x", {})]
    answered, told = opened(agent, commands=commands)
    assert isinstance(answered, ResultMessage)
    assert isinstance(told, NotificationMessage)
    assert json.loads(told.params) == {
        "sessionId": "s",
        "update": {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "plan", "description": "Plan it", "input": {"hint": "what"}}],
        },
    }


# -- what a client has to ask for ------------------------------------------------------------------------------------

PLAN = events.PlanUpdate(options.PlanItems("p", [options.PlanEntry("a", "high", "cancelled")]))
GATED: list[tuple[str, events.AnyEvent]] = [
    ("notices", events.Notice("info", "hi")),
    ("compaction", events.CompactionUpdate("c", "in_progress")),
    ("compaction", events.CompactionSummaryChunk("c", Text("a"))),
    ("subagents", events.UnknownEvent("subagent_update", {"sessionId": "child"})),
    ("subagents", events.UnknownEvent("session_message", {"messageId": "m"})),
    ("plans", events.PlanUpdate(options.PlanMarkdown("p", "# Plan"))),
    ("plans", events.PlanUpdate(options.PlanFile("p", "file:///plan"))),
]


@pytest.mark.parametrize(("capability", "event"), GATED)
def test_an_update_is_told_only_to_a_client_that_named_it(capability: str, event: events.AnyEvent) -> None:
    assert updates_of(bare(), event) == []
    assert len(updates_of(agent_of(1, client_with(**{capability: True})), event)) == 1


def test_a_client_without_plans_sees_the_steps_told_last() -> None:
    agent = bare()
    other = events.PlanUpdate(options.PlanItems("q", [options.PlanEntry("b", "_odd", "_odd")]))
    said = updates_of(agent, PLAN, other, events.PlanRemoved("p"), events.PlanRemoved("q"))
    assert said == [
        {"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "high", "status": "completed"}]},
        {"sessionUpdate": "plan", "entries": [{"content": "b", "priority": "medium", "status": "pending"}]},
        {"sessionUpdate": "plan", "entries": []},
    ]


def test_a_client_with_plans_sees_them_by_id() -> None:
    said = updates_of(agent_of(1, client_with(plans=True)), PLAN, events.PlanRemoved("p"))
    entries = [{"content": "a", "priority": "high", "status": "completed"}]
    assert said == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}},
        {"sessionUpdate": "plan_removed", "planId": "p"},
    ]


@pytest.mark.parametrize("name", ["tool_call", "plan", "current_mode_update"])
def test_an_unknown_update_is_never_taken_for_a_known_one(name: str) -> None:
    assert updates_of(agent_of(1), events.UnknownEvent(name, {"title": "forged", "toolCallId": "c"})) == []


# -- memory ----------------------------------------------------------------------------------------------------------


def test_what_is_remembered_stays_bounded_over_many_turns() -> None:
    agent = bare()
    assert isinstance(agent, AgentV1)
    for turn in range(REMEMBERED // 20 + 10):
        prompted(agent, id=turn)
        for call in range(20):
            name = f"{turn}-{call}"
            agent.encode_event("s", events.ToolCallUpdate(name, title="t", content=[tools.TerminalItem(name)]))
            agent.encode_event("s", events.TerminalOutputChunk(name, bytes_of(b"x" * 10)))
            agent.encode_event("s", events.AgentMessageChunk(Text("a"), name))
        agent.encode_event("s", events.Idle(stop_reason="end_turn"))
    session = agent._sessions["s"]
    assert (len(session.calls), len(session.message_ids)) == (REMEMBERED, REMEMBERED)
    assert (len(session.terminals), sum(bool(call.content) for call in session.calls.values())) == (GOING_ON, GOING_ON)
    assert (agent._prompts, agent._mode_requests, list(agent._sessions)) == ({}, set(), ["s"])


def test_a_closed_session_is_forgotten() -> None:
    agent = agent_of(1, CLIENT, AGENT)
    assert isinstance(agent, AgentV1)
    agent.encode_event("s", events.AgentMessageChunk(Text("a"), "m"))
    request = heard(agent, "session/close", {"sessionId": "s"})
    assert agent.encode_reply(1, request, Done()) == [ResultMessage(1, b"{}")]
    assert agent._sessions == {}


def test_a_permission_shows_a_display_terminal_as_text() -> None:
    agent = bare()
    agent.encode_event("s", events.TerminalUpdate("t", command="ls"))
    call = events.ToolCallUpdate("c", title="Run", content=[tools.TerminalItem("t")])
    option = services.PermissionOption("y", "Yes", "allow_once")
    asked = agent.encode_request(
        services.RequestPermission("s", "Run", [option], subject=services.ToolCallSubject(call))
    )
    assert shown(json.loads(asked.params)["toolCall"]) == "$ ls\n"

"""Display terminals that an editor draws itself: what one that declares them is sent, and one that does not."""

import base64
import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Dialect
from dragoman.dialects.v1.agent import AgentV1
from dragoman.dialects.v1.live_terminals import ERASE, PIECE
from dragoman.dialects.v1.updates import GOING_ON
from dragoman.vocabulary import events, requests, services, tools
from dragoman.vocabulary.content import Text
from tests.dialects.joined_dialects import AGENT, agent_of, client_with, result_of, updates_of
from tests.dialects.test_v1_agent import heard, prompted

ZED = {"terminal_output": True}
OUTPUT = "terminal_output"
COMMAND = events.ToolCallUpdate("c", title="make", kind="execute", status="pending")
SHOWS = events.ToolCallUpdate("c", content=[tools.TerminalItem("t")])


def zed(meta: Any = ZED) -> Dialect:
    return agent_of(1, client_with(meta=meta))


def chunk(data: bytes, terminal: str = "t") -> events.TerminalOutputChunk:
    return events.TerminalOutputChunk(terminal, base64.b64encode(data).decode())


def ended(code: int | None = 0, signal: str | None = None) -> events.TerminalUpdate:
    return events.TerminalUpdate("t", exit_status=tools.ExitStatus(exit_code=code, signal=signal))


def output(data: str, key: str = OUTPUT, call: str = "c") -> dict[str, Any]:
    """An update that does nothing but append output."""
    meta = {key: {"terminal_id": call, "data": data}}
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": meta}


def end(code: int | None, signal: str | None = None) -> dict[str, Any]:
    meta = {"terminal_exit": {"terminal_id": "c", "exit_code": code, "signal": signal}}
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": meta}


TERMINAL = [{"type": "terminal", "terminalId": "c"}]


@pytest.mark.requirement("ED1")
def test_a_command_is_announced_with_a_terminal_then_shows_it_then_appends_then_ends() -> None:
    assert updates_of(
        zed(),
        COMMAND,
        SHOWS,
        events.TerminalUpdate("t", command="make"),
        chunk(b"\x1b[31mred\x1b[0m\n"),
        chunk(b"more"),
        ended(2),
        events.ToolCallUpdate("c", status="failed"),
    ) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "make",
            "kind": "execute",
            "status": "pending",
            "_meta": {"terminal_info": {"terminal_id": "c"}},
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": TERMINAL},
        output("\x1b[31mred\x1b[0m\n"),
        output("more"),
        end(2),
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed", "content": TERMINAL},
    ]


@pytest.mark.requirement("ED1")
@pytest.mark.parametrize(
    ("given", "folder"),
    [
        (None, "/w"),
        ({"command": "make"}, "/w"),
        ({"cwd": "src/x"}, "/w/src/x"),
        ({"cwd": "/elsewhere"}, "/elsewhere"),
        ({"cwd": 7}, "/w"),
    ],
)
def test_a_terminal_is_announced_with_the_folder_of_its_command(given: Any, folder: str) -> None:
    dialect = zed()
    opening = heard(dialect, "session/new", {"cwd": "/w", "mcpServers": []})
    dialect.encode_reply(1, opening, requests.SessionOpened("s"))
    (update,) = updates_of(dialect, replace(COMMAND, raw_input=given))
    assert update["_meta"] == {"terminal_info": {"terminal_id": "c", "cwd": folder}}


@pytest.mark.requirement("ED4")
@pytest.mark.parametrize(
    "meta",
    [{}, {"terminal_output": False}, {"terminal_output": {}}, {"terminal_output": "true"}, {"terminal_output": None}],
)
def test_a_client_that_does_not_declare_it_is_sent_text_and_no_meta(meta: Any) -> None:
    said = updates_of(
        zed(meta), COMMAND, SHOWS, chunk(b"x" * 2000), ended(), events.ToolCallUpdate("c", status="failed")
    )
    assert "_meta" not in json.dumps(said)
    assert said[-1]["content"] == [{"type": "content", "content": {"type": "text", "text": "x" * 2000}}]


@pytest.mark.parametrize("name", ["iac-code", "agentao", "simse", "elephant"])
def test_a_vendor_dialect_has_no_live_terminals(name: str) -> None:
    dialect = dialect_for(1, "agent", client_with(meta=ZED), AGENT, name)
    outs = [out for event in (COMMAND, SHOWS, chunk(b"x" * 2000)) for out in dialect.encode_event("s", event)]
    assert "terminal_" not in repr(outs)


@pytest.mark.requirement("ED2")
def test_a_client_of_jetbrains_is_sent_the_output_under_its_own_key() -> None:
    both = zed({"terminal_output": True, "terminal_output_delta": True})
    assert updates_of(both, COMMAND, SHOWS, chunk(b"a"))[2:] == [output("a", "terminal_output_delta")]


def test_a_call_that_runs_no_command_is_announced_without_a_terminal() -> None:
    read = events.ToolCallUpdate("r", title="Read", kind="read")
    assert updates_of(zed(), read) == [
        {"sessionUpdate": "tool_call", "toolCallId": "r", "title": "Read", "kind": "read"}
    ]


def test_a_terminal_in_a_call_that_was_announced_without_one_is_text() -> None:
    said = updates_of(zed(), events.ToolCallUpdate("c", title="t"), SHOWS, chunk(b"x" * 2000))
    assert said[2]["content"] == [{"type": "content", "content": {"type": "text", "text": "x" * 2000}}]


def test_a_second_terminal_of_a_call_is_text_and_the_first_stays_live() -> None:
    two = events.ToolCallUpdate("c", content=[tools.TerminalItem("t"), tools.TerminalItem("u")])
    agent = zed()
    said = updates_of(agent, COMMAND, two, chunk(b"x" * 2000, "u"), chunk(b"a"))
    assert said[2]["content"] == [*TERMINAL, {"type": "content", "content": {"type": "text", "text": "x" * 2000}}]
    assert said[3] == output("a")


def test_output_that_came_before_the_call_shows_its_terminal_is_sent_then() -> None:
    """A replay sends a terminal before the call that shows it."""
    whole = events.ToolCallUpdate("c", title="make", kind="execute", content=[tools.TerminalItem("t")])
    said = updates_of(zed(), chunk(b"early"), ended(1), whole)
    assert said[0]["_meta"] == {"terminal_info": {"terminal_id": "c"}}
    assert (said[0]["content"], said[1:]) == (TERMINAL, [output("early"), end(1)])


def test_a_character_that_is_split_between_chunks_is_sent_whole() -> None:
    assert updates_of(zed(), COMMAND, SHOWS, chunk(b"\xc3"), chunk(b"\xa9"))[2:] == [output("é")]


def test_half_a_character_at_the_end_is_sent_as_one_that_cannot_be_read() -> None:
    assert updates_of(zed(), COMMAND, SHOWS, chunk(b"a\xc3"), ended())[2:] == [output("a"), output("\ufffd"), end(0)]


def test_a_large_piece_of_output_is_sent_in_bounded_ones() -> None:
    said = updates_of(zed(), COMMAND, SHOWS, chunk(b"\0" * (2 * PIECE + 1)))[2:]
    assert [len(update["_meta"][OUTPUT]["data"]) for update in said] == [PIECE, PIECE, 1]


def test_output_that_is_replaced_is_erased_first() -> None:
    new = events.TerminalUpdate("t", output=tools.TerminalOutput(base64.b64encode(b"new").decode()))
    assert updates_of(zed(), COMMAND, SHOWS, chunk(b"old"), new)[3:] == [output(ERASE + "new")]


@pytest.mark.parametrize(
    ("code", "signal", "sent"),
    [(None, "SIGKILL", (None, "SIGKILL")), (None, None, (None, None)), (-9, None, (None, None)), (0, None, (0, None))],
)
def test_how_a_command_ended_is_sent_once(code: int | None, signal: str | None, sent: Any) -> None:
    assert updates_of(zed(), COMMAND, SHOWS, ended(code, signal), ended(code, signal))[2:] == [end(*sent)]


def test_meta_of_the_call_is_kept_beside_the_terminal() -> None:
    (said,) = updates_of(zed(), events.ToolCallUpdate("c", title="t", kind="execute", meta={"mine": 1}))
    assert said["_meta"] == {"mine": 1, "terminal_info": {"terminal_id": "c"}}


def test_a_terminal_that_an_agent_behind_a_bridge_has_announced_passes_as_it_is() -> None:
    theirs = {"terminal_info": {"terminal_id": "own", "cwd": "/"}}
    call = events.ToolCallUpdate("c", title="t", kind="execute", meta=theirs)
    appended = events.ToolCallUpdate("c", meta={OUTPUT: {"terminal_id": "own", "data": "a"}})
    said = updates_of(zed(), call, appended)
    assert [update["_meta"] for update in said] == [theirs, appended.meta]


def test_a_permission_shows_a_live_terminal_as_the_clients_own() -> None:
    agent = zed()
    updates_of(agent, COMMAND, SHOWS)
    option = services.PermissionOption("y", "Yes", "allow_once")
    subject = services.ToolCallSubject(events.ToolCallUpdate("c", content=[tools.TerminalItem("t")]))
    asked = agent.encode_request(services.RequestPermission("s", "Run", [option], subject=subject))
    assert json.loads(asked.params)["toolCall"]["content"] == TERMINAL


def test_a_command_that_goes_on_after_its_turn_stays_live_and_an_ended_one_is_forgotten() -> None:
    agent = zed()
    prompted(agent)
    updates_of(agent, events.Running(), COMMAND, SHOWS, chunk(b"a"))
    for number in range(GOING_ON):
        call = events.ToolCallUpdate(f"c{number}", title="t", kind="execute")
        status = tools.ExitStatus(exit_code=0)
        shows = events.ToolCallUpdate(f"c{number}", status="completed", content=[tools.TerminalItem(f"t{number}")])
        updates_of(agent, call, shows, events.TerminalUpdate(f"t{number}", exit_status=status))
    assert result_of(agent.encode_event("s", events.Idle(stop_reason="end_turn"))) == {"stopReason": "end_turn"}
    assert isinstance(agent, AgentV1)
    assert repr(agent._sessions["s"].live) == "<LiveTerminals terminal_output announced=0 live=1>"
    assert updates_of(agent, chunk(b"b"), ended()) == [output("b"), end(0)]


def test_text_in_the_content_stays_beside_the_terminal() -> None:
    added = events.ToolCallContentChunk("c", tools.ContentItem(Text("note")))
    said = updates_of(zed(), COMMAND, SHOWS, added)
    assert said[2]["content"] == [*TERMINAL, {"type": "content", "content": {"type": "text", "text": "note"}}]

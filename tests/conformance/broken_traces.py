"""Recordings of both versions: one that breaks nothing, and for each passive row one that breaks it."""

from typing import Any

from tests.support.traces import Passed, chunk, prompt, to_agent, to_client, update

LENT = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
ABLE = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
}
IMAGE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
INFO = {"name": "peer", "version": "1"}


def greeting(version: int, *, lent: dict[str, Any] | None = None, able: dict[str, Any] | None = None) -> list[Passed]:
    """`initialize` and its answer."""
    if version == 1:
        asked: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": LENT if lent is None else lent}
        answered: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": ABLE if able is None else able}
    else:
        shown: dict[str, Any] = {"elicitation": {"form": {}}} if lent is None else {}
        asked = {"protocolVersion": 2, "info": INFO, "capabilities": shown}
        has: dict[str, Any] = {"session": {"prompt": {"image": {}, "audio": {}, "embeddedContext": {}}, "delete": {}}}
        answered = {"protocolVersion": 2, "info": INFO, "capabilities": has if able is None else {"session": {}}}
    return [to_agent(id=0, method="initialize", params=asked), to_client(id=0, result=answered)]


def opened(session: str = "s1", id: int = 1) -> list[Passed]:
    """`session/new` and its answer."""
    asked = to_agent(id=id, method="session/new", params={"cwd": "/w", "mcpServers": []})
    return [asked, to_client(id=id, result={"sessionId": session})]


def asked(id: int, *blocks: dict[str, Any], session: str = "s1") -> Passed:
    """A prompt that is not answered yet."""
    content = list(blocks) or [{"type": "text", "text": "go"}]
    return to_agent(id=id, method="session/prompt", params={"sessionId": session, "prompt": content})


def ended(version: int, id: int, reason: str = "end_turn") -> list[Passed]:
    """The end of a turn: in version 2 its prompt is answered at once."""
    if version == 1:
        return [to_client(id=id, result={"stopReason": reason})]
    return [update("s1", sessionUpdate="state_update", state="idle", stopReason=reason)]


def began(version: int, id: int) -> list[Passed]:
    """What version 2 says at the start of a turn."""
    if version == 1:
        return []
    return [
        to_client(id=id, result={"messageId": f"m{id}"}),
        update("s1", sessionUpdate="state_update", state="running"),
    ]


def question(version: int, id: int = 50, options: list[dict[str, Any]] | None = None) -> Passed:
    """A permission request."""
    about: dict[str, Any] = {"toolCall": {"toolCallId": "c1", "title": "Run"}}
    if version == 2:
        call = {"toolCallId": "c1", "title": "Run"}
        about = {"title": "Run?", "subject": {"type": "tool_call", "toolCall": call}}
    offered = OPTIONS if options is None else options
    params = {"sessionId": "s1", "options": offered, **about}
    return to_client(id=id, method="session/request_permission", params=params)


def answer(id: int, option: str) -> Passed:
    """The answer to a permission request; empty: it is cancelled."""
    outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
    return to_agent(id=id, result={"outcome": outcome})


def cancel() -> Passed:
    return to_agent(method="session/cancel", params={"sessionId": "s1"})


def call(kind: str, status: str) -> Passed:
    return update("s1", sessionUpdate=kind, toolCallId="c1", title="Run", status=status)


def say(version: int, text: str) -> Passed:
    if version == 1:
        return chunk("s1", text)
    return update("s1", sessionUpdate="agent_message_chunk", messageId="a1", content={"type": "text", "text": text})


def conforming(version: int) -> list[Passed]:
    """A conversation that exercises the rows, and breaks none."""
    tool = "tool_call" if version == 1 else "tool_call_update"
    passed = [
        *greeting(version),
        *opened(),
        asked(2, {"type": "text", "text": "go"}, IMAGE),
        *began(version, 2),
        say(version, "Hello."),
        call(tool, "pending"),
        question(version, 50),
        answer(50, "yes"),
        call("tool_call_update", "completed"),
        *ended(version, 2),
        asked(3),
        *began(version, 3),
        question(version, 51),
        cancel(),
        answer(51, ""),
        *ended(version, 3, "cancelled"),
        to_agent(id=4, method="session/list", params={}),
        to_client(id=4, result={"sessions": []}),
    ]
    if version == 1:
        load = {"sessionId": "s1", "cwd": "/w", "mcpServers": []}
        passed += [
            to_client(id=60, method="fs/read_text_file", params={"sessionId": "s1", "path": "/w/a"}),
            to_agent(id=60, result={"content": ""}),
            to_agent(id=5, method="session/load", params=load),
            chunk("s1", "Hello."),
            to_client(id=5, result={}),
            to_agent(id=6, method="session/resume", params=load),
            to_client(id=6, result={}),
        ]
    return passed


def broken(switch: str, version: int) -> list[Passed]:
    """The shortest conversation that breaks the row of this switch."""
    start = [*greeting(version), *opened()]
    turn = [asked(2), *began(version, 2)]
    load = {"sessionId": "s1", "cwd": "/w", "mcpServers": []}
    bare = greeting(version, lent={}, able={})
    traces: dict[str, list[Passed]] = {
        "agent_noise": [*start, ("agent -> client", b"Loading model ...")],
        "client_noise": [*start, ("client -> agent", b"not JSON")],
        "agent_shape": [*start, to_client(method="session/update", params={"sessionId": 7})],
        "client_shape": [*start, to_agent(id=3, method="session/new", params={"cwd": 7, "mcpServers": []})],
        "initialize_error": [greeting(version)[0], to_client(id=0, error={"code": -32603, "message": "no"})],
        "agent_other_id": [*start, to_client(id="2", result={})],
        "agent_answers_twice": [*start, start[-1]],
        "agent_never_answers": [*start, *([asked(2)] if version == 1 else [to_agent(id=9, method="_x", params={})])],
        "unlent_file": [
            *bare,
            *opened(),
            to_client(id=60, method="fs/read_text_file", params={"sessionId": "s1", "path": "/w/a"}),
        ],
        "unlent_terminal": [
            *bare,
            *opened(),
            to_client(id=60, method="terminal/create", params={"sessionId": "s1", "command": "ls"}),
        ],
        "unshown_form": [*bare, to_client(id=60, method="elicitation/create", params={"sessionId": "s1"})],
        "unknown_session": [*start, update("other", sessionUpdate="available_commands_update", availableCommands=[])],
        "after_the_end": [*start, *turn, *ended(1, 2), say(1, "late")],
        "idle_without_running": [*start, *ended(2, 2)],
        "late_replay": [
            *start,
            to_agent(id=5, method="session/load", params=load),
            to_client(id=5, result={}),
            say(1, "late"),
        ],
        "no_replay": [
            *start,
            *prompt(2, "go"),
            to_agent(id=5, method="session/load", params=load),
            to_client(id=5, result={}),
        ],
        "resume_replays": [
            *start,
            to_agent(id=5, method="session/resume", params=load),
            say(1, "again"),
            to_client(id=5, result={}),
        ],
        "unannounced_call": [*start, asked(2), call("tool_call_update", "completed"), *ended(1, 2)],
        "open_call": [
            *start,
            *turn,
            call("tool_call" if version == 1 else "tool_call_update", "in_progress"),
            *ended(version, 2),
        ],
        "cancel_error": [*start, *turn, cancel(), to_client(id=2, error={"code": -32603, "message": "stopped"})],
        "same_options": [*start, *turn, question(version, 50, [OPTIONS[0], {**OPTIONS[1], "optionId": "yes"}])],
        "asks_early": [greeting(version)[0], opened()[0]],
        "same_ids": [*start, to_agent(id=7, method="_x", params={}), to_agent(id=7, method="_x", params={})],
        "client_other_id": [*start, *turn, question(version, 50), answer(51, "yes")],
        "client_never_answers": [*start, *turn, question(version, 50)],
        "unadvertised_method": [
            *bare,
            to_agent(id=5, method="session/delete", params={"sessionId": "s1"}),
            to_client(id=5, result={}),
        ],
        "unadvertised_image": [*bare, *opened(), asked(2, IMAGE)],
        "prompts_unknown_session": [*start, asked(2, session="other")],
        "prompts_twice": [*start, asked(2), asked(3)],
        "chooses_unoffered": [*start, *turn, question(version, 50), answer(50, "perhaps")],
        "answers_after_cancel": [*start, *turn, question(version, 50), cancel(), answer(50, "yes")],
    }
    return traces[switch]

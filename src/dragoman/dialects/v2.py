"""Version 2 (draft): the tables. The vocabulary has this version's meaning, so most of it is names."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.patches import git_patch
from dragoman.dialects.questions import Elicitation
from dragoman.dialects.speaker import NoteRoute, Route
from dragoman.dialects.tolerance import with_raw_fields
from dragoman.dialects.transcribe import hear_extras, plain, say_extras, say_unknown
from dragoman.dialects.words import hear_unknown_value, say_unknown_value, transcriber
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

_CHANGES: dict[str, Any] = {
    "add": w.DiffChangeAdd,
    "delete": w.DiffChangeDelete,
    "modify": w.DiffChangeModify,
    "move": w.DiffChangeMove,
    "copy": w.DiffChangeCopy,
}


# -- content and options ---------------------------------------------------------------------------------------------


def _say_annotations(value: content.Annotations) -> Any:
    """A priority is from 0 to 1 here; another says nothing that could be kept."""
    if isinstance(value.priority, (int, float)) and not 0 <= value.priority <= 1:
        value = msgspec.structs.replace(value, priority=UNSET)
    return WORDS.say_as(value, w.Annotations)


def _say_link(link: content.ResourceLink) -> Any:
    if isinstance(link.size, int) and link.size < 0:
        link = msgspec.structs.replace(link, size=UNSET)
    return WORDS.say_as(link, w.ResourceLink)


def _say_location(location: tools.Location) -> Any:
    """Lines begin at 1 here."""
    if isinstance(location.line, int) and location.line < 1:
        location = msgspec.structs.replace(location, line=UNSET)
    return WORDS.say_as(location, w.ToolCallLocation)


def _say_select(option: options.Select) -> Any:
    """There is always something to choose from here: at least the value that is set."""
    shown = [entry for entry in option.options if not isinstance(entry, options.ChoiceGroup) or entry.options]
    if not shown:
        shown = [options.Choice(option.current_value, option.current_value)]
    return WORDS.say_as(option, w.SessionConfigOptionSelect, options=WORDS.say(shown))


# -- tool calls ------------------------------------------------------------------------------------------------------


def _hear_change(value: Any) -> tools.FileChange:
    return tools.FileChange(
        value.__struct_config__.tag,
        value.path,
        getattr(value, "old_path", UNSET),
        value.file_type,
        value.mime_type,
        meta=value.meta,
        extras=hear_extras(value),
    )


def _say_change(change: tools.FileChange) -> Any:
    kind = _CHANGES[change.operation]
    pair = {"old_path": change.old_path} if change.operation in ("move", "copy") else {}
    return WORDS.say_as(change, kind, **pair)


def _say_diff(diff: tools.Diff) -> w.Diff:
    patch = _patch_of(diff) if diff.patch is UNSET else diff.patch
    return WORDS.say_as(diff, w.Diff, patch=WORDS.say(patch))  # type: ignore[no-any-return]


def _patch_of(diff: tools.Diff) -> Any:
    """A diff that carries whole texts and no patch gets one: this wire has no other place for them."""
    texts = [git_patch(change) for change in diff.changes if isinstance(change, tools.FileChange)]
    if not texts or None in texts or len(texts) < len(diff.changes):
        return UNSET
    return tools.Patch("git_patch", "".join(text for text in texts if text is not None))


def _hear_background(value: Any) -> events.Background:
    return events.Background(value.__struct_config__.tag, plain(Raw(wire.encode(value))))


def _hear_state(word: Any) -> Any:
    return lambda value: WORDS.hear_as(value, word)


def _hear_unknown_state(value: Any) -> events.UnknownState:
    return _unknown_state(plain(Raw(wire.encode(value))))


def _unknown_state(fields: dict[str, Any]) -> events.UnknownState:
    return events.UnknownState(str(fields.get("state")), _without(fields, "sessionUpdate", "state"))


def _say_subject(subject: services.ToolCallSubject) -> w.ToolCallPermissionSubject:
    call = WORDS.say_as(subject.tool_call, w.ToolCallUpdate)
    kind = w.ToolCallPermissionSubject
    return kind(tool_call=call, meta=subject.meta, extras=say_extras(subject, kind))


def _say_sse(server: requests.McpSse) -> wire.Unknown:
    """This wire has dropped SSE, but its list of transports is open."""
    http = WORDS.say_as(requests.McpHttp(server.name, server.url, server.headers), w.McpServerHttp)
    rest = {} if server.extras is UNSET else server.extras.fields
    meta = {} if server.meta is UNSET else {"_meta": server.meta}
    body = {**rest, **plain(Raw(wire.encode(http))), **meta, "type": "sse"}
    return wire.Unknown("sse", Raw(msgspec.json.encode(body)))


def _hear_server(kind: str, fields: dict[str, object]) -> requests.McpServer:
    """SSE, if it is that; it is read as its sibling HTTP is."""
    if kind == "sse":
        try:
            as_http = wire.decode(msgspec.json.encode({**fields, "type": "http"}), w.McpServerHttp)
        except PeerMistake:
            return requests.UnknownMcp(kind, fields)
        return WORDS.hear_as(as_http, requests.McpSse)
    return requests.UnknownMcp(kind, fields)


def _client_terminal_as_text(item: tools.ClientTerminalItem) -> w.Content:
    """A terminal of the client has no place on this wire and must not be taken for one of the agent's."""
    return w.Content(content=w.TextContent(text=f"[terminal {item.terminal_id}]"))


def _say_outcome(outcome: services.UnknownOutcome) -> Any:
    """As it came, under its own name and never under that of an outcome which means something."""
    if outcome.kind in ("selected", "cancelled"):
        return w.CancelledPermissionOutcome()
    return say_unknown(services.UnknownOutcome(outcome.kind, {**outcome.fields, "outcome": outcome.kind}))


WORDS = transcriber(
    w,
    {
        "Icon": content.Icon,
        "DiffPatch": tools.Patch,
        "Terminal": tools.TerminalItem,
        "Diff": tools.Diff,
        "ToolCallCapabilities": tools.Cancellable,
        "ToolCallCancelCapabilities": tools.CancelMarker,
        "TerminalCapabilities": tools.Cancellable,
        "TerminalCancelCapabilities": tools.CancelMarker,
        "TerminalOutput": tools.TerminalOutput,
        "TerminalSize": tools.TerminalSize,
        "TerminalUpdate": events.TerminalUpdate,
        "TerminalOutputChunk": events.TerminalOutputChunk,
        "ToolCallContentChunk": events.ToolCallContentChunk,
        "UserMessage": events.UserMessage,
        "AgentMessage": events.AgentMessage,
        "AgentThought": events.AgentThought,
        "SessionUpdateStateUpdateRunning": events.Running,
        "SessionUpdateStateUpdateRequiresAction": events.RequiresAction,
        "SessionUpdateStateUpdateIdle": events.Idle,
        "SessionConfigSelectGroup": options.ChoiceGroup,
        "SessionConfigOptionSelect": options.Select,
        "SessionConfigOptionBoolean": options.Toggle,
        "Command": options.Command,
        "TextCommandInput": options.CommandInput,
        "ReplayFromStart": requests.ReplayFromStart,
        "CommandPermissionSubject": services.CommandSubject,
        "ToolCallPermissionSubject": services.ToolCallSubject,
        "CancelledPermissionOutcome": services.Dismissed,
    },
    hear={
        **{kind.__name__: _hear_change for kind in _CHANGES.values()},
        "RunningStateUpdate": _hear_state(events.Running),
        "RequiresActionStateUpdate": _hear_state(events.RequiresAction),
        "IdleStateUpdate": _hear_state(events.Idle),
        "UnknownStateUpdate": _hear_unknown_state,
        "SessionUpdateStateUpdateUnknown": _hear_unknown_state,
        "BackgroundTerminal": _hear_background,
        "BackgroundToolCall": _hear_background,
        "BackgroundSubagent": _hear_background,
    },
    unknown={requests.UnknownMcp: _hear_server},
    say={
        content.Annotations: _say_annotations,
        content.ResourceLink: _say_link,
        tools.Location: _say_location,
        options.Select: _say_select,
        services.UnknownOutcome: _say_outcome,
        tools.FileChange: _say_change,
        tools.Diff: _say_diff,
        tools.ClientTerminalItem: _client_terminal_as_text,
        requests.McpSse: _say_sse,
        services.ToolCallSubject: _say_subject,
    },
)
ELICITATION = Elicitation(w)


def hear_event(update: Any) -> events.AnyEvent:
    """An update of this wire as an event."""
    if isinstance(update, wire.Unknown):
        fields = plain(update.raw)
        if fields.get("sessionUpdate") == "state_update":
            return _unknown_state(fields)
        return events.UnknownEvent(update.tag, _without(fields, "sessionUpdate"))
    if type(update) in _UNNAMED:
        fields = plain(Raw(wire.encode(update)))
        return events.UnknownEvent(update.__struct_config__.tag, _without(fields, "sessionUpdate"))
    event = WORDS.hear(update)
    return with_raw_fields(event) if isinstance(event, events.ToolCallUpdate) else event


def say_event(event: events.AnyEvent) -> Any:
    """An event as an update of this wire; None where it would be taken for something else."""
    match event:
        case events.UnknownEvent():
            return _say_unknown_event(event)
        case events.UnknownState():
            body = {**event.fields, "sessionUpdate": "state_update", "state": event.state}
            return wire.Unknown("state_update", Raw(msgspec.json.encode(body)))
        case events.ToolCallUpdate():
            return WORDS.say_as(event, w.SessionUpdateToolCallUpdate)
        case _:
            return WORDS.say(event)


def _say_unknown_event(event: events.UnknownEvent) -> Any:
    raw = Raw(msgspec.json.encode({**event.fields, "sessionUpdate": event.name}))
    if event.name in _UNNAMED_TAGS:
        try:
            return wire.decode(raw, w.SessionUpdate)
        except PeerMistake:
            return None
    return None if event.name in _ONLY_HERE else wire.Unknown(event.name, raw)


# Typed on the wire, not in the vocabulary: passed on as they are.
_UNNAMED = frozenset({w.SubagentUpdate, w.SessionMessage, w.SessionMessageChunk})
_UNNAMED_TAGS = frozenset(kind.__struct_config__.tag for kind in _UNNAMED)
# Updates that version 1 does not have: what is called so there is something else.
_ONLY_HERE = frozenset(
    {
        *("user_message", "agent_message", "agent_thought", "state_update"),
        *("tool_call_content_chunk", "terminal_update", "terminal_output_chunk"),
    }
)


def _without(fields: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in keys}


# -- requests --------------------------------------------------------------------------------------------------------


def _hear_set_option(value: Any) -> requests.SetOption:
    if isinstance(value, wire.Unknown):
        return hear_unknown_value(value)
    return WORDS.hear_as(value, requests.SetOption)


def _say_set_option(request: requests.SetOption) -> Any:
    if isinstance(request.value, requests.UnknownValue):
        return say_unknown_value(request)
    if isinstance(request.value, bool):
        return WORDS.say_as(request, w.SetSessionConfigOptionRequestBoolean)
    return WORDS.say_as(request, w.SetSessionConfigOptionRequestId)


def _say_permission(request: services.RequestPermission) -> Any:
    if not request.options:
        raise PeerMistake(INVALID_PARAMS, "A permission needs at least one option")
    return WORDS.say_as(request, w.RequestPermissionRequest)


def _say_status(status: requests.SessionStatus) -> w.SessionStatusResponse:
    state: Any = UNSET if status.state is UNSET else None
    match status.state:
        case events.Running():
            state = WORDS.say_as(status.state, w.RunningStateUpdate)
        case events.RequiresAction():
            state = WORDS.say_as(status.state, w.RequiresActionStateUpdate)
        case events.Idle():
            state = WORDS.say_as(status.state, w.IdleStateUpdate)
        case events.UnknownState():
            body = {**status.state.fields, "state": status.state.state}
            state = wire.Unknown(status.state.state, Raw(msgspec.json.encode(body)))
        case _:
            pass
    return WORDS.say_as(status, w.SessionStatusResponse, state=state)  # type: ignore[no-any-return]


def _hear_status(value: w.SessionStatusResponse) -> requests.SessionStatus:
    state: Any = value.state
    if isinstance(state, wire.Unknown):
        state = _unknown_state(plain(state.raw))
    else:
        state = WORDS.hear(state)
    return requests.SessionStatus(value.status, state, meta=value.meta, extras=hear_extras(value))


# What a client asks of an agent.
CLIENT_ASKS = [
    Route("auth/login", requests.Login, w.LoginAuthRequest, w.LoginAuthResponse),
    Route("auth/logout", requests.Logout, w.LogoutAuthRequest, w.LogoutAuthResponse),
    Route(
        "auth/status",
        requests.GetAuthStatus,
        w.AuthStatusRequest,
        w.AuthStatusResponse,
        requests.AuthStatus,
        needs="auth_status",
    ),
    Route("session/new", requests.NewSession, w.NewSessionRequest, w.NewSessionResponse, requests.SessionOpened),
    Route(
        "session/resume",
        requests.ResumeSession,
        w.ResumeSessionRequest,
        w.ResumeSessionResponse,
        requests.SessionOpened,
    ),
    Route(
        "session/fork",
        requests.ForkSession,
        w.ForkSessionRequest,
        w.ForkSessionResponse,
        requests.SessionOpened,
        needs="fork",
    ),
    Route("session/list", requests.ListSessions, w.ListSessionsRequest, w.ListSessionsResponse, requests.SessionList),
    Route("session/close", requests.CloseSession, w.CloseSessionRequest, w.CloseSessionResponse),
    Route("session/delete", requests.DeleteSession, w.DeleteSessionRequest, w.DeleteSessionResponse, needs="delete"),
    Route(
        "session/archive", requests.ArchiveSession, w.ArchiveSessionRequest, w.ArchiveSessionResponse, needs="archive"
    ),
    Route(
        "session/unarchive",
        requests.UnarchiveSession,
        w.UnarchiveSessionRequest,
        w.UnarchiveSessionResponse,
        needs="archive",
    ),
    Route(
        "session/status",
        requests.GetSessionStatus,
        w.SessionStatusRequest,
        w.SessionStatusResponse,
        requests.SessionStatus,
        needs="status",
        hear_result=_hear_status,
        say_result=_say_status,
    ),
    Route(
        "session/set_title",
        requests.SetTitle,
        w.SetSessionTitleRequest,
        w.SetSessionTitleResponse,
        requests.TitleSet,
        needs="title",
    ),
    Route(
        "session/set_config_option",
        requests.SetOption,
        w.SetSessionConfigOptionRequest,
        w.SetSessionConfigOptionResponse,
        requests.OptionsSet,
        hear_params=_hear_set_option,
        say_params=_say_set_option,
    ),
    Route("session/prompt", requests.Prompt, w.PromptRequest, w.PromptResponse, requests.PromptAccepted),
    Route("tool_call/cancel", requests.CancelToolCall, w.CancelToolCallRequest, w.CancelToolCallResponse),
    Route("terminal/cancel", requests.CancelTerminal, w.CancelTerminalRequest, w.CancelTerminalResponse),
]
# What is asked of an agent even where it has no sessions.
LOGIN_ASKS = [route for route in CLIENT_ASKS if route.method.startswith("auth/")]
CLIENT_NOTES = [NoteRoute("session/cancel", requests.CancelTurn, w.CancelSessionNotification)]
# What an agent asks of a client.
AGENT_ASKS = [
    Route(
        "session/request_permission",
        services.RequestPermission,
        w.RequestPermissionRequest,
        w.RequestPermissionResponse,
        services.PermissionAnswer,
        say_params=_say_permission,
    ),
    Route(
        "elicitation/create",
        services.Elicit,
        w.CreateElicitationRequest,
        w.CreateElicitationResponse,
        services.ElicitationAnswer,
        hear_params=ELICITATION.hear,
        say_params=ELICITATION.say,
        hear_result=ELICITATION.hear_answer,
        say_result=ELICITATION.say_answer,
    ),
]
AGENT_NOTES = [
    NoteRoute("elicitation/complete", services.ElicitationComplete, w.CompleteElicitationNotification),
    NoteRoute("auth/status_update", services.AuthStatusChanged, w.AuthStatusUpdateNotification),
]

"""Version 2 (draft): the tables. The vocabulary has this version's meaning, so most of it is names."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.patches import git_patch
from dragoman.dialects.speaker import NoteRoute, Route
from dragoman.dialects.transcribe import hear_extras, plain, say_extras
from dragoman.dialects.words import Elicitation, transcriber
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
    return w.Diff(changes=WORDS.say(diff.changes), patch=WORDS.say(patch), meta=diff.meta, extras=say_extras(diff))


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
    return events.UnknownState("unknown", plain(Raw(wire.encode(value))))


def _say_subject(subject: services.ToolCallSubject) -> w.ToolCallPermissionSubject:
    call = WORDS.say_as(subject.tool_call, w.ToolCallUpdate)
    return w.ToolCallPermissionSubject(tool_call=call, meta=subject.meta, extras=say_extras(subject))


def _say_sse(server: requests.McpSse) -> wire.Unknown:
    """This wire has dropped SSE, but its list of transports is open."""
    return wire.Unknown("sse", Raw(msgspec.json.encode(server)))


def _client_terminal_as_text(item: tools.ClientTerminalItem) -> w.Content:
    """A terminal of the client has no place on this wire and must not be taken for one of the agent's."""
    return w.Content(content=w.TextContent(text=f"[terminal {item.terminal_id}]"))


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
    say={
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
            return events.UnknownState(str(fields.get("state")), _without(fields, "sessionUpdate"))
        return events.UnknownEvent(update.tag, _without(fields, "sessionUpdate"))
    if type(update) in _UNNAMED:
        fields = plain(Raw(wire.encode(update)))
        return events.UnknownEvent(update.__struct_config__.tag, _without(fields, "sessionUpdate"))
    return WORDS.hear(update)  # type: ignore[no-any-return]


def say_event(event: events.AnyEvent) -> Any:
    """An event as an update of this wire."""
    match event:
        case events.UnknownEvent():
            return wire.Unknown(event.name, Raw(msgspec.json.encode({"sessionUpdate": event.name, **event.fields})))
        case events.UnknownState():
            body = {"sessionUpdate": "state_update", **event.fields, "state": event.state}
            return wire.Unknown("state_update", Raw(msgspec.json.encode(body)))
        case events.ToolCallUpdate():
            return WORDS.say_as(event, w.SessionUpdateToolCallUpdate)
        case _:
            return WORDS.say(event)


# Typed on the wire, not in the vocabulary: passed on as they are.
_UNNAMED = frozenset({w.SubagentUpdate, w.SessionMessage, w.SessionMessageChunk})


def _without(fields: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name != key}


def _hear_set_option(value: Any) -> requests.SetOption:
    if isinstance(value, wire.Unknown):
        fields = plain(value.raw)
        if not isinstance(fields.get("sessionId"), str) or not isinstance(fields.get("configId"), str):
            raise PeerMistake(INVALID_PARAMS, "Invalid params")
        known = requests.UnknownValue(value.tag, fields.get("value"))
        return requests.SetOption(fields["sessionId"], fields["configId"], known)
    return WORDS.hear_as(value, requests.SetOption)


def _say_set_option(request: requests.SetOption) -> Any:
    if isinstance(request.value, requests.UnknownValue):
        body = {
            "sessionId": request.session_id,
            "configId": request.config_id,
            "type": request.value.kind,
            "value": request.value.value,
        }
        return wire.Unknown(request.value.kind, Raw(msgspec.json.encode(body)))
    kind: Any = w.SetSessionConfigOptionRequestId
    if isinstance(request.value, bool):
        kind = w.SetSessionConfigOptionRequestBoolean
    return WORDS.say_as(request, kind)


def _say_permission(request: services.RequestPermission) -> Any:
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
    return w.SessionStatusResponse(status=status.status, state=state, meta=status.meta, extras=say_extras(status))


def _hear_status(value: w.SessionStatusResponse) -> requests.SessionStatus:
    state: Any = value.state
    if isinstance(state, wire.Unknown):
        state = events.UnknownState(state.tag, plain(state.raw))
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

"""Version 2 (draft): which method asks what, as tables of routes, and the few requests that are more than names."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.dialect_base import NoteRoute, Route
from dragoman.dialects.codec.shared_types import decode_unknown_value, encode_unknown_value
from dragoman.dialects.codec.transcriber import decode_extras, plain
from dragoman.dialects.v2.codec import CODEC, ELICITATION, unknown_state
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import events, requests, services
from dragoman.wire import types as wire
from dragoman.wire import v2 as w


# `type` is required in this version; the list of types is open.
def _decode_set_option(value: Any) -> requests.SetOption:
    if isinstance(value, wire.UnknownVariant):
        return decode_unknown_value(value)
    return CODEC.decode_as(value, requests.SetOption)


def _encode_set_option(
    request: requests.SetOption,
) -> w.SetSessionConfigOptionRequestId | w.SetSessionConfigOptionRequestBoolean | wire.UnknownVariant:
    if isinstance(request.value, str):
        return CODEC.encode_as(request, w.SetSessionConfigOptionRequestId)
    if isinstance(request.value, bool):
        return CODEC.encode_as(request, w.SetSessionConfigOptionRequestBoolean)
    return encode_unknown_value(request)


def _encode_permission(request: services.RequestPermission) -> w.RequestPermissionRequest:
    # The schema wants at least one, and a question without an answer would never end.
    if not request.options:
        raise PeerMistake(INVALID_PARAMS, "A permission needs at least one option")
    return CODEC.encode_as(request, w.RequestPermissionRequest)


def _encode_status(status: requests.SessionStatus) -> w.SessionStatusResponse:
    # Absent: the state is not known; null: there is none.
    state: Any = UNSET if status.state is UNSET else None
    match status.state:
        case events.Running():
            state = CODEC.encode_as(status.state, w.RunningStateUpdate)
        case events.RequiresAction():
            state = CODEC.encode_as(status.state, w.RequiresActionStateUpdate)
        case events.Idle():
            state = CODEC.encode_as(status.state, w.IdleStateUpdate)
        case events.UnknownState():
            # The list of states is open: one that is not known here is passed on whole.
            body = {**status.state.fields, "state": status.state.state}
            state = wire.UnknownVariant(status.state.state, Raw(msgspec.json.encode(body)))
        case _:
            pass
    return CODEC.encode_as(status, w.SessionStatusResponse, state=state)


def _decode_status(value: w.SessionStatusResponse) -> requests.SessionStatus:
    state: Any = value.state
    if isinstance(state, wire.UnknownVariant):
        state = unknown_state(plain(state.raw))
    else:
        state = CODEC.decode(state)
    return requests.SessionStatus(value.status, state, meta=value.meta, extras=decode_extras(value))


# Requests of a client. List, resume and close come with sessions in this version and need no capability. A replay is
# a field of `session/resume`; there are no modes, and no files or terminals of the client.
CLIENT_REQUESTS = [
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
        decode_result=_decode_status,
        encode_result=_encode_status,
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
        decode_params=_decode_set_option,
        encode_params=_encode_set_option,
    ),
    Route("session/prompt", requests.PromptRequest, w.PromptRequest, w.PromptResponse, requests.PromptAccepted),
    # For calls and terminals that were sent with the capability for it; the agent refuses any other.
    Route("tool_call/cancel", requests.CancelToolCall, w.CancelToolCallRequest, w.CancelToolCallResponse),
    Route("terminal/cancel", requests.CancelTerminal, w.CancelTerminalRequest, w.CancelTerminalResponse),
]
# Requests to an agent that offers no sessions: to log in is all that is left.
LOGIN_REQUESTS = [route for route in CLIENT_REQUESTS if route.method.startswith("auth/")]
CLIENT_NOTES = [NoteRoute("session/cancel", requests.CancelTurn, w.CancelSessionNotification)]
# Requests of an agent.
AGENT_REQUESTS = [
    Route(
        "session/request_permission",
        services.RequestPermission,
        w.RequestPermissionRequest,
        w.RequestPermissionResponse,
        services.PermissionAnswer,
        encode_params=_encode_permission,
    ),
    Route(
        "elicitation/create",
        services.Elicit,
        w.CreateElicitationRequest,
        w.CreateElicitationResponse,
        services.ElicitationAnswer,
        decode_params=ELICITATION.decode,
        encode_params=ELICITATION.encode,
        decode_result=ELICITATION.decode_answer,
        encode_result=ELICITATION.encode_answer,
    ),
]
# Notifications of an agent, beside `session/update`.
AGENT_NOTES = [
    NoteRoute("elicitation/complete", services.ElicitationComplete, w.CompleteElicitationNotification),
    NoteRoute("auth/status_update", services.AuthStatusChanged, w.AuthStatusUpdateNotification),
]

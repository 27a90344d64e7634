"""Version 1: which method asks what, as tables of routes, and the few requests that are more than names."""

from typing import Any

from msgspec import UNSET

from dragoman.dialects.codec.dialect_base import NoteRoute, Route
from dragoman.dialects.codec.shared_types import decode_unknown_value, encode_unknown_value
from dragoman.dialects.codec.transcriber import decode_extras
from dragoman.dialects.v1.codec import CODEC, ELICITATION, sane_exit
from dragoman.vocabulary import requests, services
from dragoman.vocabulary.asking import Done
from dragoman.wire import types as wire
from dragoman.wire import v1 as w


def _encode_with_servers(kind: Any) -> Any:
    """Make an encoder that always sends `mcpServers`: `session/new` and `session/load` require the list, if empty."""

    def encode(request: Any) -> Any:
        servers = {"mcp_servers": ()} if request.mcp_servers is UNSET else {}
        return CODEC.encode_as(request, kind, **servers)

    return encode


def _decode_set_option(value: Any) -> requests.SetOption:
    # Without `type` the value is one of several, with "boolean" it is a switch; the list of types is open.
    if isinstance(value, wire.UnknownVariant):
        return decode_unknown_value(value)
    return requests.SetOption(
        value.session_id, value.config_id, value.value, meta=value.meta, extras=decode_extras(value)
    )


def _encode_set_option(
    request: requests.SetOption,
) -> w.SetSessionConfigOptionRequestValueId | w.SetSessionConfigOptionRequestBoolean | wire.UnknownVariant:
    if isinstance(request.value, requests.UnknownValue):
        return encode_unknown_value(request)
    # A boolean needs its type; a text goes without, as version 1 had it before there were switches.
    if isinstance(request.value, bool):
        return CODEC.encode_as(request, w.SetSessionConfigOptionRequestBoolean)
    return CODEC.encode_as(request, w.SetSessionConfigOptionRequestValueId)


# The answer to `terminal/wait_for_exit` has the fields of an exit status in itself, not below a key.
def _encode_exited(reply: Any) -> w.WaitForTerminalExitResponse:
    return CODEC.encode_as(sane_exit(reply), w.WaitForTerminalExitResponse)


# Requests of a client. `needs` names a capability of the agent; `session/new`, `session/prompt` and the setting of
# options have none, because every agent has them, or shows by its answers that it has. `session/load`,
# `session/resume` and `session/set_mode` are below: each dialect chooses between them.
CLIENT_REQUESTS = [
    Route("authenticate", requests.Login, w.AuthenticateRequest, w.AuthenticateResponse),
    Route("logout", requests.Logout, w.LogoutRequest, w.LogoutResponse, needs="logout"),
    Route(
        "auth/status",
        requests.GetAuthStatus,
        w.AuthStatusRequest,
        w.AuthStatusResponse,
        requests.AuthStatus,
        needs="auth_status",
    ),
    Route(
        "session/new",
        requests.NewSession,
        w.NewSessionRequest,
        w.NewSessionResponse,
        requests.SessionOpened,
        encode_params=_encode_with_servers(w.NewSessionRequest),
    ),
    Route(
        "session/fork",
        requests.ForkSession,
        w.ForkSessionRequest,
        w.ForkSessionResponse,
        requests.SessionOpened,
        needs="fork",
    ),
    Route(
        "session/list",
        requests.ListSessions,
        w.ListSessionsRequest,
        w.ListSessionsResponse,
        requests.SessionList,
        needs="list",
    ),
    Route("session/close", requests.CloseSession, w.CloseSessionRequest, w.CloseSessionResponse, needs="close"),
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
]
# One request of the vocabulary has two methods here: `session/load` replays the conversation before it is answered,
# `session/resume` must not.
RESUME = Route(
    "session/resume",
    requests.ResumeSession,
    w.ResumeSessionRequest,
    w.ResumeSessionResponse,
    requests.SessionOpened,
    needs="resume",
)
LOAD = Route(
    "session/load",
    requests.ResumeSession,
    w.LoadSessionRequest,
    w.LoadSessionResponse,
    requests.SessionOpened,
    needs="load",
    # Version 2 has one method for both, and says in a field whether the conversation is replayed.
    implies={"replay_from": requests.ReplayFromStart()},
    encode_params=_encode_with_servers(w.LoadSessionRequest),
)
# One request of the vocabulary again: `session/set_mode` sets the option that is the mode.
SET_MODE = Route("session/set_mode", requests.SetOption, w.SetSessionModeRequest, w.SetSessionModeResponse)
# The one notification of a client. Some clients send it as a request; it is answered, and means the same.
CLIENT_NOTES = [NoteRoute("session/cancel", requests.CancelTurn, w.CancelNotification)]


# All five need one capability, and differ in names alone.
def _terminal(method: str, request: Any, params: Any, result: Any, reply: Any = Done, encode: Any = None) -> Route:
    return Route(f"terminal/{method}", request, params, result, reply, needs="terminal", encode_result=encode)


# Requests of an agent; `session/request_permission` is in `permissions.py`. Files and terminals are the client's own,
# and exist in version 1 alone: a version 2 agent never sends them.
AGENT_REQUESTS = [
    Route(
        "fs/read_text_file",
        services.ReadTextFile,
        w.ReadTextFileRequest,
        w.ReadTextFileResponse,
        services.FileText,
        needs="read_text_file",
    ),
    Route(
        "fs/write_text_file",
        services.WriteTextFile,
        w.WriteTextFileRequest,
        w.WriteTextFileResponse,
        needs="write_text_file",
    ),
    _terminal(
        "create", services.CreateTerminal, w.CreateTerminalRequest, w.CreateTerminalResponse, services.TerminalCreated
    ),
    _terminal(
        "output", services.GetTerminalOutput, w.TerminalOutputRequest, w.TerminalOutputResponse, services.TerminalText
    ),
    _terminal(
        "wait_for_exit",
        services.WaitForTerminalExit,
        w.WaitForTerminalExitRequest,
        w.WaitForTerminalExitResponse,
        services.TerminalExited,
        _encode_exited,
    ),
    _terminal("kill", services.KillTerminal, w.KillTerminalRequest, w.KillTerminalResponse),
    _terminal("release", services.ReleaseTerminal, w.ReleaseTerminalRequest, w.ReleaseTerminalResponse),
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

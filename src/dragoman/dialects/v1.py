"""Version 1: the tables, and the words that are more than names in both roles."""

from typing import Any

from msgspec import UNSET, Raw

from dragoman.dialects.speaker import NoteRoute, Route
from dragoman.dialects.transcribe import hear_extras, plain, say_extras
from dragoman.dialects.words import Elicitation, transcriber
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

# Where a request has no title of its own and version 1 knows only the tool call.
UNTITLED = "Permission needed"
_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
_STATUSES = ("pending", "in_progress", "completed", "failed")
_STEPS = ("pending", "in_progress", "completed")


# -- tool calls ------------------------------------------------------------------------------------------------------


def _hear_diff(value: w.Diff) -> tools.Diff:
    # Absent and null both mean that there was no file.
    old = value.old_text if isinstance(value.old_text, str) else None
    diff = tools.Diff.of(value.path, old, value.new_text)
    return tools.Diff(diff.changes, meta=value.meta, extras=hear_extras(value))


def say_diff(diff: tools.Diff) -> list[Any]:
    """Version 1 has one diff a file, with both texts. What lacks them is told as text."""
    said: list[Any] = []
    for change in diff.changes:
        if isinstance(change, tools.FileChange) and isinstance(change.new_text, str) and change.old_text is not UNSET:
            said.append(
                w.Diff(
                    path=change.path,
                    old_text=change.old_text,
                    new_text=change.new_text,
                    meta=diff.meta,
                    extras=say_extras(diff),
                )
            )
    if len(said) < len(diff.changes):
        said.append(w.Content(content=w.TextContent(text=_describe(diff))))
    return said


def _describe(diff: tools.Diff) -> str:
    if isinstance(diff.patch, tools.Patch):
        return diff.patch.text
    lines = []
    for change in diff.changes:
        if isinstance(change, tools.FileChange):
            source = f"{change.old_path} -> " if isinstance(change.old_path, str) else ""
            lines.append(f"{change.operation}: {source}{change.path}")
        else:
            lines.append(change.kind)
    return "\n".join(lines)


def say_items(items: list[tools.ToolContent]) -> tuple[Any, ...]:
    """Tool call content. Display terminals were turned into text before."""
    said: list[Any] = []
    for item in items:
        said.extend(say_diff(item) if isinstance(item, tools.Diff) else [WORDS.say(item)])
    return tuple(said)


def hear_call(value: "w.ToolCall | w.ToolCallUpdate") -> events.ToolCallUpdate:
    """A tool call, new or changed. Version 1 cannot clear a field: null means unchanged."""
    heard = WORDS.hear_as(value, events.ToolCallUpdate)
    cleared = [name for name in heard.__struct_fields__ if getattr(heard, name) is None]
    if not cleared:
        return heard
    kept = {name: getattr(heard, name) for name in heard.__struct_fields__ if name not in cleared}
    return events.ToolCallUpdate(**kept)


def say_call(call: events.ToolCallUpdate, kind: Any) -> Any:
    """A tool call as version 1 can say it: closed kinds and statuses, nothing cleared."""
    fields: dict[str, Any] = {"tool_call_id": call.tool_call_id}
    for name in ("name", "title", "raw_input", "raw_output", "meta"):
        fields[name] = getattr(call, name)
    fields["locations"] = WORDS.say(call.locations)
    if call.content is not UNSET:
        fields["content"] = say_items(call.content or [])
    if isinstance(call.kind, str):
        fields["kind"] = _nearest(call.kind, _KINDS, "other")
    if isinstance(call.status, str):
        fields["status"] = say_status(call.status)
    said = {name: item for name, item in fields.items() if item is not UNSET and (item is not None or name == "meta")}
    return kind(**said, extras=say_extras(call))


def say_status(status: str) -> Any:
    """The nearest of the four statuses."""
    if status == "cancelled":
        return "failed"
    return _nearest(status, _STATUSES, "in_progress")


# -- options and commands --------------------------------------------------------------------------------------------


def say_modes(found: list[options.Option]) -> Any:
    """The mode option as version 1's older `modes`."""
    mode = options.mode_option(found)
    if mode is None:
        return UNSET
    modes = tuple(
        w.SessionMode(id=choice.value, name=choice.name, description=choice.description) for choice in mode.choices()
    )
    return w.SessionModeState(current_mode_id=mode.current_value, available_modes=modes)


def hear_modes(state: Any) -> options.Select | None:
    """Version 1's `modes` as the mode option."""
    if not isinstance(state, w.SessionModeState):
        return None
    choices: list[Any] = [options.Choice(mode.id, mode.name, mode.description) for mode in state.available_modes]
    return options.Select("mode", "Mode", state.current_mode_id, choices, category=options.MODE_CATEGORY)


def _say_command(command: options.Command) -> w.AvailableCommand:
    hint: Any = command.input
    if isinstance(hint, options.CommandInput):
        hint = w.UnstructuredCommandInput(hint=hint.hint, meta=hint.meta, extras=say_extras(hint))
    elif isinstance(hint, options.UnknownInput):
        hint = UNSET
    return w.AvailableCommand(
        name=command.name, description=command.description, input=hint, meta=command.meta, extras=say_extras(command)
    )


def _say_plan_entry(entry: options.PlanEntry) -> w.PlanEntry:
    """A cancelled step is done with; version 1 has no other word for that."""
    return w.PlanEntry(
        content=entry.content,
        priority=_nearest(entry.priority, ("high", "medium", "low"), "medium"),
        status="completed" if entry.status == "cancelled" else _nearest(entry.status, _STEPS, "pending"),
        meta=entry.meta,
        extras=say_extras(entry),
    )


def _nearest(value: str, known: tuple[str, ...], else_: str) -> Any:
    return value if value in known else else_


# -- MCP servers -----------------------------------------------------------------------------------------------------


def _say_stdio(server: requests.McpStdio) -> w.McpServerStdio:
    return WORDS.say_as(server, w.McpServerStdio, **_listed(server, "args", "env"))  # type: ignore[no-any-return]


def _say_http(server: requests.McpHttp) -> w.McpServerHttp:
    return WORDS.say_as(server, w.McpServerHttp, **_listed(server, "headers"))  # type: ignore[no-any-return]


def _say_sse(server: requests.McpSse) -> w.McpServerSse:
    return WORDS.say_as(server, w.McpServerSse, **_listed(server, "headers"))  # type: ignore[no-any-return]


def _listed(server: Any, *names: str) -> dict[str, Any]:
    """Version 1 wants these lists even when they are empty."""
    return {name: () for name in names if getattr(server, name) is UNSET}


WORDS = transcriber(
    w,
    {
        "SessionConfigSelectGroup": (options.ChoiceGroup, {"group": "group_id"}),
        "SessionConfigOptionSelect": (options.Select, {"id": "config_id"}),
        "SessionConfigOptionBoolean": (options.Toggle, {"id": "config_id"}),
        "AvailableCommand": options.Command,
        "UnstructuredCommandInput": options.CommandInput,
        "McpServerSse": requests.McpSse,
        "Terminal": tools.ClientTerminalItem,
        "RequestPermissionOutcomeCancelled": services.Dismissed,
    },
    hear={"Diff": _hear_diff, "ToolCallUpdate": hear_call},
    say={
        options.Command: _say_command,
        options.PlanEntry: _say_plan_entry,
        requests.McpStdio: _say_stdio,
        requests.McpHttp: _say_http,
        requests.McpSse: _say_sse,
        content.Icon: lambda icon: icon,
    },
)
ELICITATION = Elicitation(w)


# -- requests --------------------------------------------------------------------------------------------------------


def _say_new(kind: Any) -> Any:
    def say(request: Any) -> Any:
        servers = {"mcp_servers": ()} if request.mcp_servers is UNSET else {}
        return WORDS.say_as(request, kind, **servers)

    return say


def _hear_load(value: w.LoadSessionRequest) -> requests.ResumeSession:
    heard = WORDS.hear_as(value, requests.ResumeSession)
    fields = {name: getattr(heard, name) for name in heard.__struct_fields__ if name != "replay_from"}
    return requests.ResumeSession(**fields, replay_from=requests.ReplayFromStart())


def _hear_set_option(value: Any) -> requests.SetOption:
    return requests.SetOption(
        value.session_id, value.config_id, value.value, meta=value.meta, extras=hear_extras(value)
    )


def _say_set_option(request: requests.SetOption) -> Any:
    if isinstance(request.value, bool):
        return WORDS.say_as(request, w.SetSessionConfigOptionRequestBoolean)
    value = request.value if isinstance(request.value, str) else str(request.value.value)
    return WORDS.say_as(request, w.SetSessionConfigOptionRequestValueId, value=value)


def _hear_permission(value: w.RequestPermissionRequest) -> services.RequestPermission:
    call = hear_call(value.tool_call)
    title = call.title if isinstance(call.title, str) else UNTITLED
    subject = services.ToolCallSubject(call)
    asked = WORDS.hear(value.options)
    return services.RequestPermission(
        value.session_id, title, asked, subject=subject, meta=value.meta, extras=hear_extras(value)
    )


def _say_permission(request: services.RequestPermission) -> w.RequestPermissionRequest:
    call = _subject_call(request)
    if not isinstance(call.title, str) and request.title != UNTITLED:
        call = _retitled(call, request.title)
    kinds = ("allow_once", "allow_always", "reject_once", "reject_always")
    # An option of an unknown kind cannot be offered: it would have to be called a yes or a no.
    known = [option for option in request.options if option.kind in kinds]
    return w.RequestPermissionRequest(
        session_id=request.session_id,
        tool_call=say_call(call, w.ToolCallUpdate),
        options=WORDS.say(known),
        meta=request.meta,
        extras=say_extras(request),
    )


def _subject_call(request: services.RequestPermission) -> events.ToolCallUpdate:
    note: list[tools.ToolContent] = []
    if isinstance(request.description, str):
        note = [tools.ContentItem(content.Text(request.description))]
    match request.subject:
        case services.ToolCallSubject():
            return request.subject.tool_call
        case services.CommandSubject():
            subject = request.subject
            call_id = subject.tool_call_id if isinstance(subject.tool_call_id, str) else f"permission: {request.title}"
            return events.ToolCallUpdate(
                call_id,
                title=request.title,
                kind="execute",
                content=note or UNSET,
                raw_input={"command": subject.command, "cwd": subject.cwd},
            )
        case _:
            return events.ToolCallUpdate(f"permission: {request.title}", title=request.title, content=note or UNSET)


def _retitled(call: events.ToolCallUpdate, title: str) -> events.ToolCallUpdate:
    fields = {name: getattr(call, name) for name in call.__struct_fields__ if name != "title"}
    return events.ToolCallUpdate(**fields, title=title)


def _say_answer(answer: services.PermissionAnswer) -> w.RequestPermissionResponse:
    """An outcome that version 1 has no word for is nobody's choice."""
    outcome: Any = w.RequestPermissionOutcomeCancelled()
    if isinstance(answer.outcome, services.Selected):
        outcome = WORDS.say(answer.outcome)
    return w.RequestPermissionResponse(outcome=outcome, meta=answer.meta, extras=say_extras(answer))


def say_opened(reply: requests.SessionOpened, kind: Any, options_said: Any) -> Any:
    """An opened session, with its options told in both ways that version 1 has."""
    named = {"session_id": reply.session_id} if "session_id" in kind.__struct_fields__ else {}
    found = reply.config_options or []
    return kind(modes=say_modes(found), config_options=options_said, meta=reply.meta, extras=say_extras(reply), **named)


def hear_prompt_result(value: w.PromptResponse) -> events.Idle:
    """The end of a turn."""
    return events.Idle(
        stop_reason=value.stop_reason, usage=WORDS.hear(value.usage), meta=value.meta, extras=hear_extras(value)
    )


def hear_event(update: Any) -> events.AnyEvent:
    """An update of this wire as an event; modes and message ids are the dialect's to add."""
    match update:
        case wire.Unknown():
            fields = {name: value for name, value in plain(update.raw).items() if name != "sessionUpdate"}
            return events.UnknownEvent(update.tag, fields)
        case w.ToolCall() | w.SessionUpdateToolCallUpdate():
            return hear_call(update)
        case w.Plan():
            items = options.PlanItems(options.MAIN_PLAN, WORDS.hear(update.entries), extras=hear_extras(update))
            return events.PlanUpdate(items, meta=update.meta)
        case w.SubagentUpdate() | w.SessionMessage() | w.SessionMessageChunk():
            fields = {name: value for name, value in plain(Raw(wire.encode(update))).items() if name != "sessionUpdate"}
            return events.UnknownEvent(str(update.__struct_config__.tag), fields)
        case _:
            return WORDS.hear(update)  # type: ignore[no-any-return]


# What a client asks of an agent. Loading and setting a mode have their own routes in the dialects.
CLIENT_ASKS = [
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
        say_params=_say_new(w.NewSessionRequest),
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
        hear_params=_hear_set_option,
        say_params=_say_set_option,
    ),
    Route("session/prompt", requests.Prompt, w.PromptRequest, w.PromptResponse, requests.PromptAccepted),
]
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
    hear_params=_hear_load,
    say_params=_say_new(w.LoadSessionRequest),
)
CLIENT_NOTES = [NoteRoute("session/cancel", requests.CancelTurn, w.CancelNotification)]


def _terminal(method: str, request: Any, params: Any, result: Any, reply: Any = None) -> Route:
    route = Route(f"terminal/{method}", request, params, result, needs="terminal")
    return route if reply is None else route._replace(reply=reply)


# What an agent asks of a client.
AGENT_ASKS = [
    Route(
        "session/request_permission",
        services.RequestPermission,
        w.RequestPermissionRequest,
        w.RequestPermissionResponse,
        services.PermissionAnswer,
        hear_params=_hear_permission,
        say_params=_say_permission,
        say_result=_say_answer,
    ),
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
    ),
    _terminal("kill", services.KillTerminal, w.KillTerminalRequest, w.KillTerminalResponse),
    _terminal("release", services.ReleaseTerminal, w.ReleaseTerminalRequest, w.ReleaseTerminalResponse),
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

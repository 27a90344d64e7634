"""Version 1: its words, and what is more than names in both roles. Its requests are in `routes.py`."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.elicitations import Elicitation
from dragoman.dialects.codec.git_patches import added_text
from dragoman.dialects.codec.shared_types import transcriber
from dragoman.dialects.codec.transcriber import decode_extras, encode_extras, encode_unknown, plain
from dragoman.dialects.tolerance import updates as tolerance
from dragoman.dialects.tolerance.requests import known_block, with_raw_fields
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
_STATUSES = ("pending", "in_progress", "completed", "failed")
_STEPS = ("pending", "in_progress", "completed")
_ROLES = ("assistant", "user")
_LARGEST_SIZE = 2**63 - 1
_LARGEST_EXIT_CODE = 2**32 - 1


# -- content ---------------------------------------------------------------------------------------------------------


def _encode_annotations(value: content.Annotations) -> Any:
    """Version 1 knows two audiences."""
    if not isinstance(value.audience, list):
        return CODEC.encode_as(value, w.Annotations)
    return CODEC.encode_as(value, w.Annotations, audience=tuple(role for role in value.audience if role in _ROLES))


def _encode_link(link: content.ResourceLink) -> Any:
    if isinstance(link.size, int) and link.size > _LARGEST_SIZE:
        link = msgspec.structs.replace(link, size=UNSET)
    return CODEC.encode_as(link, w.ResourceLink)


def _decode_unknown_block(kind: str, fields: dict[str, Any]) -> content.Content:
    """Decode a block of unknown type; one that has the name of its Python class becomes the block it means."""
    meant = known_block(kind, fields)
    if meant is None:
        return content.UnknownContent(kind, fields)
    return CODEC.decode(wire.decode(msgspec.json.encode(meant), w.ContentBlock))  # type: ignore[no-any-return]


# -- tool calls ------------------------------------------------------------------------------------------------------


def _decode_diff(value: w.Diff) -> tools.Diff:
    # Absent and null both mean that there was no file.
    old = value.old_text if isinstance(value.old_text, str) else None
    diff = tools.Diff.of(value.path, old, value.new_text)
    return tools.Diff(diff.changes, meta=value.meta, extras=decode_extras(value))


def encode_diff(diff: tools.Diff) -> list[Any]:
    """Version 1 has one diff a file, with both texts. What lacks them is told as text."""
    changes = [_with_texts(change, diff) for change in diff.changes]
    said: list[Any] = [
        w.Diff(path=path, old_text=old, new_text=new, meta=diff.meta, extras=encode_extras(diff, w.Diff))
        for path, old, new in filter(None, changes)
    ]
    if len(said) < len(changes):
        said.append(w.Content(content=w.TextContent(text=_describe(diff)), meta=diff.meta))
    return said


def _with_texts(change: tools.FileChange | tools.UnknownChange, diff: tools.Diff) -> tuple[str, str | None, str] | None:
    if not isinstance(change, tools.FileChange):
        return None
    if isinstance(change.new_text, str) and change.old_text is not UNSET:
        return change.path, change.old_text, change.new_text
    if change.operation == "add" and len(diff.changes) == 1 and isinstance(diff.patch, tools.Patch):
        text = added_text(diff.patch.text) if diff.patch.format == "git_patch" else None
        return None if text is None else (change.path, None, text)
    return None


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


def encode_items(items: list[tools.ToolContent]) -> tuple[Any, ...]:
    """Tool call content. Display terminals were turned into text before."""
    said: list[Any] = []
    for item in items:
        said.extend(encode_diff(item) if isinstance(item, tools.Diff) else [CODEC.encode(item)])
    return tuple(said)


def decode_call(value: "w.ToolCall | w.ToolCallUpdate") -> events.ToolCallUpdate:
    """A tool call, new or changed. Version 1 cannot clear a field: null means unchanged."""
    heard = tolerance.corrected_call(with_raw_fields(CODEC.decode_as(value, events.ToolCallUpdate)))
    cleared = {name: UNSET for name in heard.__struct_fields__ if getattr(heard, name) is None}
    return msgspec.structs.replace(heard, **cleared) if cleared else heard


def encode_call(call: events.ToolCallUpdate, kind: Any) -> Any:
    """A tool call as version 1 can say it: closed kinds and statuses; only lists can be cleared."""
    fields: dict[str, Any] = {"tool_call_id": call.tool_call_id}
    for name in ("name", "title", "raw_input", "raw_output"):
        fields[name] = getattr(call, name)
    if call.locations is not UNSET:
        fields["locations"] = CODEC.encode(call.locations or [])
    if call.content is not UNSET:
        fields["content"] = encode_items(call.content or [])
    if isinstance(call.kind, str):
        fields["kind"] = _nearest(call.kind, _KINDS, "other")
    if isinstance(call.status, str):
        fields["status"] = encode_status(call.status)
    said = {name: item for name, item in fields.items() if item is not UNSET and item is not None}
    return kind(**said, meta=call.meta, extras=encode_extras(call, kind))


def encode_status(status: str) -> Any:
    """The nearest of the four statuses."""
    if status == "cancelled":
        return "failed"
    return _nearest(status, _STATUSES, "in_progress")


def _encode_exit(status: tools.ExitStatus) -> Any:
    return CODEC.encode_as(sane_exit(status), w.TerminalExitStatus)


def sane_exit(status: Any) -> Any:
    """Clear an exit code that version 1 cannot hold: a negative one, which stands for a signal, or one too large."""
    if isinstance(status.exit_code, int) and not 0 <= status.exit_code <= _LARGEST_EXIT_CODE:
        return msgspec.structs.replace(status, exit_code=None)
    return status


# -- options and commands --------------------------------------------------------------------------------------------


def encode_modes(found: list[options.Option]) -> Any:
    """The mode option as version 1's older `modes`."""
    mode = options.mode_option(found)
    if mode is None:
        return UNSET
    modes = tuple(
        w.SessionMode(
            id=choice.value,
            name=choice.name,
            description=choice.description,
            meta=choice.meta,
            extras=encode_extras(choice, w.SessionMode),
        )
        for choice in mode.choices()
    )
    return w.SessionModeState(
        current_mode_id=mode.current_value,
        available_modes=modes,
        meta=mode.meta,
        extras=encode_extras(mode, w.SessionModeState),
    )


def decode_modes(state: Any) -> options.Select | None:
    """Version 1's `modes` as the mode option."""
    if not isinstance(state, w.SessionModeState):
        return None
    choices: list[Any] = [
        options.Choice(mode.id, mode.name, mode.description, meta=mode.meta, extras=decode_extras(mode))
        for mode in state.available_modes
    ]
    return options.Select(
        "mode",
        "Mode",
        state.current_mode_id,
        choices,
        category=options.MODE_CATEGORY,
        meta=state.meta,
        extras=decode_extras(state),
    )


def _decode_unknown_option(kind: str, fields: dict[str, object]) -> options.UnknownOption:
    """Its id is `config_id` in the vocabulary, whatever its type."""
    if "configId" in fields or "id" not in fields:
        return options.UnknownOption(kind, fields)
    return options.UnknownOption(kind, {("configId" if name == "id" else name): it for name, it in fields.items()})


def _encode_unknown_option(option: options.UnknownOption) -> wire.UnknownVariant:
    if "id" in option.fields:
        return encode_unknown(option)
    fields = {("id" if name == "configId" else name): it for name, it in option.fields.items()}
    return encode_unknown(options.UnknownOption(option.kind, fields))


def _encode_command(command: options.Command) -> w.AvailableCommand:
    hint: Any = command.input
    if isinstance(hint, options.CommandInput):
        hint = w.UnstructuredCommandInput(
            hint=hint.hint, meta=hint.meta, extras=encode_extras(hint, w.UnstructuredCommandInput)
        )
    elif isinstance(hint, options.UnknownInput):
        hint = UNSET
    return w.AvailableCommand(
        name=command.name,
        description=command.description,
        input=hint,
        meta=command.meta,
        extras=encode_extras(command, w.AvailableCommand),
    )


def _encode_plan_entry(entry: options.PlanEntry) -> w.PlanEntry:
    """A cancelled step is done with; version 1 has no other word for that."""
    return w.PlanEntry(
        content=entry.content,
        priority=_nearest(entry.priority, ("high", "medium", "low"), "medium"),
        status="completed" if entry.status == "cancelled" else _nearest(entry.status, _STEPS, "pending"),
        meta=entry.meta,
        extras=encode_extras(entry, w.PlanEntry),
    )


def _nearest(value: str, known: tuple[str, ...], else_: str) -> Any:
    return value if value in known else else_


# -- MCP servers -----------------------------------------------------------------------------------------------------


def _encode_stdio(server: requests.McpStdio) -> w.McpServerStdio:
    return CODEC.encode_as(server, w.McpServerStdio, **_listed(server, "args", "env"))  # type: ignore[no-any-return]


def _encode_http(server: requests.McpHttp) -> w.McpServerHttp:
    return CODEC.encode_as(server, w.McpServerHttp, **_listed(server, "headers"))  # type: ignore[no-any-return]


def _encode_sse(server: requests.McpSse) -> w.McpServerSse:
    return CODEC.encode_as(server, w.McpServerSse, **_listed(server, "headers"))  # type: ignore[no-any-return]


def _encode_unknown_server(server: requests.UnknownMcp) -> wire.UnknownVariant:
    """Encode a server of unknown type. Raise `PeerMistake` for a known type: malformed, it must not be started."""
    if server.kind in ("http", "sse", "acp", "stdio"):
        raise PeerMistake(INVALID_PARAMS, "An MCP server is malformed")
    return encode_unknown(server)


def _listed(server: Any, *names: str) -> dict[str, Any]:
    """Version 1 wants these lists even when they are empty."""
    return {name: () for name in names if getattr(server, name) is UNSET}


CODEC = transcriber(
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
    decode={"Diff": _decode_diff, "ToolCallUpdate": decode_call},
    decode_unknown={options.UnknownOption: _decode_unknown_option, content.UnknownContent: _decode_unknown_block},
    encode={
        content.Annotations: _encode_annotations,
        content.ResourceLink: _encode_link,
        tools.ExitStatus: _encode_exit,
        options.UnknownOption: _encode_unknown_option,
        requests.UnknownMcp: _encode_unknown_server,
        options.Command: _encode_command,
        options.PlanEntry: _encode_plan_entry,
        requests.McpStdio: _encode_stdio,
        requests.McpHttp: _encode_http,
        requests.McpSse: _encode_sse,
    },
)
ELICITATION = Elicitation(w, closed=True, null_ids=True)


# -- answers and updates ---------------------------------------------------------------------------------------------


def encode_opened(reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> Any:
    """An opened session, with its options told in both ways that version 1 has."""
    named = {"session_id": reply.session_id} if "session_id" in kind.__struct_fields__ else {}
    return kind(
        modes=encode_modes(reply.config_options or []),
        config_options=encoded_options,
        meta=reply.meta,
        extras=encode_extras(reply, kind),
        **named,
    )


def decode_prompt_result(value: w.PromptResponse) -> events.Idle:
    """The end of a turn."""
    return events.Idle(
        stop_reason=value.stop_reason, usage=CODEC.decode(value.usage), meta=value.meta, extras=decode_extras(value)
    )


def decode_event(update: Any) -> events.AnyEvent:
    """An update of this wire as an event; modes and message ids are the dialect's to add."""
    match update:
        case wire.UnknownVariant():
            return events.UnknownEvent(update.tag, _body(update.raw))
        case w.ToolCall() | w.SessionUpdateToolCallUpdate():
            return decode_call(update)
        case w.Plan():
            items = options.PlanItems(options.MAIN_PLAN, CODEC.decode(update.entries), extras=decode_extras(update))
            return events.PlanUpdate(items, meta=update.meta)
        case w.SubagentUpdate() | w.SessionMessage() | w.SessionMessageChunk():
            return events.UnknownEvent(str(update.__struct_config__.tag), _body(Raw(wire.encode(update))))
        case _:
            return CODEC.decode(update)  # type: ignore[no-any-return]


def encode_plan(event: events.PlanUpdate, plan: options.PlanItems) -> w.Plan:
    """The one plan of a client that knows only one."""
    return w.Plan(entries=CODEC.encode(plan.entries), meta=event.meta, extras=encode_extras(plan, w.Plan))


def encode_unknown_event(event: events.UnknownEvent, *, subagents: bool) -> Any:
    """As it came; None where it would be taken for something else, or the client does not take it."""
    raw = Raw(msgspec.json.encode({**event.fields, "sessionUpdate": event.name}))
    if event.name in ("subagent_update", "session_message", "session_message_chunk"):
        try:
            return wire.decode(raw, w.SessionUpdate) if subagents else None
        except PeerMistake:
            return None
    # Updates that version 2 does not have: what is called so there is something else.
    return None if event.name in ("tool_call", "plan", "current_mode_update") else wire.UnknownVariant(event.name, raw)


def _body(raw: Raw) -> dict[str, object]:
    return {name: value for name, value in plain(raw).items() if name != "sessionUpdate"}

"""Version 1: its types as vocabulary and back, in both roles. Its requests are in `routes.py`.

Most of it is a table of names (`CODEC`, at the end). The functions are what version 1 has other rules for than version
2, whose meaning the vocabulary has: closed lists of kinds and statuses, null that means unchanged, diffs with both
texts, modes beside options. What cannot be encoded is listed in docs/losses.md, with what is sent instead.
"""

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

# The lists that the schema of version 1 closes and version 2 leaves open: a strict reader refuses anything else.
_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
_STATUSES = ("pending", "in_progress", "completed", "failed")
_STEPS = ("pending", "in_progress", "completed")
_ROLES = ("assistant", "user")
# Numbers beyond the schema's types are left out, as if they were not known.
_LARGEST_SIZE = 2**63 - 1
_LARGEST_EXIT_CODE = 2**32 - 1


# -- content ---------------------------------------------------------------------------------------------------------


def _encode_annotations(value: content.Annotations) -> w.Annotations:
    """Encode annotations with the two audiences that version 1 knows."""
    if not isinstance(value.audience, list):
        return CODEC.encode_as(value, w.Annotations)
    return CODEC.encode_as(value, w.Annotations, audience=tuple(role for role in value.audience if role in _ROLES))


def _encode_link(link: content.ResourceLink) -> w.ResourceLink:
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
    """Encode a diff as one diff for each file, with both texts; files without known texts become one text."""
    changes = [_with_texts(change, diff) for change in diff.changes]
    encoded: list[Any] = [
        w.Diff(path=path, old_text=old, new_text=new, meta=diff.meta, extras=encode_extras(diff, w.Diff))
        for path, old, new in filter(None, changes)
    ]
    if len(encoded) < len(changes):
        encoded.append(w.Content(content=w.TextContent(text=_describe(diff)), meta=diff.meta))
    return encoded


def _with_texts(change: tools.FileChange | tools.UnknownChange, diff: tools.Diff) -> tuple[str, str | None, str] | None:
    if not isinstance(change, tools.FileChange):
        return None
    if isinstance(change.new_text, str) and change.old_text is not UNSET:
        return change.path, change.old_text, change.new_text
    # Version 2 has no place for texts but the patch. That of one new file has all of it; of a changed file only hunks.
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
    """Encode tool call content; display terminals were turned into text before (`codec/terminal_display`)."""
    encoded: list[Any] = []
    for item in items:
        encoded.extend(encode_diff(item) if isinstance(item, tools.Diff) else [CODEC.encode(item)])
    return tuple(encoded)


def decode_call(value: "w.ToolCall | w.ToolCallUpdate") -> events.ToolCallUpdate:
    """Decode a tool call, new or changed."""
    # Here null means unchanged; in the vocabulary it clears. Passed on, the title of a call would vanish with its first
    # update from an agent that writes out every optional field.
    call = tolerance.corrected_call(with_raw_fields(CODEC.decode_as(value, events.ToolCallUpdate)))
    cleared = {name: UNSET for name in call.__struct_fields__ if getattr(call, name) is None}
    return msgspec.structs.replace(call, **cleared) if cleared else call


def encode_call(call: events.ToolCallUpdate, kind: Any) -> Any:
    """Encode a tool call as the wire type `kind`, with the nearest of the closed kinds and statuses."""
    fields: dict[str, Any] = {"tool_call_id": call.tool_call_id}
    for name in ("name", "title", "raw_input", "raw_output"):
        fields[name] = getattr(call, name)
    # A list is cleared by an empty one. Another field cannot be cleared: null would mean unchanged, so it is left out.
    if call.locations is not UNSET:
        fields["locations"] = CODEC.encode(call.locations or [])
    if call.content is not UNSET:
        fields["content"] = encode_items(call.content or [])
    if isinstance(call.kind, str):
        fields["kind"] = _nearest(call.kind, _KINDS, "other")
    if isinstance(call.status, str):
        fields["status"] = encode_status(call.status)
    known = {name: item for name, item in fields.items() if item is not UNSET and item is not None}
    return kind(**known, meta=call.meta, extras=encode_extras(call, kind))


def encode_status(status: str) -> Any:
    """Return the nearest of the four statuses."""
    # A call that was cancelled has ended without success; any unknown status may still change, so it goes on.
    if status == "cancelled":
        return "failed"
    return _nearest(status, _STATUSES, "in_progress")


def _encode_exit(status: tools.ExitStatus) -> w.TerminalExitStatus:
    return CODEC.encode_as(sane_exit(status), w.TerminalExitStatus)


def sane_exit(status: Any) -> Any:
    """Clear an exit code that version 1 cannot hold: a negative one, which stands for a signal, or one too large."""
    if isinstance(status.exit_code, int) and not 0 <= status.exit_code <= _LARGEST_EXIT_CODE:
        return msgspec.structs.replace(status, exit_code=None)
    return status


# -- options and commands --------------------------------------------------------------------------------------------


def decode_modes(state: Any) -> options.Select | None:
    """Decode version 1's `modes` as the mode option; None where there are none."""
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
    """Decode an option of unknown type; its id is `configId` in the vocabulary, as in version 2."""
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
        hint = UNSET  # the command can still be called, only without a hint
    return w.AvailableCommand(
        name=command.name,
        description=command.description,
        input=hint,
        meta=command.meta,
        extras=encode_extras(command, w.AvailableCommand),
    )


def _encode_plan_entry(entry: options.PlanEntry) -> w.PlanEntry:
    """Encode a step of a plan; a cancelled one is `completed`, the only status for a step that is over."""
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
    return CODEC.encode_as(server, w.McpServerStdio, **_listed(server, "args", "env"))


def _encode_http(server: requests.McpHttp) -> w.McpServerHttp:
    return CODEC.encode_as(server, w.McpServerHttp, **_listed(server, "headers"))


def _encode_sse(server: requests.McpSse) -> w.McpServerSse:
    return CODEC.encode_as(server, w.McpServerSse, **_listed(server, "headers"))


def _encode_unknown_server(server: requests.UnknownMcp) -> wire.UnknownVariant:
    """Encode a server of unknown type. Raise `PeerMistake` for a known type: malformed, it must not be started."""
    if server.kind in ("http", "sse", "acp", "stdio"):
        raise PeerMistake(INVALID_PARAMS, "An MCP server is malformed")
    return encode_unknown(server)


def _listed(server: Any, *names: str) -> dict[str, Any]:
    """Return the lists that are absent as empty ones: version 1 requires the keys, version 2 does not."""
    return {name: () for name in names if getattr(server, name) is UNSET}


CODEC = transcriber(
    w,
    {
        # `id` and `group` became `configId` and `groupId` in version 2.
        "SessionConfigSelectGroup": (options.ChoiceGroup, {"group": "group_id"}),
        "SessionConfigOptionSelect": (options.Select, {"id": "config_id"}),
        "SessionConfigOptionBoolean": (options.Toggle, {"id": "config_id"}),
        "AvailableCommand": options.Command,
        "UnstructuredCommandInput": options.CommandInput,
        "McpServerSse": requests.McpSse,
        # Of the same shape as version 2's `Terminal`, and another thing: this one is the client's, to be run with
        # `terminal/*`; that one is the agent's, to be shown. Neither may be passed on as the other.
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
ELICITATION = Elicitation(w, closed=True, null_ids=True)  # here `"id": null` is a request, so a question may name it


# -- answers and updates ---------------------------------------------------------------------------------------------


def decode_prompt_result(value: w.PromptResponse) -> events.Idle:
    """Decode the answer to a prompt as the end of its turn."""
    return events.Idle(
        stop_reason=value.stop_reason, usage=CODEC.decode(value.usage), meta=value.meta, extras=decode_extras(value)
    )


def decode_event(update: Any) -> events.AnyEvent:
    """Decode an update as an event; modes and message ids are added by the dialect, which knows the session."""
    match update:
        case wire.UnknownVariant():
            return events.UnknownEvent(update.tag, _body(update.raw))
        # Announced or changed is one event in the vocabulary: the first sight of an id creates the call.
        case w.ToolCall() | w.SessionUpdateToolCallUpdate():
            return decode_call(update)
        case w.Plan():
            items = options.PlanItems(options.MAIN_PLAN, CODEC.decode(update.entries), extras=decode_extras(update))
            return events.PlanUpdate(items, meta=update.meta)
        # Typed in the schema and not in the vocabulary, which passes them on as unknown ones.
        case w.SubagentUpdate() | w.SessionMessage() | w.SessionMessageChunk():
            return events.UnknownEvent(str(update.__struct_config__.tag), _body(Raw(wire.encode(update))))
        case _:
            return CODEC.decode(update)  # type: ignore[no-any-return]


def encode_plan(event: events.PlanUpdate, plan: options.PlanItems) -> w.Plan:
    """Encode a plan for a client that can show only one: without its id."""
    return w.Plan(entries=CODEC.encode(plan.entries), meta=event.meta, extras=encode_extras(plan, w.Plan))


def encode_unknown_event(event: events.UnknownEvent, *, subagents: bool) -> Any:
    """Encode an unknown event as it came; None where it would be taken for something else, or was not asked for."""
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

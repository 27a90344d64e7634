"""Version 2 (draft): its types as vocabulary and back. The vocabulary has this version's meaning: most of it is names.

The functions are where version 2 is stricter than version 1 (ranges, lists that must not be empty) or has another shape
(diffs, states). What cannot be encoded is listed in docs/losses.md, with what is sent instead.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.elicitations import Elicitation
from dragoman.dialects.codec.git_patches import git_patch
from dragoman.dialects.codec.shared_types import transcriber
from dragoman.dialects.codec.transcriber import decode_extras, encode_extras, encode_unknown, plain
from dragoman.dialects.tolerance.requests import with_raw_fields
from dragoman.dialects.v2.choices import decode_choices, encode_choices
from dragoman.errors import PeerMistake
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

_EMPTY = Raw(b"[]")
# The changes of a diff: one class for each operation on the wire, one word with an operation in the vocabulary.
_CHANGES: dict[str, Any] = {
    "add": w.DiffChangeAdd,
    "delete": w.DiffChangeDelete,
    "modify": w.DiffChangeModify,
    "move": w.DiffChangeMove,
    "copy": w.DiffChangeCopy,
}


# -- content and options ---------------------------------------------------------------------------------------------


def _encode_annotations(value: content.Annotations) -> w.Annotations:
    """Encode annotations; a priority outside of 0 to 1, which version 1 allows, is left out."""
    if isinstance(value.priority, (int, float)) and not 0 <= value.priority <= 1:
        value = msgspec.structs.replace(value, priority=UNSET)
    return CODEC.encode_as(value, w.Annotations)


def _encode_link(link: content.ResourceLink) -> w.ResourceLink:
    # Version 1 has a signed size; a negative one is no size.
    if isinstance(link.size, int) and link.size < 0:
        link = msgspec.structs.replace(link, size=UNSET)
    return CODEC.encode_as(link, w.ResourceLink)


def _encode_location(location: tools.Location) -> w.ToolCallLocation:
    """Encode a location; a line below 1 is left out: version 1's schema allows 0, and means no line by it."""
    if isinstance(location.line, int) and location.line < 1:
        location = msgspec.structs.replace(location, line=UNSET)
    return CODEC.encode_as(location, w.ToolCallLocation)


def _encode_select(option: options.Select) -> w.SessionConfigOptionSelect:
    """Encode a choice; without any entries it gets the current value as one, because the list must not be empty."""
    choices: Any = encode_choices(option.options, CODEC)
    if choices == _EMPTY:
        choices = CODEC.encode([options.Choice(option.current_value, option.current_value)])
    if option.extras is not UNSET:
        return CODEC.encode_as(option, w.SessionConfigOptionSelect, options=choices)
    return w.SessionConfigOptionSelect(
        config_id=option.config_id,
        name=option.name,
        description=option.description,
        category=option.category,
        current_value=option.current_value,
        options=choices,
        meta=option.meta,
    )


def _decode_select(value: w.SessionConfigOptionSelect) -> options.Select:
    if value.extras is not UNSET:
        return CODEC.decode_as(value, options.Select)
    return options.Select(
        value.config_id,
        value.name,
        value.current_value,
        decode_choices(value.config_id, value.options, CODEC),
        value.description,
        value.category,
        meta=value.meta,
    )


# -- tool calls ------------------------------------------------------------------------------------------------------


def _decode_change(value: Any) -> tools.FileChange:
    return tools.FileChange(
        value.__struct_config__.tag,
        value.path,
        getattr(value, "old_path", UNSET),
        value.file_type,
        value.mime_type,
        meta=value.meta,
        extras=decode_extras(value),
    )


def _encode_change(change: tools.FileChange) -> Any:
    kind = _CHANGES[change.operation]
    # The other operations have no such field on the wire, and the vocabulary has it for all of them.
    pair = {"old_path": change.old_path} if change.operation in ("move", "copy") else {}
    return CODEC.encode_as(change, kind, **pair)


def _encode_diff(diff: tools.Diff) -> w.Diff:
    patch = _patch_of(diff) if diff.patch is UNSET else diff.patch
    return CODEC.encode_as(diff, w.Diff, patch=CODEC.encode(patch))


def _patch_of(diff: tools.Diff) -> Any:
    """Return a patch for a diff that carries whole texts: this wire has no other place for them.

    The patch may lack files whose texts are not known: `changes` names them all.
    """
    texts = [git_patch(change) for change in diff.changes if isinstance(change, tools.FileChange)]
    whole = "".join(text for text in texts if text is not None)
    return tools.Patch("git_patch", whole) if whole else UNSET


# Work that goes on while a session is idle. It is kept whole: the vocabulary has no types for it, no layer acts on it.
def _decode_background(value: Any) -> events.Background:
    return events.Background(value.__struct_config__.tag, plain(Raw(wire.encode(value))))


def _decode_state(word: Any) -> Any:
    return lambda value: CODEC.decode_as(value, word)


# States are open in this version: an unknown one is kept whole, and never taken for idle or running.
def _decode_unknown_state(value: Any) -> events.UnknownState:
    return unknown_state(plain(Raw(wire.encode(value))))


def unknown_state(fields: dict[str, Any]) -> events.UnknownState:
    return events.UnknownState(str(fields.get("state")), _without(fields, "sessionUpdate", "state"))


def _encode_subject(subject: services.ToolCallSubject) -> w.ToolCallPermissionSubject:
    # As a patch: a permission may tell more of the call than the client has.
    call = CODEC.encode_as(subject.tool_call, w.ToolCallUpdate)
    kind = w.ToolCallPermissionSubject
    return kind(tool_call=call, meta=subject.meta, extras=encode_extras(subject, kind))


def _encode_sse(server: requests.McpSse) -> wire.UnknownVariant:
    """Encode an SSE server as an unknown type: this version has dropped SSE, but its list of transports is open."""
    http = CODEC.encode_as(requests.McpHttp(server.name, server.url, server.headers), w.McpServerHttp)
    rest = {} if server.extras is UNSET else server.extras.fields
    meta = {} if server.meta is UNSET else {"_meta": server.meta}
    body = {**rest, **plain(Raw(wire.encode(http))), **meta, "type": "sse"}
    return wire.UnknownVariant("sse", Raw(msgspec.json.encode(body)))


def _decode_server(kind: str, fields: dict[str, object]) -> requests.McpServer:
    """Decode a server of unknown type; SSE is read as its sibling HTTP is, with the same fields."""
    if kind == "sse":
        try:
            as_http = wire.decode(msgspec.json.encode({**fields, "type": "http"}), w.McpServerHttp)
        except PeerMistake:
            return requests.UnknownMcp(kind, fields)
        return CODEC.decode_as(as_http, requests.McpSse)
    return requests.UnknownMcp(kind, fields)


def _client_terminal_as_text(item: tools.ClientTerminalItem) -> w.Content:
    """Encode a client's terminal as text: on this wire it would be taken for one of the agent's, of the same shape."""
    return w.Content(content=w.TextContent(text=f"[terminal {item.terminal_id}]"))


def _encode_outcome(outcome: services.UnknownOutcome) -> Any:
    """Encode an unknown outcome as it came, under its own name."""
    # Its fields may have been made by anything: under the name of a known outcome they could be read as a yes.
    if outcome.kind in ("selected", "cancelled"):
        return w.CancelledPermissionOutcome()
    return encode_unknown(services.UnknownOutcome(outcome.kind, {**outcome.fields, "outcome": outcome.kind}))


CODEC = transcriber(
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
    decode={
        **{kind.__name__: _decode_change for kind in _CHANGES.values()},
        "SessionConfigOptionSelect": _decode_select,
        # In `session/status` states stand alone; as updates they have classes of their own, in the table above.
        "RunningStateUpdate": _decode_state(events.Running),
        "RequiresActionStateUpdate": _decode_state(events.RequiresAction),
        "IdleStateUpdate": _decode_state(events.Idle),
        "UnknownStateUpdate": _decode_unknown_state,
        "SessionUpdateStateUpdateUnknown": _decode_unknown_state,
        "BackgroundTerminal": _decode_background,
        "BackgroundToolCall": _decode_background,
        "BackgroundSubagent": _decode_background,
    },
    decode_unknown={requests.UnknownMcp: _decode_server},
    encode={
        content.Annotations: _encode_annotations,
        content.ResourceLink: _encode_link,
        tools.Location: _encode_location,
        options.Select: _encode_select,
        services.UnknownOutcome: _encode_outcome,
        tools.FileChange: _encode_change,
        tools.Diff: _encode_diff,
        tools.ClientTerminalItem: _client_terminal_as_text,
        requests.McpSse: _encode_sse,
        services.ToolCallSubject: _encode_subject,
    },
)
ELICITATION = Elicitation(w, closed=False, null_ids=False)  # no request of this version has the id null


def decode_event(update: Any) -> events.AnyEvent:
    """Decode an update as an event."""
    if isinstance(update, wire.UnknownVariant):
        fields = plain(update.raw)
        if fields.get("sessionUpdate") == "state_update":
            return unknown_state(fields)
        return events.UnknownEvent(update.tag, _without(fields, "sessionUpdate"))
    if type(update) in _UNNAMED:
        fields = plain(Raw(wire.encode(update)))
        return events.UnknownEvent(update.__struct_config__.tag, _without(fields, "sessionUpdate"))
    event = CODEC.decode(update)
    return with_raw_fields(event) if isinstance(event, events.ToolCallUpdate) else event


def encode_event(event: events.AnyEvent) -> Any:
    """Encode an event as an update; None where it would be taken for something else."""
    match event:
        case events.UnknownEvent():
            return _encode_unknown_event(event)
        case events.UnknownState():
            body = {**event.fields, "sessionUpdate": "state_update", "state": event.state}
            return wire.UnknownVariant("state_update", Raw(msgspec.json.encode(body)))
        case events.ToolCallUpdate():
            return CODEC.encode_as(event, w.SessionUpdateToolCallUpdate)
        case _:
            return CODEC.encode(event)


def _encode_unknown_event(event: events.UnknownEvent) -> Any:
    raw = Raw(msgspec.json.encode({**event.fields, "sessionUpdate": event.name}))
    # The schema has types for these, so they are checked by it: malformed ones would be refused by the peer anyway.
    if event.name in _UNNAMED_TAGS:
        try:
            return wire.decode(raw, w.SessionUpdate)
        except PeerMistake:
            return None
    return None if event.name in _ONLY_HERE else wire.UnknownVariant(event.name, raw)


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

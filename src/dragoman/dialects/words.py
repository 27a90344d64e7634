"""What versions 1 and 2 call the same: the shared part of their tables.

Both wires have structs of these names with the same meaning, so the table is made once, from whichever module of the
wire is given. It imports neither.
"""

from types import ModuleType
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.transcribe import Renames, Transcriber, hear_extras, plain, say_extras
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.vocabulary.word import Word
from dragoman.wire import types as wire

_SHARED: dict[str, type[Word]] = {
    "Annotations": content.Annotations,
    "TextContent": content.Text,
    "ImageContent": content.Image,
    "AudioContent": content.Audio,
    "ResourceLink": content.ResourceLink,
    "TextResourceContents": content.TextResource,
    "BlobResourceContents": content.BlobResource,
    "EmbeddedResource": content.Resource,
    "Content": tools.ContentItem,
    "ToolCallLocation": tools.Location,
    "TerminalExitStatus": tools.ExitStatus,
    "PlanEntry": options.PlanEntry,
    "PlanItems": options.PlanItems,
    "PlanFile": options.PlanFile,
    "PlanMarkdown": options.PlanMarkdown,
    "PlanUpdate": events.PlanUpdate,
    "PlanRemoved": events.PlanRemoved,
    "AvailableCommandsUpdate": events.CommandsChanged,
    "ConfigOptionUpdate": events.OptionsChanged,
    "SessionInfoUpdate": events.SessionInfoChanged,
    "Cost": events.Cost,
    "UsageUpdate": events.UsageChanged,
    "Notice": events.Notice,
    "CompactionUpdate": events.CompactionUpdate,
    "CompactionSummaryChunk": events.CompactionSummaryChunk,
    "Usage": events.Usage,
    "SessionUpdateUserMessageChunk": events.UserMessageChunk,
    "SessionUpdateAgentMessageChunk": events.AgentMessageChunk,
    "SessionUpdateAgentThoughtChunk": events.AgentThoughtChunk,
    "SessionUpdateToolCallUpdate": events.ToolCallUpdate,
    "ToolCallUpdate": events.ToolCallUpdate,
    "SessionConfigSelectOption": options.Choice,
    "EnvVariable": requests.EnvVariable,
    "HttpHeader": requests.HttpHeader,
    "McpServerStdio": requests.McpStdio,
    "McpServerHttp": requests.McpHttp,
    "McpServerAcp": requests.McpAcp,
    "SystemPrompt": requests.SystemPrompt,
    "SessionInfo": requests.SessionInfo,
    "AuthAccount": requests.Account,
    "PermissionOption": services.PermissionOption,
    "SelectedPermissionOutcome": services.Selected,
    "Error": events.Failure,
}


def transcriber(
    w: ModuleType,
    own: dict[str, type[Word] | tuple[type[Word], Renames]],
    *,
    hear: dict[str, Any] | None = None,
    say: dict[type[Word], Any] | None = None,
) -> Transcriber:
    """The table of one version: the shared words and its `own`; `hear` and `say` are what is more than names."""
    pairs: list[Any] = []
    for name, word in {**_SHARED, **own}.items():
        if isinstance(word, tuple):
            pairs.append((getattr(w, name), *word))
        else:
            pairs.append((getattr(w, name), word))
    readers = {getattr(w, name): reader for name, reader in (hear or {}).items()}
    return Transcriber(pairs, hear=readers, say=say)


class Elicitation:
    """`elicitation/create` and its answer, which both versions spell alike: a mode and a scope in one object."""

    def __init__(self, w: Any) -> None:
        self._w = w

    def hear(self, value: Any) -> services.Elicit:
        """The question."""
        mode: services.Form | services.Url | services.UnknownMode
        if isinstance(value, wire.Unknown):
            fields = plain(value.raw)
            mode = services.UnknownMode(value.tag, fields)
            scope = _loose_scope(fields)
            return services.Elicit(str(fields.get("message", "")), mode, scope)
        if isinstance(value, self._w.CreateElicitationRequestForm):
            mode = services.Form(plain(Raw(wire.encode(value.requested_schema))))
        else:
            mode = services.Url(value.elicitation_id, value.url)
        return services.Elicit(value.message, mode, _scope(value), meta=value.meta, extras=hear_extras(value))

    def say(self, question: services.Elicit) -> Any:
        """The question, as one object."""
        if isinstance(question.mode, services.UnknownMode):
            return wire.Unknown(question.mode.kind, Raw(msgspec.json.encode(question.mode.fields)))
        scope = (
            {"request_id": question.scope.request_id}
            if isinstance(question.scope, services.RequestScope)
            else {"session_id": question.scope.session_id, "tool_call_id": question.scope.tool_call_id}
        )
        common = {"message": question.message, "meta": question.meta, "extras": say_extras(question), **scope}
        if isinstance(question.mode, services.Form):
            raw = msgspec.json.encode(question.mode.requested_schema)
            schema = wire.decode(raw, self._w.ElicitationSchema)
            return self._w.CreateElicitationRequestForm(requested_schema=schema, **common)
        mode = question.mode
        return self._w.CreateElicitationRequestUrl(elicitation_id=mode.elicitation_id, url=mode.url, **common)

    def hear_answer(self, value: Any) -> services.ElicitationAnswer:
        """What the user did."""
        if isinstance(value, wire.Unknown):
            return services.ElicitationAnswer(value.tag)
        action = value.__struct_config__.tag
        found = getattr(value, "content", UNSET)
        answer = dict(found) if isinstance(found, dict) else found
        return services.ElicitationAnswer(action, answer, meta=value.meta, extras=hear_extras(value))

    def say_answer(self, answer: services.ElicitationAnswer) -> Any:
        """What the user did; an action without a name on this wire is sent as it is."""
        common = {"meta": answer.meta, "extras": say_extras(answer)}
        match answer.action:
            case "accept":
                return self._w.CreateElicitationResponseAccept(content=answer.content, **common)
            case "decline":
                return self._w.CreateElicitationResponseDecline(**common)
            case "cancel":
                return self._w.CreateElicitationResponseCancel(**common)
            case other:
                return wire.Unknown(other, Raw(msgspec.json.encode({"action": other})))


def _scope(value: Any) -> services.SessionScope | services.RequestScope:
    if value.session_id is UNSET:
        return services.RequestScope(value.request_id)
    return services.SessionScope(value.session_id, value.tool_call_id)


def _loose_scope(fields: dict[str, Any]) -> services.SessionScope | services.RequestScope:
    if isinstance(fields.get("sessionId"), str):
        return services.SessionScope(fields["sessionId"])
    return services.RequestScope(fields.get("requestId"))

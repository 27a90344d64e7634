"""The types that versions 1 and 2 have alike: the shared part of their tables.

Both wires have structs of these names with the same meaning, so the table stands once and takes the classes from the
module of the wire that is given. It imports neither: a process that serves one version never loads the other.
"""

from types import ModuleType
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.transcriber import Renames, Transcriber, plain
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.vocabulary.word import Extras, Unknown, Word
from dragoman.wire import types as wire

# The name of a generated class to the class of the vocabulary. Only what has the same meaning in both versions is here:
# the same name is not enough, as `Terminal`, `Diff` and `SessionConfigOptionSelect` show.
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
    # As a variant of `session/update` a type is generated a second time, with the tag in it.
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
    decode: dict[str, Any] | None = None,
    encode: dict[type[Word], Any] | None = None,
    decode_unknown: dict[type[Unknown], Any] | None = None,
) -> Transcriber:
    """Return the codec of one version: the shared pairs, its `own`, and functions for what is more than names."""
    # One of its own wins over the shared one of that name.
    pairs: list[Any] = []
    for name, word in {**_SHARED, **own}.items():
        if isinstance(word, tuple):
            pairs.append((getattr(w, name), *word))
        else:
            pairs.append((getattr(w, name), word))
    readers = {getattr(w, name): reader for name, reader in (decode or {}).items()}
    return Transcriber(pairs, decode=readers, encode=encode, decode_unknown=decode_unknown)


# The fields of `session/set_config_option`; what is beside them is unknown, and goes along.
_VALUE_FIELDS = ("sessionId", "configId", "type", "value", "_meta")


def decode_unknown_value(value: wire.UnknownVariant) -> requests.SetOption:
    """Decode `session/set_config_option` with a value of unknown type; raise `PeerMistake` if it is malformed."""
    fields = plain(value.raw)
    session_id, config_id = fields.get("sessionId"), fields.get("configId")
    # A known type comes here only if it was malformed, and must not pass as an unknown one.
    if not isinstance(session_id, str) or not isinstance(config_id, str) or value.tag in ("id", "boolean"):
        raise PeerMistake(INVALID_PARAMS, "Invalid params")
    unknown = requests.UnknownValue(value.tag, fields.get("value", UNSET))
    rest = {name: item for name, item in fields.items() if name not in _VALUE_FIELDS}
    extras = Extras(rest) if rest else UNSET
    return requests.SetOption(session_id, config_id, unknown, meta=fields.get("_meta", UNSET), extras=extras)


def encode_unknown_value(request: requests.SetOption) -> wire.UnknownVariant:
    """Encode `session/set_config_option` with a value of unknown type, as it was received."""
    assert isinstance(request.value, requests.UnknownValue)
    body = dict(request.extras.fields) if isinstance(request.extras, Extras) else {}
    body |= {"sessionId": request.session_id, "configId": request.config_id, "type": request.value.kind}
    body |= {} if request.value.value is UNSET else {"value": request.value.value}
    body |= {} if request.meta is UNSET else {"_meta": request.meta}
    return wire.UnknownVariant(request.value.kind, Raw(msgspec.json.encode(body)))

"""The generated modules against the official schemas: nothing is missing, nothing drifts, nothing is lost on the way.

The oracle is independent: instances are drawn from the schema itself (`instances.py`) and judged by jsonschema-rs.
"""

import json
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.wire import types, v1, v2
from tests.support.needs import need_typescript_sdk
from tests.support.schema_instances import definitions, instances, schema_folder, validator
from tools.generate_wire import generate

MODULES = {"v1": v1, "v2": v2}
ENVELOPES = {
    f"{side}{kind}" for side in ("Agent", "Client", "Proxy") for kind in ("Request", "Response", "Notification")
}
# Parts of other objects in the schema, never an object of their own: their fields are in those others.
FLATTENED = {
    "v1": {
        *("ElicitationAcceptAction", "ElicitationFormMode", "ElicitationUrlMode"),
        *("ElicitationRequestScope", "ElicitationSessionScope"),
        *("ErrorStopReason", "SessionConfigBoolean", "SessionConfigSelect"),
    },
    "v2": {
        *("ElicitationAcceptAction", "ElicitationFormMode", "ElicitationUrlMode"),
        *("ElicitationRequestScope", "ElicitationSessionScope"),
        *("ErrorStopReason", "SessionConfigBoolean", "SessionConfigSelect"),
        *("DiffPathChange", "DiffPathPairChange"),
    },
}
# The dialects are written against these names.
SESSION_UPDATES: dict[str, dict[str, Any]] = {
    "v1": {
        "user_message_chunk": v1.SessionUpdateUserMessageChunk,
        "agent_message_chunk": v1.SessionUpdateAgentMessageChunk,
        "agent_thought_chunk": v1.SessionUpdateAgentThoughtChunk,
        "tool_call": v1.ToolCall,
        "tool_call_update": v1.SessionUpdateToolCallUpdate,
        "plan": v1.Plan,
        "plan_update": v1.PlanUpdate,
        "plan_removed": v1.PlanRemoved,
        "available_commands_update": v1.AvailableCommandsUpdate,
        "current_mode_update": v1.CurrentModeUpdate,
        "config_option_update": v1.ConfigOptionUpdate,
        "session_info_update": v1.SessionInfoUpdate,
        "usage_update": v1.UsageUpdate,
        "notice": v1.Notice,
        "compaction_update": v1.CompactionUpdate,
        "compaction_summary_chunk": v1.CompactionSummaryChunk,
        "subagent_update": v1.SubagentUpdate,
        "session_message": v1.SessionMessage,
        "session_message_chunk": v1.SessionMessageChunk,
    },
    "v2": {
        "user_message_chunk": v2.SessionUpdateUserMessageChunk,
        "user_message": v2.UserMessage,
        "agent_message_chunk": v2.SessionUpdateAgentMessageChunk,
        "agent_message": v2.AgentMessage,
        "agent_thought_chunk": v2.SessionUpdateAgentThoughtChunk,
        "agent_thought": v2.AgentThought,
        "state_update": (
            v2.SessionUpdateStateUpdateRunning,
            v2.SessionUpdateStateUpdateIdle,
            v2.SessionUpdateStateUpdateRequiresAction,
            v2.SessionUpdateStateUpdateUnknown,
            types.UnknownVariant,
        ),
        "tool_call_content_chunk": v2.ToolCallContentChunk,
        "tool_call_update": v2.SessionUpdateToolCallUpdate,
        "terminal_update": v2.TerminalUpdate,
        "terminal_output_chunk": v2.TerminalOutputChunk,
        "plan_update": v2.PlanUpdate,
        "plan_removed": v2.PlanRemoved,
        "available_commands_update": v2.AvailableCommandsUpdate,
        "config_option_update": v2.ConfigOptionUpdate,
        "session_info_update": v2.SessionInfoUpdate,
        "usage_update": v2.UsageUpdate,
        "notice": v2.Notice,
        "compaction_update": v2.CompactionUpdate,
        "compaction_summary_chunk": v2.CompactionSummaryChunk,
        "subagent_update": v2.SubagentUpdate,
        "session_message": v2.SessionMessage,
        "session_message_chunk": v2.SessionMessageChunk,
    },
}
# Every type that stands for the params or the result of a method, by the name of its definition.
MESSAGES = [
    (version, name)
    for version, module in MODULES.items()
    for name in sorted(vars(module))
    if name.endswith(("Request", "Response", "Notification")) and not name.startswith(("Ext", "MetaWire"))
]
UPDATES = [(version, tag) for version, tags in SESSION_UPDATES.items() for tag in tags]
# There are hundreds of these tests; each takes its share of the profile's examples.
EVERY = settings(
    max_examples=settings().max_examples // 10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(autouse=True)
def _schemas() -> None:
    if schema_folder() is None:
        need_typescript_sdk()


@pytest.mark.parametrize("version", MODULES)
def test_the_generated_file_is_what_the_generator_writes(version: str) -> None:
    folder, file = schema_folder(), MODULES[version].__file__
    assert folder is not None and file is not None
    with open(file, encoding="utf-8") as written:
        assert written.read() == generate(folder, version)


@pytest.mark.parametrize("version", MODULES)
def test_every_definition_of_the_schema_has_a_type(version: str) -> None:
    missing = {name for name in definitions(version) if not hasattr(MODULES[version], name)}
    assert missing == ENVELOPES | FLATTENED[version]


@pytest.mark.parametrize("version", MODULES)
def test_stable_says_which_definitions_are_in_the_stable_schema(version: str) -> None:
    every, stable = definitions(version).keys(), definitions(version, "schema.json").keys()
    assert MODULES[version].STABLE & every == stable - ENVELOPES - FLATTENED[version]


@pytest.mark.parametrize("version", MODULES)
def test_every_method_of_the_schema_is_in_a_table(version: str) -> None:
    module = MODULES[version]
    expected: dict[str, dict[str, Any]] = {}
    for name, schema in definitions(version).items():
        if "x-method" in schema:
            kind = "NOTIFICATIONS" if name.endswith("Notification") else "METHODS"
            table = expected.setdefault(f"{schema['x-side'].upper()}_{kind}", {})
            slot = 1 if name.endswith("Response") else 0
            table.setdefault(schema["x-method"], [None, None])[slot] = getattr(module, name)
    found = {name: getattr(module, name) for name in vars(module) if name.endswith(("_METHODS", "_NOTIFICATIONS"))}
    assert found == {
        name: {m: pair[0] if name.endswith("NOTIFICATIONS") else tuple(pair) for m, pair in table.items()}
        for name, table in expected.items()
    }


@pytest.mark.parametrize(("version", "name"), MESSAGES)
@EVERY
@given(data=st.data())
def test_a_valid_message_survives_decoding_and_encoding(version: str, name: str, data: st.DataObject) -> None:
    instance = data.draw(instances(version).of(name))
    assert validator(version, name).is_valid(instance)
    if not has_variants(version, name):  # else it may be one that the strict decoder leaves to the lenient one
        types.decoder(getattr(MODULES[version], name)).decode(text(instance))
    assert again(version, name, instance) == meaning(instance)


@pytest.mark.parametrize(("version", "name"), MESSAGES)
@EVERY
@given(data=st.data())
def test_unknown_fields_survive_at_every_level(version: str, name: str, data: st.DataObject) -> None:
    instance = data.draw(instances(version, vendor=True).of(name))
    assert validator(version, name).is_valid(instance)
    assert again(version, name, instance) == meaning(instance)


@pytest.mark.parametrize(("version", "name"), MESSAGES)
@EVERY
@given(data=st.data())
def test_unknown_variants_survive_at_every_level(version: str, name: str, data: st.DataObject) -> None:
    instance = data.draw(instances(version, vendor=True, foreign=True).of(name))
    assert again(version, name, instance) == meaning(instance)


@pytest.mark.parametrize(("version", "tag"), UPDATES)
@EVERY
@given(data=st.data())
def test_every_session_update_has_its_class_and_survives(version: str, tag: str, data: st.DataObject) -> None:
    instance = data.draw(updates(version, tag))
    assert validator(version, "SessionUpdate").is_valid(instance)
    update = types.decode(text(instance), MODULES[version].SessionUpdate)
    assert isinstance(update, SESSION_UPDATES[version][tag])
    assert meaning(json.loads(types.encode(update))) == meaning(instance)


@pytest.mark.parametrize("version", MODULES)
def test_the_session_updates_of_the_schema_are_the_ones_listed_here(version: str) -> None:
    tags = [b["properties"]["sessionUpdate"].get("const") for b in branches(version, "SessionUpdate")]
    assert [tag for tag in tags if tag is not None] == list(SESSION_UPDATES[version])


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [
        ("v1", "SessionNotification", {"update": {"sessionUpdate": "agent_message_chunk", "content": "TEXT"}}),
        ("v1", "SessionNotification", {"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "t"}}),
        ("v1", "SessionNotification", {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t"}}),
        ("v1", "PromptRequest", {"prompt": ["TEXT", "LINK", "RESOURCE"]}),
        ("v1", "NewSessionRequest", {"cwd": "/", "mcpServers": [{"name": "m", "command": "c", "args": [], "env": []}]}),
        ("v1", "NewSessionResponse", {}),
        ("v2", "UpdateSessionNotification", {"update": {"sessionUpdate": "agent_message_chunk", "content": "TEXT"}}),
        ("v2", "UpdateSessionNotification", {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t"}}),
        ("v2", "PromptRequest", {"prompt": ["TEXT", "LINK", "RESOURCE"]}),
        ("v2", "NewSessionRequest", {"cwd": "/", "mcpServers": [{"type": "http", "name": "m", "url": "u"}]}),
    ],
)
def test_common_messages_take_the_fast_way(version: str, kind: str, message: dict[str, Any]) -> None:
    blocks = {
        "TEXT": {"type": "text", "text": "t"},
        "LINK": {"type": "resource_link", "name": "n", "uri": "u"},
        "RESOURCE": {"type": "resource", "resource": {"uri": "u", "text": "t"}},
    }
    data = json.dumps(message)
    for name, block in blocks.items():
        data = data.replace(f'"{name}"', json.dumps(block))
    full = {"sessionId": "s", **json.loads(data)} if kind != "NewSessionRequest" else json.loads(data)
    if version == "v2" and "content" in full.get("update", {}):
        full["update"]["messageId"] = "m"
    fast = types.decoder(getattr(MODULES[version], kind)).decode(text(full))
    assert meaning(json.loads(types.encode(fast))) == meaning(full)


def test_chunks_of_all_kinds_are_content_chunks() -> None:
    for module in (v1, v2):
        kinds = (
            module.SessionUpdateUserMessageChunk,
            module.SessionUpdateAgentMessageChunk,
            module.SessionUpdateAgentThoughtChunk,
        )
        assert all(issubclass(kind, module.ContentChunk) for kind in kinds)


@cache
def updates(version: str, tag: str) -> st.SearchStrategy[dict[str, Any]]:
    (branch,) = (b for b in branches(version, "SessionUpdate") if b["properties"]["sessionUpdate"].get("const") == tag)
    return instances(version, vendor=True).object(branch)


def again(version: str, name: str, instance: Any) -> Any:
    """Decoded and encoded; what comes out is as valid as what went in."""
    module: ModuleType = MODULES[version]
    encoded = json.loads(types.encode(types.decode(text(instance), getattr(module, name))))
    assert validator(version, name).is_valid(encoded) == validator(version, name).is_valid(instance)
    return meaning(encoded)


@cache
def has_variants(version: str, name: str) -> bool:
    """Whether anything in it may be one of several kinds of object."""
    known, kinds = definitions(version), [definitions(version)[name]]
    for inner in kinds:  # it grows meanwhile
        if isinstance(inner, list):
            kinds += inner
        elif isinstance(inner, dict):
            if len([one for one in alternatives(inner) if one.get("type") not in ("null", "string")]) > 1:
                return True
            kinds += [value for key, value in inner.items() if key != "$ref"]
            reference = str(inner.get("$ref", "")).rpartition("/")[2]
            kinds += [known[reference]] if reference and known[reference] not in kinds else []
    return False


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
    return found


def branches(version: str, name: str) -> list[dict[str, Any]]:
    schema = definitions(version)[name]
    found: list[dict[str, Any]] = schema.get("anyOf") or schema["oneOf"]
    return found


def text(instance: Any) -> bytes:
    return json.dumps(instance, ensure_ascii=False).encode()


def meaning(value: Any) -> Any:
    """The value with every number in one spelling, and apart from booleans, which Python takes for numbers."""
    if isinstance(value, dict):
        return {key: meaning(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [meaning(inner) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ("number", value)
    return value

"""Read updates and answers in other words than the schema's, as agents are known to send them.

The client's half of tolerance; `requests` is the agent's. Only messages that cannot be read as they stand, or that
carry one of the names below, come here. What a permission is about may be filled in; what it was answered never is.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.vocabulary.events import CHUNK_TYPES, ToolCallUpdate, Usage
from dragoman.vocabulary.options import Choice, Option, Select, category_of
from dragoman.vocabulary.word import Extras

# Updates under the names of their classes in the official Python SDK, as iac-code's document has them (row 8.1.15).
UPDATE_ALIASES: Final = {
    "UserMessageChunk": "user_message_chunk",
    "AgentMessageChunk": "agent_message_chunk",
    "AgentThoughtChunk": "agent_thought_chunk",
    "ToolCallStart": "tool_call",
    "ToolCallProgress": "tool_call_update",
    "AgentPlanUpdate": "plan",
    "AvailableCommandsUpdate": "available_commands_update",
    "CurrentModeUpdate": "current_mode_update",
    "ConfigOptionUpdate": "config_option_update",
    "SessionInfoUpdate": "session_info_update",
    "UsageUpdate": "usage_update",
}
_NAMES: Final = frozenset(UPDATE_ALIASES.values())
_CALLS: Final = ("tool_call", "tool_call_update")
# Fields of simse's tool calls, which the schema calls otherwise (row 8.5.9). They may stand in valid updates as well,
# as unknown fields: `corrected_call` looks for them there.
_ODD: Final = frozenset({"toolName", "input", "output", "error"})
_MODEL: Final = "model"


def corrected_update(params: Raw) -> Raw | None:
    """Return the params of `session/update` as they can only have been meant; None where nothing can be corrected."""
    body = _object(params)
    found = body.get("update", UNSET)
    if found is UNSET and isinstance(body.get("sessionUpdate"), str):
        # simse sends the update beside the session, without `update` around it (row 8.5.4).
        found = {name: value for name, value in body.items() if name not in ("sessionId", "_meta")}
        body = {name: value for name, value in body.items() if name in ("sessionId", "_meta")}
    if not isinstance(found, dict):
        return None
    meant = _named(found)
    if meant is None:
        return None
    return Raw(msgspec.json.encode({**body, "update": _whole(meant)}))


def _named(found: JsonDict) -> JsonDict | None:
    """Return the update with its wire name; None if it has no known name."""
    # The schema's discriminator wins; `type` is what simse and iac-code have beside it, or in its place (rows
    # 8.1.14 and 8.5.6).
    name = found.get("sessionUpdate", found.get("type"))
    if not isinstance(name, str):
        return None
    name = UPDATE_ALIASES.get(name, name)
    return {**found, "sessionUpdate": name} if name in _NAMES else None


def _whole(found: JsonDict) -> JsonDict:
    name = found["sessionUpdate"]
    rest = {key: value for key, value in found.items() if key != "type" or UPDATE_ALIASES.get(value, value) != name}
    # iac-code's document has `text` in the update itself (row 8.1.14), where the schema has a content block.
    if name in CHUNK_TYPES and "content" not in rest and isinstance(rest.get("text"), str):
        text = rest.pop("text")
        return {**rest, "content": {"type": "text", "text": text}}
    if name in _CALLS:
        return _call(rest)
    if name == "current_mode_update" and "currentModeId" not in rest and "modeId" in rest:
        # The documentation of version 1 once called the field so.
        mode = rest.pop("modeId")
        return {**rest, "currentModeId": mode}
    return rest


def _call(call: JsonDict) -> JsonDict:
    corrected = {key: value for key, value in call.items() if key not in _ODD and key not in _RAW}
    if "toolName" in call and "title" not in corrected:
        corrected["title"] = call["toolName"]
    corrected |= {theirs: call[key] for key, theirs in _RAW.items() if key in call and theirs not in corrected}
    # The schema has no `error`: a call fails by its status, and shows why in its output.
    if isinstance(call.get("error"), str):
        corrected["status"] = "failed"
        corrected.setdefault("rawOutput", {"error": call["error"]})
    if corrected.get("sessionUpdate") == "tool_call" and "title" not in corrected:
        corrected["title"] = corrected.get("name") or corrected.get("toolCallId")
    return corrected


_RAW: Final = {"input": "rawInput", "output": "rawOutput", "raw_input": "rawInput", "raw_output": "rawOutput"}


def corrected_call(call: ToolCallUpdate) -> ToolCallUpdate:
    """Return a tool call with simse's fields, which the schema let pass as unknown ones, in their places."""
    if not isinstance(call.extras, Extras) or not call.extras.fields.keys() & _ODD:
        return call
    odd = call.extras.fields
    rest = {name: value for name, value in odd.items() if name not in _ODD}
    if "input" in odd and call.raw_input is not UNSET:
        rest["input"] = odd["input"]  # another one beside the one that counts, for those who judge
    corrected: JsonDict = {"extras": Extras(rest) if rest else UNSET}
    if isinstance(odd.get("toolName"), str) and not isinstance(call.title, str):
        corrected["title"] = odd["toolName"]
    if "input" in odd and call.raw_input is UNSET:
        corrected["raw_input"] = odd["input"]
    if "output" in odd and call.raw_output is UNSET:
        corrected["raw_output"] = odd["output"]
    if isinstance(odd.get("error"), str):
        corrected["status"] = "failed"
        corrected.setdefault("raw_output", {"error": odd["error"]} if call.raw_output is UNSET else call.raw_output)
    return replace(call, **corrected)


def corrected_permission(params: Raw) -> Raw | None:
    """Return a permission request whose tool call has an id and the schema's names; None if it has no tool call."""
    body = _object(params)
    about = body.get("toolCall")
    if not isinstance(about, dict):
        return None
    corrected = _call(about)
    # iac-code's document has no id there (row 8.1.18). The made-up one joins the question to no call on the screen.
    if not isinstance(corrected.get("toolCallId"), str):
        corrected["toolCallId"] = f"permission: {corrected.get('title', '')}"
    return Raw(msgspec.json.encode({**body, "toolCall": corrected}))


# -- options ---------------------------------------------------------------------------------------------------------


def with_complete_options(result: Raw) -> Raw:
    """Return an answer or an update with its options filled in where they leave out what can be known (row 8.4.18).

    The schema has readers drop an invalid option without an error, so the user would never see it.
    """
    # A cheap look first: most messages have no options.
    if b'"configOptions"' not in bytes(result):
        return result
    body = _object(result)
    place = body["update"] if isinstance(body.get("update"), dict) else body
    found = place.get("configOptions")
    if not isinstance(found, list):
        return result
    whole = [_option(option) if isinstance(option, dict) else option for option in found]
    if whole == found:
        return result
    place["configOptions"] = whole
    return Raw(msgspec.json.encode(body))


def _option(option: JsonDict) -> JsonDict:
    if option.get("type") != "select" or not isinstance(option.get("options"), list):
        return option
    choices = [_choice(choice) if isinstance(choice, dict) else choice for choice in option["options"]]
    # Agentao's document has the name of a choice and the current value as optional.
    first = next((choice["value"] for choice in choices if isinstance(choice, dict) and "value" in choice), None)
    corrected = {**option, "options": choices}
    if not isinstance(corrected.get("currentValue"), str) and isinstance(first, str):
        corrected["currentValue"] = first
    return corrected


def _choice(choice: JsonDict) -> JsonDict:
    return {**choice, "name": choice["value"]} if "value" in choice and "name" not in choice else choice


def model_option(extras: Any, known: list[Option]) -> Select | None:
    """Return the `models` of an opened session as an option; None if there are none, or a model option is there.

    The protocol had `models` before it had options, and iac-code still sends them (row 8.1.4).
    """
    if not isinstance(extras, Extras) or any(category_of(option) == _MODEL for option in known):
        return None
    models = extras.fields.get("models")
    if not isinstance(models, dict) or not isinstance(models.get("currentModelId"), str):
        return None
    listed = models.get("availableModels")
    choices = [
        Choice(model["modelId"], model["name"] if isinstance(model.get("name"), str) else model["modelId"])
        for model in (listed if isinstance(listed, list) else [])
        if isinstance(model, dict) and isinstance(model.get("modelId"), str)
    ]
    return Select(_MODEL, "Model", models["currentModelId"], list(choices), category=_MODEL)


def _object(params: Raw) -> JsonDict:
    try:
        body = msgspec.json.decode(params or b"{}")
    except (ValueError, RecursionError, OverflowError):
        return {}
    return body if isinstance(body, dict) else {}


def usage_in_quota(meta: object) -> Usage | None:
    """Return the tokens of a turn that Gemini CLI has in `_meta` of its answer, beside no `usage`; else None."""
    quota = meta.get("quota") if isinstance(meta, dict) else None
    counts = quota.get("token_count") if isinstance(quota, dict) else None
    named = counts if isinstance(counts, dict) else {}
    read, written = named.get("input_tokens"), named.get("output_tokens")
    if type(read) is not int or type(written) is not int or min(read, written) < 0:
        return None
    return Usage(read + written, read, written)

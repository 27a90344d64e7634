"""What the loss table says should come out, written as plain changes of JSON: the oracle of the round-trip tests.

Every change is marked with the row it stands for. A row that has no change here is one of many events or of state, and
is proved by its example in `test_losses.py` alone.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.dialects.codec.git_patches import git_patch
from dragoman.vocabulary.tools import FileChange
from tools.requirements import LOSSES

Json = dict[str, Any]
T = TypeVar("T")
APPLIED: set[str] = set()
TOOL_UPDATES = ("tool_call", "tool_call_update")
CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
OPENED = ("NewSessionResponse", "LoadSessionResponse", "ResumeSessionResponse", "ForkSessionResponse")
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
PERMISSIONS = ("allow_once", "allow_always", "reject_once", "reject_always")
# Not to be looked into: other people's data.
OPAQUE = ("_meta", "rawInput", "rawOutput", "data", "requestedSchema", "extras", "vendorField", "x-vendor")


def row(*ids: str) -> Callable[[T], T]:
    """Mark a change with the rows of the loss table that it is."""
    assert {loss.id for loss in LOSSES} >= set(ids), ids
    APPLIED.update(ids)
    return lambda change: change


def after(chain: str, name: str, message: Any) -> Any:
    """The message after a chain of versions: "11", "22", "121" or "212". Of updates: all that come out."""
    found = json.loads(json.dumps(message))
    if "update" not in found or name in OPENED:
        return CHAINS[chain](name, found)
    said = UPDATE_CHAINS[chain](name, found["update"])
    return [{**found, "update": update} for update in (said if isinstance(said, list) else [said])]


# -- small helpers ---------------------------------------------------------------------------------------------------


def everywhere(value: Any, change: Callable[[Json], Json]) -> Any:
    """A change of every object of the protocol in a message, the inner ones first."""
    if isinstance(value, list):
        return [everywhere(inner, change) for inner in value]
    if not isinstance(value, dict):
        return value
    return change({key: inner if key in OPAQUE else everywhere(inner, change) for key, inner in value.items()})


def without(value: Json, *keys: str) -> Json:
    return {key: inner for key, inner in value.items() if key not in keys}


# -- within version 1 ------------------------------------------------------------------------------------------------


@row("message-without-id")
def with_id(update: Json) -> Json:
    return {**update, "messageId": update.get("messageId") or "dragoman-1"}


@row("null-in-tool-call")
def without_nulls(call: Json) -> Json:
    known = ("title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta")
    return {key: value for key, value in call.items() if value is not None or key not in known}


@row("diff-without-old-text")
def with_old_text(item: Json) -> Json:
    return {**item, "oldText": item.get("oldText")} if item.get("type") == "diff" else item


@row("form-that-lacks-parts")
def whole_form(form: Json) -> Json:
    form = {"type": "object", "properties": {}, **form}
    for name, field in list(form["properties"].items()):
        items = field.get("items") if field.get("type") == "array" else None
        if isinstance(items, dict) and (items.get("enum") == [] or items.get("anyOf") == []):
            del form["properties"][name]
            if form.get("required") is not None:
                form["required"] = [other for other in form["required"] if other != name]
        elif field.get("type") == "string":
            form["properties"][name] = {k: v for k, v in field.items() if k not in ("enum", "oneOf") or v != []}
    return form


@row("type-of-a-config-value")
def without_value_type(params: Json) -> Json:
    return without(params, "type") if isinstance(params.get("value"), str) else params


@row("type-of-a-stdio-server")
def without_stdio(server: Json) -> Json:
    return without(server, "type") if server.get("type") == "stdio" else server


@row("modes-and-options")
def both_modes(result: Json) -> Json:
    found, modes = result.get("configOptions"), result.get("modes")
    option = mode_of(found)
    if option is None and modes is not None:
        option = {
            **without(modes, "currentModeId", "availableModes"),
            "type": "select",
            "id": "mode",
            "name": "Mode",
            "category": "mode",
            "currentValue": modes["currentModeId"],
            "options": [{**without(m, "id"), "value": m["id"]} for m in modes["availableModes"]],
        }
        result["configOptions"] = [*(found or []), option]
    return {**without(result, "modes"), **({} if option is None else {"modes": modes_of(option)})}


def mode_of(found: Any) -> Any:
    options = [o for o in found or [] if o.get("type") == "select" and o.get("category") == "mode"]
    return options[0] if options else None


def modes_of(option: Json) -> Json:
    choices = [c for entry in option["options"] for c in (entry["options"] if "group" in entry else [entry])]
    return {
        **without(option, "type", "id", "name", "category", "description", "options", "currentValue"),
        "currentModeId": option["currentValue"],
        "availableModes": [{**without(c, "value"), "id": c["value"]} for c in choices],
    }


@row("outcome-without-a-word")
def closed_outcome(result: Json) -> Json:
    known = result["outcome"]["outcome"] in ("selected", "cancelled")
    return result if known else {**result, "outcome": {"outcome": "cancelled"}}


def through_v1(name: str, message: Any) -> Any:
    """What version 1 does to its own messages."""
    if name == "RequestPermissionRequest":
        message["toolCall"] = tool_call(message["toolCall"])
    if name == "CreateElicitationRequest" and message["mode"] == "form":
        message["requestedSchema"] = whole_form(message["requestedSchema"])
    if name == "SetSessionConfigOptionRequest":
        message = without_value_type(message)
    if isinstance(message.get("mcpServers"), list):
        message["mcpServers"] = [without_stdio(server) for server in message["mcpServers"]]
    if name in OPENED:
        message = both_modes(message)
    if name == "RequestPermissionResponse":
        message = closed_outcome(message)
    return message


def updates_through_v1(name: str, update: Json) -> Any:
    if name in CHUNKS:
        return with_id(update)
    if name in TOOL_UPDATES:
        return tool_call(update)
    if name == "current_mode_update":
        return mode_changed(update)
    return update


@row("mode-changed")
def mode_changed(update: Json) -> Json:
    mode = update["currentModeId"]
    option = {"type": "select", "id": "mode", "name": "Mode", "category": "mode", "currentValue": mode}
    option["options"] = [{"value": mode, "name": mode}]
    return {**without(update, "currentModeId"), "sessionUpdate": "config_option_update", "configOptions": [option]}


def tool_call(call: Json) -> Json:
    call = without_nulls(call)
    if isinstance(call.get("content"), list):
        call["content"] = [with_old_text(item) for item in call["content"]]
    return call


# -- from version 1 to version 2 and back ----------------------------------------------------------------------------


@row("numbers-out-of-range")
def in_range(value: Json) -> Json:
    if isinstance(value.get("annotations"), dict):
        priority = value["annotations"].get("priority")
        if priority is not None and not 0 <= priority <= 1:
            value["annotations"] = without(value["annotations"], "priority")
    if value.get("type") == "resource_link" and (value.get("size") or 0) < 0:
        value = without(value, "size")
    if isinstance(value.get("locations"), list):
        value["locations"] = [without(at, "line") if at.get("line") == 0 else at for at in value["locations"]]
    return value


@row("nothing-to-choose")
def something_to_choose(value: Json) -> Json:
    if value.get("type") != "select" or not isinstance(value.get("options"), list):
        return value
    value["options"] = [entry for entry in value["options"] if "options" not in entry or entry["options"]]
    if not value["options"]:
        value["options"] = [{"value": value["currentValue"], "name": value["currentValue"]}]
    return value


@row("terminal-of-the-client", "texts-of-a-diff")
def shown_elsewhere(item: Json) -> Json:
    if item.get("type") == "terminal":
        return {"type": "content", "content": {"type": "text", "text": f"[terminal {item['terminalId']}]"}}
    if item.get("type") == "diff" and item["oldText"] is not None:
        meta = {"_meta": item["_meta"]} if "_meta" in item else {}
        patch = git_patch(FileChange("modify", item["path"], old_text=item["oldText"], new_text=item["newText"]))
        shown = f"modify: {item['path']}" if patch is None else patch
        return {"type": "content", "content": {"type": "text", "text": shown}, **meta}
    return item


@row("null-options")
def without_null_options(result: Json) -> Json:
    return {key: value for key, value in result.items() if value is not None or key not in ("modes", "configOptions")}


def through_v2_and_back(name: str, message: Any) -> Any:
    message = everywhere(everywhere(message, in_range), something_to_choose)
    message = through_v1(name, without_null_options(message))
    if name in OPENED:
        message = both_modes(everywhere(message, something_to_choose))
    if isinstance(message.get("toolCall"), dict):
        message["toolCall"] = call_through_v2(message["toolCall"])
    return message


def updates_through_v2_and_back(name: str, update: Json) -> Any:
    update = updates_through_v1(name, everywhere(everywhere(update, in_range), something_to_choose))
    return call_through_v2(update) if name in TOOL_UPDATES else update


def call_through_v2(call: Json) -> Json:
    if isinstance(call.get("content"), list):
        call["content"] = [shown_elsewhere(item) for item in call["content"]]
    return call


# -- from version 2 to version 1 and back ----------------------------------------------------------------------------


@row("fields-of-version-2", "open-words")
def only_what_v1_has(value: Json) -> Json:
    if isinstance(value.get("annotations"), dict) and isinstance(value["annotations"].get("audience"), list):
        roles = [role for role in value["annotations"]["audience"] if role in ("assistant", "user")]
        value["annotations"] = {**value["annotations"], "audience": roles}
    if value.get("type") == "resource_link" and {"name", "uri"} <= value.keys():
        value = without(value, "icons")
        if (value.get("size") or 0) >= 2**63:
            value = without(value, "size")
    return value


@row("open-words")
def known_steps(plan: Json) -> Json:
    if plan.get("type") == "items":
        priorities, steps = ("high", "medium", "low"), ("pending", "in_progress", "completed", "cancelled")
        for entry in plan["entries"]:
            entry["priority"] = entry["priority"] if entry["priority"] in priorities else "medium"
            entry["status"] = entry["status"] if entry["status"] in steps else "pending"
            entry["status"] = "completed" if entry["status"] == "cancelled" else entry["status"]
    return plan


@row("cleared-fields", "cancelling-one-thing", "open-words")
def call_through_v1(call: Json) -> Json:
    for name in ("content", "locations"):
        if name in call:
            call[name] = call[name] or []
    call = without(without_nulls(call), "capabilities")
    if "kind" in call:
        call["kind"] = call["kind"] if call["kind"] in KINDS else "other"
    if "status" in call:
        known = {"cancelled": "failed"} | {word: word for word in ("pending", "completed", "failed")}
        call["status"] = known.get(call["status"], "in_progress")
    if "content" in call:
        call["content"] = [shown for item in call["content"] for shown in shown_in_v1(item)]
    return call


@row("display-terminals", "changes-without-texts")
def shown_in_v1(item: Json) -> list[Json]:
    if item.get("type") == "terminal":
        return [{"type": "content", "content": {"type": "text", "text": ""}}]
    if item.get("type") == "diff" and not item["changes"]:
        return []
    if item.get("type") == "diff":
        meta = {"_meta": item["_meta"]} if "_meta" in item else {}
        text = (item.get("patch") or {}).get("text")
        if text is None:
            text = "\n".join(map(change_line, item["changes"]))
        return [{"type": "content", "content": {"type": "text", "text": text}, **meta}]
    return [item]


def change_line(change: Json) -> str:
    if change["operation"] not in ("add", "delete", "modify", "move", "copy"):
        return str(change["operation"])
    source = f"{change['oldPath']} -> " if change["operation"] in ("move", "copy") else ""
    return f"{change['operation']}: {source}{change['path']}"


@row("open-commands")
def known_commands(commands: list[Json]) -> list[Json]:
    known = [command for command in commands if command["type"] == "command"]
    return [without(c, "input") if (c.get("input") or {"type": "text"})["type"] != "text" else c for c in known]


@row("whole-messages")
def in_chunks(update: Json) -> list[Json]:
    kind = f"{update['sessionUpdate']}_chunk"
    rest = without(update, "content", "sessionUpdate")
    return [{**rest, "sessionUpdate": kind, "content": block} for block in update.get("content") or []]


@row("appended-content")
def as_whole_content(update: Json) -> list[Json]:
    shown = {"title": update["toolCallId"], "content": shown_in_v1(update["content"])}
    return [without_nulls({**update, **shown, "sessionUpdate": "tool_call_update"})]


@row("states")
def no_state(update: Json) -> list[Json]:
    return []


@row("display-terminals")
def no_terminal(update: Json) -> list[Json]:
    return []


PASSED_ON = ("subagent_update", "session_message", "session_message_chunk")


def only_what_v1_can_carry(value: Json) -> Json:
    """What is passed on as it is keeps its unknown fields, and `icons` is one of those in version 1."""
    return {**only_what_v1_has(value), **({"icons": value["icons"]} if "icons" in value else {})}


def updates_through_v1_and_back(name: str, update: Json) -> Any:
    update = everywhere(update, only_what_v1_can_carry if name in PASSED_ON else only_what_v1_has)
    match name:
        case "user_message" | "agent_message" | "agent_thought":
            return [with_id(chunk) for chunk in in_chunks(update)]
        case "state_update":
            return no_state(update)
        case "terminal_update" | "terminal_output_chunk":
            return no_terminal(update)
        case "tool_call_update":
            return call_through_v1(update)
        case "tool_call_content_chunk":
            return as_whole_content(update)
        case "plan_update":
            return {**update, "plan": known_steps(update["plan"])}
        case "available_commands_update":
            return {**update, "availableCommands": known_commands(update["availableCommands"])}
        case _:
            return with_id(update) if name in CHUNKS else update


@row("lists-that-must-be-there")
def with_lists(server: Json) -> Json:
    match server.get("type"):
        case "stdio":
            return {"args": [], "env": [], **server}
        case "http":
            return {"headers": [], **server}
        case _:
            return server


@row("replay-cursors", "fields-of-version-2", "lists-that-must-be-there")
def loaded(params: Json) -> Json:
    if params.get("replayFrom") is None:
        return without(params, "replayFrom")
    return {"mcpServers": [], **params, "replayFrom": {"type": "start"}}


@row("question-of-a-permission", "options-of-unknown-kind")
def asked_in_v1(params: Json) -> Json:
    subject, notes = params.get("subject") or {}, []
    own_id = f"permission: {params['title']}"
    call: Json = {"toolCallId": own_id}
    if subject.get("type") == "tool_call":
        call = call_through_v1(subject["toolCall"])
    elif subject and subject.get("type") != "command":
        call["rawInput"] = subject
    if subject.get("type") == "command":
        call = {"toolCallId": subject.get("toolCallId"), "kind": "execute"}
        call["toolCallId"] = own_id if call["toolCallId"] is None else call["toolCallId"]
        call["rawInput"] = {"command": subject["command"], "cwd": subject["cwd"]}
        notes = [f"{subject['command']}\n(in {subject['cwd']})"]
    if params.get("description") is not None:
        notes = [params["description"], *notes]
    if notes:
        shown = [{"type": "content", "content": {"type": "text", "text": note}} for note in notes]
        call["content"] = [*(call.get("content") or []), *shown]
    call["title"] = params["title"]
    options = [option for option in params["options"] if option["kind"] in PERMISSIONS]
    rest = without(params, "description", "subject")
    return {**rest, "options": options, "subject": {"type": "tool_call", "toolCall": call}}


@row("string-formats")
def known_formats(form: Json) -> Json:
    for field in form["properties"].values():
        if field.get("type") == "string" and field.get("format") not in ("email", "uri", "date", "date-time", None):
            del field["format"]
    return form


@row("type-of-a-config-value")
def value_by_itself(params: Json) -> Json:
    return {**params, "type": "id"} if isinstance(params.get("value"), str) else params


@row("answers-without-a-word")
def plain_values(result: Json) -> Json:
    if not isinstance(result.get("content"), dict) or result["action"] != "accept":
        return result
    kept = {
        name: value
        for name, value in result["content"].items()
        if isinstance(value, (str, int, float)) or (isinstance(value, list) and all(isinstance(x, str) for x in value))
    }
    return {**result, "content": kept}


@row("commands-of-an-answer")
def without_commands(result: Json) -> Json:
    return without(result, "availableCommands")


def through_v1_and_back(name: str, message: Any) -> Any:
    message = everywhere(message, only_what_v1_has)
    if isinstance(message.get("mcpServers"), list):
        message["mcpServers"] = [with_lists(server) for server in message["mcpServers"]]
    match name:
        case "NewSessionRequest":
            return {"mcpServers": [], **message}
        case "ResumeSessionRequest":
            return loaded(message)
        case "RequestPermissionRequest":
            return asked_in_v1(message)
        case "CreateElicitationRequest" if message["mode"] == "form":
            return {**message, "requestedSchema": known_formats(message["requestedSchema"])}
        case "SetSessionConfigOptionRequest":
            return value_by_itself(message)
        case "SessionStatusResponse":
            return without(message, "state")
        case "RequestPermissionResponse":
            return closed_outcome(message)
        case "CreateElicitationResponse":
            return plain_values(message)
        case _:
            return without_commands(message) if name in OPENED else message


Chains = dict[str, Callable[[str, Any], Any]]


def unchanged(name: str, message: Any) -> Any:
    return message


CHAINS: Chains = {"11": through_v1, "22": unchanged, "121": through_v2_and_back, "212": through_v1_and_back}
UPDATE_CHAINS: Chains = {
    "11": updates_through_v1,
    "22": unchanged,
    "121": updates_through_v2_and_back,
    "212": updates_through_v1_and_back,
}

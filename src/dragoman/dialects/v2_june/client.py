"""The June draft of version 2, as the client: version 1's turns, and what the draft has of version 2.

Whole messages, appended content, open kinds and statuses, null that clears are decoded here: version 1 has no types
for them. Everything else is decoded as version 1, and corrected afterwards where that lost something.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import DecodedNotification, Id, RequestMessage, SessionEvent
from dragoman.dialects.handshake.json_fields import JsonDict, extras_of, has_texts, items, meta_of
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1.client import ClientV1
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.word import Extras
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_WHOLE: Final[dict[str, Any]] = {
    "user_message": events.UserMessage,
    "agent_message": events.AgentMessage,
    "agent_thought": events.AgentThought,
}
_KINDS: Final = ("allow_once", "allow_always", "reject_once", "reject_always")
# Fields of a call that null clears: their names in the vocabulary, and on the wire.
_CLEARED: Final = {
    **{name: name for name in ("title", "kind", "status", "content", "locations")},
    "raw_input": "rawInput",
    "raw_output": "rawOutput",
}
# Version 1's types for the items of a tool call: this draft has the same ones (rows 8.2.14 and 8.2.15).
_Items = tuple[w.ToolCallContent, ...]


class ClientJune(ClientV1):
    """The client's side of the June draft."""

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as version 1 does, but an MCP server that is started has a `type`."""
        call = super().encode_request(request)
        if not isinstance(request, (requests.NewSession, requests.ResumeSession)):
            return call
        params = plain(Raw(call.params))
        if not isinstance(params.get("mcpServers"), list):
            return call
        params["mcpServers"] = [{"type": "stdio", **server} for server in params["mcpServers"]]
        return replace(call, params=msgspec.json.encode(params))

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as version 1 does, but the kinds of a permission's options and of its call are open."""
        body: Any = plain(params) if method == "session/request_permission" else None
        if not isinstance(body, dict):
            return super().decode_request(id, method, params)
        # Version 1's reader would refuse the whole request for an option of another kind. They are taken out before and
        # put back in their places after.
        listed: list[Any] = items(body.get("options"))
        odd = [(place, option) for place, option in enumerate(listed) if _is_odd(option)]
        if odd:
            known = [option for option in listed if not _is_odd(option)]
            params = Raw(msgspec.json.encode({**body, "options": known}))
        request: Any = super().decode_request(id, method, params)
        whole = list(request.options)
        for place, option in odd:
            named = option["optionId"], option["name"], option["kind"]
            whole.insert(place, services.PermissionOption(*named, **_beside(option, "optionId", "name", "kind")))
        call = _whole_call(request.subject.tool_call, body["toolCall"])
        asked: Request = replace(request, options=whole, subject=services.ToolCallSubject(call))
        return asked

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode as version 1 does, but the updates that the draft shares with version 2 as those."""
        body: Any = plain(params) if method == "session/update" else None
        update = body.get("update") if isinstance(body, dict) else None
        if not isinstance(update, dict) or not isinstance(body.get("sessionId"), str):
            return super().decode_notification(method, params)
        event = self._own(update)
        if event is not None:
            return self._own_events(body, event)
        # A plan has an `id` in this draft (row 8.2.10); version 1's reader knows it as `planId`.
        plan = update.get("plan")
        if isinstance(plan, dict) and "planId" not in plan and "id" in plan:
            update["plan"] = {("planId" if name == "id" else name): value for name, value in plan.items()}
            params = Raw(msgspec.json.encode(body))
        decoded = super().decode_notification(method, params)
        return [_whole(one, update) if isinstance(one, SessionEvent) else one for one in decoded]

    def _own_events(self, body: JsonDict, event: events.AnyEvent) -> Sequence[DecodedNotification]:
        """Return an event that only the draft has; nothing for the echo of the current prompt or in a muted replay."""
        session = self._session(body["sessionId"])
        # The same rule as for chunks in version 1: a user message before any answer repeats the prompt.
        if isinstance(event, events.UserMessage) and session.prompt_id and not session.has_answered:
            return []
        session.has_answered = session.has_answered or not isinstance(event, events.UserMessage)
        outer = {name: value for name, value in body.items() if name not in ("sessionId", "update")}
        event = replace(event, outer=Extras(outer)) if outer else event
        return [] if session.is_muted else self._session_events(body["sessionId"], event)

    def _own(self, update: JsonDict) -> Any:
        """Return the event of an update that version 1 does not have; None for any other update."""
        name = update.get("sessionUpdate")
        if isinstance(name, str) and name in _WHOLE:
            found = update.get("content", UNSET)
            # Null clears a message, absent leaves it, a list replaces it; anything else could mean either.
            if not has_texts(update, "messageId") or not (found is None or isinstance(found, (list, UnsetType))):
                raise PeerMistake(INVALID_PARAMS, "Invalid params: a message has an id, and its content is a list")
            blocks = [self._block(block) for block in found] if isinstance(found, list) else found
            return _WHOLE[name](update["messageId"], blocks, **_beside(update, "messageId", "content"))
        if name == "tool_call_content_chunk":
            if not has_texts(update, "toolCallId"):
                raise PeerMistake(INVALID_PARAMS, "Invalid params: content belongs to a call")
            # As a list of one, because that is where version 1's types have tool call content.
            item = wire.decode(msgspec.json.encode([update.get("content")]), _Items)
            decoded = v1.CODEC.decode(item, tools.UnknownItem)[0]
            return events.ToolCallContentChunk(
                update["toolCallId"], decoded, **_beside(update, "toolCallId", "content")
            )
        return None

    def _block(self, block: Any) -> Any:
        return v1.CODEC.decode(wire.decode(msgspec.json.encode(block), w.ContentBlock), content.UnknownContent)

    def _is_bare_mode(self, request: requests.SetOption) -> bool:
        """Return False: this draft has no `session/set_mode`, a mode is set by its option."""
        return False


def _is_odd(option: Any) -> bool:
    """Return whether a permission option is well formed and of a kind that version 1 does not have."""
    return isinstance(option, dict) and has_texts(option, "optionId", "name", "kind") and option["kind"] not in _KINDS


def _beside(update: JsonDict, *known: str) -> JsonDict:
    """Return `_meta` and the unknown fields of an object."""
    return {"meta": meta_of(update), "extras": extras_of(update, frozenset({"sessionUpdate", "_meta", *known}))}


def _whole(decoded: SessionEvent, update: JsonDict) -> SessionEvent:
    """Return an event with what version 1's reader has closed: kinds, statuses, priorities, and null that clears."""
    match decoded.event:
        case events.ToolCallUpdate() as call:
            return SessionEvent(decoded.session_id, _whole_call(call, update))
        case events.PlanUpdate(plan=options.PlanItems() as plan) as event if isinstance(update.get("plan"), dict):
            # Version 1's reader drops a step of an unknown status from the list, so the steps are read once more.
            steps = [_decode_step(entry) for entry in items(update["plan"].get("entries")) if _is_step(entry)]
            return SessionEvent(decoded.session_id, replace(event, plan=replace(plan, entries=steps)))
        case _:
            return decoded


def _whole_call(call: events.ToolCallUpdate, update: JsonDict) -> events.ToolCallUpdate:
    # Decoded as version 1, an unknown kind or status has become the default, and null is gone without a trace.
    named = {name: update[name] for name in ("kind", "status") if isinstance(update.get(name), str)}
    gone = {name: None for name, theirs in _CLEARED.items() if update.get(theirs, 0) is None}
    return replace(call, **named, **gone)


def _is_step(entry: Any) -> bool:
    return isinstance(entry, dict) and has_texts(entry, "content", "priority", "status")


def _decode_step(entry: Any) -> options.PlanEntry:
    beside = _beside(entry, "content", "priority", "status")
    return options.PlanEntry(entry["content"], entry["priority"], entry["status"], **beside)

"""Decodes the answers of a version 1 agent into the vocabulary: a session, options, the end of a turn.

Pure functions; they know nothing of what the session has sent before.
"""

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.dialects.codec.dialect_base import null_as_object
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.tolerance import updates as tolerance
from dragoman.dialects.v1 import codec as v1
from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, PeerMistake
from dragoman.vocabulary import events, options, requests
from dragoman.wire import types as wire
from dragoman.wire import v1 as w


def decode_opened(result: Raw, kind: Any) -> Any:
    """Decode the answer that opens a session; null is as good as an empty object."""
    return wire.decode(tolerance.with_complete_options(Raw(null_as_object(result))), kind)


def with_value(option: options.Option, request: requests.SetOption) -> options.Option:
    """Return an option as it is after a request to set it has succeeded.

    For answers without options: the value that was sent is then the value that is set.
    """
    match option, request.value:
        case options.Select(config_id=request.config_id), str() as value:
            return msgspec.structs.replace(option, current_value=value)
        case options.Toggle(config_id=request.config_id), bool() as value:
            return msgspec.structs.replace(option, current_value=value)
        case _:
            return option


def names_options(result: bytes) -> bool:
    """Return whether an answer has options in it, or is no object at all: decoding it raises the error then."""
    # Without a backslash no key can be written in another way, so the bytes tell; most answers need no decoding.
    if result == b"{}" or (b"\\" not in result and b'"configOptions"' not in result and result.startswith(b"{")):
        return False
    body = plain(Raw(result))
    return not isinstance(body, dict) or "configOptions" in body


def decode_end(result: Raw) -> events.Idle:
    """Decode the end of a turn. Any answer ends it: an unknown reason is kept, a missing one is `end_turn`."""
    # The reason is taken out before the schema's reader sees it: there the list is closed, and an answer that is
    # refused would leave the turn without an end. Agents exist that answer null, an empty object, or reasons of their
    # own.
    try:
        body = plain(Raw(null_as_object(result)))
        if not isinstance(body, dict):
            raise PeerMistake(INVALID_PARAMS, "not an object")
        reason = body.get("stopReason", "end_turn")
        known = wire.decode(msgspec.json.encode({**body, "stopReason": "end_turn"}), w.PromptResponse)
        end = msgspec.structs.replace(v1.decode_prompt_result(known), stop_reason=_stop_reason(reason))
        return end if end.usage else msgspec.structs.replace(end, usage=tolerance.usage_in_quota(end.meta) or end.usage)
    except PeerMistake:
        # The turn is over in any case: an answer that cannot be read ends it as a failure, not as a success.
        failure = events.Failure(INTERNAL_ERROR, "The agent's answer is malformed")
        return events.Idle(stop_reason="error", error=failure)


def _stop_reason(reason: object) -> str:
    # "error" is the vocabulary's own reason, which comes with a `Failure`; from a peer it would be one without.
    if not isinstance(reason, str) or reason == "error":
        raise PeerMistake(INVALID_PARAMS, "no stop reason")
    return reason

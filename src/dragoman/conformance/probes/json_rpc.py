"""Requests, responses, notifications, ids and errors, as JSON-RPC 2.0 has them."""

from typing import Any, Final

from dragoman.conformance.connection import CheckConnection, Message
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import AnswerMissing, RowFailed, SubjectGone
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

UNKNOWN_METHOD: Final = "session/does_not_exist"
_UNKNOWN: Final = "a method that does not exist"
_LARGE_IDS: Final = (2**53 - 1, -7, 0, "x" * 300, "")


async def expect_alive(connection: CheckConnection, after: str) -> Message:
    """Send a request that every agent answers, with an error. Raise `RowFailed` if no answer comes."""
    try:
        return await connection.call(UNKNOWN_METHOD, intent=_UNKNOWN)
    except (AnswerMissing, SubjectGone) as failure:
        raise RowFailed(f"after {after} the connection is of no use: {failure.reason}") from None


def responses_since(connection: CheckConnection, since: int) -> list[Message]:
    """Return the messages since then that are no calls of the agent."""
    return [one.message for one in connection.received[since:] if "method" not in one.message]


@probe("ACP-JSONRPC-001")
async def ids_come_back_as_they_were(trial: Trial) -> None:
    dialogue = await trial.greeted()
    for id in (4711, "an-id"):
        dialogue.connection.ask(UNKNOWN_METHOD, intent=_UNKNOWN, id=id)
        await dialogue.connection.response(id)


@probe("ACP-JSONRPC-507")
async def unusual_ids_come_back_as_they_were(trial: Trial) -> None:
    dialogue = await trial.greeted()
    for id in _LARGE_IDS:
        dialogue.connection.ask(UNKNOWN_METHOD, intent=_UNKNOWN, id=id)
        await dialogue.connection.response(id)


@probe("ACP-JSONRPC-508")
async def null_id_is_answered(trial: Trial) -> None:
    dialogue = await trial.greeted()
    request: Message = {"jsonrpc": "2.0", "id": None, "method": UNKNOWN_METHOD, "params": {}}
    dialogue.connection.send(request, intent="an id that is null")
    await dialogue.connection.response(None)


@probe("ACP-JSONRPC-002")
async def responses_are_results_or_errors(trial: Trial) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call(UNKNOWN_METHOD, intent=_UNKNOWN)
    frames = [one.frame for one in dialogue.connection.received if "method" not in one.message and one.frame.fault]
    if frames:
        raise RowFailed(frames[0].fault, frames[:1])
    if "result" in reply and "error" in reply:
        raise RowFailed("a response has a result and an error")


async def _expect_unanswered(trial: Trial, message: Message, what: str, intent: str) -> None:
    dialogue = await trial.greeted()
    connection = dialogue.connection
    since = len(connection.received)
    connection.send(message, intent=intent)
    id = connection.ask(UNKNOWN_METHOD, intent=_UNKNOWN)
    await connection.response(id)
    await connection.quiet()
    foreign = [one for one in responses_since(connection, since) if one.get("id") != id]
    if foreign:
        raise RowFailed(f"{what} is answered")


@probe("ACP-JSONRPC-003")
async def notifications_are_not_answered(trial: Trial) -> None:
    message: Message = {"jsonrpc": "2.0", "method": "_example.org/note", "params": {}}
    await _expect_unanswered(trial, message, "a notification", "")


@probe("ACP-JSONRPC-502")
async def protocol_notifications_are_ignored(trial: Trial) -> None:
    message: Message = {"jsonrpc": "2.0", "method": "$/does_not_exist", "params": {"a": 1}}
    await _expect_unanswered(trial, message, "an unknown notification of the protocol", "")


@probe("ACP-JSONRPC-512")
async def cancelling_an_unknown_request_is_ignored(trial: Trial) -> None:
    message: Message = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "no-such-request"}}
    await _expect_unanswered(trial, message, "the cancelling of an unknown request", "")


@probe("ACP-JSONRPC-509")
async def unknown_responses_are_ignored(trial: Trial) -> None:
    dialogue = await trial.greeted()
    dialogue.connection.answer("no-such-request", {}, intent="the answer to no request")
    await expect_alive(dialogue.connection, "a response to no request")


@probe("ACP-JSONRPC-501")
async def unknown_methods_have_no_result(trial: Trial) -> None:
    dialogue = await trial.greeted()
    if "error" not in await dialogue.connection.call(UNKNOWN_METHOD, intent=_UNKNOWN):
        raise RowFailed("a method that does not exist is answered with a result")


async def _expect_code(trial: Trial, method: str, params: Any, code: int, intent: str) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call(method, params, intent=intent)
    found = reply["error"].get("code") if isinstance(reply.get("error"), dict) else None
    if found != code:
        what = f"error {found}" if "error" in reply else "a result"
        raise RowFailed(f"{method} with {intent} is answered with {what}, not with error {code}")


@probe("ACP-JSONRPC-004")
async def unknown_methods_have_their_code(trial: Trial) -> None:
    await _expect_code(trial, UNKNOWN_METHOD, {}, METHOD_NOT_FOUND, _UNKNOWN)


@probe("ACP-JSONRPC-510")
async def params_without_a_required_field_are_refused(trial: Trial) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call("session/prompt", {}, intent="no sessionId and no prompt")
    if "error" not in reply:
        raise RowFailed("session/prompt without a session is answered with a result")


@probe("ACP-JSONRPC-511")
async def invalid_params_have_their_code(trial: Trial) -> None:
    await _expect_code(trial, "session/prompt", {"sessionId": 7}, INVALID_PARAMS, "a sessionId that is a number")


@probe("ACP-JSONRPC-005")
async def connection_survives_an_error(trial: Trial) -> None:
    dialogue = await trial.greeted()
    await dialogue.connection.call("session/prompt", {"sessionId": 7}, intent="invalid params")
    await expect_alive(dialogue.connection, "a request with invalid params")


@probe("ACP-EXT-001")
async def extension_requests_are_answered(trial: Trial) -> None:
    dialogue = await trial.greeted()
    await dialogue.connection.call("_example.org/question", {"a": 1})


@probe("ACP-JSONRPC-503")
async def connection_survives_what_is_no_json(trial: Trial) -> None:
    dialogue = await trial.greeted()
    dialogue.connection.send_bytes(b"{this is no JSON\n", intent="no JSON")
    await expect_alive(dialogue.connection, "a line that is no JSON")


async def _error_for(trial: Trial, line: bytes, intent: str) -> Any:
    """Return what the agent answers to a line that has no id."""
    connection = (await trial.greeted()).connection
    connection.send_bytes(line + b"\n", intent=intent)
    return (await connection.response(None)).get("error")


@probe("ACP-JSONRPC-504")
async def what_is_no_json_is_a_parse_error(trial: Trial) -> None:
    error = await _error_for(trial, b"{this is no JSON", "no JSON")
    if not isinstance(error, dict) or error.get("code") != PARSE_ERROR:
        raise RowFailed(f"a line that is no JSON is answered with {error}")


@probe("ACP-JSONRPC-513")
async def what_is_no_message_is_an_invalid_request(trial: Trial) -> None:
    error = await _error_for(trial, b'{"jsonrpc":"2.0","id":null,"method":7}', "a method that is a number")
    if not isinstance(error, dict) or error.get("code") != INVALID_REQUEST:
        raise RowFailed(f"a message whose method is a number is answered with {error}")


@probe("ACP-JSONRPC-505")
async def batches_are_refused(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    line = b'[{"jsonrpc":"2.0","id":"b1","method":"%b","params":{}}]\n' % UNKNOWN_METHOD.encode()
    connection.send_bytes(line, intent="a batch")
    await expect_alive(connection, "a batch")
    await connection.quiet()
    if connection.find_response("b1") is not None or connection.noise:
        raise RowFailed("a batch is served")


@probe("ACP-JSONRPC-506")
async def empty_array_is_one_error(trial: Trial) -> None:
    error = await _error_for(trial, b"[]", "an empty array")
    if not isinstance(error, dict) or error.get("code") != INVALID_REQUEST:
        raise RowFailed(f"an empty array is answered with {error}")

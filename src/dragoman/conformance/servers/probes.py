"""The probes of servers over HTTP: requests, streams, and where messages go."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from dragoman.conformance.connection import Message
from dragoman.conformance.servers.doors import ServerReply
from dragoman.conformance.servers.trial import (
    CONNECTION,
    JSON,
    LAST_EVENT,
    SESSION,
    STREAM,
    PostedConnection,
    ServerTrial,
)
from dragoman.conformance.verdicts import AnswerMissing, NotTested, RowFailed

ServerProbe = Callable[[ServerTrial], Awaitable[None]]
SERVER_PROBES: Final[dict[str, ServerProbe]] = {}
_UNKNOWN_METHOD: Final = "session/does_not_exist"
_LEAST_ID: Final = 16
STRANGER: Final = "00000000-0000-4000-8000-000000000000"


def server_probe(*ids: str) -> Callable[[ServerProbe], ServerProbe]:
    """Register a function as the probe of these rows."""

    def register(function: ServerProbe) -> ServerProbe:
        for id in ids:
            if id in SERVER_PROBES:
                raise ValueError(f"{id} has two probes")
            SERVER_PROBES[id] = function
        return function

    return register


def expect_status(reply: ServerReply, what: str, *statuses: int) -> None:
    """Raise `RowFailed` if an answer has none of these statuses."""
    if reply.status not in statuses:
        wanted = " or ".join(map(str, statuses))
        raise RowFailed(f"{what} is answered with status {reply.status}, not with {wanted}")


async def _posted(trial: ServerTrial, headers: Mapping[str, str], body: bytes | None = None) -> ServerReply:
    request = {"jsonrpc": "2.0", "id": "x", "method": _UNKNOWN_METHOD, "params": {}}
    return await trial.request(trial.door(), "POST", headers, json.dumps(request).encode() if body is None else body)


# -- requests ----------------------------------------------------------------------------------------------------------


@server_probe("ACP-HTTP-501")
async def initialize_is_answered_in_its_body(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", JSON, trial.initialize())
    expect_status(reply, "initialize", 200)
    if "result" not in _object(reply.body):
        raise RowFailed("the body of the answer to initialize is not its response")


def _object(body: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@server_probe("ACP-HTTP-502")
async def connection_has_a_name(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", JSON, trial.initialize())
    if not reply.headers.get(CONNECTION):
        raise RowFailed("the answer to initialize has no Acp-Connection-Id")


@server_probe("ACP-HTTP-503")
async def names_of_connections_cannot_be_guessed(trial: ServerTrial) -> None:
    ids = [(await trial.connect()).id for _ in range(2)]
    if ids[0] == ids[1] or min(map(len, ids)) < _LEAST_ID:
        raise RowFailed(f"connections are called {ids[0]!r} and {ids[1]!r}")


@server_probe("ACP-HTTP-504")
async def posts_are_accepted_without_a_body(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.open()
    reply = await connection.post({"id": 1, "method": _UNKNOWN_METHOD, "params": {}})
    expect_status(reply, "a request", 202)
    if reply.body.strip():
        raise RowFailed("the answer to a request stands in the body, not on the stream")


@server_probe("ACP-HTTP-505")
async def responses_come_on_the_stream(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.open()
    for id in (4711, "an-id"):
        await connection.accepted({"id": id, "method": _UNKNOWN_METHOD, "params": {}})
        await connection.response(id)


@server_probe("ACP-HTTP-506")
async def bodies_are_json(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", {"content-type": "text/plain"}, trial.initialize())
    expect_status(reply, "a body of text/plain", 415)


@server_probe("ACP-HTTP-507")
async def post_names_its_connection(trial: ServerTrial) -> None:
    expect_status(await _posted(trial, JSON), "a request without Acp-Connection-Id", 400)


@server_probe("ACP-HTTP-508")
async def post_names_a_known_connection(trial: ServerTrial) -> None:
    reply = await _posted(trial, {**JSON, CONNECTION: STRANGER})
    expect_status(reply, "a request for a connection that does not exist", 404)


@server_probe("ACP-HTTP-509")
async def post_names_its_session(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    params = {"sessionId": session, "prompt": [{"type": "text", "text": trial.settings.prompt}]}
    reply = await connection.post({"id": 1, "method": "session/prompt", "params": params})
    expect_status(reply, "a prompt without Acp-Session-Id", 400)


@server_probe("ACP-HTTP-510")
async def header_and_message_name_one_session(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    reply = await connection.post({"method": "session/cancel", "params": {"sessionId": session}}, STRANGER)
    expect_status(reply, "an Acp-Session-Id that is not the session of the message", 400, 404)


async def _batch(trial: ServerTrial) -> ServerReply:
    connection = await trial.connect()
    batch = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": _UNKNOWN_METHOD, "params": {}}]).encode()
    return await trial.request(connection.door, "POST", {**JSON, **connection.headers()}, batch)


@server_probe("ACP-HTTP-511")
async def batches_are_refused(trial: ServerTrial) -> None:
    reply = await _batch(trial)
    if reply.status < 400:
        raise RowFailed(f"a batch is answered with status {reply.status}")


@server_probe("ACP-HTTP-512")
async def batches_have_their_status(trial: ServerTrial) -> None:
    expect_status(await _batch(trial), "a batch", 501)


@server_probe("ACP-HTTP-513")
async def what_is_no_json_is_a_bad_request(trial: ServerTrial) -> None:
    reply = await _posted(trial, JSON, b"{this is no JSON")
    expect_status(reply, "a body that is no JSON", 400)


@server_probe("ACP-HTTP-526")
async def other_methods_are_refused(trial: ServerTrial) -> None:
    expect_status(await trial.request(trial.door(), "PUT", JSON, b"{}"), "PUT", 405, 501)


@server_probe("ACP-HTTP-527")
async def notifications_are_not_answered(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.open()
    await connection.accepted({"method": "_example.org/note", "params": {}})
    await connection.accepted({"id": "after", "method": _UNKNOWN_METHOD, "params": {}})
    await connection.response("after")
    for message, _ in connection.streams[None].events:
        if "method" not in message and message.get("id") != "after":
            raise RowFailed("a notification is answered")


# -- streams -----------------------------------------------------------------------------------------------------------


async def _got(trial: ServerTrial, headers: Mapping[str, str]) -> ServerReply:
    connection = await trial.connect()
    given = {CONNECTION: connection.id} if headers.get(CONNECTION) == "own" else {}
    reply = await connection.get({**headers, **given})
    return reply if isinstance(reply, ServerReply) else ServerReply(200, reply.headers)


@server_probe("ACP-HTTP-514")
async def stream_has_to_be_accepted(trial: ServerTrial) -> None:
    reply = await _got(trial, {"accept": "application/json", CONNECTION: "own"})
    expect_status(reply, "a GET that accepts no event stream", 406)


@server_probe("ACP-HTTP-515")
async def stream_names_its_connection(trial: ServerTrial) -> None:
    expect_status(await _got(trial, STREAM), "a stream without Acp-Connection-Id", 400)


@server_probe("ACP-HTTP-516")
async def stream_names_a_known_connection(trial: ServerTrial) -> None:
    reply = await _got(trial, {**STREAM, CONNECTION: STRANGER})
    expect_status(reply, "a stream of a connection that does not exist", 404)


@server_probe("ACP-HTTP-517")
async def stream_names_a_known_session(trial: ServerTrial) -> None:
    reply = await _got(trial, {**STREAM, CONNECTION: "own", SESSION: STRANGER})
    expect_status(reply, "a stream of a session that does not exist", 404)


@server_probe("ACP-HTTP-518")
async def stream_has_its_type(trial: ServerTrial) -> None:
    end = await (await trial.connect()).open()
    kind = end.stream.headers.get("content-type", "")
    if not kind.lower().startswith("text/event-stream"):
        raise RowFailed(f"the stream is of type {kind!r}")


@server_probe("ACP-HTTP-519")
async def stream_is_not_cached(trial: ServerTrial) -> None:
    end = await (await trial.connect()).open()
    control = end.stream.headers.get("cache-control", "")
    if "no-cache" not in control and "no-store" not in control:
        raise RowFailed(f"the stream may be cached: Cache-Control is {control!r}")


@server_probe("ACP-HTTP-520", "ACP-HTTP-528")
async def turn_is_played(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    await connection.play(session)
    kinds = [(message.get("params") or {}).get("update", {}) for message, _ in connection.streams[session].events]
    if not any(str(one.get("sessionUpdate")).startswith(("agent_message", "agent_thought")) for one in kinds):
        raise RowFailed("the stream of the session has nothing that the agent said")


@server_probe("ACP-HTTP-530")
async def updates_come_before_the_end(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    last = await connection.play(session)
    await connection.drain(session)
    messages = [message for message, _ in connection.streams[session].events]
    if last not in messages:
        raise NotTested("the end of the turn comes on another stream than its updates", is_unadvertised=True)
    for message in messages[messages.index(last) + 1 :]:
        kind = (message.get("params") or {}).get("update", {}).get("sessionUpdate", "")
        if kind.startswith("agent_message"):
            raise RowFailed("a part of the agent's message comes behind the end of the turn")


@server_probe("ACP-HTTP-525")
async def streams_have_their_own_session(trial: ServerTrial) -> None:
    connection = await trial.connect()
    first = await connection.new_session("one")
    second = await connection.new_session("two")
    await connection.play(first)
    await connection.drain(second)
    for message, _ in connection.streams[second].events:
        named = (message.get("params") or {}).get("sessionId")
        if named not in (None, second):
            raise RowFailed("the stream of one session has a message of another")


@server_probe("ACP-HTTP-531")
async def connections_have_their_own_messages(trial: ServerTrial) -> None:
    other = await trial.connect()
    await other.open()
    connection = await trial.connect()
    session = await connection.new_session()
    await connection.play(session)
    await other.drain(None)
    if any((message.get("params") or {}).get("sessionId") == session for message, _ in other.streams[None].events):
        raise RowFailed("a connection is sent messages of a session that another connection has opened")


@server_probe("ACP-HTTP-546")
async def early_messages_wait_for_their_stream(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.accepted({"id": "early", "method": _UNKNOWN_METHOD, "params": {}})
    await asyncio.sleep(trial.settings.quiet)
    await connection.open()
    await connection.response("early")


# -- the end of a connection -------------------------------------------------------------------------------------------


@server_probe("ACP-HTTP-521")
async def connection_is_deleted(trial: ServerTrial) -> None:
    connection = await trial.connect()
    reply = await trial.request(connection.door, "DELETE", connection.headers())
    expect_status(reply, "DELETE", 202, 200, 204)


@server_probe("ACP-HTTP-522")
async def deleted_connection_is_unknown(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await trial.request(connection.door, "DELETE", connection.headers())
    reply = await connection.post({"id": 1, "method": _UNKNOWN_METHOD, "params": {}})
    expect_status(reply, "a request for a connection that was deleted", 404)


@server_probe("ACP-HTTP-523")
async def delete_names_its_connection(trial: ServerTrial) -> None:
    expect_status(await trial.request(trial.door(), "DELETE", {}), "DELETE without Acp-Connection-Id", 400)


@server_probe("ACP-HTTP-524")
async def deleted_connection_ends_its_streams(trial: ServerTrial) -> None:
    connection = await trial.connect()
    end = await connection.open()
    await trial.request(connection.door, "DELETE", connection.headers())
    try:
        while await connection.read(end) is not None:
            pass
    except TimeoutError:
        raise AnswerMissing("the stream of a connection that was deleted does not end") from None


# -- streams that break ------------------------------------------------------------------------------------------------


async def _broken(trial: ServerTrial) -> tuple[PostedConnection, str, str, list[str]]:
    """Play a turn, leave the stream after its first event, and return where it was left and what came then."""
    connection = await trial.connect()
    session = await connection.new_session()
    await connection.play(session)
    await connection.drain(session)
    events = connection.streams[session].events
    ids = [id for _, id in events]
    if len(events) < 2 or not all(ids):
        raise NotTested("the events of the stream have no ids", is_unadvertised=True)
    await connection.streams[session].close()
    return connection, session, ids[0], ids


@server_probe("ACP-HTTP-544")
async def events_have_ids_of_their_own(trial: ServerTrial) -> None:
    _, _, _, ids = await _broken(trial)
    if len(set(ids)) != len(ids):
        raise RowFailed("two events of a stream have one id")


async def _resumed(trial: ServerTrial) -> tuple[list[str], list[tuple[Message, str]], str]:
    """Resume a stream behind its first event; return the ids that were missed, what came, and where it was left."""
    connection, session, first, ids = await _broken(trial)
    await asyncio.sleep(trial.settings.quiet)
    end = await connection.open(session, **{LAST_EVENT: first})
    await connection.drain(session)
    return ids[1:], end.events, first


@server_probe("ACP-HTTP-541")
async def resumed_stream_has_what_was_missed(trial: ServerTrial) -> None:
    wanted, events, _ = await _resumed(trial)
    found = [id for _, id in events]
    missing = [id for id in wanted if id not in found]
    if missing:
        raise RowFailed(f"a stream that is resumed lacks {len(missing)} of {len(wanted)} events that were missed")


@server_probe("ACP-HTTP-542")
async def resumed_stream_repeats_nothing(trial: ServerTrial) -> None:
    _, events, first = await _resumed(trial)
    # A state may be told again behind the history: it adds nothing to what was read.
    kinds = [(id, (message.get("params") or {}).get("update", {}).get("sessionUpdate")) for message, id in events]
    history = [id for id, kind in kinds if kind != "state_update"]
    if first in history or len(set(history)) != len(history):
        raise RowFailed("a stream that is resumed repeats what was read before")


@server_probe("ACP-HTTP-543")
async def lost_position_is_told(trial: ServerTrial) -> None:
    connection, session, _, _ = await _broken(trial)
    await asyncio.sleep(trial.settings.quiet)
    reply = await connection.get({**STREAM, **connection.headers(session), LAST_EVENT: "999999999"})
    if not isinstance(reply, ServerReply):
        raise RowFailed("a Last-Event-ID that the server cannot know is answered with a stream")
    if not 400 <= reply.status < 500:
        raise RowFailed(f"a Last-Event-ID that the server cannot know is answered with status {reply.status}")


@server_probe("ACP-HTTP-545")
async def stream_has_one_reader(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.open()
    reply = await connection.get({**STREAM, **connection.headers()})
    if not isinstance(reply, ServerReply):
        raise RowFailed("a second reader is let to a stream, and both get a part of it")
    expect_status(reply, "a second reader of a stream", 409)

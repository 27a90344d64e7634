"""The probes of what goes wrong on a network: connections that break, readers that are slow, many clients at once."""

import asyncio
import json

from dragoman.conformance.servers.probes import server_probe
from dragoman.conformance.servers.trial import PostedConnection, ServerTrial
from dragoman.conformance.verdicts import AnswerMissing, NotTested, RowFailed


@server_probe("ACP-FAULT-601")
async def torn_request_harms_no_other(trial: ServerTrial) -> None:
    body = trial.initialize()
    await trial.door().raw(body[: len(body) // 2], length=len(body), half_close=False)
    trial.note("check", "a request is dropped in the middle of its body")
    await trial.expect_serving("a request that was dropped in the middle of its body")


@server_probe("ACP-FAULT-602")
async def half_closed_request_is_answered(trial: ServerTrial) -> None:
    body = trial.initialize()
    reply = await trial.door().raw(body, length=len(body), half_close=True)
    trial.note("check", "a request, behind which our direction is closed")
    if reply is None or reply.status != 200:
        raise RowFailed("a request is not answered when its client has closed its direction")


@server_probe("ACP-FAULT-603")
async def turn_outlives_its_stream(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    await connection.streams[session].close()
    await connection.prompt(session)
    await asyncio.sleep(trial.settings.quiet)
    await connection.open(session)
    await _expect_turn(connection, session)


async def _expect_turn(connection: PostedConnection, session: str) -> None:
    try:
        await connection.play(session, id="again")
    except (RowFailed, TimeoutError) as failed:
        raise RowFailed(f"the session is of no use after its stream broke: {failed}") from None


@server_probe("ACP-FAULT-604")
async def slow_reader_blocks_no_other(trial: ServerTrial) -> None:
    slow = await trial.connect()
    slow_session = await slow.new_session()
    await slow.prompt(slow_session)  # and nothing of its turn is read
    connection = await trial.connect()
    try:
        await connection.play(await connection.new_session())
    except AnswerMissing:
        raise RowFailed("a client that does not read holds up another") from None


@server_probe("ACP-FAULT-605")
async def many_clients_are_served(trial: ServerTrial) -> None:
    found = await asyncio.gather(*(trial.connect() for _ in range(trial.settings.connections)), return_exceptions=True)
    failed = [one for one in found if isinstance(one, BaseException)]
    if failed:
        raise RowFailed(f"{len(failed)} of {trial.settings.connections} connections at once are refused: {failed[0]}")


@server_probe("ACP-FAULT-606")
async def broken_socket_harms_no_other(trial: ServerTrial) -> None:
    broken = await trial.greeted_socket()
    session = await broken.new_session()
    await broken.send(
        {"id": "p", "method": "session/prompt", "params": {"sessionId": session, "prompt": [_text(trial)]}}
    )
    await broken.socket.abort()
    trial.note("check", "the socket is dropped in the middle of a frame")
    connection = await trial.greeted_socket()
    await connection.play(await connection.new_session())


def _text(trial: ServerTrial) -> dict[str, str]:
    return {"type": "text", "text": trial.settings.prompt}


@server_probe("ACP-FAULT-607")
async def repeated_request_is_not_served_twice(trial: ServerTrial) -> None:
    connection = await trial.connect()
    session = await connection.new_session()
    params = {"sessionId": session, "prompt": [_text(trial)]}
    message = {"id": "same", "method": "session/prompt", "params": params}
    await connection.accepted(message, session)
    # A second one with the same id is refused, or has no effect beside the first: never two results for one id.
    await connection.post(message, session)
    await connection.drain(session)
    await connection.drain(None)
    results = [
        message
        for end in connection.streams.values()
        for message, _ in end.events
        if "method" not in message and message.get("id") == "same" and "result" in message
    ]
    if not results:
        raise NotTested("no prompt of the two has a result", "--prompt TEXT: one for a short turn")
    if len(results) > 1:
        raise RowFailed("a request that was posted twice under one id has two results")


@server_probe("ACP-FAULT-608")
async def lost_connection_can_be_deleted(trial: ServerTrial) -> None:
    connection = await trial.connect()
    await connection.open()
    await connection.streams[None].close()
    reply = await trial.request(connection.door, "DELETE", connection.headers())
    if reply.status >= 300:
        raise RowFailed(f"a connection whose stream broke is deleted with status {reply.status}")
    await trial.expect_serving("a connection was deleted")


@server_probe("ACP-FAULT-609")
async def answers_of_strangers_are_refused(trial: ServerTrial) -> None:
    connection = await trial.connect()
    body = json.dumps({"jsonrpc": "2.0", "id": "guess", "result": {"outcome": {"outcome": "cancelled"}}}).encode()
    reply = await trial.request(
        connection.door, "POST", {"content-type": "application/json", **connection.headers()}, body
    )
    if reply.status >= 500:
        raise RowFailed(f"the answer to no request is answered with status {reply.status}")
    await trial.expect_serving("the answer to no request")

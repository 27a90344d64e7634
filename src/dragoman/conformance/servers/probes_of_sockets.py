"""The probes of servers over WebSockets."""

from typing import Final

from dragoman.conformance.connection import Message
from dragoman.conformance.servers.probes import server_probe
from dragoman.conformance.servers.trial import CONNECTION, ServerTrial, SocketConnection
from dragoman.conformance.verdicts import AnswerMissing, RowFailed

_UNKNOWN_METHOD: Final = "session/does_not_exist"
_LARGE_BYTES: Final = 1024 * 1024


async def _expect_alive(connection: SocketConnection, after: str) -> None:
    try:
        await connection.call(_UNKNOWN_METHOD, id=f"after {after}")
    except RowFailed as failed:
        raise RowFailed(f"after {after} the socket is of no use: {failed.reason}") from None


@server_probe("ACP-WS-501")
async def socket_is_opened(trial: ServerTrial) -> None:
    await trial.socket()


@server_probe("ACP-WS-502")
async def socket_names_its_connection(trial: ServerTrial) -> None:
    connection = await trial.socket()
    hello = await connection.greet()
    if not connection.socket.headers.get(CONNECTION) and not _named_in(hello):
        raise RowFailed("neither the answer to the upgrade nor that to initialize names the connection")


def _named_in(hello: Message) -> bool:
    """Return whether the answer to `initialize` names the connection, in its body or its `_meta`."""
    meta = hello.get("_meta")
    places = [hello, meta if isinstance(meta, dict) else {}]
    return any("connectionid" in key.lower().replace("-", "") for place in places for key in place)


@server_probe("ACP-WS-514")
async def upgrade_names_the_connection(trial: ServerTrial) -> None:
    connection = await trial.socket()
    if not connection.socket.headers.get(CONNECTION):
        raise RowFailed("the answer to the upgrade has no Acp-Connection-Id")


@server_probe("ACP-WS-503")
async def socket_is_greeted(trial: ServerTrial) -> None:
    await trial.greeted_socket()


@server_probe("ACP-WS-504")
async def turn_is_played_on_a_socket(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    await connection.play(await connection.new_session())
    if not any(one.get("method") == "session/update" for one in connection.received):
        raise RowFailed("no update of the turn comes on the socket")


@server_probe("ACP-WS-505")
async def binary_frames_are_ignored(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    await connection.send_raw(b"\x00\x01\x02")
    await _expect_alive(connection, "a binary frame")


@server_probe("ACP-WS-506")
async def noise_does_not_end_a_socket(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    await connection.send_raw("{this is no JSON")
    await _expect_alive(connection, "a frame that is no JSON")


@server_probe("ACP-WS-507")
async def large_messages_are_read(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    message: Message = {"id": "large", "method": _UNKNOWN_METHOD, "params": {"text": "x" * _LARGE_BYTES}}
    await connection.send(message)
    await connection.response("large")


@server_probe("ACP-WS-508")
async def fragments_are_put_together(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    await connection.send({"id": "torn", "method": _UNKNOWN_METHOD, "params": {"text": "ÄÖÜ-漢字-🙂" * 10}}, pieces=5)
    await connection.response("torn")


@server_probe("ACP-WS-509")
async def pings_are_answered(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    if not await connection.socket.ping(trial.settings.answer):
        raise AnswerMissing("a ping is not answered")


@server_probe("ACP-WS-510")
async def greeting_comes_first(trial: ServerTrial) -> None:
    connection = await trial.socket()
    params = {"cwd": trial.settings.cwd, "mcpServers": []}
    try:
        reply = await connection.call("session/new", params, id="early")
    except AnswerMissing:
        raise
    except RowFailed:
        return  # the server ends a connection that does not greet
    if "result" in reply:
        raise RowFailed("a session is opened on a socket that was not greeted")


@server_probe("ACP-WS-512")
async def answers_keep_their_ids(trial: ServerTrial) -> None:
    connection = await trial.greeted_socket()
    for id in ("one", 2, "three"):
        await connection.send({"id": id, "method": _UNKNOWN_METHOD, "params": {}})
    found: list[object] = []
    try:
        while len(found) < 3:
            message = await connection.read()
            if "method" not in message:
                found.append(message.get("id"))
    except TimeoutError:
        raise AnswerMissing(f"three requests in a row have {len(found)} answers") from None
    if sorted(map(str, found)) != ["2", "one", "three"] or 2 not in found:
        raise RowFailed(f"three requests in a row are answered as {found}")


@server_probe("ACP-WS-513")
async def sockets_have_their_own_messages(trial: ServerTrial) -> None:
    other = await trial.greeted_socket()
    connection = await trial.greeted_socket()
    session = await connection.new_session()
    await connection.play(session)
    try:
        while True:
            message = await other.read(trial.settings.quiet)
            if (message.get("params") or {}).get("sessionId") == session:
                raise RowFailed("a socket is sent messages of a session that another has opened")
    except TimeoutError:
        return

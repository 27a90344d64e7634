"""The probes of a server's guard and limits: origins, names, tokens, sizes, and what its errors tell."""

from collections.abc import Mapping
from typing import Final

from dragoman.conformance.servers.doors import ServerReply
from dragoman.conformance.servers.probes import STRANGER, server_probe
from dragoman.conformance.servers.trial import CONNECTION, JSON, STREAM, ServerTrial
from dragoman.conformance.verdicts import RowFailed

_ORIGIN: Final[Mapping[str, str]] = {"origin": "https://attacker.example"}
_HOST: Final[Mapping[str, str]] = {"host": "attacker.example"}
_INTERNALS: Final = (b"Traceback (most recent call last)", b'File "/', b"    at ", b"panicked at")


def _expect_refused(reply: ServerReply, what: str) -> None:
    if reply.status < 400:
        raise RowFailed(f"{what} is answered with status {reply.status}")


@server_probe("ACP-GUARD-501")
async def foreign_origins_post_nothing(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", {**JSON, **_ORIGIN}, trial.initialize())
    _expect_refused(reply, "a page of another origin that posts")


@server_probe("ACP-GUARD-502")
async def foreign_origins_open_no_sockets(trial: ServerTrial) -> None:
    opened = await trial.open_socket(trial.door(), _ORIGIN)
    if not isinstance(opened, ServerReply):
        raise RowFailed("a page of another origin opens a WebSocket")


@server_probe("ACP-GUARD-503")
async def foreign_origins_read_no_streams(trial: ServerTrial) -> None:
    connection = await trial.connect()
    reply = await connection.get({**STREAM, **connection.headers(), **_ORIGIN})
    if not isinstance(reply, ServerReply):
        raise RowFailed("a page of another origin reads a stream")


@server_probe("ACP-GUARD-504")
async def foreign_names_are_refused(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", {**JSON, **_HOST}, trial.initialize())
    _expect_refused(reply, "a request for another host name")


@server_probe("ACP-GUARD-505")
async def token_is_wanted(trial: ServerTrial) -> None:
    trial.expect_token()
    reply = await trial.request(trial.door(with_token=False), "POST", JSON, trial.initialize())
    if reply.status != 401:
        raise RowFailed(f"a request without a token is answered with status {reply.status}")


@server_probe("ACP-GUARD-506")
async def token_is_checked(trial: ServerTrial) -> None:
    trial.expect_token()
    headers = {**JSON, "authorization": "Bearer not-a-token-of-this-server"}
    reply = await trial.request(trial.door(with_token=False), "POST", headers, trial.initialize())
    if reply.status not in (401, 403):
        raise RowFailed(f"a request with a wrong token is answered with status {reply.status}")


@server_probe("ACP-GUARD-507")
async def token_is_wanted_for_sockets(trial: ServerTrial) -> None:
    trial.expect_token()
    opened = await trial.open_socket(trial.door(with_token=False), {})
    if not isinstance(opened, ServerReply):
        raise RowFailed("a WebSocket is opened without a token")


@server_probe("ACP-GUARD-508")
async def refusal_names_the_scheme(trial: ServerTrial) -> None:
    trial.expect_token()
    reply = await trial.request(trial.door(with_token=False), "POST", JSON, trial.initialize())
    if reply.status == 401 and not reply.headers.get("www-authenticate"):
        raise RowFailed("the answer 401 has no WWW-Authenticate")


@server_probe("ACP-GUARD-509")
async def foreign_origins_are_not_let_in_by_headers(trial: ServerTrial) -> None:
    reply = await trial.request(trial.door(), "POST", {**JSON, **_ORIGIN}, trial.initialize())
    if reply.headers.get("access-control-allow-origin") in ("*", _ORIGIN["origin"]):
        raise RowFailed("the server lets pages of any origin read its answers")


@server_probe("ACP-GUARD-510")
async def oversized_bodies_are_refused(trial: ServerTrial) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"' + b"x" * trial.settings.oversized + b'"}}'
    door = trial.door()
    try:
        reply = await door.request("POST", JSON, body)
    except OSError:
        return  # a server may hang up on what it does not read
    trial.note("server", str(reply.status))
    if reply.status not in (413, 400):
        raise RowFailed(f"a body of {len(body)} bytes is answered with status {reply.status}")


@server_probe("ACP-GUARD-511")
async def errors_tell_no_internals(trial: ServerTrial) -> None:
    bodies = (b"{this is no JSON", b"[]", b"7", b"\xff\xfe", b'{"jsonrpc":"2.0","id":{"a":1},"method":7}')
    for body in bodies:
        reply = await trial.request(trial.door(), "POST", {**JSON, CONNECTION: STRANGER}, body)
        if any(mark in reply.body for mark in _INTERNALS):
            raise RowFailed("an answer shows the inside of the server")


@server_probe("ACP-GUARD-512")
async def bad_bodies_are_no_failure_of_the_server(trial: ServerTrial) -> None:
    connection = await trial.connect()
    for body in (b"", b"7", b"\xff\xfe", b'"text"', b"[" * 10_000):
        reply = await trial.request(connection.door, "POST", {**JSON, **connection.headers()}, body)
        if reply.status >= 500 and reply.status != 501:
            raise RowFailed(f"a body that is no message is answered with status {reply.status}")


@server_probe("ACP-GUARD-513")
async def connections_are_not_shared_without_their_name(trial: ServerTrial) -> None:
    connection = await trial.connect()
    guess = connection.id[:-1] + ("0" if connection.id[-1] != "0" else "1")
    reply = await connection.get({**STREAM, CONNECTION: guess})
    if not isinstance(reply, ServerReply):
        raise RowFailed("a stream is opened by a name that is not that of the connection")

"""Bytes and processes: how lines are read and written, and what is left when stdin is closed."""

import asyncio
import json
from typing import Final

from dragoman.conformance.connection import CheckConnection
from dragoman.conformance.probes.json_rpc import UNKNOWN_METHOD, expect_alive
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.subject import wait_until_gone
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import RowFailed, SubjectGone

_UNKNOWN: Final = "a method that does not exist"
# Every character of this has several bytes.
_WIDE_ID: Final = "ÄÖÜ-漢字-🙂"
_LARGE_BYTES: Final = 1024 * 1024


def _request(id: str, params: object = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": UNKNOWN_METHOD, "params": params or {}}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


@probe("ACP-TRANSPORT-001", "ACP-TRANSPORT-201")
async def stdout_has_messages_only(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    wrong = [frame for frame in dialogue.connection.noise if frame.fault != "not UTF-8"]
    if wrong:
        raise RowFailed(f"a line of stdout is {wrong[0].fault}", wrong[:1])


@probe("ACP-TRANSPORT-002")
async def stdout_is_utf8(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    wrong = [frame for frame in dialogue.connection.noise if frame.fault == "not UTF-8"]
    if wrong:
        raise RowFailed("a line of stdout is not UTF-8", wrong[:1])


@probe("ACP-TRANSPORT-508")
async def agent_waits_to_be_greeted(trial: Trial) -> None:
    connection = (await trial.connect()).connection
    await connection.quiet()
    if connection.received or connection.noise:
        raise RowFailed("the agent writes before it was sent anything")


async def _send_in_pieces(connection: CheckConnection, data: bytes) -> None:
    """Send a frame byte by byte where its characters are wide, so that every one of them is torn."""
    connection.recording.add(0, "check", data.rstrip(b"\n"), intent=f"{_UNKNOWN}, sent in pieces")
    start = data.index("Ä".encode())
    connection.write(data[:start])
    for at in range(start, start + len(_WIDE_ID.encode())):
        await asyncio.sleep(0.002)
        connection.write(data[at : at + 1])
    await asyncio.sleep(0.002)
    connection.write(data[start + len(_WIDE_ID.encode()) :])


@probe("ACP-TRANSPORT-501")
async def torn_messages_are_put_together(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    await _send_in_pieces(connection, _request(_WIDE_ID))
    await connection.response(_WIDE_ID)


@probe("ACP-TRANSPORT-502")
async def messages_of_one_write_are_taken_apart(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    for id in ("one", "two"):
        connection.recording.add(0, "check", _request(id).rstrip(), intent=f"{_UNKNOWN}, two in one write")
    connection.write(_request("one") + _request("two"))
    await connection.response("one")
    await connection.response("two")


@probe("ACP-TRANSPORT-503")
async def blank_lines_are_nothing(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    connection.write(b"\r\n\n")
    await expect_alive(connection, "blank lines")


@probe("ACP-TRANSPORT-504")
async def large_messages_are_read(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    connection.send_bytes(_request("large", {"text": "x" * _LARGE_BYTES}), intent=f"{_UNKNOWN}, 1 MiB large")
    await connection.response("large")


@probe("ACP-TRANSPORT-505")
async def closed_stdin_ends_the_process(trial: Trial) -> None:
    dialogue = await trial.greeted()
    dialogue.connection.close_writing()
    try:
        await dialogue.connection.until(lambda: None, "the end of the agent", trial.settings.limits.exit)
    except SubjectGone:
        return
    except RowFailed:
        if await dialogue.opened.processes():
            raise RowFailed("the agent still runs after its stdin was closed") from None


@probe("ACP-TRANSPORT-506")
async def closed_stdin_ends_the_process_tree(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    dialogue.connection.close_writing()
    left = await wait_until_gone(dialogue.opened, trial.settings.limits.exit)
    if left:
        raise RowFailed(f"{left} of the agent's processes live after its stdin was closed")

"""What goes wrong on the way to an agent: bytes that mean nothing, floods, slow readers, ends in a turn."""

import asyncio
import json
from typing import Any, Final

from dragoman.conformance.connection import CheckConnection
from dragoman.conformance.probes.json_rpc import UNKNOWN_METHOD, expect_alive
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.subject import wait_until_gone
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import AnswerMissing, RowFailed, SubjectGone

_UNKNOWN: Final = "a method that does not exist"
_FLOOD: Final = 300
_SESSIONS: Final = 4
_CANCELS: Final = 100
_NESTING: Final = 20_000
_LARGE_BYTES: Final = 8 * 1024 * 1024
# With an id of this length the answers fill every pipe.
_LONG_ID: Final = "x" * 400


def _line(id: Any, params: Any = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": UNKNOWN_METHOD, "params": params or {}}
    return json.dumps(message).encode() + b"\n"


@probe("ACP-FAULT-501")
async def sessions_run_at_the_same_time(trial: Trial) -> None:
    dialogue = await trial.greeted()
    sessions = [(await dialogue.open_session())["sessionId"] for _ in range(_SESSIONS)]
    turns = [dialogue.prompt(session, trial.settings.prompt) for session in sessions]
    for turn in turns:
        await dialogue.finish(turn)


async def _expect_all_answered(connection: CheckConnection, ids: list[Any], seconds: float = 0) -> None:
    for id in ids:
        connection.expect_answer(id, UNKNOWN_METHOD)

    def find() -> bool | None:
        have = {one.message.get("id") for one in connection.received if "method" not in one.message}
        return True if have >= set(ids) else None

    await connection.until(find, f"all of {len(ids)} answers", seconds)


@probe("ACP-FAULT-502")
async def flood_is_answered(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    ids = [f"flood-{number}" for number in range(_FLOOD)]
    connection.recording.add(0, "check", _line(ids[0]).rstrip(), intent=f"{_UNKNOWN}, {_FLOOD} in one write")
    connection.write(b"".join(map(_line, ids)))
    await _expect_all_answered(connection, ids)


@probe("ACP-FAULT-503")
async def slow_reader_loses_nothing(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    connection.pause_reading()
    ids = [f"{number}-{_LONG_ID}" for number in range(_FLOOD)]
    connection.recording.add(0, "check", _line(ids[0]).rstrip(), intent=f"{_UNKNOWN}, {_FLOOD}, and nothing is read")
    connection.write(b"".join(map(_line, ids)))
    await connection.quiet()
    await connection.quiet()
    connection.resume_reading()
    await _expect_all_answered(connection, ids)


async def _survives(trial: Trial, data: bytes, what: str) -> None:
    connection = (await trial.greeted()).connection
    connection.send_bytes(data, intent=what)
    await expect_alive(connection, what)


@probe("ACP-FAULT-504")
async def binary_is_survived(trial: Trial) -> None:
    await _survives(trial, bytes(range(1, 10)) + b"\x00\x00\x7f\n", "a line of control characters")


@probe("ACP-FAULT-505")
async def bad_utf8_is_survived(trial: Trial) -> None:
    await _survives(trial, b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"x"}\n', "a line that is not UTF-8")


@probe("ACP-FAULT-506")
async def nesting_is_survived(trial: Trial) -> None:
    await _survives(trial, b"[" * _NESTING + b"]" * _NESTING + b"\n", f"{_NESTING} brackets")


@probe("ACP-FAULT-507")
async def very_large_messages_are_read(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    connection.send_bytes(_line("large", {"text": "x" * _LARGE_BYTES}), intent=f"{_UNKNOWN}, 8 MiB large")
    connection.expect_answer("large", UNKNOWN_METHOD)
    await connection.response("large", seconds=trial.settings.limits.turn)


@probe("ACP-FAULT-508")
async def same_id_twice_is_survived(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    for _ in range(2):
        connection.ask(UNKNOWN_METHOD, intent="two requests with one id", id="same")
    await connection.response("same")
    await expect_alive(connection, "two requests with one id")


@probe("ACP-FAULT-509")
async def half_a_line_is_an_end(trial: Trial) -> None:
    dialogue = await trial.greeted()
    dialogue.connection.write(b'{"jsonrpc":"2.0","id":1,"meth')
    dialogue.connection.close_writing()
    await _expect_gone(trial, dialogue.opened, "its input ended inside of a message")


async def _expect_gone(trial: Trial, opened: Any, when: str) -> None:
    left = await wait_until_gone(opened, trial.settings.limits.exit)
    if left:
        raise RowFailed(f"{left} of the agent's processes live although {when}")


@probe("ACP-FAULT-510")
async def lone_surrogates_are_survived(trial: Trial) -> None:
    await _survives(
        trial,
        b'{"jsonrpc":"2.0","id":"s","method":"%s","params":{"text":"\\ud800 \\udfff"}}\n' % UNKNOWN_METHOD.encode(),
        "a text with half a character",
    )


@probe("ACP-FAULT-511")
async def large_numbers_are_survived(trial: Trial) -> None:
    numbers = b'{"jsonrpc":"2.0","id":"n","method":"%s","params":{"a":1e400,"b":%s,"c":-0.0}}\n'
    await _survives(trial, numbers % (UNKNOWN_METHOD.encode(), b"9" * 400), "numbers that no computer has")


@probe("ACP-FAULT-512")
async def carriage_returns_are_read_over(trial: Trial) -> None:
    connection = (await trial.greeted()).connection
    connection.expect_answer("crlf", UNKNOWN_METHOD)
    connection.send_bytes(_line("crlf").rstrip(b"\n") + b"\r\n", intent=f"{_UNKNOWN}, with a carriage return")
    await connection.response("crlf")


@probe("ACP-FAULT-513")
async def empty_prompt_is_answered(trial: Trial) -> None:
    dialogue, session = await trial.session()
    params = {"sessionId": session, "prompt": []}
    id = dialogue.connection.ask("session/prompt", params, intent="a prompt without content")
    await dialogue.connection.response(id, seconds=trial.settings.limits.turn)


@probe("ACP-FAULT-514")
async def turn_ends_with_its_client(trial: Trial) -> None:
    dialogue, session = await trial.session()
    await trial.slow_turn(dialogue, session)
    dialogue.connection.close_writing()
    await _expect_gone(trial, dialogue.opened, "stdin was closed in a turn")


@probe("ACP-FAULT-515")
async def foreign_content_is_answered(trial: Trial) -> None:
    dialogue, session = await trial.session()
    params = {"sessionId": session, "prompt": [{"type": "hologram", "depth": 3}]}
    id = dialogue.connection.ask("session/prompt", params, intent="content of an unknown type")
    await dialogue.connection.response(id, seconds=trial.settings.limits.turn)
    await expect_alive(dialogue.connection, "content of an unknown type")


@probe("ACP-FAULT-516")
async def last_requests_are_answered(trial: Trial) -> None:
    dialogue = await trial.greeted()
    ids = [f"last-{number}" for number in range(5)]
    dialogue.connection.recording.add(0, "check", _line(ids[0]).rstrip(), intent=f"{_UNKNOWN}, and the end of input")
    dialogue.connection.write(b"".join(map(_line, ids)))
    dialogue.connection.close_writing()
    try:
        await _expect_all_answered(dialogue.connection, ids)
    except (AnswerMissing, SubjectGone) as failure:
        raise RowFailed("requests that came before the end of the input are not answered") from failure


@probe("ACP-FAULT-517")
async def cancelled_request_is_answered(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.connection.notify("$/cancel_request", {"requestId": turn.id})
    try:
        await dialogue.end_of(turn)
    except AnswerMissing:
        raise RowFailed("a prompt whose request was cancelled is not answered") from None


@probe("ACP-FAULT-518")
async def many_cancels_are_harmless(trial: Trial) -> None:
    dialogue, session = await trial.session()
    for _ in range(_CANCELS):
        dialogue.cancel(session)
    await asyncio.sleep(0)
    await expect_alive(dialogue.connection, f"{_CANCELS} cancels")
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))

"""Sessions: opened, kept apart, listed, closed and deleted."""

from typing import Any, Final

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import Dialogue
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import NotTested, RowFailed

_NO_FOLDER: Final = "/dragoman-check/no/session/is/here"
_PAGES: Final = 50


async def _expect_opened(trial: Trial, params: Message, what: str) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call("session/new", params)
    if "result" not in reply:
        raise RowFailed(f"session/new {what} is answered with an error")


async def _expect_refused(trial: Trial, params: Message, what: str) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call("session/new", params, intent=what)
    if "error" not in reply:
        raise RowFailed(f"session/new with {what} opens a session")


@probe("ACP-SESSION-001")
async def session_is_opened(trial: Trial) -> None:
    dialogue = await trial.greeted()
    if not (await dialogue.open_session())["sessionId"]:
        raise RowFailed("the id of the session is empty")


@probe("ACP-SESSION-002")
async def sessions_have_ids_of_their_own(trial: Trial) -> None:
    dialogue = await trial.greeted()
    ids = [(await dialogue.open_session())["sessionId"] for _ in range(2)]
    if ids[0] == ids[1]:
        raise RowFailed("two sessions have one id")


@probe("ACP-SESSION-203")
async def servers_may_be_absent(trial: Trial) -> None:
    await trial.session()
    await _expect_opened(trial, {"cwd": trial.settings.cwd}, "without mcpServers")


@probe("ACP-SESSION-501")
async def relative_folder_is_refused(trial: Trial) -> None:
    await trial.session()
    await _expect_refused(trial, {"cwd": "a/relative/folder", "mcpServers": []}, "a relative cwd")


@probe("ACP-SESSION-502")
async def missing_folder_is_refused(trial: Trial) -> None:
    await trial.session()
    await _expect_refused(trial, {"mcpServers": []}, "no cwd")


@probe("ACP-SESSION-503")
async def meta_of_a_new_session_is_accepted(trial: Trial) -> None:
    dialogue = await trial.greeted()
    await dialogue.open_session(_meta={"example.org": {"a": [1, None]}})


@probe("ACP-SESSION-504")
async def unknown_session_is_not_prompted(trial: Trial) -> None:
    dialogue = await trial.greeted()
    turn = dialogue.prompt("no-such-session", "hello")
    if "error" not in await dialogue.connection.response(turn.id):
        raise RowFailed("a prompt to a session that does not exist is accepted")


@probe("ACP-SESSION-505")
async def sessions_do_not_leak(trial: Trial) -> None:
    dialogue, first = await trial.session()
    second = (await dialogue.open_session())["sessionId"]
    await dialogue.connection.quiet()
    since = len(dialogue.connection.received)
    await dialogue.finish(dialogue.prompt(first, trial.settings.prompt))
    for message, frame in dialogue.connection.received[since:]:
        params = message.get("params")
        update = params.get("update") if isinstance(params, dict) else None
        kind = str(update.get("sessionUpdate")) if isinstance(update, dict) else ""
        if isinstance(params, dict) and params.get("sessionId") == second and kind.startswith(("agent_", "tool_")):
            raise RowFailed("an update of one session's turn has the id of another session", [frame])


@probe("ACP-SESSION-506")
async def sessions_run_side_by_side(trial: Trial) -> None:
    dialogue, first = await trial.session()
    second = (await dialogue.open_session())["sessionId"]
    slow = await trial.slow_turn(dialogue, first)
    await dialogue.finish(dialogue.prompt(second, trial.settings.prompt))
    is_over = dialogue.find_end(slow) is not None
    dialogue.cancel(first)
    await dialogue.end_of(slow)
    if is_over and not trial.settings.slow_prompt:
        raise NotTested("the turn of the first session was too short", "--slow-prompt TEXT: one that takes seconds")


async def _sessions(dialogue: Dialogue, **params: Any) -> list[Message]:
    """Return all sessions of a list, page by page."""
    found: list[Message] = []
    cursor: Any = None
    for _ in range(_PAGES):
        asked = params if cursor is None else {**params, "cursor": cursor}
        result = (await dialogue.connection.call("session/list", asked)).get("result")
        page = result.get("sessions") if isinstance(result, dict) else None
        if not isinstance(page, list):
            raise RowFailed("the answer to session/list has no array of sessions")
        found += [one for one in page if isinstance(one, dict)]
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if cursor is None:
            break
    return found


@probe("ACP-LIST-201", "ACP-LIST-501")
async def sessions_are_listed(trial: Trial) -> None:
    dialogue = await trial.greeted()
    await _sessions(dialogue)
    if faults := dialogue.connection.recording.faults("agent"):
        raise RowFailed(faults[0].fault, faults[:1])


@probe("ACP-LIST-202", "ACP-LIST-502")
async def empty_list_is_an_array(trial: Trial) -> None:
    dialogue = await trial.greeted()
    if await _sessions(dialogue, cwd=_NO_FOLDER):
        raise RowFailed("sessions are listed for a folder in which there are none")


@probe("ACP-LIST-203", "ACP-LIST-503")
async def list_is_filtered_by_folder(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    other = [one for one in await _sessions(dialogue, cwd=trial.settings.cwd) if one.get("cwd") != trial.settings.cwd]
    if other:
        raise RowFailed(f"a list for one folder has a session in {other[0].get('cwd')!r}")


@probe("ACP-LIST-204", "ACP-LIST-504")
async def listed_folders_are_absolute(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    listed = await _sessions(dialogue)
    if not listed:
        raise NotTested("no session is listed, also after a turn")
    wrong = [one.get("cwd") for one in listed if not str(one.get("cwd")).startswith(("/", "\\"))]
    wrong = [one for one in wrong if str(one)[1:2] != ":"]  # a drive of Windows
    if wrong:
        raise RowFailed(f"the folder {wrong[0]!r} of a listed session is not absolute")


@probe("ACP-LIST-505")
async def foreign_cursor_is_refused(trial: Trial) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call("session/list", {"cursor": "no-such-cursor"})
    if "error" not in reply:
        raise RowFailed("a cursor that the agent never gave is accepted")


async def _expect_done(dialogue: Dialogue, method: str, session: str) -> None:
    reply = await dialogue.connection.call(method, {"sessionId": session})
    if "result" not in reply:
        raise RowFailed(f"{method} is answered with an error")
    frame = dialogue.connection.received[-1].frame
    if frame.fault:
        raise RowFailed(frame.fault, [frame])


@probe("ACP-CLOSE-201", "ACP-CLOSE-501")
async def session_is_closed(trial: Trial) -> None:
    dialogue, session = await trial.session()
    await _expect_done(dialogue, "session/close", session)


@probe("ACP-CLOSE-202", "ACP-CLOSE-502")
async def closing_cancels_the_turn(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    await _expect_done(dialogue, "session/close", session)
    trial.expect_cancelled(await dialogue.end_of(turn))


@probe("ACP-DELETE-201", "ACP-DELETE-501")
async def session_is_deleted(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    await _expect_done(dialogue, "session/delete", session)


@probe("ACP-DELETE-202", "ACP-DELETE-502")
async def deleted_session_is_not_listed(trial: Trial) -> None:
    if not trial.advertises("list"):
        raise NotTested("the agent lists no sessions")
    dialogue, session, _ = await trial.played()
    if session not in [one.get("sessionId") for one in await _sessions(dialogue)]:
        raise NotTested("the session is not listed, also before it is deleted")
    await _expect_done(dialogue, "session/delete", session)
    if session in [one.get("sessionId") for one in await _sessions(dialogue)]:
        raise RowFailed("a session that was deleted is still listed")


@probe("ACP-DELETE-002", "ACP-DELETE-203")
async def unknown_session_may_be_deleted(trial: Trial) -> None:
    dialogue = await trial.greeted()
    await _expect_done(dialogue, "session/delete", "00000000-0000-4000-8000-000000000000")

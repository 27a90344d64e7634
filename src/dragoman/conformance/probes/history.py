"""Sessions that are opened again: replayed or not, in the same process, in a new one, after a kill."""

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import Dialogue, Update, update_of
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import VERSIONS
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import RowFailed

OF_USER = ("user_message_chunk", "user_message")
OF_AGENT = ("agent_message_chunk", "agent_message")
_HISTORY = (*OF_USER, *OF_AGENT, "agent_thought_chunk", "agent_thought", "tool_call", "tool_call_update")


class Replay:
    """A session that was opened again: the updates before the answer and after it."""

    def __init__(self, dialogue: Dialogue, session: str, since: int, answered_at: int) -> None:
        result = dialogue.connection.received[answered_at].message.get("result")
        self.answer: Message = result if isinstance(result, dict) else {}
        before = dialogue.connection.received[since:answered_at]
        after = dialogue.connection.received[answered_at + 1 :]
        self.dialogue = dialogue
        self.before: list[Update] = [update_of(one.message, session) for one in before]
        self.after: list[Update] = [update_of(one.message, session) for one in after]

    def kinds(self) -> list[str]:
        """Return the kinds of history before the answer, in order."""
        return [str(one.get("sessionUpdate")) for one in self.before if one.get("sessionUpdate") in _HISTORY]


def _loading(trial: Trial, session: str, *, replays: bool) -> tuple[str, Message]:
    params = {"sessionId": session, "cwd": trial.settings.cwd, "mcpServers": []}
    if trial.version == VERSIONS[0]:
        return ("session/load" if replays else "session/resume"), params
    return "session/resume", {**params, "replayFrom": {"type": "start"}} if replays else params


async def open_again(trial: Trial, dialogue: Dialogue, session: str, *, replays: bool = True) -> Replay:
    """Load or resume a session. Raise `RowFailed` if that fails."""
    method, params = _loading(trial, session, replays=replays)
    since = len(dialogue.connection.received)
    id = dialogue.connection.ask(method, params)
    reply = await dialogue.connection.response(id, seconds=trial.settings.limits.turn)
    if "result" not in reply:
        error = reply.get("error") or {}
        raise RowFailed(f"{method} fails: {error.get('message')} ({error.get('code')})")
    answered_at = next(at for at, one in enumerate(dialogue.connection.received) if one.message is reply)
    await dialogue.connection.quiet()
    return Replay(dialogue, session, since, answered_at)


async def leave(trial: Trial, *, is_killed: bool = False) -> str:
    """Play a turn in a process that then ends, and return its session."""
    dialogue, session, _ = await trial.played()
    if is_killed:
        dialogue.opened.kill()
    else:
        dialogue.connection.close_writing()
    await dialogue.connection.close()
    return session


async def _replayed(trial: Trial) -> Replay:
    session = await leave(trial)
    return await open_again(trial, await trial.greeted(), session)


def _expect_history(replay: Replay, what: str) -> None:
    kinds = replay.kinds()
    if not any(one in OF_USER for one in kinds) or not any(one in OF_AGENT for one in kinds):
        raise RowFailed(f"{what} without the conversation: {', '.join(kinds) or 'no update'} before the answer")


@probe("ACP-LOAD-501")
async def loading_replays_before_its_answer(trial: Trial) -> None:
    _expect_history(await _replayed(trial), "the session is loaded")


@probe("ACP-LOAD-502", "ACP-RESUME-202")
async def nothing_is_replayed_after_the_answer(trial: Trial) -> None:
    replay = await _replayed(trial)
    late = [one["sessionUpdate"] for one in replay.after if one.get("sessionUpdate") in _HISTORY]
    if late:
        raise RowFailed(f"a {late[0]} is replayed after the answer")


@probe("ACP-LOAD-503")
async def replay_is_in_order(trial: Trial) -> None:
    kinds = [one for one in (await _replayed(trial)).kinds() if one in OF_USER + OF_AGENT]
    if not kinds or kinds[0] not in OF_USER:
        raise RowFailed(f"the replay begins with {kinds[0] if kinds else 'nothing'}, not with the user's message")


@probe("ACP-LOAD-504")
async def loaded_session_takes_prompts(trial: Trial) -> None:
    session = await leave(trial)
    dialogue = await trial.greeted()
    await open_again(trial, dialogue, session)
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))


@probe("ACP-LOAD-505")
async def session_survives_a_kill(trial: Trial) -> None:
    session = await leave(trial, is_killed=True)
    _expect_history(await open_again(trial, await trial.greeted(), session), "the session of a killed agent is loaded")


@probe("ACP-LOAD-506")
async def unknown_session_is_not_loaded(trial: Trial) -> None:
    dialogue = await trial.greeted()
    method, params = _loading(trial, "00000000-0000-4000-8000-000000000000", replays=True)
    if "error" not in await dialogue.connection.call(method, params):
        raise RowFailed("a session that does not exist is loaded")


@probe("ACP-RESUME-201", "ACP-RESUME-501")
async def session_is_resumed(trial: Trial) -> None:
    session = await leave(trial)
    await open_again(trial, await trial.greeted(), session, replays=False)


@probe("ACP-RESUME-203", "ACP-RESUME-502")
async def resuming_replays_nothing(trial: Trial) -> None:
    session = await leave(trial)
    replay = await open_again(trial, await trial.greeted(), session, replays=False)
    if replay.kinds():
        raise RowFailed(f"the session is resumed, and a {replay.kinds()[0]} is replayed before the answer")


@probe("ACP-RESUME-503")
async def resumed_session_takes_prompts(trial: Trial) -> None:
    session = await leave(trial)
    dialogue = await trial.greeted()
    await open_again(trial, dialogue, session, replays=False)
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))


@probe("ACP-RESUME-204")
async def replayed_messages_have_their_ids(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = dialogue.prompt(session, trial.settings.prompt)
    await dialogue.finish(turn)
    given = ((dialogue.connection.find_response(turn.id) or {}).get("result") or {}).get("messageId")
    dialogue.connection.close_writing()
    await dialogue.connection.close()
    replay = await open_again(trial, await trial.greeted(), session)
    ids = [one.get("messageId") for one in replay.before if one.get("sessionUpdate") in OF_USER]
    if ids and given not in ids:
        raise RowFailed(f"the message {given!r} is replayed as {ids[0]!r}")

"""What is left of a session when its process is gone: killed in a turn, ended in order, opened again and again."""

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import Dialogue
from dragoman.conformance.probes.history import OF_AGENT, OF_USER, Replay, leave, open_again
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import VERSIONS
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import NotTested, RowFailed

_MARKS = ("first-mark", "second-mark")


async def _killed_in_a_turn(trial: Trial) -> str:
    dialogue, session = await trial.session()
    await trial.slow_turn(dialogue, session)
    await dialogue.connection.quiet()
    dialogue.opened.kill()
    await dialogue.connection.close()
    return session


@probe("ACP-DUR-501")
async def prompt_of_a_killed_turn_is_kept(trial: Trial) -> None:
    session = await _killed_in_a_turn(trial)
    replay = await open_again(trial, await trial.greeted(), session)
    if not any(one in OF_USER for one in replay.kinds()):
        raise RowFailed("the agent was killed in a turn, and the prompt of that turn is lost")


@probe("ACP-DUR-502")
async def session_of_a_killed_turn_takes_prompts(trial: Trial) -> None:
    session = await _killed_in_a_turn(trial)
    dialogue = await trial.greeted()
    await open_again(trial, dialogue, session)
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))


def _texts(replay: Replay) -> str:
    return " ".join(str(one.get("content")) for one in replay.before)


async def _marked(trial: Trial, dialogue: Dialogue, mark: str, session: str = "") -> str:
    """Play a turn whose prompt has a mark, in a new session or in this one."""
    session = session or (await dialogue.open_session())["sessionId"]
    await dialogue.finish(dialogue.prompt(session, f"{trial.settings.prompt} ({mark})"))
    return session


async def _end(dialogue: Dialogue) -> None:
    await dialogue.connection.quiet()
    dialogue.connection.close_writing()
    await dialogue.connection.close()


@probe("ACP-DUR-503")
async def loaded_sessions_are_not_mixed(trial: Trial) -> None:
    dialogue = await trial.greeted()
    first = await _marked(trial, dialogue, _MARKS[0])
    second = await _marked(trial, dialogue, _MARKS[1])
    await _end(dialogue)
    dialogue = await trial.greeted()
    for session, own, other in ((first, *_MARKS), (second, *_MARKS[::-1])):
        text = _texts(await open_again(trial, dialogue, session))
        if other in text:
            raise RowFailed("a session that is loaded has the conversation of another")
        if own not in text:
            raise RowFailed("a session that is loaded lacks its own conversation")


@probe("ACP-DUR-504")
async def sessions_are_listed_in_a_new_process(trial: Trial) -> None:
    session = await leave(trial)
    reply = await (await trial.greeted()).connection.call("session/list", {})
    listed = (reply.get("result") or {}).get("sessions") or []
    if session not in [one.get("sessionId") for one in listed if isinstance(one, dict)]:
        raise RowFailed("a session is not listed by the next process")


def _history(replay: Replay) -> list[dict[str, object]]:
    """Return what was said, with the pieces of one message put together."""
    said: list[dict[str, object]] = []
    for one in replay.before:
        kind, content = str(one.get("sessionUpdate")), one.get("content")
        if kind not in OF_USER + OF_AGENT:
            continue
        text = content.get("text", "") if isinstance(content, dict) else str(content)
        if said and said[-1]["kind"] == kind:
            said[-1]["text"] = f"{said[-1]['text']}{text}"
        else:
            said.append({"kind": kind, "text": text})
    return said


@probe("ACP-DUR-505")
async def history_does_not_grow_when_it_is_loaded(trial: Trial) -> None:
    session = await leave(trial)
    found = []
    for _ in range(2):
        dialogue = await trial.greeted()
        found.append(_history(await open_again(trial, dialogue, session)))
        await _end(dialogue)
    if found[0] != found[1]:
        raise RowFailed("a session that is loaded twice has another history the second time")


@probe("ACP-DUR-506")
async def history_has_the_turns_of_all_processes(trial: Trial) -> None:
    dialogue = await trial.greeted()
    session = await _marked(trial, dialogue, _MARKS[0])
    await _end(dialogue)
    dialogue = await trial.greeted()
    await open_again(trial, dialogue, session)
    await _marked(trial, dialogue, _MARKS[1], session)
    await _end(dialogue)
    text = _texts(await open_again(trial, await trial.greeted(), session))
    at = [text.find(mark) for mark in _MARKS]
    if min(at) < 0:
        raise RowFailed("the turns of an earlier process are lost")
    if at[0] > at[1]:
        raise RowFailed("the turns of two processes are replayed in the wrong order")


@probe("ACP-DUR-507")
async def deleted_session_stays_deleted(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    await dialogue.connection.call("session/delete", {"sessionId": session})
    await _end(dialogue)
    reply = await (await trial.greeted()).connection.call("session/list", {})
    listed = (reply.get("result") or {}).get("sessions") or []
    if session in [one.get("sessionId") for one in listed if isinstance(one, dict)]:
        raise RowFailed("a session that was deleted is listed by the next process")


def _select(options: object) -> Message | None:
    """Return the first option with another value to choose."""
    for option in options if isinstance(options, list) else []:
        values = [one.get("value") for one in option.get("options") or [] if isinstance(one, dict) and "value" in one]
        if option.get("type") == "select" and any(one != option.get("currentValue") for one in values):
            return {**option, "other": next(one for one in values if one != option.get("currentValue"))}
    return None


@probe("ACP-DUR-508")
async def chosen_options_are_kept(trial: Trial) -> None:
    dialogue = await trial.greeted()
    opened = await dialogue.open_session()
    option = _select(opened.get("configOptions"))
    if option is None:
        raise NotTested("the agent offers no option with several values", is_unadvertised=True)
    id = option.get("id") if trial.version == VERSIONS[0] else option.get("configId")
    typed = {} if trial.version == VERSIONS[0] else {"type": "id"}
    params = {"sessionId": opened["sessionId"], "configId": id, "value": option["other"], **typed}
    await dialogue.connection.call("session/set_config_option", params)
    await dialogue.finish(dialogue.prompt(opened["sessionId"], trial.settings.prompt))
    await _end(dialogue)
    dialogue = await trial.greeted()
    replay = await open_again(trial, dialogue, opened["sessionId"])
    for one in replay.answer.get("configOptions") or []:
        if id in (one.get("id"), one.get("configId")) and one.get("currentValue") != option["other"]:
            raise RowFailed(f"the option {id} was set to {option['other']!r}, and is {one.get('currentValue')!r} later")


@probe("ACP-DUR-510")
async def calls_of_a_killed_turn_do_not_run(trial: Trial) -> None:
    dialogue, session = await trial.session()
    dialogue.choose = lambda _: None
    turn = await trial.asking_turn(dialogue, session)
    await dialogue.until_asked(turn)
    dialogue.opened.kill()
    await dialogue.connection.close()
    replay = await open_again(trial, await trial.greeted(), session)
    status: dict[object, object] = {}
    for update in replay.before:
        if str(update.get("sessionUpdate")).startswith("tool_call") and "toolCallId" in update:
            status[update["toolCallId"]] = update.get("status") or status.get(update["toolCallId"])
    running = [id for id, one in status.items() if one in ("pending", "in_progress")]
    if running:
        raise RowFailed(f"tool call {running[0]!r} of the process that was killed is replayed as if it ran")

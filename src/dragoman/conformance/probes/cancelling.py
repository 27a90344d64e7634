"""`session/cancel`: in each phase of a turn, and where there is nothing to cancel."""

from dragoman.conformance.dialogue import hold, reject, update_of
from dragoman.conformance.probes.json_rpc import expect_alive
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import VERSIONS
from dragoman.conformance.trial import DEFAULT_SLOW_PROMPT, Trial
from dragoman.conformance.verdicts import NotTested, RowFailed

_WORK = ("agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought", "tool_call")


@probe("ACP-CANCEL-001", "ACP-CANCEL-201")
async def cancelled_turn_says_so(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    trial.expect_cancelled(await dialogue.end_of(turn))


@probe("ACP-CANCEL-203", "ACP-CANCEL-501")
async def cancelling_is_no_failure(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    end = await dialogue.end_of(turn)
    if end.error is not None:
        raise RowFailed(f"the cancelled prompt is answered with error {end.error.get('code')}")


@probe("ACP-CANCEL-002", "ACP-CANCEL-202")
async def nothing_comes_after_a_cancelled_turn(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    end = await dialogue.end_of(turn)
    trial.expect_cancelled(end)
    await expect_alive(dialogue.connection, "a cancelled turn")
    await dialogue.connection.quiet()
    for message, frame in dialogue.connection.received[end.at + 1 :]:
        kind = update_of(message, session).get("sessionUpdate")
        if kind == "state_update" or (trial.version == VERSIONS[0] and kind in _WORK):
            raise RowFailed(f"a {kind} comes after the end of the cancelled turn", [frame])


@probe("ACP-CANCEL-205", "ACP-CANCEL-502")
async def cancel_is_not_answered(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    await dialogue.end_of(turn)
    await dialogue.connection.quiet()
    for message, frame in dialogue.connection.received[turn.since :]:
        if "method" not in message and message.get("id") != turn.id:
            raise RowFailed("session/cancel is a notification, and is answered", [frame])


@probe("ACP-CANCEL-206", "ACP-CANCEL-503")
async def cancel_may_have_meta(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session, _meta={"example.org": {"why": "because"}})
    trial.expect_cancelled(await dialogue.end_of(turn))


@probe("ACP-CANCEL-504")
async def early_cancel_counts(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = dialogue.prompt(session, trial.settings.slow_prompt or DEFAULT_SLOW_PROMPT)
    dialogue.cancel(session)
    trial.expect_cancelled(await dialogue.end_of(turn))


@probe("ACP-CANCEL-505")
async def cancel_ends_an_open_question(trial: Trial) -> None:
    dialogue, session = await trial.session()
    dialogue.choose = hold
    turn = await trial.asking_turn(dialogue, session)
    await dialogue.until_asked(turn)
    dialogue.cancel(session)
    end = await dialogue.end_of(turn)
    if end.error is not None or end.reason != "cancelled":
        raise RowFailed(f"the turn that was cancelled at its question ends with {end.reason or end.error!r}")


@probe("ACP-CANCEL-506")
async def cancel_of_an_idle_session_is_forgotten(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    dialogue.cancel(session)
    await expect_alive(dialogue.connection, "the cancelling of an idle session")
    end = await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))
    if end.reason == "cancelled":
        raise RowFailed("a cancel of the idle session cancels the next prompt")


@probe("ACP-CANCEL-507")
async def cancel_of_an_unknown_session_is_harmless(trial: Trial) -> None:
    dialogue, session = await trial.session()
    dialogue.cancel("no-such-session")
    await expect_alive(dialogue.connection, "the cancelling of an unknown session")
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))


@probe("ACP-CANCEL-508")
async def second_cancel_is_harmless(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    dialogue.cancel(session)
    trial.expect_cancelled(await dialogue.end_of(turn))
    await expect_alive(dialogue.connection, "a second cancel")


@probe("ACP-CANCEL-509")
async def session_goes_on_after_a_cancel(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.slow_turn(dialogue, session)
    dialogue.cancel(session)
    trial.expect_cancelled(await dialogue.end_of(turn))
    dialogue.choose = reject
    end = await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))
    if end.reason == "cancelled":
        raise RowFailed("the prompt after a cancelled one is cancelled too")


@probe("ACP-CANCEL-510")
async def cancel_is_for_one_session(trial: Trial) -> None:
    dialogue, first = await trial.session()
    second = (await dialogue.open_session())["sessionId"]
    turns = [await trial.slow_turn(dialogue, session) for session in (first, second)]
    dialogue.cancel(first)
    trial.expect_cancelled(await dialogue.end_of(turns[0]))
    await dialogue.connection.quiet()
    other = dialogue.find_end(turns[1])
    if other is not None and other.reason == "cancelled":
        raise RowFailed("the cancel of one session ends the turn of another")
    if other is not None:
        raise NotTested("the turn of the other session was too short", "--slow-prompt TEXT: one that takes seconds")
    dialogue.cancel(second)
    await dialogue.end_of(turns[1])

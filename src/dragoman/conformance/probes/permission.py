"""Permission requests: how they are asked, and that every answer but an approval is a no."""

from collections.abc import Callable
from typing import Any

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import Dialogue, allow, choose_kind, hold, options_of, reject
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import NotTested, RowFailed


async def _asked(trial: Trial, choose: Callable[[Message], Message | None]) -> tuple[Dialogue, str, Message]:
    """Play a turn with a question that is answered so; return the question as well."""
    dialogue, session = await trial.session()
    dialogue.choose = choose
    turn = await trial.asking_turn(dialogue, session)
    asked = await dialogue.until_asked(turn)
    await dialogue.end_of(turn)
    return dialogue, session, asked.message


def call_of(question: Message) -> Any:
    """Return the id of the tool call that a question is about, in either version."""
    params = question["params"]
    subject = params.get("subject")
    call = params.get("toolCall") or (subject.get("toolCall") if isinstance(subject, dict) else None)
    found = call.get("toolCallId") if isinstance(call, dict) else None
    return found or (subject.get("toolCallId") if isinstance(subject, dict) else None)


def _has_completed(dialogue: Dialogue, session: str, call: Any) -> bool:
    updates = dialogue.updates(session)
    return any(one.get("toolCallId") == call and one.get("status") == "completed" for one in updates)


async def _expect_not_run(trial: Trial, choose: Callable[[Message], Message | None], answer: str) -> None:
    dialogue, session, question = await _asked(trial, choose)
    call = call_of(question)
    if call is None:
        raise NotTested("the question names no tool call, so its outcome cannot be told")
    if _has_completed(dialogue, session, call):
        raise RowFailed(f"tool call {call!r} is completed although its permission was answered with {answer}")


@probe("ACP-PERM-201", "ACP-PERM-501")
async def questions_are_as_the_schema_says(trial: Trial) -> None:
    dialogue, _, question = await _asked(trial, reject)
    frame = next(one.frame for one in dialogue.connection.received if one.message is question)
    if frame.fault or not options_of(question):
        raise RowFailed(frame.fault or "a permission request has no options", [frame])


@probe("ACP-PERM-502")
async def rejected_calls_do_not_run(trial: Trial) -> None:
    def choose(message: Message) -> Message:
        chosen = choose_kind(message, "reject_once", "reject_always")
        if chosen is None:
            raise NotTested("the agent offers no rejection")
        return chosen

    await _expect_not_run(trial, choose, "a rejection")


@probe("ACP-PERM-503")
async def approved_calls_run(trial: Trial) -> None:
    dialogue, session, question = await _asked(trial, allow)
    call = call_of(question)
    if call is None:
        raise NotTested("the question names no tool call, so its outcome cannot be told")
    if not _has_completed(dialogue, session, call):
        raise RowFailed(f"tool call {call!r} is not completed although it was allowed")


@probe("ACP-PERM-504")
async def cancelled_questions_are_a_no(trial: Trial) -> None:
    await _expect_not_run(trial, lambda _: {"outcome": "cancelled"}, "cancelled")


async def _expect_not_run_after(trial: Trial, answer: Message, what: str) -> None:
    """Answer a question with this message, and look whether its call runs. A turn that hangs is cancelled."""
    dialogue, session = await trial.session()
    dialogue.choose = hold
    turn = await trial.asking_turn(dialogue, session)
    asked = await dialogue.until_asked(turn)
    dialogue.answer_held(asked.message["id"], answer, intent=what)
    await dialogue.connection.quiet()
    if dialogue.find_end(turn) is None:
        dialogue.choose = reject
        await dialogue.connection.quiet()
        dialogue.cancel(session)
    await dialogue.end_of(turn)
    call = call_of(asked.message)
    if call is None:
        raise NotTested("the question names no tool call, so its outcome cannot be told")
    if _has_completed(dialogue, session, call):
        raise RowFailed(f"tool call {call!r} is completed although its permission was answered with {what}")


@probe("ACP-PERM-505")
async def unknown_outcomes_are_a_no(trial: Trial) -> None:
    answer = {"result": {"outcome": {"outcome": "_example.org/perhaps", "optionId": "allow"}}}
    await _expect_not_run_after(trial, answer, "an outcome that does not exist")


@probe("ACP-PERM-506")
async def errors_are_a_no(trial: Trial) -> None:
    answer = {"error": {"code": -32603, "message": "The window was closed"}}
    await _expect_not_run_after(trial, answer, "an error")


@probe("ACP-PERM-507")
async def unknown_options_are_a_no(trial: Trial) -> None:
    answer = {"result": {"outcome": {"outcome": "selected", "optionId": "no-such-option"}}}
    await _expect_not_run_after(trial, answer, "an option that was not offered")


@probe("ACP-PERM-508")
async def options_have_ids_of_their_own(trial: Trial) -> None:
    _, _, question = await _asked(trial, reject)
    ids = [str(one.get("optionId")) for one in options_of(question)]
    if len(ids) != len(set(ids)):
        raise RowFailed(f"two options of a question have one id: {ids}")


@probe("ACP-PATCH-209")
async def waiting_for_an_answer_is_a_state(trial: Trial) -> None:
    dialogue, session, question = await _asked(trial, reject)
    at = next(i for i, one in enumerate(dialogue.connection.received) if one.message is question)
    states = [one.get("state") for one in dialogue.updates(session) if one.get("sessionUpdate") == "state_update"]
    if "requires_action" not in states:
        raise RowFailed("the agent waits for an answer, and does not report requires_action")
    after = [one.get("state") for one in dialogue.updates(session, at) if one.get("sessionUpdate") == "state_update"]
    if "running" not in after:
        raise RowFailed("the agent goes on after the answer, and does not report running")

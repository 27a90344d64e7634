"""The judges of permission requests, forms and cancelling."""

from typing import Any

from dragoman.conformance.clients.judges import judge
from dragoman.conformance.clients.runs import ClientRun
from dragoman.conformance.clients.script import OPTIONS
from dragoman.conformance.connection import Message
from dragoman.conformance.verdicts import NotTested, RowFailed

_STOP = "--interrupt SIGNAL: the signal that stops a turn, or use --manual"


def _outcome(answer: Message) -> Message:
    result = answer.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    return outcome if isinstance(outcome, dict) else {}


@judge("ACP-CLIENT-601", "ACP-CLIENT-604", "ACP-CLIENT-605")
def question_is_answered(run: ClientRun) -> None:
    run.answer("permission")


@judge("ACP-CLIENT-622")
def chosen_option_was_offered(run: ClientRun) -> None:
    outcome = _outcome(run.answer("permission"))
    if outcome.get("outcome") == "selected" and outcome.get("optionId") not in [one["optionId"] for one in OPTIONS]:
        raise RowFailed(f"the option {outcome.get('optionId')!r} is chosen, and was not offered")


@judge("ACP-CLIENT-623")
def outcome_is_known(run: ClientRun) -> None:
    answer = run.answer("permission")
    if "result" in answer and _outcome(answer).get("outcome") not in ("selected", "cancelled"):
        raise RowFailed(f"the outcome {_outcome(answer).get('outcome')!r} is neither selected nor cancelled")


@judge("ACP-CLIENT-602")
def question_is_answered_once(run: ClientRun) -> None:
    run.answer("permission")
    answers = [one for one in run.agent.connection.received if "method" not in one.message]
    seen: set[str] = set()
    for message, frame in answers:
        if str(message.get("id")) in seen:
            raise RowFailed("a question is answered twice", [frame])
        seen.add(str(message.get("id")))


@judge("ACP-CLIENT-603")
def open_questions_are_all_answered(run: ClientRun) -> None:
    for name in ("first", "second"):
        run.answer(name)


@judge("ACP-CLIENT-542")
def answers_have_the_ids_of_their_questions(run: ClientRun) -> None:
    run.expect_prompt()
    for message, frame in run.agent.connection.received:
        if "method" not in message and frame.fault == "it answers no request":
            raise RowFailed("an answer has the id of no request", [frame])


@judge("ACP-CLIENT-607")
def question_without_options_allows_nothing(run: ClientRun) -> None:
    outcome = _outcome(run.answer("permission"))
    if outcome.get("outcome") == "selected":
        raise RowFailed(f"the option {outcome.get('optionId')!r} is chosen, and none was offered")


@judge("ACP-CLIENT-608")
def question_of_an_unknown_session_allows_nothing(run: ClientRun) -> None:
    if _outcome(run.answer("permission")).get("optionId") == "yes-once":
        raise RowFailed("a question of a session that does not exist is answered with an approval")


@judge("ACP-CLIENT-609")
def control_characters_are_not_printed(run: ClientRun) -> None:
    run.answer("permission")
    if not run.output:
        raise NotTested("the client prints nothing", "look at what it shows: --manual")
    for sequence in ("\x1b[2K\x1b[1A", "\x1b]0;owned"):
        if sequence in run.output:
            raise RowFailed("control sequences of the agent reach the terminal as they are")


# -- forms -------------------------------------------------------------------------------------------------------------


@judge("ACP-CLIENT-741")
def unadvertised_forms_are_refused(run: ClientRun) -> None:
    if run.can("elicitation", "form") is not None or run.can("elicitation") == {}:
        raise NotTested("the client has forms", is_unadvertised=True)
    result = run.answer("form").get("result")
    if isinstance(result, dict) and result.get("action") not in ("decline", "cancel"):
        raise RowFailed(f"a form is answered with {result.get('action')!r}, and the client has advertised no forms")


@judge("ACP-CLIENT-742")
def form_has_a_known_answer(run: ClientRun) -> None:
    result = run.answer("form").get("result")
    action = result.get("action") if isinstance(result, dict) else None
    if action not in ("accept", "decline", "cancel"):
        raise RowFailed(f"the form is answered with {action!r}")


# -- cancelling --------------------------------------------------------------------------------------------------------


def _cancels(run: ClientRun) -> list[Any]:
    run.expect_prompt()
    found = run.calls("session/cancel")
    if not found:
        raise NotTested("the client did not cancel", _STOP)
    return found


@judge("ACP-CLIENT-641")
def stopped_turn_is_cancelled(run: ClientRun) -> None:
    run.expect_prompt()
    if not run.was_interrupted:
        raise NotTested("the turn was not stopped", _STOP)
    if not run.calls("session/cancel"):
        raise RowFailed("the user stops the turn, and no session/cancel comes")


@judge("ACP-CLIENT-642")
def cancel_is_a_notification(run: ClientRun) -> None:
    for message, frame in _cancels(run):
        if "id" in message:
            raise RowFailed("session/cancel is sent as a request", [frame])


@judge("ACP-CLIENT-643")
def cancel_names_its_session(run: ClientRun) -> None:
    for message, frame in _cancels(run):
        params = message.get("params")
        if not isinstance(params, dict) or params.get("sessionId") != run.turn.session:
            raise RowFailed("session/cancel does not name the session of the turn", [frame])


@judge("ACP-CLIENT-644")
def open_questions_are_cancelled(run: ClientRun) -> None:
    cancel = _cancels(run)[0]
    answer = run.answer("permission")
    outcome = _outcome(answer)
    if outcome.get("outcome") == "cancelled":
        return
    order = [one.message for one in run.agent.connection.received]
    if order.index(answer) < order.index(cancel.message):
        raise NotTested("the client answers questions by itself, before the turn is stopped", is_unadvertised=True)
    raise RowFailed(f"the open question is answered with {outcome.get('optionId') or outcome!r} after the cancel")


@judge("ACP-CLIENT-645")
def end_of_a_cancelled_turn_is_awaited(run: ClientRun) -> None:
    _cancels(run)
    if run.agent.answers.get("before_end") is None:
        raise RowFailed("the client leaves before the cancelled turn has ended")


@judge("ACP-CLIENT-646")
def cancelled_turn_ends_before_the_next(run: ClientRun) -> None:
    _cancels(run)
    ended = run.agent.ended_at
    for prompt in run.agent.prompts[1:]:
        if ended is None or prompt.at <= ended:
            raise RowFailed("a prompt is sent before the cancelled turn has ended")

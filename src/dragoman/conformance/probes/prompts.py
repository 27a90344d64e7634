"""The turn of a prompt: accepted, reported, ended."""

import base64
from typing import Any, Final

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import update_of
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import NotTested, RowFailed

STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
_CHUNKS: Final = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
_MESSAGES: Final = (*_CHUNKS, "user_message", "agent_message", "agent_thought")
_TURN_UPDATES: Final = (*_MESSAGES, "tool_call", "tool_call_update", "tool_call_content_chunk")
# The smallest that programs take for an image and for sound.
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
_WAV: Final = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00"
    b"data\x02\x00\x00\x00\x80\x80"
).decode()


def text_block(text: str) -> Message:
    """Return a block of text."""
    return {"type": "text", "text": text}


@probe("ACP-PROMPT-001")
async def prompt_ends_with_a_reason(trial: Trial) -> None:
    _, _, end = await trial.played()
    if not isinstance(end.reason, str):
        raise RowFailed("the answer to the prompt has no stop reason")


@probe("ACP-PROMPT-501", "ACP-STATE-203")
async def stop_reason_is_known(trial: Trial) -> None:
    dialogue, session, end = await trial.played()
    may_extend = any(one.get("sessionUpdate") == "state_update" for one in dialogue.updates(session))
    if end.reason in STOP_REASONS or (may_extend and str(end.reason).startswith("_")):
        return
    raise RowFailed(f"{end.reason!r} is no stop reason")


@probe("ACP-PROMPT-201")
async def prompt_is_accepted_with_an_id(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = dialogue.prompt(session, trial.settings.prompt)
    result = (await dialogue.connection.response(turn.id)).get("result")
    if not isinstance(result, dict) or not isinstance(result.get("messageId"), str) or not result["messageId"]:
        raise RowFailed("the answer to the prompt has no messageId")


@probe("ACP-PROMPT-203")
async def prompt_is_reported(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = dialogue.prompt(session, trial.settings.prompt)
    end = await dialogue.finish(turn)
    accepted = (dialogue.connection.find_response(turn.id) or {}).get("result") or {}
    for update in dialogue.updates(session, turn.since, end.at):
        is_of_user = update.get("sessionUpdate") in ("user_message", "user_message_chunk")
        if is_of_user and update.get("messageId") == accepted.get("messageId"):
            return
    raise RowFailed("no update before the end of the turn has the user's message with its id")


@probe("ACP-PATCH-203")
async def prompts_have_ids_of_their_own(trial: Trial) -> None:
    dialogue, session = await trial.session()
    ids: list[Any] = []
    for _ in range(2):
        turn = dialogue.prompt(session, trial.settings.prompt)
        await dialogue.finish(turn)
        ids.append(((dialogue.connection.find_response(turn.id) or {}).get("result") or {}).get("messageId"))
    if ids[0] == ids[1]:
        raise RowFailed("two prompts have one messageId")


@probe("ACP-PATCH-201")
async def messages_have_ids(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    for update in dialogue.updates(session):
        if update.get("sessionUpdate") in _MESSAGES and not update.get("messageId"):
            raise RowFailed(f"a {update['sessionUpdate']} has no messageId")


@probe("ACP-STATE-201")
async def turn_runs_before_it_ends(trial: Trial) -> None:
    dialogue, session, end = await trial.played()
    states = [one.get("state") for one in dialogue.updates(session, 0, end.at) if "state" in one]
    if "running" not in states:
        raise RowFailed("the turn ends idle and was never running")


@probe("ACP-STATE-202")
async def running_turn_becomes_idle(trial: Trial) -> None:
    await trial.played()


@probe("ACP-PROMPT-002", "ACP-PROMPT-205")
async def updates_of_a_turn_are_of_its_session(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    for message, frame in dialogue.connection.received:
        if message.get("method") != "session/update":
            continue
        if message["params"].get("sessionId") != session:
            raise RowFailed("an update names a session that does not exist", [frame])
        if frame.fault:
            raise RowFailed(frame.fault, [frame])


@probe("ACP-PROMPT-502")
async def nothing_of_a_turn_comes_after_its_end(trial: Trial) -> None:
    dialogue, session, end = await trial.played()
    for message, frame in dialogue.connection.received[end.at + 1 :]:
        if update_of(message, session).get("sessionUpdate") in _TURN_UPDATES:
            raise RowFailed("an update of the turn comes after its end", [frame])


@probe("ACP-PROMPT-503")
async def session_takes_prompt_after_prompt(trial: Trial) -> None:
    dialogue, session, _ = await trial.played()
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt))


@probe("ACP-PROMPT-504")
async def prompt_that_is_text_is_refused(trial: Trial) -> None:
    dialogue, session = await trial.session()
    params = {"sessionId": session, "prompt": "hello"}
    id = dialogue.connection.ask("session/prompt", params, intent="a prompt that is text, not a list of blocks")
    if "error" not in await dialogue.connection.response(id, seconds=trial.settings.limits.turn):
        raise RowFailed("a prompt that is no list is accepted")


@probe("ACP-META-001")
async def meta_of_a_prompt_is_accepted(trial: Trial) -> None:
    dialogue, session = await trial.session()
    await dialogue.finish(dialogue.prompt(session, trial.settings.prompt, _meta={"example.org": {"a": [1]}}))


async def _expect_accepted(trial: Trial, *blocks: Message) -> None:
    dialogue, session = await trial.session()
    await dialogue.finish(dialogue.prompt(session, [text_block(trial.settings.prompt), *blocks]))


@probe("ACP-PROMPT-003")
async def links_are_accepted(trial: Trial) -> None:
    await _expect_accepted(trial, {"type": "resource_link", "uri": "file:///etc/hostname", "name": "hostname"})


@probe("ACP-PROMPTCAP-001")
async def images_are_accepted(trial: Trial) -> None:
    await _expect_accepted(trial, {"type": "image", "data": _PNG, "mimeType": "image/png"})


@probe("ACP-PROMPTCAP-002")
async def audio_is_accepted(trial: Trial) -> None:
    await _expect_accepted(trial, {"type": "audio", "data": _WAV, "mimeType": "audio/wav"})


@probe("ACP-PROMPTCAP-003")
async def embedded_files_are_accepted(trial: Trial) -> None:
    resource = {"uri": "file:///note.txt", "text": "a note", "mimeType": "text/plain"}
    await _expect_accepted(trial, {"type": "resource", "resource": resource})


@probe("ACP-TOOL-501")
async def tool_calls_are_announced(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.asking_turn(dialogue, session)
    await dialogue.end_of(turn)
    known: set[Any] = set()
    updates = dialogue.updates(session)
    for update in updates:
        if update.get("sessionUpdate") == "tool_call":
            known.add(update.get("toolCallId"))
        elif update.get("sessionUpdate") == "tool_call_update" and update.get("toolCallId") not in known:
            raise RowFailed(f"tool call {update.get('toolCallId')!r} is updated, and was never announced")
    if not known:
        raise NotTested("no tool was called", "--permission-prompt TEXT: a prompt for which this agent uses a tool")


@probe("ACP-TOOL-502")
async def tool_calls_end_with_the_turn(trial: Trial) -> None:
    dialogue, session = await trial.session()
    turn = await trial.asking_turn(dialogue, session)
    await dialogue.end_of(turn)
    status: dict[Any, Any] = {}
    for update in dialogue.updates(session):
        if str(update.get("sessionUpdate")).startswith("tool_call") and "toolCallId" in update:
            status[update["toolCallId"]] = update.get("status") or status.get(update["toolCallId"], "pending")
    if not status:
        raise NotTested("no tool was called", "--permission-prompt TEXT: a prompt for which this agent uses a tool")
    still_open = [id for id, one in status.items() if one in ("pending", "in_progress")]
    if still_open:
        raise RowFailed(f"tool call {still_open[0]!r} is {status[still_open[0]]} at the end of its turn")

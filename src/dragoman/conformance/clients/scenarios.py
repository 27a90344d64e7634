"""What our agent does in a run of a client, by name. Rows name the scenario in which they are judged.

A scenario that must not end the client does what is odd, then asks whether the client still answers.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.conformance.clients import lent
from dragoman.conformance.clients.script import (
    ALIVE_METHOD,
    NO_ANSWER,
    OPTIONS,
    Play,
    ScenarioAgent,
    ScenarioScript,
    ScriptedPrompt,
    say_hello,
)
from dragoman.conformance.connection import Message
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR

_FLOOD: Final = 2_000
# Every character of this has several bytes.
_WIDE_ID: Final = "ÄÖÜ-漢字-🙂"
_LARGE_BYTES: Final = 1024 * 1024
_UNKNOWN: Final = "what the schema does not have"
_FOREIGN_VERSION: Final = 65535
_ESCAPES: Final = "Read \x1b[2K\x1b[1Aharmless.txt\x1b]0;owned\x07"


class Scenario(NamedTuple):
    """One run. `manual` says what a person does where the client is not ours to start."""

    name: str
    script: ScenarioScript
    manual: str
    # The user stops the turn when our agent is ready for it.
    is_interrupted: bool = False
    # Our agent goes away in the middle of the turn.
    dies: bool = False


SCENARIOS: Final[dict[str, Scenario]] = {}
_ANSWER: Final = "Answer the question that is shown."


def _add(
    name: str,
    play: Play = say_hello,
    *,
    manual: str = "Send any prompt in a new session.",
    is_interrupted: bool = False,
    dies: bool = False,
    **script: Any,
) -> None:
    SCENARIOS[name] = Scenario(name, ScenarioScript(play, **script), manual, is_interrupted, dies)


_add("plain")
_add("slow_greeting", greeting_delay=0.15)
_add("other_version", answered_version=_FOREIGN_VERSION)
_add("bare", is_bare=True)
_add("early_update", speaks_early=True)
_add("stubborn", is_stubborn=True)
_add("login", refuses_sessions=AUTH_REQUIRED, login_helps=True, manual="Send any prompt; log in if you are asked to.")
_add("locked", refuses_sessions=AUTH_REQUIRED, manual="Send any prompt; log in if you are asked to.")
_add("no_session", refuses_sessions=INTERNAL_ERROR)


# -- what must not end a client ----------------------------------------------------------------------------------------


def survival(name: str) -> Callable[[Callable[[ScenarioAgent, ScriptedPrompt], None]], None]:
    """Register what our agent does in a turn that the client must survive."""

    def register(act: Callable[[ScenarioAgent, ScriptedPrompt], None]) -> None:
        async def play(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
            act(agent, prompt)
            await agent.ping()
            return await say_hello(agent, prompt)

        _add(name, play)

    return register


@survival("foreign_update")
def _foreign_update(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.update(prompt.session, {"sessionUpdate": "hologram", "depth": 3}, intent=_UNKNOWN)
    agent.update(prompt.session, {"sessionUpdate": "_example.org/note", "depth": 3})


@survival("extra_fields")
def _extra_fields(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.update(prompt.session, agent.chunk("more", somethingElse={"a": [1]}), intent=_UNKNOWN)
    agent.say(prompt.session, "meta", _meta={"example.org": {"a": [1]}})


@survival("foreign_content")
def _foreign_content(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    update = {**agent.chunk(""), "content": {"type": "hologram", "depth": 3}}
    agent.update(prompt.session, update, intent=_UNKNOWN)


@survival("foreign_note")
def _foreign_note(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.connection.notify("_example.org/note", {"a": 1})
    agent.connection.notify("$/does_not_exist", {"a": 1})
    agent.connection.notify("session/does_not_exist", {"a": 1}, intent=_UNKNOWN)


@survival("foreign_answer")
def _foreign_answer(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.connection.answer("no-such-request", {}, intent="the answer to no request")


@survival("noise")
def _noise(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.connection.send_bytes(b"INFO: loading the model\n", intent="no JSON")


@survival("array")
def _array(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.connection.send_bytes(b"[]\n", intent="an array")


@survival("blank_lines")
def _blank_lines(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.connection.write(b"\r\n\n")


@survival("one_write")
def _one_write(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    import json

    params = {"sessionId": prompt.session, "update": agent.chunk("two in one write")}
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"
    agent.connection.write(line + line)


@survival("large")
def _large(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.say(prompt.session, "x" * _LARGE_BYTES)


@survival("flood")
def _flood(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    for number in range(_FLOOD):
        agent.say(prompt.session, f"{number} ")


@survival("foreign_session")
def _foreign_session(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.say("no-such-session", "for another")


@survival("unknown_call")
def _unknown_call(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.update(prompt.session, {"sessionUpdate": "tool_call_update", "toolCallId": "unheard", "status": "completed"})


@survival("nulls")
def _nulls(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "unheard", "title": None, "content": None}
    agent.update(prompt.session, {**call, "locations": None, "status": None})


@survival("every_update")
def _every_update(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    for update in EVERY_UPDATE[agent.version]:
        agent.update(prompt.session, dict(update))


@survival("foreign_state")
def _foreign_state(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    agent.update(prompt.session, {"sessionUpdate": "state_update", "state": "_example.org/dreaming"})


@survival("foreign_options")
def _foreign_options(agent: ScenarioAgent, prompt: ScriptedPrompt) -> None:
    """Do nothing more: the options came with the session."""


def _with_options(name: str) -> None:
    option = {"id": "depth", "configId": "depth", "name": "Depth", "type": "hologram", "currentValue": 3}
    script = SCENARIOS[name].script._replace(opened={"configOptions": [option]})
    SCENARIOS[name] = SCENARIOS[name]._replace(script=script)


_with_options("foreign_options")

_TEXT: Final = {"type": "text", "text": "words"}
EVERY_UPDATE: Final[Mapping[int, tuple[Message, ...]]] = {
    1: (
        {"sessionUpdate": "user_message_chunk", "content": _TEXT},
        {"sessionUpdate": "agent_thought_chunk", "content": _TEXT},
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Think", "kind": "think", "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
        {"sessionUpdate": "plan", "entries": [{"content": "a step", "priority": "high", "status": "pending"}]},
        {"sessionUpdate": "available_commands_update", "availableCommands": []},
        {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
        {"sessionUpdate": "config_option_update", "configOptions": []},
        {"sessionUpdate": "session_info_update", "title": "A title"},
    ),
    2: (
        {"sessionUpdate": "user_message_chunk", "messageId": "u", "content": _TEXT},
        {"sessionUpdate": "agent_message", "messageId": "a", "content": [_TEXT]},
        {"sessionUpdate": "agent_thought", "messageId": "t", "content": [_TEXT]},
        {"sessionUpdate": "agent_thought_chunk", "messageId": "t", "content": _TEXT},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Think", "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
        {"sessionUpdate": "available_commands_update", "availableCommands": []},
        {"sessionUpdate": "config_option_update", "configOptions": []},
        {"sessionUpdate": "session_info_update", "title": "A title"},
    ),
}


async def _torn(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    import asyncio
    import json

    message = {"jsonrpc": "2.0", "id": _WIDE_ID, "method": ALIVE_METHOD, "params": {}}
    data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    agent.connection.expect_answer(_WIDE_ID, ALIVE_METHOD)
    start = data.index("Ä".encode()) + 1
    agent.connection.write(data[:start])
    for piece in (data[start : start + 6], data[start + 6 :]):
        await asyncio.sleep(0.005)
        agent.connection.write(piece)
    agent.is_alive = await agent.await_answer("alive", _WIDE_ID) is not None
    return await say_hello(agent, prompt)


_add("torn", _torn)


async def _late_update(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    # The next requests of the client, if any, are answered as ever; this only has to be read over.
    import asyncio

    asyncio.get_running_loop().call_soon(agent.say, prompt.session, "one more thing")
    return await say_hello(agent, prompt)


_add("late_update", _late_update)


# -- what a client is asked --------------------------------------------------------------------------------------------


async def _foreign_request(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    await agent.ask("unknown", "session/does_not_exist", {"sessionId": prompt.session}, intent=_UNKNOWN)
    await agent.ask("extension", "_example.org/question", {"a": 1})
    return await say_hello(agent, prompt)


_add("foreign_request", _foreign_request)


def asking(
    name: str, make: Callable[[ScenarioAgent, str], Message], *, intent: str = "", manual: str = _ANSWER
) -> None:
    """Register a scenario that asks for permission, with these params."""

    async def play(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
        agent.update(prompt.session, agent.call("pending"))
        params = make(agent, prompt.session)
        await agent.ask("permission", "session/request_permission", params, intent=intent, seconds=agent.limits.turn)
        agent.update(prompt.session, agent.call("completed"))
        await agent.connection.quiet()
        return await say_hello(agent, prompt)

    _add(name, play, manual=f"Send any prompt. {manual}")


def _foreign_kinds(agent: ScenarioAgent, session: str) -> Message:
    odd = {"optionId": "dream", "name": "Dream of it", "kind": "_example.org/dream"}
    return agent.question(session, options=[odd, *OPTIONS])


asking("asks", lambda agent, session: agent.question(session))
asking("asks_foreign_kind", _foreign_kinds, intent=_UNKNOWN)
asking("asks_unannounced", lambda agent, session: agent.question(session, id="unheard"))
asking("asks_nothing", lambda agent, session: agent.question(session, options=[]), intent="no options", manual="Wait.")
asking("asks_for_another", lambda agent, session: agent.question("no-such-session"), manual="Wait.")
asking("asks_hostile", lambda agent, session: agent.question(session, title=_ESCAPES))


async def _asks_twice(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    for id in ("call-1", "call-2"):
        agent.update(prompt.session, agent.call("pending", id=id))
    asked = [
        (name, agent.connection.ask("session/request_permission", agent.question(prompt.session, id=id), id=wire_id))
        for name, id, wire_id in (("first", "call-1", "question-ä"), ("second", "call-2", 9_007_199_254_740_991))
    ]
    for name, wire_id in asked:
        await agent.await_answer(name, wire_id, seconds=agent.limits.turn)
    for id in ("call-1", "call-2"):
        agent.update(prompt.session, agent.call("completed", id=id))
    return await say_hello(agent, prompt)


_add("asks_twice", _asks_twice, manual="Send any prompt. Answer both questions.")


async def _form(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    wanted = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}}
    params = {"sessionId": prompt.session, "mode": "form", "message": "A name?", "requestedSchema": wanted}
    await agent.ask("form", "elicitation/create", params, seconds=agent.limits.turn)
    return await say_hello(agent, prompt)


_add("form", _form, manual="Send any prompt. Answer the form if one is shown.")


def _lent(name: str, play: Callable[[ScenarioAgent, ScriptedPrompt], Awaitable[None]]) -> None:
    async def whole(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
        await play(agent, prompt)
        return await say_hello(agent, prompt)

    _add(name, whole, manual=f"Send any prompt, and allow what is asked. {_ANSWER}")


_lent("files", lent.play_files)
_lent("terminals", lent.play_terminals)


# -- ends --------------------------------------------------------------------------------------------------------------


async def _cancelled(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    agent.say(prompt.session, "working")
    await agent.until_cancelled()
    agent.say(prompt.session, "still on its way")
    await agent.connection.quiet()
    agent.answers["before_end"] = {} if not agent.connection.is_lost else None
    return "cancelled"


async def _cancelled_question(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    agent.update(prompt.session, agent.call("pending"))
    id = agent.connection.ask("session/request_permission", agent.question(prompt.session))
    await agent.until_cancelled()
    await agent.await_answer("permission", id)
    return "cancelled"


_STOP: Final = "Send any prompt, and stop the turn when it runs."
_add("cancelled", _cancelled, manual=_STOP, is_interrupted=True)
_add("cancelled_question", _cancelled_question, manual=f"{_STOP} Leave the question open.", is_interrupted=True)


async def _foreign_reason(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    return "out_of_cheese"


async def _prompt_error(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    error = {"code": INTERNAL_ERROR, "message": "The model cannot be reached"}
    if agent.version == 1:
        agent.connection.send({"jsonrpc": "2.0", "id": prompt.id, "error": error})
        return NO_ANSWER
    state = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn", "error": error}
    agent.update(prompt.session, state, intent="an idle state with an error")
    return NO_ANSWER


async def _late_end(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    """In version 2 the prompt was answered; its turn is not over before the session is idle."""
    await agent.connection.quiet()
    await agent.connection.quiet()
    agent.answers["before_end"] = {} if not agent.connection.is_lost else None
    return await say_hello(agent, prompt)


async def _dies(agent: ScenarioAgent, prompt: ScriptedPrompt) -> str:
    agent.say(prompt.session, "working")
    await agent.connection.quiet()
    return NO_ANSWER


_add("foreign_reason", _foreign_reason)
_add("prompt_error", _prompt_error)
_add("late_end", _late_end)
_add("dies", _dies, dies=True)

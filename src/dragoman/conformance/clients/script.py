"""Our agent, as a client meets it: it keeps to the protocol, except where the scenario of the run says otherwise.

It records everything; whether what the client did is right is judged afterwards (`judges`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.conformance import schema
from dragoman.conformance.connection import CheckConnection, CheckLimits, Message
from dragoman.conformance.frames import Frame
from dragoman.conformance.verdicts import AnswerMissing, RowFailed, SubjectGone
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.transports.contract import Transport
from dragoman.version import VERSION

AGENT_NAME: Final = "dragoman-check-agent"
ALIVE_METHOD: Final = "_example.org/alive"
# Ends the turn without an answer.
NO_ANSWER: Final = ""


class ScriptedPrompt(NamedTuple):
    """A prompt of the client; `at` counts what was received before it."""

    id: Any
    session: str
    blocks: Any
    at: int


class ScriptRefusal(Exception):
    """Our agent answers a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Play = Callable[["ScenarioAgent", ScriptedPrompt], Awaitable[str]]


async def say_hello(agent: "ScenarioAgent", prompt: ScriptedPrompt) -> str:
    """Play a short turn."""
    agent.say(prompt.session, "Hello from the agent of dragoman check.")
    return "end_turn"


class ScenarioScript(NamedTuple):
    """What differs from an agent that keeps to the protocol. Fields are for the whole connection, `play` for a turn."""

    play: Play = say_hello
    # Fields of the answer to `initialize` in place of ours, and of the answer to `session/new` beside ours.
    hello: Mapping[str, Any] | None = None
    opened: Mapping[str, Any] | None = None
    # The bare minimum of an answer to `initialize`.
    is_bare: bool = False
    answered_version: int = 0
    greeting_delay: float = 0.0
    # Errors of `session/new`: the code, and whether a login ends them.
    refuses_sessions: int = 0
    login_helps: bool = False
    # An update for the session before the client knows of it.
    speaks_early: bool = False
    # Stays when its input ends, and when it is told to end.
    is_stubborn: bool = False

    @property
    def takes_other_hello(self) -> bool:
        """Return whether the scenario is played as well by an agent that says something else of itself."""
        return self.hello is None and not (self.is_bare or self.answered_version or self.refuses_sessions)


class ScenarioAgent:
    """One connection of a client to our agent."""

    def __init__(self, transport: Transport, script: ScenarioScript, version: int, limits: CheckLimits) -> None:
        self.script: Final = script
        self.version: Final = version
        self.limits: Final = limits
        self.hello: Mapping[str, Any] = {}
        self.sessions: Final[dict[str, str]] = {}
        self.prompts: Final[list[ScriptedPrompt]] = []
        self.logins: Final[list[Any]] = []
        self.refused_sessions = 0
        # Answers to what the play has asked, by a name that its judge knows; None: none came.
        self.answers: Final[dict[str, Message | None]] = {}
        # The names of the answers that were judged last, and the frames behind each.
        self.judged: list[str] = []
        self.frames_of_answers: Final[dict[str, tuple[Frame, ...]]] = {}
        self.is_alive: bool | None = None
        self.lost_in_turn = False
        self.wants_interrupt: Final = asyncio.Event()
        self.cancelled: Final = asyncio.Event()
        self.turn_ended: Final = asyncio.Event()
        self.ended_at: int | None = None
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._is_logged_in = False
        self.faults: Final[list[str]] = []
        self.connection: Final = CheckConnection(transport, limits, lambda: "", role="client")
        self.connection.on_request = self._on_request
        self.connection.on_notification = self._on_notification

    def __repr__(self) -> str:
        return f"<ScenarioAgent version={self.version} {len(self.prompts)} prompts {self.connection!r}>"

    # -- what a play says ----------------------------------------------------------------------------------------------

    def update(self, session: str, update: Message, *, intent: str = "") -> None:
        """Send an update; `intent` says why it is wrong, if it is meant to be."""
        self.connection.notify("session/update", {"sessionId": session, "update": update}, intent=intent)

    def say(self, session: str, text: str, **more: Any) -> None:
        """Send a part of the agent's message."""
        self.update(session, self.chunk(text, **more))

    def chunk(self, text: str, **more: Any) -> Message:
        """Return an update with a part of the agent's message."""
        named = {} if self.version == schema.VERSIONS[0] else {"messageId": "answer-1"}
        content = {"type": "text", "text": text}
        return {"sessionUpdate": "agent_message_chunk", **named, "content": content, **more}

    def call(self, status: str, id: str = "call-1", **more: Any) -> Message:
        """Return an update about a tool call."""
        kind = "tool_call" if self.version == schema.VERSIONS[0] and status == "pending" else "tool_call_update"
        named = {"title": "Write a file"} if status == "pending" else {}
        return {"sessionUpdate": kind, "toolCallId": id, **named, "status": status, **more}

    def question(
        self, session: str, *, id: str = "call-1", title: str = "Write a file", options: Any = None
    ) -> Message:
        """Return the params of a permission request."""
        offered = OPTIONS if options is None else options
        call = {"toolCallId": id, "title": title}
        if self.version == schema.VERSIONS[0]:
            return {"sessionId": session, "toolCall": call, "options": offered}
        subject = {"type": "tool_call", "toolCall": call}
        return {"sessionId": session, "title": title, "subject": subject, "options": offered}

    async def ask(
        self, name: str, method: str, params: Message, *, id: Any = None, intent: str = "", seconds: float = 0
    ) -> Message | None:
        """Ask the client, keep the answer under a name, and return it; None if none came."""
        sent = self.connection.ask(method, params, id=id, intent=intent)
        return await self.await_answer(name, sent, seconds=seconds)

    async def await_answer(self, name: str, id: Any, *, seconds: float = 0) -> Message | None:
        """Wait for an answer and keep it under a name; None if none came."""
        asked = [one for one in self.connection.recording.frames if one.sender == "check"][-1:]
        try:
            self.answers[name] = await self.connection.response(id, seconds=seconds)
            came = [one.frame for one in self.connection.received if one.message is self.answers[name]]
            self.frames_of_answers[name] = (*asked, *came)
        except (AnswerMissing, SubjectGone):
            self.answers[name] = None
        return self.answers[name]

    async def ping(self) -> None:
        """Find out whether the client still reads and answers."""
        answer = await self.ask("alive", ALIVE_METHOD, {})
        self.is_alive = answer is not None

    async def until_cancelled(self) -> None:
        """Wait until the client has cancelled, or the connection is over."""
        self.wants_interrupt.set()

        def find() -> bool | None:
            return True if self.cancelled.is_set() else None

        try:
            await self.connection.until(find, "session/cancel", self.limits.answer)
        except RowFailed:
            return

    # -- messages ------------------------------------------------------------------------------------------------------

    def _on_request(self, message: Message) -> Message | None:
        method, params = str(message.get("method")), message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "initialize":
            self._spawn(self._greet(message["id"], params))
            return None
        if method == "session/prompt":
            self._prompt(message["id"], params)
            return None
        try:
            return {"result": self._serve(method, params)}
        except ScriptRefusal as refusal:
            return {"error": {"code": refusal.code, "message": refusal.message}}

    def _on_notification(self, message: Message) -> None:
        params = message.get("params")
        if message.get("method") == "session/cancel" and isinstance(params, dict):
            self.cancelled.set()

    async def _greet(self, id: Any, params: Message) -> None:
        self.hello = self.hello or params
        if self.script.greeting_delay:
            await asyncio.sleep(self.script.greeting_delay)
        asked = params.get("protocolVersion")
        agreed = self.version if isinstance(asked, int) and asked >= self.version else schema.VERSIONS[0]
        self.connection.version = agreed
        intent = ""
        if self.script.answered_version:
            agreed, intent = self.script.answered_version, "a version that does not exist"
        self.connection.answer(id, {"protocolVersion": agreed, **self._hello()}, intent=intent)

    def _hello(self) -> Message:
        first = self.version == schema.VERSIONS[0]
        if self.script.hello is not None:
            return dict(self.script.hello)
        if self.script.is_bare:
            info = {"name": AGENT_NAME, "version": VERSION}
            return {} if first else {"info": info, "capabilities": {"session": {}}}
        info = {"name": AGENT_NAME, "version": VERSION}
        logins = LOGINS[self.version] if self.script.refuses_sessions else []
        if first:
            sessions: Message = {"list": {}, "resume": {}, "close": {}}
            can = {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": sessions}
            return {"agentInfo": info, "agentCapabilities": can, "authMethods": logins}
        return {"info": info, "capabilities": {"session": {"prompt": {"image": {}}}}, "authMethods": logins}

    def _serve(self, method: str, params: Message) -> Any:
        match method:
            case "authenticate" | "auth/login":
                self.logins.append(params.get("methodId"))
                self._is_logged_in = True
                return {}
            case "session/new":
                return self._open(params)
            case "session/load" | "session/resume":
                self.sessions[str(params.get("sessionId"))] = str(params.get("cwd"))
                return {}
            case "session/list":
                return {"sessions": []}
            case "session/close" | "session/delete" | "session/set_mode":
                return {}
            case "session/set_config_option":
                return {"configOptions": []}
        raise ScriptRefusal(METHOD_NOT_FOUND, "Method not found")

    def _open(self, params: Message) -> Message:
        if self.script.refuses_sessions and not (self.script.login_helps and self._is_logged_in):
            self.refused_sessions += 1
            raise ScriptRefusal(self.script.refuses_sessions, "Authentication required")
        session = f"session-{len(self.sessions) + 1}"
        self.sessions[session] = str(params.get("cwd"))
        if self.script.speaks_early:
            self.update(session, {"sessionUpdate": "available_commands_update", "availableCommands": []})
        return {"sessionId": session, **(self.script.opened or {})}

    def _prompt(self, id: Any, params: Message) -> None:
        session = str(params.get("sessionId"))
        prompt = ScriptedPrompt(id, session, params.get("prompt"), len(self.connection.received))
        self.prompts.append(prompt)
        if session not in self.sessions:
            self.connection.send(
                {"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_PARAMS, "message": "There is no such session"}}
            )
            self.turn_ended.set()
            return
        self._spawn(self._turn(prompt))

    async def _turn(self, prompt: ScriptedPrompt) -> None:
        is_first = self.version == schema.VERSIONS[0]
        # Only the first prompt is the scenario's: a client may go on and prompt again.
        play = self.script.play if len(self.prompts) == 1 else say_hello
        if not is_first:
            self.connection.answer(prompt.id, {"messageId": f"message-{len(self.prompts)}"})
            self.update(prompt.session, {"sessionUpdate": "state_update", "state": "running"})
        reason = await play(self, prompt)
        self.lost_in_turn = self.connection.is_lost
        if reason and is_first:
            intent = "" if reason in _REASONS else "a stop reason that does not exist"
            self.connection.answer(prompt.id, {"stopReason": reason}, intent=intent)
        elif reason:
            self.update(prompt.session, {"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
        if prompt is self.prompts[0]:
            self.ended_at = len(self.connection.received)
            self.turn_ended.set()

    # -- the end -------------------------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except RowFailed:
            self.turn_ended.set()  # what the play waited for never came: the judge sees what there is
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error}")
            self.turn_ended.set()

    async def close(self) -> None:
        """End the connection, and what still runs on it."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.connection.close()


_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
OPTIONS: Final = [
    {"optionId": "yes-once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no-once", "name": "Reject", "kind": "reject_once"},
]
LOGINS: Final[Mapping[int, list[Message]]] = {
    1: [{"id": "check-login", "name": "Log in"}],
    2: [{"methodId": "check-login", "name": "Log in", "type": "agent"}],
}

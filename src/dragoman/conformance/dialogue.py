"""What every probe needs to say, in either version: greet, open a session, prompt, wait for the end, cancel.

A dialogue is one connection with the state that a client holds about it. It takes the agent's answers as they come and
raises `RowFailed` only where a probe could not go on: whether a frame is right is judged elsewhere.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.conformance import schema
from dragoman.conformance.connection import CheckConnection, CheckLimits, Message, Received, refuse_request
from dragoman.conformance.identities import CheckIdentity
from dragoman.conformance.lent_services import LentServices, ServiceRefused
from dragoman.conformance.subject import OpenedSubject
from dragoman.conformance.verdicts import NotTested, RowBlocked, RowFailed
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR
from dragoman.version import VERSION

Update = Mapping[str, Any]
CLIENT_NAME: Final = "dragoman-check"
# Where each version advertises what rows ask for. The second version has sessions as one capability.
CAPABILITIES: Final[Mapping[int, Mapping[str, tuple[str, ...]]]] = {
    1: {
        "session": (),
        "load": ("agentCapabilities", "loadSession"),
        "resume": ("agentCapabilities", "sessionCapabilities", "resume"),
        "list": ("agentCapabilities", "sessionCapabilities", "list"),
        "close": ("agentCapabilities", "sessionCapabilities", "close"),
        "delete": ("agentCapabilities", "sessionCapabilities", "delete"),
        "image": ("agentCapabilities", "promptCapabilities", "image"),
        "audio": ("agentCapabilities", "promptCapabilities", "audio"),
        "embeddedContext": ("agentCapabilities", "promptCapabilities", "embeddedContext"),
    },
    2: {
        "session": ("capabilities", "session"),
        "load": ("capabilities", "session"),
        "resume": ("capabilities", "session"),
        "list": ("capabilities", "session"),
        "close": ("capabilities", "session"),
        "delete": ("capabilities", "session", "delete"),
        "image": ("capabilities", "session", "prompt", "image"),
        "audio": ("capabilities", "session", "prompt", "audio"),
        "embeddedContext": ("capabilities", "session", "prompt", "embeddedContext"),
    },
}


class CheckedEnd(NamedTuple):
    """How a turn ended: `reason` is its stop reason, `error` the error of its prompt; `at` counts received messages."""

    reason: Any
    error: Message | None
    at: int


class CheckedTurn(NamedTuple):
    """A prompt that was sent: the id of its request, its session, and how many messages had come before."""

    id: Any
    session: str
    since: int


class Dialogue:
    """One connection, and what was said on it."""

    def __init__(
        self,
        opened: OpenedSubject,
        limits: CheckLimits,
        version: int,
        cwd: str,
        login: str = "",
        identity: CheckIdentity | None = None,
    ) -> None:
        self.opened: Final = opened
        self.limits: Final = limits
        self.version: Final = version
        self.cwd: Final = cwd
        self.login: Final = login
        # Whom this client passes for; None: it is `check`, and lends nothing.
        self.identity: Final = identity
        self.connection: Final = CheckConnection(opened.transport, limits, opened.stderr_tail)
        self.connection.on_request = self._on_request
        self.hello: Mapping[str, Any] = {}
        # Chooses the outcome for a permission request; None leaves the request open.
        self.choose: Callable[[Message], Message | None] = reject
        self._held: Final[dict[Any, Any]] = {}
        # What the greeting has offered, and what serves it.
        self._offered: Mapping[str, Any] = {}
        self._lent: Final = LentServices(cwd)
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def __repr__(self) -> str:
        return f"<Dialogue version={self.version} {self.connection!r}>"

    # -- greeting ------------------------------------------------------------------------------------------------------

    def greeting(self, version: int | None = None, capabilities: Mapping[str, Any] | None = None) -> Message:
        """Return the params of an `initialize`: of the identity, or with just these capabilities."""
        if capabilities is None and self.identity is not None:
            return {**self.identity.params, "protocolVersion": self.version if version is None else version}
        info = {"name": CLIENT_NAME, "version": VERSION}
        asked = self.version if version is None else version
        if self.version == schema.VERSIONS[0]:
            return {"protocolVersion": asked, "clientInfo": info, "clientCapabilities": dict(capabilities or {})}
        return {"protocolVersion": asked, "info": info, "capabilities": dict(capabilities or {})}

    async def initialize(self, params: Message | None = None, *, intent: str = "") -> Mapping[str, Any]:
        """Send `initialize`, return its result. Raise `RowFailed` for an error, `RowBlocked` for another version."""
        params = params or self.greeting()
        offered = params.get("clientCapabilities" if self.version == schema.VERSIONS[0] else "capabilities")
        self._offered = offered if isinstance(offered, dict) else {}
        reply = await self.connection.call("initialize", params, intent=intent)
        if not isinstance(reply.get("result"), dict):
            raise RowFailed("initialize is not answered with a result")
        self.hello = reply["result"]
        agreed = self.hello.get("protocolVersion")
        if agreed != self.version:
            raise RowBlocked(
                f"the agent answers version {agreed!r} where {self.version} is asked",
                f"check the version that it speaks: --protocol {agreed}",
            )
        self.connection.version = self.version
        return self.hello

    def advertises(self, capability: str) -> bool:
        """Return whether the agent has advertised what a row asks for."""
        return advertises(self.hello, self.version, capability)

    # -- sessions ------------------------------------------------------------------------------------------------------

    def session_params(self, **more: Any) -> Message:
        """Return the params of `session/new`."""
        return {"cwd": self.cwd, "mcpServers": [], **more}

    async def open_session(self, **more: Any) -> Mapping[str, Any]:
        """Open a session and return the result. Raise `RowBlocked` where a login is asked for, else `RowFailed`."""
        reply = await self.connection.call("session/new", self.session_params(**more))
        error = reply.get("error")
        if isinstance(error, dict) and error.get("code") == AUTH_REQUIRED and not self.login:
            raise self._login_wall()
        result = reply.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("sessionId"), str):
            raise RowFailed(f"session/new opens no session{_because(error)}")
        return result

    async def log_in(self) -> None:
        """Use the login that the user named, if any."""
        if self.login:
            method = "authenticate" if self.version == schema.VERSIONS[0] else "auth/login"
            reply = await self.connection.call(method, {"methodId": self.login}, seconds=self.limits.turn)
            if "error" in reply:
                raise RowBlocked(f"the login {self.login} fails{_because(reply['error'])}", "log in with the agent")

    def _login_wall(self) -> RowBlocked:
        methods = self.hello.get("authMethods") or []
        key = "id" if self.version == schema.VERSIONS[0] else "methodId"
        names = [str(one.get(key)) for one in methods if isinstance(one, dict)]
        offered = f", such as --login {names[0]}" if names else ""
        return RowBlocked("the agent asks for a login", f"log in with the agent's own program, or use --login{offered}")

    # -- turns ---------------------------------------------------------------------------------------------------------

    def prompt(self, session: str, content: str | list[Message], **more: Any) -> CheckedTurn:
        """Send a prompt."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        since = len(self.connection.received)
        id = self.connection.ask("session/prompt", {"sessionId": session, "prompt": blocks, **more})
        return CheckedTurn(id, session, since)

    async def end_of(self, turn: CheckedTurn) -> CheckedEnd:
        """Wait for the end of a turn."""
        return await self.connection.until(lambda: self.find_end(turn), "the end of the turn", self.limits.turn)

    def find_end(self, turn: CheckedTurn) -> CheckedEnd | None:
        """Return how a turn ended, if it has: the answer to its prompt in version 1, an idle state in version 2."""
        was_running = False
        for at, (message, _) in enumerate(self.connection.received[turn.since :], turn.since):
            if "method" not in message and message.get("id") == turn.id:
                if "error" in message:
                    return CheckedEnd(None, message["error"], at)
                if self.version == schema.VERSIONS[0]:
                    result = message.get("result")
                    return CheckedEnd(result.get("stopReason") if isinstance(result, dict) else None, None, at)
            update = update_of(message, turn.session)
            if update.get("sessionUpdate") == "state_update" and self.version != schema.VERSIONS[0]:
                was_running = was_running or update.get("state") in ("running", "requires_action")
                if update.get("state") == "idle" and (was_running or update.get("stopReason")):
                    return CheckedEnd(update.get("stopReason"), update.get("error"), at)
        return None

    async def play(self, session: str, content: str | list[Message], **more: Any) -> CheckedEnd:
        """Prompt, and wait for the end."""
        return await self.end_of(self.prompt(session, content, **more))

    async def finish(self, turn: CheckedTurn) -> CheckedEnd:
        """Wait for a turn that must end well. Raise `RowFailed` for an error."""
        end = await self.end_of(turn)
        if end.error is not None:
            raise RowFailed(f"the prompt is answered with an error{_because(end.error)}")
        return end

    def cancel(self, session: str, **more: Any) -> None:
        """Send `session/cancel`, and answer the open questions of the session as a client must."""
        self.connection.notify("session/cancel", {"sessionId": session, **more})
        for id in [id for id, asked_for in self._held.items() if asked_for == session]:
            del self._held[id]
            self.connection.answer(id, {"outcome": {"outcome": "cancelled"}})

    def answer_held(self, id: Any, answer: Message, *, intent: str) -> None:
        """Answer a question that was left open, by a result or an error that is wrong on purpose."""
        del self._held[id]
        self.connection.send({"jsonrpc": "2.0", "id": id, **answer}, intent=intent)

    # -- what has come -------------------------------------------------------------------------------------------------

    def updates(self, session: str, since: int = 0, until: int | None = None) -> list[Update]:
        """Return the updates of a session among the received messages from `since` up to `until`."""
        found = (update_of(one.message, session) for one in self.connection.received[since:until])
        return [update for update in found if update]

    def requests(self, method: str, since: int = 0) -> list[Received]:
        """Return the requests of the agent for a method."""
        return [one for one in self.connection.received[since:] if is_request(one.message, method)]

    async def until_update(self, turn: CheckedTurn, what: str, *kinds: str) -> Update | None:
        """Wait for an update of one of these kinds, or for the end of the turn: then return None."""

        def find() -> tuple[Update | None] | None:
            for update in self.updates(turn.session, turn.since):
                if not kinds or update.get("sessionUpdate") in kinds:
                    return (update,)
            return (None,) if self.find_end(turn) is not None else None

        return (await self.connection.until(find, what, self.limits.turn))[0]

    async def until_asked(self, turn: CheckedTurn) -> Received:
        """Wait for a permission request of a turn. Raise `NotTested` if the turn ends without one."""

        def find() -> tuple[Received | None] | None:
            asked = self.requests("session/request_permission", turn.since)
            return (asked[0],) if asked else (None,) if self.find_end(turn) is not None else None

        found = (await self.connection.until(find, "a permission request", self.limits.turn))[0]
        if found is None:
            raise NotTested(
                "the agent asked for no permission",
                "--permission-prompt TEXT: a prompt for which this agent asks",
            )
        return found

    def _on_request(self, message: Message) -> Message | None:
        if self._offers(str(message["method"])):
            task = asyncio.get_running_loop().create_task(self._serve(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return None
        if message["method"] == "elicitation/create" and self._offered.get("elicitation") is not None:
            return {"result": {"action": "decline"}}
        if message["method"] != "session/request_permission":
            return refuse_request(message)
        outcome = self.choose(message)
        if outcome is None:
            params = message.get("params")
            self._held[message["id"]] = params.get("sessionId") if isinstance(params, dict) else None
            return None
        return {"result": {"outcome": outcome}}

    def _offers(self, method: str) -> bool:
        """Return whether a method of files or terminals was offered."""
        files = self._offered.get("fs")
        names = {"fs/read_text_file": "readTextFile", "fs/write_text_file": "writeTextFile"}
        if method in names:
            return isinstance(files, dict) and files.get(names[method]) is True
        return method.startswith("terminal/") and self._offered.get("terminal") is True

    async def _serve(self, message: Message) -> None:
        params = message.get("params")
        try:
            result = await self._lent.serve(message["method"], params if isinstance(params, dict) else {})
        except ServiceRefused as refused:
            error = {"code": refused.code, "message": refused.message}
            self.connection.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        except (OSError, KeyError, ValueError) as error:
            failed = {"code": INTERNAL_ERROR, "message": type(error).__name__}
            self.connection.send({"jsonrpc": "2.0", "id": message["id"], "error": failed})
        else:
            self.connection.answer(message["id"], result)

    async def close(self) -> None:
        """End the connection, and the commands of terminals."""
        await self.connection.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._lent.close()


def advertises(hello: Mapping[str, Any], version: int, capability: str) -> bool:
    """Return whether the answer to `initialize` advertises a capability of `CAPABILITIES`."""
    value: Any = hello
    for key in CAPABILITIES[version][capability]:
        value = value.get(key) if isinstance(value, dict) else None
    return value is not None and value is not False


def update_of(message: Message, session: str = "") -> Update:
    """Return the update of a message, of this session or of any; empty if it has none."""
    params = message.get("params")
    if message.get("method") != "session/update" or not isinstance(params, dict):
        return {}
    if session and params.get("sessionId") != session:
        return {}
    update = params.get("update")
    return update if isinstance(update, dict) else {}


def is_request(message: Message, method: str) -> bool:
    """Return whether a message asks for this method and wants an answer."""
    return message.get("method") == method and "id" in message


def options_of(message: Message) -> list[Message]:
    """Return the options of a permission request."""
    params = message.get("params")
    options = params.get("options") if isinstance(params, dict) else None
    return [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []


def choose_kind(message: Message, *kinds: str) -> Message | None:
    """Return the outcome that selects the first option of one of these kinds, if there is one."""
    for kind in kinds:
        for option in options_of(message):
            if option.get("kind") == kind:
                return {"outcome": "selected", "optionId": option.get("optionId")}
    return None


def reject(message: Message) -> Message:
    """Choose a rejection; what offers none is cancelled."""
    return choose_kind(message, "reject_once", "reject_always") or {"outcome": "cancelled"}


def allow(message: Message) -> Message:
    """Choose an approval for this once; what offers none is cancelled."""
    return choose_kind(message, "allow_once", "allow_always") or {"outcome": "cancelled"}


def hold(message: Message) -> None:
    """Leave a permission request open."""


def _because(error: Any) -> str:
    return f": {error.get('message')} ({error.get('code')})" if isinstance(error, dict) else ""

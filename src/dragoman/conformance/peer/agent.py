"""The requests of the peer. Each switch stands where it changes what a conforming agent does."""

from collections.abc import Callable
from typing import Any, Final

from dragoman.conformance.peer.state import Message, PeerDisk, PeerSession
from dragoman.conformance.peer.turn import PeerTurn
from dragoman.conformance.peer.wire_end import PeerWire
from dragoman.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    PARSE_ERROR,
)

_OTHER_CODE: Final = -32099
_MODES: Final = ("ask", "code")
# More of a kind in one connection is too many for the peer that has a switch for it.
_MANY: Final = 50
_CONTENT: Final = ("text", "image", "audio", "resource", "resource_link")


class PeerRefusal(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PeerAgent:
    """One process of the peer."""

    def __init__(self, wire: PeerWire, disk: PeerDisk, version: int) -> None:
        self.wire: Final = wire
        self.disk: Final = disk
        self.version: Final = version
        self.is_first: Final = version == 1
        self.turns: Final[dict[str, PeerTurn]] = {}
        self.answers: Final[dict[str, Callable[[Message], None]]] = {}
        self._is_logged_in = False
        self._cancelled_while_idle: Final[set[str]] = set()
        self._methods: Final[dict[str, Callable[[Message], Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._log_in,
            "auth/login": self._log_in,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }
        wire.is_busy = lambda: bool(self.turns)
        self._opened: Final[set[str]] = set()
        self._hidden: Final[set[str]] = set()
        self._seen: Final[set[str]] = set()
        self._counted = 0
        wire.on_message, wire.on_noise, wire.on_end = self._on_message, self._on_noise, self.turns.clear

    def breaks(self, switch: str) -> bool:
        """Return whether this switch is set."""
        return self.wire.switch == switch

    def update(self, session: str, update: Message) -> None:
        """Send an update of a session."""
        self.wire.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def ask(self, method: str, params: Message, then: Callable[[Message], None]) -> None:
        """Ask the client; `then` gets its response."""
        id = f"question-{len(self.answers) + 1}"
        self.answers[id] = then
        self.wire.send({"id": id, "method": method, "params": params})

    def on_kill(self) -> None:
        """Lose what a process loses that keeps its sessions in memory."""
        if self.breaks("forgets_at_kill"):
            self.disk.sessions.clear()
        for turn in self.turns.values():
            if self.breaks("loses_turn_at_kill"):
                turn.session.history.clear()
            turn.session.is_dead = turn.session.is_dead or self.breaks("dead_after_kill")

    # -- messages ------------------------------------------------------------------------------------------------------

    def _on_noise(self) -> None:
        if self.breaks("ends_at_noise"):
            self.wire.end()
        elif not self.breaks("silent_to_noise"):
            self._error(None, PARSE_ERROR, "Parse error")

    def _on_message(self, message: Any) -> None:
        if isinstance(message, list):
            self._on_array(message)
        elif "method" not in message:
            self._on_response(message)
        elif not isinstance(message["method"], str):
            if not self.breaks("silent_to_invalid_request"):
                self._error(None, INVALID_REQUEST, "Invalid request")
        elif "id" in message:
            self._on_request(message)
        else:
            self._on_notification(message)

    def _on_array(self, messages: list[Any]) -> None:
        if messages and self.breaks("serves_batches"):
            for one in messages:
                self._on_message(one)
        elif messages or not self.breaks("silent_to_empty_array"):
            self._error(None, INVALID_REQUEST, "Invalid request")

    def _on_response(self, message: Message) -> None:
        then = self.answers.pop(str(message.get("id")), None)
        if then is not None:
            then(message)
        elif self.breaks("ends_at_unknown_response"):
            self.wire.end()

    def _on_notification(self, message: Message) -> None:
        method, params = message["method"], message.get("params", {})
        answered = {"_": "answers_notifications", "$/": "answers_protocol_notifications"}
        for start, switch in answered.items():
            if method.startswith(start) and method != "$/cancel_request" and self.breaks(switch):
                self._error(None, METHOD_NOT_FOUND, "Method not found")
        if method == "$/cancel_request" and self.breaks("answers_cancel_request"):
            self._error(None, INVALID_PARAMS, "No such request")
        if method == "$/cancel_request" and not self.breaks("ignores_cancel_request"):
            for turn in [one for one in self.turns.values() if one.id == params.get("requestId") and self.is_first]:
                turn.end("cancelled")
        if method == "session/cancel":
            self._cancel(params)
            self._counted += 1
            if self.breaks("ends_at_many_cancels") and self._counted > _MANY:
                self.wire.end()

    def _on_request(self, message: Message) -> None:
        id, method, params = message["id"], message["method"], message.get("params", {})
        if id is None and self.breaks("silent_to_null_id"):
            return
        if self.breaks("ends_at_same_ids") and str(id) in self._seen:
            self.wire.end()
            return
        self._seen.add(str(id))
        if method == "session/prompt":
            self._prompt(id, params)
            return
        serve = self._methods.get(method)
        try:
            if serve is None:
                self._unknown(id, method)
            else:
                self.reply(id, serve(params))
        except PeerRefusal as refusal:
            self._error(id, refusal.code, refusal.message)
        if method == "session/load" or "replayFrom" in params:
            self._replay(params, is_late=True)

    def _unknown(self, id: Any, method: str) -> None:
        self._counted += 1
        if self.breaks("drops_floods") and self._counted > _MANY:
            return
        if method.startswith("_") and self.breaks("silent_to_extensions"):
            return
        if self.breaks("result_for_unknown_method"):
            self.reply(id, {})
            return
        code = _OTHER_CODE if self.breaks("other_code_for_unknown_method") else METHOD_NOT_FOUND
        raise PeerRefusal(code, "Method not found")

    def reply(self, id: Any, result: Any) -> None:
        """Answer a request with a result."""
        self.wire.send({"id": self._id(id), "result": result})

    def _error(self, id: Any, code: int, message: str) -> None:
        error: Message = {"id": self._id(id), "error": {"code": code, "message": message}}
        if self.breaks("result_and_error"):
            error["result"] = None
        self.wire.send(error)

    def _id(self, id: Any) -> Any:
        if self.breaks("ids_as_text") and isinstance(id, int) and id > 1000:
            return str(id)
        if self.breaks("loses_unusual_ids") and isinstance(id, int) and id > 2**31:
            return float(id)
        return id

    # -- initialize ----------------------------------------------------------------------------------------------------

    def _initialize(self, params: Message) -> Message:
        asked = params.get("protocolVersion")
        if isinstance(asked, str) and not self.breaks("accepts_text_version"):
            raise PeerRefusal(INVALID_PARAMS, "protocolVersion is an integer")
        has_capabilities = "capabilities" in params or "clientCapabilities" in params
        refused = (
            self.breaks("initialize_fails")
            or (self.breaks("refuses_version_1") and asked == 1)
            or (self.breaks("refuses_unknown_fields") and "somethingElse" in params)
            or (self.breaks("needs_capabilities") and not has_capabilities)
        )
        if refused:
            raise PeerRefusal(INVALID_PARAMS, "Invalid params")
        hello = self._hello_of_first() if self.is_first else self._hello_of_second()
        if self.breaks("answers_other_version"):
            hello["protocolVersion"] = str(self.version)
        if (self.breaks("echoes_version") and asked == 65535) or (self.breaks("echoes_zero") and asked == 0):
            hello["protocolVersion"] = asked
        if self.breaks("no_info"):
            hello.pop("agentInfo", None)
            hello.pop("info", None)
        return hello

    def _logins(self) -> list[Message]:
        key = "id" if self.is_first else "methodId"
        login = {key: "own", "name": "Log in", **({} if self.is_first else {"type": "agent"})}
        if self.breaks("terminal_login"):
            return [{**login, "type": "terminal"}]
        if self.breaks("foreign_login_type"):
            return [{**login, "type": "hologram"}]
        if self.breaks("hello_against_schema"):
            return [{**login, "name": 7}]
        return [] if self.breaks("login_without_methods") else [login] * (2 if self.breaks("same_login_twice") else 1)

    def _hello_of_first(self) -> Message:
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "peer", "version": "1"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "sessionCapabilities": {"resume": {}, "list": {}, "close": {}, "delete": {}},
            },
            "authMethods": self._logins(),
        }

    def _hello_of_second(self) -> Message:
        marker: Any = True if self.breaks("boolean_capability") else {}
        prompt: Message = {"image": {}, "audio": {}, "embeddedContext": {}}
        return {
            "protocolVersion": 2,
            "info": {"name": "peer", "version": "1"},
            "capabilities": {"session": {"prompt": prompt, "delete": marker}},
            "authMethods": self._logins(),
        }

    def _log_in(self, params: Message) -> Message:
        self._is_logged_in = True
        return {}

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _new(self, params: Message) -> Message:
        if self.breaks("login_without_methods") or (self.breaks("wants_login") and not self._is_logged_in):
            raise PeerRefusal(AUTH_REQUIRED, "Authentication required")
        cwd = params.get("cwd")
        if cwd is None and not self.breaks("accepts_missing_folder"):
            raise PeerRefusal(INVALID_PARAMS, "cwd is missing")
        if not str(cwd).startswith("/") and cwd is not None and not self.breaks("accepts_relative_folder"):
            raise PeerRefusal(INVALID_PARAMS, "cwd is not absolute")
        lacks_servers = "mcpServers" not in params and (self.is_first or self.breaks("needs_servers"))
        if lacks_servers or ("_meta" in params and self.breaks("refuses_session_meta")):
            raise PeerRefusal(INVALID_PARAMS, "Invalid params")
        session = self.disk.open(str(cwd or "/"), id="same" if self.breaks("same_session_id") else "")
        self._opened.add(session.id)
        id = "" if self.breaks("empty_session_id") else session.id
        return {"sessionId": id, **self._settings(session)}

    def _settings(self, session: PeerSession) -> Message:
        """Return the modes and options of a session."""
        listed = [{"id": mode, "name": mode.title()} for mode in _MODES]
        current = "gone" if self.breaks("current_mode_not_offered") else session.mode
        modes = {"modes": {"currentModeId": current, "availableModes": listed}} if self.is_first else {}
        return {**modes, "configOptions": self._options(session)}

    def _options(self, session: PeerSession) -> list[Message]:
        key = "id" if self.is_first else "configId"
        choices = [{"value": mode, "name": mode.title()} for mode in _MODES]
        value = "gone" if self.breaks("value_not_offered") else session.mode
        option = {key: "mode", "name": "Mode", "type": "select", "currentValue": value, "options": choices}
        other = {**option, key: "pace", "name": "Pace", "currentValue": "ask"}
        switch = {key: "loud", "name": "Loud", "type": "boolean", "currentValue": False}
        return [option, other, *([switch] if self.breaks("boolean_option") else [])]

    def session_of(self, params: Message) -> PeerSession:
        """Return the session that params name. Raise `PeerRefusal`."""
        id = params.get("sessionId")
        if not isinstance(id, str):
            other = self.breaks("other_code_for_invalid_params")
            raise PeerRefusal(_OTHER_CODE if other else INVALID_PARAMS, "sessionId is missing")
        if id not in self.disk.sessions:
            raise PeerRefusal(NOT_FOUND, "There is no such session")
        return self.disk.sessions[id]

    def _load(self, params: Message) -> Message:
        if self.breaks("loads_unknown"):
            return {}
        session = self.session_of(params)
        self._replay(params)
        if self.breaks("grows_at_load"):
            session.history.extend(list(session.history))
        if self.breaks("keeps_last_process_only"):
            session.history.clear()
        if self.breaks("forgets_options_at_restart"):
            session.mode = _MODES[0]
        session.is_dead = session.is_dead or self.breaks("loaded_session_is_dead")
        return self._settings(session)

    def _resume(self, params: Message) -> Message:
        if "replayFrom" in params:
            return self._without_modes(self._load(params))
        if self.breaks("resume_fails"):
            raise PeerRefusal(INTERNAL_ERROR, "Internal error")
        session = self.session_of(params)
        if self.breaks("resume_replays"):
            self._replay(params)
        session.is_dead = self.breaks("resumed_session_is_dead")
        return self._settings(session)

    def _without_modes(self, settings: Message) -> Message:
        return {key: value for key, value in settings.items() if key != "modes"}

    def _replay(self, params: Message, *, is_late: bool = False) -> None:
        if is_late and not self.breaks("replays_late"):
            return
        session = self.disk.sessions.get(str(params.get("sessionId")))
        if session is None or self.breaks("loads_nothing"):
            return
        if self.breaks("mixes_sessions_at_load"):
            for other in self.disk.sessions.values():
                for update in other.history if other is not session else ():
                    self.update(session.id, update)
        history = session.history[::-1] if self.breaks("replays_backwards") else session.history
        for update in history:
            renamed = self.breaks("new_ids_in_replay") and "messageId" in update
            self.update(session.id, {**update, "messageId": f"new-{update['messageId']}"} if renamed else update)

    def _list(self, params: Message) -> Message:
        if params.get("cursor") and not self.breaks("accepts_foreign_cursor"):
            raise PeerRefusal(INVALID_PARAMS, "The cursor is not valid")
        folder = None if self.breaks("ignores_folder_of_list") else params.get("cwd")
        found = [one for one in self.disk.sessions.values() if folder in (None, one.cwd)]
        found = [one for one in found if one.id not in self._hidden]
        if self.breaks("forgets_list_at_restart"):
            found = [one for one in found if one.id in self._opened]
        relative = self.breaks("relative_folder_in_list")
        listed: Any = [{"sessionId": one.id, "cwd": one.cwd.lstrip("/") if relative else one.cwd} for one in found]
        if self.breaks("ignores_folder_of_list"):
            listed.append({"sessionId": "elsewhere", "cwd": "/elsewhere"})
        if self.breaks("list_is_no_array") or (not listed and self.breaks("null_for_empty_list")):
            listed = None
        return {"sessions": listed}

    def _close(self, params: Message) -> Message:
        session = self.session_of(params)
        if self.breaks("close_fails"):
            raise PeerRefusal(INTERNAL_ERROR, "Internal error")
        turn = self.turns.get(session.id)
        if turn is not None:
            turn.end("end_turn" if self.breaks("close_leaves_turn") else "cancelled")
        return {}

    def _delete(self, params: Message) -> Message:
        id = str(params.get("sessionId"))
        is_known = id in self.disk.sessions
        if self.breaks("delete_fails") or (not is_known and self.breaks("unknown_delete_fails")):
            raise PeerRefusal(INTERNAL_ERROR, "Internal error")
        if self.breaks("restores_deleted"):
            self._hidden.add(id)
        elif not self.breaks("lists_deleted"):
            self.disk.sessions.pop(id, None)
        return {}

    def _set_mode(self, params: Message) -> Message:
        session = self.session_of(params)
        mode = params.get("modeId")
        if self.breaks("set_mode_fails") or (mode not in _MODES and not self.breaks("accepts_foreign_mode")):
            raise PeerRefusal(INVALID_PARAMS, "There is no such mode")
        session.mode = str(mode)
        return {}

    def _set_option(self, params: Message) -> Message:
        session = self.session_of(params)
        if params.get("configId") not in ("mode", "pace") and not self.breaks("accepts_foreign_option"):
            raise PeerRefusal(INVALID_PARAMS, "There is no such option")
        if params.get("value") not in _MODES and not self.breaks("accepts_foreign_value"):
            raise PeerRefusal(INVALID_PARAMS, "There is no such value")
        if not self.breaks("forgets_option"):
            session.mode = str(params["value"])
        options = self._options(session)
        return {"configOptions": options[:1] if self.breaks("answers_part_of_options") else options}

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _prompt(self, id: Any, params: Message) -> None:
        try:
            session = self._prompted(params)
        except PeerRefusal as refusal:
            self._error(id, refusal.code, refusal.message)
            if self.breaks("ends_at_invalid_params") and refusal.code == INVALID_PARAMS:
                self.wire.end()
            return
        if self._is_ignored(session, params):
            return
        if session is None:
            self.reply(id, {"stopReason": "end_turn"} if self.is_first else {"messageId": "message-0"})
            return
        turn = PeerTurn(self, session, id, params["prompt"])
        self.turns[session.id] = turn
        turn.run(is_cancelled=session.id in self._cancelled_while_idle)

    def _is_ignored(self, session: PeerSession | None, params: Message) -> bool:
        """Return whether a switch lets a prompt go without an answer."""
        blocks = params.get("prompt")
        if self.breaks("ends_at_foreign_content") and any(one.get("type") not in _CONTENT for one in blocks or []):
            self.wire.end()
            return True
        newest = next(reversed(self.disk.sessions.values()), None)
        if self.breaks("serves_last_session_only") and session is not newest:
            return True
        return self.breaks("silent_to_empty_prompts") and blocks == []

    def _prompted(self, params: Message) -> PeerSession | None:
        """Return the session to run in, None to answer at once as a switch wants it. Raise `PeerRefusal`."""
        if self.breaks("accepts_missing_params") and not params:
            return None
        if self.breaks("prompts_unknown_session") and params.get("sessionId") == "no-such-session":
            return None
        session = self.session_of(params)
        blocks = params.get("prompt")
        if not isinstance(blocks, list):
            if self.breaks("accepts_text_prompt"):
                return None
            raise PeerRefusal(INVALID_PARAMS, "A prompt is a list")
        if session.is_dead or (self.breaks("one_turn_only") and session.prompts):
            raise PeerRefusal(INTERNAL_ERROR, "The session takes no prompts")
        refused = {"image": "images", "audio": "audio", "resource": "embedded", "resource_link": "links"}
        types = {block.get("type") for block in blocks}
        if any(kind in types and self.breaks(f"refuses_{name}") for kind, name in refused.items()):
            raise PeerRefusal(INVALID_PARAMS, "Unsupported content")
        if "_meta" in params and self.breaks("refuses_prompt_meta"):
            raise PeerRefusal(INVALID_PARAMS, "Invalid params")
        return session

    def _cancel(self, params: Message) -> None:
        if self.breaks("answers_cancel"):
            self._error(None, METHOD_NOT_FOUND, "Method not found")
        id = str(params.get("sessionId"))
        if id not in self.disk.sessions and self.breaks("ends_at_foreign_cancel"):
            self.wire.end()
        if "_meta" in params and self.breaks("ignores_cancel_with_meta"):
            self._end_all("end_turn", id)
            return
        turn = self.turns.get(id)
        if turn is None:
            known = self.disk.sessions.get(id)
            if self.breaks("ends_at_second_cancel") and known is not None and known.prompts:
                self.wire.end()
            if self.breaks("remembers_cancel"):
                self._cancelled_while_idle.add(id)
            return
        if self.breaks("cancels_all_sessions"):
            self._end_all("cancelled")
            return
        turn.cancel()

    def _end_all(self, reason: str, session: str = "") -> None:
        for id, turn in list(self.turns.items()):
            if session in ("", id):
                turn.end(reason)

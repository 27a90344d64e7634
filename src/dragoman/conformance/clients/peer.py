"""A client that keeps to the protocol, over memory, and breaks one row when a switch is set: what proves the judges.

It greets, opens one session, sends one prompt, answers what our agent asks, and ends. `lent_services` has its files
and terminals.
"""

import asyncio
import json
from typing import Any, Final

from dragoman.conformance.lent_services import LentServices, ServiceRefused
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer

Message = dict[str, Any]
_OTHER_CODE: Final = -32099
_SMALL_BYTES: Final = 256 * 1024
_FLOOD: Final = 1_000
_KNOWN: Final = frozenset(
    {
        *("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"),
        *("agent_message", "agent_thought", "user_message", "state_update", "available_commands_update"),
        *("current_mode_update", "config_option_update", "session_info_update"),
    }
)


class PeerGone(Exception):
    """The peer ends: its switch says so, or our agent is gone."""


class PeerClient:
    """One run of the client."""

    def __init__(self, transport: Transport, version: int, switch: str, folder: str, *, lends: bool = True) -> None:
        self.version: Final = version
        self.switch: Final = switch
        self.folder: Final = folder
        self._lends: Final = lends
        # Set by the subject in scenarios that stop the turn: questions stay open until then.
        self.holds_questions = False
        self._reason: Any = None
        self.output = ""
        self.lent: Final = LentServices(folder, switch)
        self.interrupted: Final = asyncio.Event()
        self._transport: Final = transport
        self._unsent: Final = WriteBuffer(transport)
        self._part = b""
        self._last_id = 0
        self._answers: Final[dict[Any, asyncio.Future[Message]]] = {}
        self._end: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._idle: Final = asyncio.Event()
        self._session = ""
        self._held: Any = None
        self._is_cancelled = False
        self._updates = 0
        self._calls: Final[set[Any]] = set()
        self._is_closed = False
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        transport.start(self)

    def breaks(self, switch: str) -> bool:
        """Return whether this switch is set."""
        return self.switch == switch

    # -- the run -------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Greet, prompt, end; return the exit code."""
        steps = asyncio.get_running_loop().create_task(self._steps())
        stop = asyncio.get_running_loop().create_task(self._stop_when_told())
        try:
            waited: set[asyncio.Future[Any]] = {steps, self._end}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if steps.done():
                return steps.result()
            if self.breaks("hangs_at_death"):
                await asyncio.Event().wait()
            return 0 if self.breaks("hides_death") else 1
        finally:
            for task in (steps, stop, *self._tasks):
                task.cancel()
            await asyncio.gather(steps, stop, *self._tasks, return_exceptions=True)
            if self._end.done() and not self._end.cancelled():
                self._end.exception()

    async def close(self) -> None:
        """End the connection, and the commands of terminals."""
        await self.lent.close()
        self._is_closed = True
        if not self.breaks("leaves_stubborn_agents"):
            await self._transport.close()

    async def _steps(self) -> int:
        hello = await self._greet()
        if hello.get("protocolVersion") != self.version and not self.breaks("uses_any_version"):
            return 1
        agent = hello.get("agentCapabilities") if self.version == 1 else hello.get("capabilities")
        if self.breaks("needs_agent_info") and not (
            isinstance(agent, dict) and (agent.get("loadSession") or agent.get("session", {}).get("prompt"))
        ):
            return 1
        if self.breaks("calls_unadvertised"):
            method = "session/list" if self.version == 1 else "session/delete"
            await self._call(method, {} if self.version == 1 else {"sessionId": "old"})
        opened = await self._open_session(hello)
        if "result" not in opened:
            if self.breaks("hangs_without_session"):
                await asyncio.Event().wait()
            if self.breaks("prompts_without_session"):
                await self._call("session/prompt", {"sessionId": "none", "prompt": [self._text("hello")]})
            return 1
        self._session = str(opened["result"]["sessionId"])
        options = opened["result"].get("configOptions") or []
        if self.breaks("ends_at_foreign_options") and any(one.get("type") == "hologram" for one in options):
            return 1
        return await self._turn()

    async def _greet(self) -> Message:
        info: Message = {} if self.breaks("no_info") else {"name": "peer", "version": "1"}
        first = self.version == 1
        params: Message = {"protocolVersion": str(self.version) if self.breaks("text_version") else self.version}
        if info:
            params["clientInfo" if first else "info"] = info
        params["clientCapabilities" if first else "capabilities"] = self._capabilities()
        if self.breaks("skips_greeting"):
            self._notify("_example.org/first", {})
        if self.breaks("prints_noise"):
            self._write(b"Loading ...\n")
        if self.breaks("asks_early"):
            self._ask("session/new", {"cwd": self.folder, "mcpServers": []})
        answer = await self._call("initialize", params)
        if self.breaks("greets_twice"):
            answer = await self._call("initialize", params)
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    def _capabilities(self) -> Message:
        forms: Message = {"elicitation": {"form": {}}} if self._lends else {}
        if self.version != 1:
            return {"elicitation": True} if self.breaks("boolean_capability") else forms
        files = {"readTextFile": self._lends, "writeTextFile": self._lends}
        return {"fs": files, "terminal": self._lends, **forms}

    async def _open_session(self, hello: Message) -> Message:
        cwd: Any = self.folder
        if self.breaks("relative_folder"):
            cwd = "project"
        if self.breaks("number_as_folder"):
            cwd = 7
        params: Message = {"cwd": cwd} if self.breaks("no_servers") else {"cwd": cwd, "mcpServers": []}
        opened = await self._call("session/new", params)
        for _ in range(4 if self.breaks("retries_for_ever") else 0):
            opened = await self._call("session/new", params)
        methods = hello.get("authMethods") or []
        error = opened.get("error")
        if methods and isinstance(error, dict) and error.get("code") == -32000:
            method = methods[0].get("id" if self.version == 1 else "methodId")
            method = "foreign-login" if self.breaks("foreign_login") else method
            await self._call("authenticate" if self.version == 1 else "auth/login", {"methodId": method})
            if not self.breaks("gives_up_after_login"):
                opened = await self._call("session/new", params)
        return opened

    async def _turn(self) -> int:
        blocks: list[Message] = [self._text("hello")]
        if self.breaks("sends_images"):
            blocks.append({"type": "image", "data": "AAAA", "mimeType": "image/png"})
        if self.breaks("empty_prompt"):
            blocks = []
        session = "unknown" if self.breaks("prompts_unknown_session") else self._session
        params = {"sessionId": session, "prompt": blocks}
        if self.breaks("prompts_twice"):
            self._ask("session/prompt", params)
        if self.breaks("same_ids"):
            self._last_id -= 1
        answer = await self._call("session/prompt", params)
        if "error" in answer:
            if self.breaks("hangs_at_error"):
                await asyncio.Event().wait()
            return 1
        if self.version != 1 and not self.breaks("leaves_at_acceptance"):
            await self._idle.wait()
        reason = (answer.get("result") or {}).get("stopReason") or self._reason
        if self.breaks("hangs_at_foreign_reason") and reason == "out_of_cheese":
            await asyncio.Event().wait()
        # What still comes behind the end is read over, as a client does that shows it.
        await asyncio.sleep(0.005)
        if self.breaks("stays_after_the_turn"):
            await asyncio.Event().wait()
        return 0

    async def _stop_when_told(self) -> None:
        await self.interrupted.wait()
        if self.breaks("never_cancels"):
            self._leave()
            return
        self._is_cancelled = True
        params: Message = {} if self.breaks("cancel_without_session") else {"sessionId": self._session}
        if self.breaks("cancel_as_request"):
            self._ask("session/cancel", params)
        else:
            self._notify("session/cancel", params)
        if self._held is not None:
            self._answer_question(self._held, {"outcome": "cancelled"})
        if self.breaks("prompts_after_cancel"):
            self._ask("session/prompt", {"sessionId": self._session, "prompt": [self._text("next")]})
        if self.breaks("leaves_at_cancel") and not self._end.done():
            self._end.set_result(None)
            await self._transport.close()

    @staticmethod
    def _text(text: str) -> Message:
        return {"type": "text", "text": text}

    # -- sending -------------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        self._unsent.write(data)

    def _send(self, message: Message) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _ask(self, method: str, params: Message) -> int:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def _notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    async def _call(self, method: str, params: Message) -> Message:
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[self._ask(method, params)] = future
        return await future

    # -- receiving -----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        if self.breaks("loses_torn_characters"):
            data = data.decode(errors="ignore").encode()
        *lines, self._part = (self._part + data).split(b"\n")
        if self.breaks("ends_at_large_messages") and len(self._part) > _SMALL_BYTES:
            self._leave()
        if self.breaks("ends_at_second_message") and lines and len(set(lines)) < len(lines):
            self._leave()
        for line in lines:
            self._on_line(line)

    def writable(self) -> None:
        self._unsent.writable()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._end.done():
            self._end.set_result(None)

    def _leave(self) -> None:
        """End, as a client does that cannot go on."""
        self._transport.close_writing()
        if not self._end.done():
            self._end.set_result(None)

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            if self.breaks("ends_at_blank_lines"):
                self._leave()
            return
        try:
            message = json.loads(line)
        except ValueError:
            if self.breaks("ends_at_noise") or self.breaks("loses_torn_characters"):
                self._leave()
            return
        if not isinstance(message, dict):
            if self.breaks("ends_at_array"):
                self._leave()
        elif "method" not in message:
            self._on_answer(message)
        elif "id" in message:
            self._on_request(message)
        else:
            self._on_note(message)

    def _on_answer(self, message: Message) -> None:
        future = self._answers.pop(message.get("id"), None)
        if future is not None and not future.done():
            future.set_result(message)
        elif future is None and self.breaks("ends_at_foreign_answer") and message.get("id") == "no-such-request":
            self._leave()

    def _on_note(self, message: Message) -> None:
        if message["method"] != "session/update":
            if self.breaks("ends_at_foreign_note"):
                self._leave()
            if self.breaks("answers_notes"):
                self._send({"id": None, "error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}})
            return
        params = message["params"]
        update = params["update"]
        if self._is_left_at(params, update):
            self._leave()
        if update.get("state") == "idle":
            self._reason = update.get("stopReason")
            self._idle.set() if "error" not in update or not self.breaks("hangs_at_error") else None

    def _is_left_at(self, params: Message, update: Message) -> bool:
        """Return whether the switch is one that ends the client at this update."""
        kind, id = update.get("sessionUpdate"), update.get("toolCallId")
        self._updates += 1
        is_new = id is not None and id not in self._calls
        if id is not None and (kind == "tool_call" or update.get("title")):
            self._calls.add(id)
        content = update.get("content")
        left = {
            "ends_at_foreign_update": kind not in _KNOWN,
            "ends_at_extra_fields": "somethingElse" in update,
            "ends_at_foreign_content": isinstance(content, dict) and content.get("type") == "hologram",
            "ends_at_flood": self._updates > _FLOOD,
            "ends_at_foreign_session": bool(self._session) and params.get("sessionId") != self._session,
            "ends_at_unknown_call": kind == "tool_call_update" and is_new and not update.get("title"),
            "ends_at_nulls": "title" in update and update["title"] is None,
            "ends_at_thoughts": kind in ("agent_thought", "agent_thought_chunk"),
            "ends_at_foreign_state": kind == "state_update" and str(update.get("state")).startswith("_"),
            "ends_at_early_update": not self._session,
            "ends_at_late_update": isinstance(content, dict) and content.get("text") == "one more thing",
        }
        return left.get(self.switch, False)

    # -- requests of our agent -----------------------------------------------------------------------------------------

    def _on_request(self, message: Message) -> None:
        method = message["method"]
        if method == "session/request_permission":
            self._on_question(message)
        elif self.version == 1 and (
            self._serves(method, "fs/", "files") or self._serves(method, "terminal/", "terminals")
        ):
            self._spawn(self._serve(message))
        elif self._serves(method, "elicitation/", "forms"):
            actions = {"foreign_form_action": "perhaps", "serves_unadvertised_forms": "accept"}
            action = actions.get(self.switch, "decline")
            self._send({"id": message["id"], "result": {"action": action}})
        elif method.startswith("_") and self.breaks("silent_to_extensions") and "question" in method:
            return
        elif self.breaks("result_for_unknown"):
            self._send({"id": message["id"], "result": {}})
        else:
            code = _OTHER_CODE if self.breaks("other_code_for_unknown") else METHOD_NOT_FOUND
            self._send({"id": message["id"], "error": {"code": code, "message": "Method not found"}})

    def _serves(self, method: str, start: str, what: str) -> bool:
        return method.startswith(start) and (self._lends or self.breaks(f"serves_unadvertised_{what}"))

    def _on_question(self, message: Message) -> None:
        params, id = message["params"], message["id"]
        options = params.get("options") or []
        call = (params.get("toolCall") or params.get("subject", {}).get("toolCall") or {}).get("toolCallId")
        if self.breaks("ends_at_foreign_kind") and any(str(one.get("kind")).startswith("_") for one in options):
            self._leave()
            return
        if self.breaks("ends_at_unannounced") and call not in self._calls:
            self._leave()
            return
        title = str(params.get("title") or params.get("toolCall", {}).get("title"))
        self.output += title if self.breaks("prints_escapes") else title.replace("\x1b", "")
        if self.breaks("silent_to_questions") or (self.breaks("answers_first_question") and call == "call-2"):
            return
        if self.holds_questions:
            self._held = id
            return
        self._answer_question(id, self._choose(params, options))

    def _choose(self, params: Message, options: list[Message]) -> Message:
        if self.breaks("invents_options"):
            return {"outcome": "selected", "optionId": "whatever"}
        if self.breaks("foreign_outcome"):
            return {"outcome": "perhaps"}
        wanted = "allow_once" if self.breaks("allows_for_any_session") else "reject_once"
        for option in options:
            if option.get("kind") == wanted:
                return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def _answer_question(self, id: Any, outcome: Message) -> None:
        if self._is_cancelled and self.breaks("allows_after_cancel"):
            outcome = {"outcome": "selected", "optionId": "yes-once"}
        answer = {"id": str(id) if self.breaks("ids_as_text") else id, "result": {"outcome": outcome}}
        self._send(answer)
        if self.breaks("answers_questions_twice"):
            self._send(answer)

    async def _serve(self, message: Message) -> None:
        params = message["params"]
        try:
            if params.get("sessionId") != self._session and not self.breaks("reads_for_any_session"):
                raise ServiceRefused(INVALID_PARAMS, "There is no such session")
            result = await self.lent.serve(message["method"], params)
        except ServiceRefused as refused:
            self._send({"id": message["id"], "error": {"code": refused.code, "message": refused.message}})
        else:
            self._send({"id": message["id"], "result": result})

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

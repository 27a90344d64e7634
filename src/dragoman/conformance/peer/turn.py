"""What the peer does with a prompt, in either version."""

from typing import TYPE_CHECKING, Any, Final

from dragoman.conformance.peer.state import Message, PeerSession

if TYPE_CHECKING:
    from dragoman.conformance.peer.agent import PeerAgent

_CALL: Final = "call-1"
_OPTIONS: Final = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


def _address(session: str) -> Message:
    """Return the params of a question that shows an address."""
    shown = {"url": "https://example.org/login", "elicitationId": "e1", "message": "Log in"}
    return {"sessionId": session, "mode": "url", **shown}


class PeerTurn:
    """One turn: `run` plays it up to where it waits, `cancel` and the answer to its question end it."""

    def __init__(self, agent: "PeerAgent", session: PeerSession, id: Any, blocks: list[Message]) -> None:
        self.agent: Final = agent
        self.session: Final = session
        self.id: Final = id
        self.text: Final = " ".join(str(block.get("text", "")) for block in blocks)
        self.blocks: Final = blocks
        self.message: Final = "message-1" if agent.breaks("same_message_id") else f"message-{session.prompts + 1}"
        self._is_over = False

    def __repr__(self) -> str:
        return f"<PeerTurn of {self.session.id} over={self._is_over}>"

    def run(self, *, is_cancelled: bool) -> None:
        """Play the turn. `is_cancelled` is a switch: a cancel that came before it counts."""
        self._accept()
        if is_cancelled:
            self.end("cancelled")
        elif "ask" in self.text:
            self._ask()
        elif "slow" in self.text:
            self._begin_slowly()
        else:
            self._play()

    def cancel(self) -> None:
        """End the turn as the client wants it."""
        breaks = self.agent.breaks
        if breaks("loses_early_cancel") and self.session.prompts == 1 and not self._has_worked():
            self.end("end_turn")
        elif breaks("asks_on_after_cancel") and "ask" in self.text:
            return  # the answer to its question ends it
        elif breaks("cancel_is_an_error"):
            self._fail()
        else:
            self.end("end_turn" if breaks("ignores_cancel") else "cancelled")

    def end(self, reason: str) -> None:
        """End the turn, once."""
        if self._is_over:
            return
        breaks = self.agent.breaks
        self._is_over = True
        self.agent.turns.pop(self.session.id, None)
        if breaks("foreign_stop_reason") and reason == "end_turn":
            reason = "all_done"
        if self.agent.is_first:
            self.agent.reply(self.id, {} if breaks("prompt_without_reason") else {"stopReason": reason})
        elif not breaks("never_idle"):
            self._tell({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
        if breaks("updates_after_end") or (breaks("updates_after_cancel") and reason == "cancelled"):
            self._say("one more thing")
            self._state("running")
        if breaks("stuck_after_cancel") and reason == "cancelled":
            self.session.is_dead = True

    # -- the parts of a turn -------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        self.session.prompts += 1
        if not self.agent.is_first:
            self.agent.reply(self.id, {} if self.agent.breaks("prompt_without_id") else {"messageId": self.message})
        if not self.agent.breaks("hides_user_message"):
            self._keep(self._chunk("user_message_chunk", self.text), is_sent=not self.agent.is_first)
        if not self.agent.breaks("never_running"):
            self._state("running")

    def _play(self) -> None:
        breaks = self.agent.breaks
        self._break_bytes()
        self._break_requests()
        self._break_updates()
        if breaks("one_turn_at_a_time") and len(self.agent.turns) > 1:
            return
        self._say("hello")
        self._say(" there")
        self.end("end_turn")

    def _begin_slowly(self) -> None:
        # The first words wait until the loop turns: a cancel right behind its prompt comes before them.
        import asyncio

        asyncio.get_running_loop().call_later(0.005, self._say_slowly)

    def _say_slowly(self) -> None:
        if not self._is_over and self.agent.turns.get(self.session.id) is self:
            self._say("one")

    def _ask(self) -> None:
        breaks = self.agent.breaks
        kind = "tool_call" if self.agent.is_first and not breaks("updates_unknown_call") else "tool_call_update"
        announced = {"sessionUpdate": kind, "toolCallId": _CALL, "title": "Write a file", "status": "pending"}
        self._tell(announced)
        if breaks("replays_open_calls"):
            self._keep(announced, is_sent=False)
        options: list[Message] = [] if breaks("question_without_options") else [dict(one) for one in _OPTIONS]
        if breaks("same_option_ids"):
            options = [{**one, "optionId": "same"} for one in options]
        call = {"toolCallId": _CALL, "title": "Write a file"}
        asked: Message = {"sessionId": self.session.id, "options": options}
        if self.agent.is_first:
            asked["toolCall"] = call
        else:
            asked |= {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
            if not breaks("never_requires_action"):
                self._state("requires_action")
        self.agent.ask("session/request_permission", asked, self._on_answer)

    def _on_answer(self, response: Message) -> None:
        if self._is_over:
            return
        if not self.agent.breaks("never_requires_action"):
            self._state("running")
        is_run = self._is_approval(response)
        if not self.agent.breaks("leaves_calls_open"):
            status = "completed" if is_run else "failed"
            self._tell({"sessionUpdate": "tool_call_update", "toolCallId": _CALL, "status": status})
        self._say("done" if is_run else "not done")
        self.end("end_turn")

    def _is_approval(self, response: Message) -> bool:
        """Return whether an answer allows the call; every other answer is a no, except for a switch."""
        breaks = self.agent.breaks
        result = response.get("result")
        if not isinstance(result, dict):
            return breaks("runs_after_error")
        outcome = result.get("outcome", {})
        if outcome.get("outcome") == "cancelled":
            return breaks("runs_cancelled")
        if outcome.get("outcome") != "selected":
            return breaks("runs_unknown_outcome")
        chosen = outcome.get("optionId")
        if chosen == "allow":
            return not breaks("ignores_approval")
        return breaks("runs_rejected") if chosen == "reject" else breaks("runs_unknown_option")

    # -- switches of an ordinary turn ----------------------------------------------------------------------------------

    def _break_bytes(self) -> None:
        if self.agent.breaks("prints_noise"):
            self.agent.wire.send_line(b"INFO: thinking")
        if self.agent.breaks("prints_latin_1"):
            self.agent.wire.send_line(b'{"jsonrpc":"2.0","method":"_example.org/note","params":{"text":"\xfc"}}')

    def _break_requests(self) -> None:
        breaks, session = self.agent.breaks, self.session.id
        asked: dict[str, tuple[str, Message]] = {
            "uses_files": ("fs/read_text_file", {"sessionId": session, "path": "/etc/hostname"}),
            "writes_files": ("fs/write_text_file", {"sessionId": session, "path": "/nowhere/a", "content": "a"}),
            "shows_addresses": ("elicitation/create", _address(session)),
            "uses_terminals": ("terminal/create", {"sessionId": session, "command": "true"}),
            "uses_forms": ("elicitation/create", {"sessionId": session, "message": "Name?", "mode": "form"}),
            "foreign_method": ("session/guess", {"sessionId": session}),
        }
        for switch, (method, params) in asked.items():
            if breaks(switch):
                self.agent.ask(method, params, lambda _: None)

    def _break_updates(self) -> None:
        breaks = self.agent.breaks
        if breaks("update_against_schema"):
            self._tell({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text"}})
        if breaks("foreign_variant"):
            self._tell({"sessionUpdate": "hologram", "depth": 3})
        if breaks("meta_as_text"):
            self._tell({**self._chunk("agent_message_chunk", "x"), "_meta": "text"})
        if breaks("foreign_session_in_updates"):
            self.agent.update("session-of-another", self._chunk("agent_message_chunk", "x"))
        if breaks("leaks_sessions"):
            for other in self.agent.disk.sessions:
                self.agent.update(other, self._chunk("agent_message_chunk", "x"))

    # -- what is sent --------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._keep(self._chunk("agent_message_chunk", text))

    def _chunk(self, kind: str, text: str) -> Message:
        of_user = kind == "user_message_chunk"
        id = self.message if of_user else f"answer-{self.session.prompts}"
        named = {} if self.agent.is_first or self.agent.breaks("messages_without_id") else {"messageId": id}
        return {"sessionUpdate": kind, **named, "content": {"type": "text", "text": text}}

    def _keep(self, update: Message, *, is_sent: bool = True) -> None:
        self.session.history.append(update)
        if is_sent:
            self._tell(update)

    def _tell(self, update: Message) -> None:
        self.agent.update(self.session.id, update)

    def _state(self, state: str) -> None:
        if not self.agent.is_first:
            self._tell({"sessionUpdate": "state_update", "state": state})

    def _has_worked(self) -> bool:
        return any(one["sessionUpdate"] != "user_message_chunk" for one in self.session.history)

    def _fail(self) -> None:
        self._is_over = True
        self.agent.turns.pop(self.session.id, None)
        if self.agent.is_first:
            self.agent.wire.send({"id": self.id, "error": {"code": -32603, "message": "Aborted"}})
        else:
            error = {"code": -32603, "message": "Aborted"}
            self._tell({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn", "error": error})

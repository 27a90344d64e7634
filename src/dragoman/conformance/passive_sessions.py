"""Judge what the messages of a recorded connection mean in their sessions: what was asked of whom, and when.

A judge of a recording knows less than a peer: it does not know when a side read what the other had sent. So a row is
held only against what no timing can excuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dragoman.conformance.dialogue import CAPABILITIES, advertises
from dragoman.trace.exchanges import Exchange
from dragoman.trace.records import TO_AGENT, TraceFrame

if TYPE_CHECKING:
    from dragoman.conformance.passive import FindingLog

_OPENING: Final = ("session/new", "session/load", "session/resume", "session/fork")
# Updates that belong to a turn, or to the replay of one.
_OF_TURN: Final = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
# Which capability a method asks for, by the names of `CAPABILITIES`; a version that has no such name asks for none.
_METHODS: Final = {
    "session/load": "load",
    "session/list": "list",
    "session/resume": "resume",
    "session/close": "close",
    "session/delete": "delete",
}
_CONTENT: Final = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_UNFINISHED: Final = ("pending", "in_progress")


@dataclass(slots=True)
class _JudgedSession:
    """What is known of a session. `prompts` are those that have no answer, `calls` tool calls by their last status."""

    prompts: set[int] = field(default_factory=set)
    had_turn: bool = False
    opened_by: str = ""
    is_replaying: bool = False
    was_replayed: bool = False
    is_running: bool = False
    was_cancelled: bool = False
    calls: dict[str, str] = field(default_factory=dict)
    questions: list[Exchange] = field(default_factory=list)


class SessionsJudge:
    """Judges the sessions of one connection. `client` and `agent` are what both have said of themselves."""

    def __init__(self, log: "FindingLog") -> None:
        self.client: Mapping[str, Any] = {}
        self.agent: Mapping[str, Any] = {}
        self._log = log
        self._version = 0
        self._sessions: dict[str, _JudgedSession] = {}
        self._opened: set[str] = set()
        self._strangers: dict[str, TraceFrame] = {}

    def __repr__(self) -> str:
        return f"<SessionsJudge sessions={len(self._sessions)}>"

    def read(self, exchange: Exchange, version: int) -> None:
        """Judge a message of a connection that has agreed on a version."""
        self._version = version
        of_client = exchange.frame.direction == TO_AGENT
        match exchange.kind, of_client:
            case "request", True:
                self._read_asked(exchange)
            case "request", False:
                self._read_question(exchange)
            case "response", False:
                self._read_answer(exchange)
            case "response", True:
                self._read_decision(exchange)
            case "notification", True:
                self._read_cancel(exchange)
            case "notification", False:
                self._read_update(exchange)

    def end(self) -> None:
        """Judge what can only be judged when everything was read."""
        for id, frame in self._strangers.items():
            if id not in self._opened:
                self._log.note("ACP-SESSION-520", frame, f"session {id} was not opened on this connection")

    def _session(self, id: str) -> _JudgedSession:
        return self._sessions.setdefault(id, _JudgedSession())

    # -- what the client asks ----------------------------------------------------------------------------------------

    def _read_asked(self, exchange: Exchange) -> None:
        capability = _METHODS.get(exchange.method, "")
        if capability in CAPABILITIES[self._version]:
            reason = f"the agent has not advertised {capability!r}"
            self._log.expect(self._agent_has(capability), "ACP-CLIENT-516", exchange.frame, reason)
        session = self._session(exchange.session) if exchange.session else _JudgedSession()
        if exchange.method in ("session/load", "session/resume"):
            session.is_replaying, session.was_replayed, session.opened_by = True, False, exchange.method
            session.calls.clear()
        if exchange.method == "session/prompt":
            self._read_prompt(exchange, session)

    def _read_prompt(self, exchange: Exchange, session: _JudgedSession) -> None:
        frame, log = exchange.frame, self._log
        known = exchange.session in self._opened
        log.expect(known, "ACP-CLIENT-523", frame, f"session {exchange.session} was not opened on this connection")
        if self._is_first_version:
            log.expect(not session.prompts, "ACP-CLIENT-531", frame, "another prompt of this session has no answer yet")
        blocks = exchange.params.get("prompt")
        for block in blocks if isinstance(blocks, list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if isinstance(kind, str) and kind in _CONTENT:
                reason = f"the agent has not advertised {_CONTENT[kind]!r}"
                log.expect(self._agent_has(_CONTENT[kind]), "ACP-CLIENT-518", frame, reason)
        session.prompts.add(id(exchange))
        session.had_turn, session.opened_by, session.was_cancelled = True, "", False
        session.calls.clear()

    def _read_cancel(self, exchange: Exchange) -> None:
        if exchange.method == "session/cancel" and exchange.session in self._sessions:
            session = self._sessions[exchange.session]
            session.was_cancelled = bool(session.prompts) or session.is_running

    def _read_decision(self, exchange: Exchange) -> None:
        """Judge the client's answer to a question of the agent."""
        request = exchange.request
        if request is None or request.method != "session/request_permission":
            return
        session = self._session(request.session)
        was_open = request in session.questions
        if was_open:
            session.questions.remove(request)
        outcome = exchange.result.get("outcome")
        if not isinstance(outcome, dict):
            return
        is_chosen = outcome.get("outcome") == "selected"
        if session.was_cancelled and was_open:
            reason = "an option is chosen after the turn was cancelled"
            self._log.expect(not is_chosen, "ACP-CLIENT-644", exchange.frame, reason)
        elif is_chosen:
            reason = f"{outcome.get('optionId')!r} was not offered"
            offered = outcome.get("optionId") in _option_ids(request)
            self._log.expect(offered, "ACP-CLIENT-622", exchange.frame, reason)

    # -- what the agent says -----------------------------------------------------------------------------------------

    def _read_answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None:
            return
        if request.method in _OPENING and "result" in exchange.message:
            opened = exchange.result.get("sessionId")
            self._opened.update(one for one in (opened, request.session) if isinstance(one, str) and one)
        session = self._sessions.get(request.session)
        if session is None:
            return
        if request.method in ("session/load", "session/resume"):
            session.is_replaying = False
            self._judge_replay(exchange, session)
        if request.method == "session/prompt":
            session.prompts.discard(id(request))
            if self._is_first_version:
                self._judge_end(exchange, session)

    def _judge_replay(self, exchange: Exchange, session: _JudgedSession) -> None:
        if not self._is_first_version or "result" not in exchange.message:
            return
        if exchange.method == "session/load" and session.had_turn:
            reason = "it had turns, and nothing was replayed before this answer"
            self._log.expect(session.was_replayed, "ACP-LOAD-520", exchange.frame, reason)
        if exchange.method == "session/resume":
            self._log.sees("ACP-RESUME-502")

    def _judge_end(self, exchange: Exchange, session: _JudgedSession) -> None:
        if session.was_cancelled:
            is_result = "result" in exchange.message
            self._log.expect(is_result, "ACP-CANCEL-501", exchange.frame, "the cancelled prompt is an error")
        if not session.prompts:
            self._judge_calls(exchange.frame, session)
            session.was_cancelled = False

    def _judge_calls(self, frame: TraceFrame, session: _JudgedSession) -> None:
        if session.calls:
            unfinished = sorted(call for call, status in session.calls.items() if status in _UNFINISHED)
            self._log.expect(not unfinished, "ACP-TOOL-502", frame, f"unfinished: {', '.join(unfinished)[:200]}")

    def _read_question(self, exchange: Exchange) -> None:
        frame, method = exchange.frame, exchange.method
        capabilities = self.client.get("clientCapabilities" if self._is_first_version else "capabilities")
        lent = capabilities if isinstance(capabilities, dict) else {}
        if method == "session/request_permission":
            self._session(exchange.session).questions.append(exchange)
            ids = _option_ids(exchange)
            self._log.expect(len(set(ids)) == len(ids), "ACP-PERM-508", frame, "two options have one id")
        elif method == "elicitation/create":
            row = "ACP-CLIENTCAP-003" if self._is_first_version else "ACP-CLIENTCAP-201"
            self._log.expect(lent.get("elicitation"), row, frame, "the client shows no forms")
        elif self._is_first_version and method.startswith("fs/"):
            wanted = "readTextFile" if method == "fs/read_text_file" else "writeTextFile"
            files = lent.get("fs")
            is_lent = isinstance(files, dict) and files.get(wanted) is True
            self._log.expect(is_lent, "ACP-CLIENTCAP-001", frame, f"the client lends no {wanted}")
        elif self._is_first_version and method.startswith("terminal/"):
            self._log.expect(lent.get("terminal") is True, "ACP-CLIENTCAP-002", frame, "the client lends no terminals")

    def _read_update(self, exchange: Exchange) -> None:
        if exchange.method != "session/update" or not exchange.session:
            return
        self._log.sees("ACP-SESSION-520")
        if exchange.session not in self._opened:
            self._strangers.setdefault(exchange.session, exchange.frame)
        session = self._session(exchange.session)
        update = exchange.params.get("update")
        self._read_call(exchange, session, update if isinstance(update, dict) else {})
        if exchange.update in _OF_TURN and self._is_first_version:
            self._judge_place(exchange, session)
        if exchange.update == "state_update" and not self._is_first_version:
            self._read_state(exchange, session, update if isinstance(update, dict) else {})

    def _judge_place(self, exchange: Exchange, session: _JudgedSession) -> None:
        """Judge whether an update of a turn comes in one, or in a replay."""
        frame, log = exchange.frame, self._log
        if session.is_replaying:
            session.was_replayed = True
            is_load = session.opened_by == "session/load"
            log.expect(is_load, "ACP-LOAD-502" if is_load else "ACP-RESUME-502", frame, "it replays, though it resumes")
        elif session.opened_by and not session.prompts:
            log.note("ACP-LOAD-502", frame, f"{exchange.update} comes after the answer to {session.opened_by}")
        elif session.had_turn:
            log.expect(session.prompts, "ACP-PROMPT-502", frame, f"{exchange.update} comes when no turn runs")

    def _read_state(self, exchange: Exchange, session: _JudgedSession, update: Mapping[str, Any]) -> None:
        state = update.get("state")
        if state == "idle" and isinstance(update.get("stopReason"), str) and not session.is_replaying:
            self._log.expect(session.is_running, "ACP-STATE-201", exchange.frame, "it was not reported as running")
            self._judge_calls(exchange.frame, session)
            session.was_cancelled = False
        session.is_running = state in ("running", "requires_action")

    def _read_call(self, exchange: Exchange, session: _JudgedSession, update: Mapping[str, Any]) -> None:
        call = update.get("toolCallId")
        if not isinstance(call, str) or exchange.update not in ("tool_call", "tool_call_update"):
            return
        if exchange.update == "tool_call_update" and self._is_first_version:
            self._log.expect(call in session.calls, "ACP-TOOL-501", exchange.frame, f"{call} was not announced")
        status = update.get("status")
        default = session.calls.get(call, "pending")
        session.calls[call] = status if isinstance(status, str) else default

    # -- small steps -------------------------------------------------------------------------------------------------

    @property
    def _is_first_version(self) -> bool:
        return self._version == min(CAPABILITIES)

    def _agent_has(self, capability: str) -> bool:
        return advertises(self.agent, self._version, capability)


def _option_ids(question: Exchange) -> list[Any]:
    options = question.params.get("options")
    return [one.get("optionId") for one in options if isinstance(one, dict)] if isinstance(options, list) else []

"""Judge a recorded conversation: what both sides said, read again without asking either of them anything.

Each connection of a recording has a judge, who is handed its frames in order. This module judges what every frame is
(a message, of the schema, an answer to something); `passive_sessions` judges what it means in its session. A row that
nothing in the recording is about was not seen, and is no pass.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from dragoman.conformance import schema
from dragoman.conformance.rows import Requirement, parse_rows
from dragoman.trace.exchanges import Exchange, Exchanges, id_key
from dragoman.trace.records import TO_AGENT, TO_CLIENT, TraceFrame

# Beyond this a recording is one long mistake; the rest is counted.
_MOST_FINDINGS: Final = 10_000


class PassiveFinding(NamedTuple):
    """A row that a frame breaks; `line` is where the frame stands in its file."""

    row: Requirement
    frame: TraceFrame
    reason: str

    @property
    def line(self) -> int:
        """Return the line of the frame in its file."""
        return self.frame.line


class PassiveReport(NamedTuple):
    """What was found in a recording. `versions` are those that its connections agreed on, in their order."""

    findings: tuple[PassiveFinding, ...]
    seen: frozenset[str]
    versions: tuple[int, ...]
    more: int = 0

    def counted(self, *, strict: bool = False) -> list[PassiveFinding]:
        """Return the findings for which a recording does not conform."""
        tiers = ("must", "must-if-advertised", *(("should",) if strict else ()))
        return [one for one in self.findings if one.row.tier in tiers]

    def unseen(self) -> list[Requirement]:
        """Return the rows of these versions that nothing was about."""
        rows = [row for row in trace_rows() if set(row.versions) & set(self.versions)]
        return [row for row in rows if row.id not in self.seen]


@cache
def trace_rows() -> tuple[Requirement, ...]:
    """Return the rows that a recording is judged by."""
    text = files(__package__).joinpath("trace_rows.toml").read_text(encoding="utf-8")
    # Rows of both sides; the ids say whose.
    return parse_rows(tomllib.loads(text), "agent")


def judge_trace(frames: Iterable[TraceFrame]) -> PassiveReport:
    """Judge the connections of a recording."""
    log = FindingLog()
    connections: dict[str, _ConnectionJudge] = {}
    for frame in frames:
        judge = connections.get(frame.connection)
        if judge is None:
            judge = connections[frame.connection] = _ConnectionJudge(log)
        judge.read(frame)
    for judge in connections.values():
        judge.end()
    versions = tuple(judge.version for judge in connections.values() if judge.version)
    findings = tuple(sorted(log.findings, key=lambda one: one.line))
    return PassiveReport(findings, frozenset(log.seen), versions, log.more)


class FindingLog:
    """Gathers what judges find. `sees` says that a row was exercised, `note` that it was broken."""

    def __init__(self) -> None:
        self.findings: list[PassiveFinding] = []
        self.seen: set[str] = set()
        self.more = 0
        self._rows: Final[Mapping[str, Requirement]] = {row.id: row for row in trace_rows()}

    def __repr__(self) -> str:
        return f"<FindingLog {len(self.findings)} findings>"

    def sees(self, id: str) -> None:
        """Note that something in the recording is about this row."""
        self.seen.add(id)

    def note(self, id: str, frame: TraceFrame, reason: str) -> None:
        """Note that a frame breaks a row."""
        self.seen.add(id)
        if len(self.findings) >= _MOST_FINDINGS:
            self.more += 1
        else:
            self.findings.append(PassiveFinding(self._rows[id], frame, reason))

    def expect(self, holds: object, id: str, frame: TraceFrame, reason: str) -> None:
        """Note that a row was exercised, and that it was broken if this does not hold."""
        if holds:
            self.sees(id)
        else:
            self.note(id, frame, reason)


class _ConnectionJudge:
    """Judges the frames of one connection. `version` is 0 until `initialize` was answered."""

    def __init__(self, log: FindingLog) -> None:
        from dragoman.conformance.passive_sessions import SessionsJudge

        self.version = 0
        self._log = log
        self._joined = Exchanges()
        self._sessions = SessionsJudge(log)
        self._answered: set[tuple[str, str]] = set()
        self._open: set[tuple[str, str]] = set()

    def read(self, frame: TraceFrame) -> None:
        """Judge a frame."""
        if frame.cut:
            return  # what is left of it says nothing
        exchange = self._joined.add(frame)
        if exchange.kind == "unreadable":
            self._judge_noise(exchange)
            return
        self._judge_ids(exchange)
        if exchange.method == "initialize":
            self._judge_greeting(exchange)
        self._judge_shape(exchange)
        self._judge_order(exchange)
        if self.version:
            self._sessions.read(exchange, self.version)

    def end(self) -> None:
        """Judge what never came."""
        for exchange in self._joined.unanswered():
            is_agent = exchange.frame.direction == TO_AGENT
            id = "ACP-JSONRPC-521" if is_agent else "ACP-CLIENT-802"
            self._log.note(id, exchange.frame, f"{exchange.method} has no answer in the recording")
        self._sessions.end()

    # -- every frame -------------------------------------------------------------------------------------------------

    def _judge_noise(self, exchange: Exchange) -> None:
        frame = exchange.frame
        if frame.direction == TO_AGENT:
            row = "ACP-CLIENT-559"
        else:
            row = "ACP-TRANSPORT-201" if self.version == schema.VERSIONS[-1] else "ACP-TRANSPORT-001"
        self._log.note(row, frame, schema.envelope_fault(exchange.message) if exchange.message else "no JSON object")

    def _judge_ids(self, exchange: Exchange) -> None:
        frame, log = exchange.frame, self._log
        of_agent = frame.direction == TO_CLIENT
        if exchange.kind == "request":
            key = (frame.direction, id_key(exchange.message["id"]))
            if not of_agent:
                log.expect(key not in self._open, "ACP-CLIENT-541", frame, "another request has this id and is open")
            self._open.add(key)
            self._answered.discard(key)
        elif exchange.kind == "response":
            key = (TO_AGENT if of_agent else TO_CLIENT, id_key(exchange.message.get("id")))
            if exchange.request is not None:
                self._open.discard(key)
                self._answered.add(key)
                log.sees("ACP-JSONRPC-001" if of_agent else "ACP-CLIENT-542")
                log.sees("ACP-JSONRPC-520" if of_agent else "ACP-CLIENT-542")
                log.sees("ACP-JSONRPC-521" if of_agent else "ACP-CLIENT-802")
            elif of_agent and key in self._answered:
                log.note("ACP-JSONRPC-520", frame, "this request was answered before")
            # What could not be read has no id that an answer could repeat.
            elif exchange.message.get("id") is not None:
                log.note("ACP-JSONRPC-001" if of_agent else "ACP-CLIENT-542", frame, "it answers no request")

    def _judge_greeting(self, exchange: Exchange) -> None:
        if exchange.kind == "request":
            self._sessions.client = exchange.params
        elif exchange.kind == "response":
            is_result = "result" in exchange.message
            self._log.expect(is_result, "ACP-INIT-001", exchange.frame, "initialize is answered with an error")
            version = exchange.result.get("protocolVersion")
            if version in schema.VERSIONS and not isinstance(version, bool):
                self.version = version
                self._sessions.agent = exchange.result

    def _judge_order(self, exchange: Exchange) -> None:
        asks = exchange.kind == "request" and exchange.frame.direction == TO_AGENT
        if asks and exchange.method != "initialize":
            reason = f"{exchange.method} is asked before initialize was answered"
            # A recording may begin in the middle of a conversation: then there was no greeting to wait for.
            if self.version or self._sessions.client:
                self._log.expect(self.version, "ACP-CLIENT-506", exchange.frame, reason)

    def _judge_shape(self, exchange: Exchange) -> None:
        of_agent = exchange.frame.direction == TO_CLIENT
        row = "ACP-SCHEMA-501" if of_agent else "ACP-CLIENT-529"
        fault = schema.envelope_fault(dict(exchange.message)) or self._content_fault(exchange)
        self._log.expect(not fault, row, exchange.frame, fault)

    def _content_fault(self, exchange: Exchange) -> str:
        version = self.version
        if exchange.method == "initialize":
            named = (exchange.params or exchange.result).get("protocolVersion")
            version = named if named in schema.VERSIONS and not isinstance(named, bool) else schema.VERSIONS[0]
        if not version:
            return ""
        message: Mapping[str, Any] = exchange.message
        if exchange.kind != "response":
            return schema.call_fault(message, version, to_agent=exchange.frame.direction == TO_AGENT)
        if exchange.request is None or "result" not in message:
            return ""
        of_agent = exchange.frame.direction == TO_CLIENT
        return schema.result_fault(exchange.method, message["result"], version, of_agent=of_agent)

"""The decision log of a session: who allowed or refused what. One note in the session's own log for each decision.

It survives a restart, goes with the session when that is deleted, is copied with it by a fork, and is neither told to
clients nor seen by the model. `dragoman sessions audit ID` shows it. By default it has no content: what a command was,
which path, which rule in words. The user can have that written as well (`audit_content`).

Fields, in this order:

- `time`: when, in UTC, to the millisecond
- `session`: in which session
- `principal`, `token`: whose; who answered, where a person did, else who prompted; null: the user at this machine
- `mode`: the mode that counted
- `tool`: the tool, `apply_changes` for the question of mode sandbox, `mode` for a change of the mode
- `title`: the kind of the tool; with content, what was shown; for a change of the mode always the new mode
- `decision`: `allow` or `deny`
- `option`: the kind of the answer (`allow_once`, `allow_always`, `reject_once`, `reject_always`), or null
- `rule`: what decided where it was no answer: a remembered answer, what the mode says, whose hook, that no answer came,
  that the turn was cancelled meanwhile; or null
- `by`: `user` (a question was put; no answer is a no), `rule` (a remembered answer), `mode` (the mode's own table),
  `policy` (what stands above modes: a limit of the token, a call that never runs, a question that was not settled),
  `managed` (a rule of the administrator's file), `hook` (a hook)
- `feedback`: only with content, and only where the user wrote something to a no: those words
"""

from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from dragoman.agent.permission import Permission
from dragoman.agent.session import Session, session_core
from dragoman.errors import LinkClosed
from dragoman.permissions.decision import Decision
from dragoman.vocabulary.identity import Identity

# How the notes are called in a session's log.
DECISION: Final = "decision"
# A longer rule or title is cut: a log of decisions is no second transcript.
_TEXT_CHARACTERS: Final = 2_000


def now() -> datetime:
    """Return the time of the calendar."""
    return datetime.now(UTC)


def answered_by(answer: Permission, prompter: Identity) -> Identity:
    """Return the identity that has answered a question.

    Where no client answered and the gateway has refused, it is the identity of the turn.
    """
    return prompter if answer.identity == Identity() else answer.identity


# Why a question was not answered, for the log.
CANCELLED: Final = "the turn was cancelled"


class DecisionLog:
    """Writes the decisions of one session. `content`: with titles and the words of rules."""

    def __init__(self, session: Session, *, content: bool = False, clock: Callable[[], datetime] = now) -> None:
        self._session = session
        self._content = content
        self._clock = clock

    async def record(
        self, decision: Decision, identity: Identity, *, mode: str, tool: str, kind: str, title: str
    ) -> None:
        """Keep a decision that allowed or denied. `kind` says what sort of call it is, `title` what was shown."""
        entry: dict[str, object] = {
            "time": self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "session": self._session.id,
            "principal": identity.principal,
            "token": identity.token,
            "mode": mode,
            "tool": tool,
            "title": title[:_TEXT_CHARACTERS] if self._content else kind,
            "decision": decision.verdict,
            "option": decision.option,
            "rule": self._rule(decision),
            "by": decision.by,
        }
        if decision.feedback and self._content:
            entry["feedback"] = decision.feedback[:_TEXT_CHARACTERS]
        await session_core(self._session).record_note(DECISION, entry)

    @asynccontextmanager
    async def asking(self, identity: Identity, *, mode: str, tool: str, kind: str, title: str) -> AsyncIterator[None]:
        """Put a question inside: if it is cancelled, or its client is lost, that is a no, and kept as one."""
        try:
            yield
        except (CancelledError, LinkClosed):
            refusal = Decision("deny", CANCELLED, "user")
            await self.record(refusal, identity, mode=mode, tool=tool, kind=kind, title=title)
            raise

    def _rule(self, decision: Decision) -> str | None:
        """Return what decided, in words: without content only whether and for which tool something was remembered."""
        if decision.rules:
            words = (
                str(rule) if self._content else f"{rule.verdict} {rule.tool or 'by a pattern'}"
                for rule in decision.rules
            )
            return "; ".join(dict.fromkeys(words))[:_TEXT_CHARACTERS]
        if decision.by == "hook":
            reason = decision.reason if self._content else decision.reason.partition(":")[0]
            return reason[:_TEXT_CHARACTERS]
        is_unanswered = decision.by == "user" and decision.verdict == "deny" and decision.option is None
        return (decision.reason or None) if decision.by == "mode" or is_unanswered else None

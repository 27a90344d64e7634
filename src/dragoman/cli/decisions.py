"""`log/decisions.jsonl` in the state folder: what `run` and `chat` allowed and refused to agents that are not our own.

Our own agent keeps its decisions with its sessions (`coder.decision_log`); a session of another agent is not ours to
write to. A line has the same fields, and the agent's name at the end; `dragoman sessions audit ID` shows them all. Like
there, commands, paths and the words of rules are in it only with the setting `audit_content`. The files are for their
owner alone and bounded: the oldest lines go. Not being able to write is no failure of the command.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from dragoman.cli.failure_log import FILE_BYTES, OLDER_FILES, append_line
from dragoman.cli.home import own_path
from dragoman.host.environment import without_keys
from dragoman.host.regular_file import read_regular

if TYPE_CHECKING:
    from dragoman.client.decision import PermissionDecision

NAME: Final = "decisions.jsonl"
# Of one process, beside what the user has answered: an agent that asks more often has nothing new to say.
LINES: Final = 5_000
_TEXT_CHARACTERS: Final = 500
_ID_CHARACTERS: Final = 200
# The agent's own word for an option; the known ones have less than half of that.
_KIND_CHARACTERS: Final = 40


class DecisionRecorder:
    """Records the decisions about one agent. `content`: with what was shown and the words of rules."""

    def __init__(self, agent: str, *, content: bool) -> None:
        self._agent = agent
        self._content = content
        self._written = 0

    def record(self, decision: "PermissionDecision") -> None:
        """Append a decision to the file, unless it cannot be written or `LINES` that are not the user's were."""
        if decision.by != "user":
            if self._written >= LINES:
                return
            self._written += 1
        append_decision(
            session=decision.session_id,
            tool=decision.method,
            title=hide_secrets(decision.title) if self._content else decision.kind,
            is_allowed=decision.is_allowed,
            option=decision.option,
            rule=self._rule(decision),
            by=decision.by,
            agent=self._agent,
        )

    def _rule(self, decision: "PermissionDecision") -> str | None:
        """Return what decided in place of the user; without content only the sort of it."""
        if decision.by == "user":
            return None
        return hide_secrets(decision.reason) if self._content else decision.basis


def append_decision(
    *,
    session: str,
    tool: str,
    title: str,
    is_allowed: bool,
    option: str,
    rule: str | None,
    by: str,
    agent: str,
    principal: str | None = None,
    token: str | None = None,
) -> None:
    """Append one line to the file, with everything that an agent can make long cut. Ignores a file it cannot write.

    `option` is the kind of the option that was chosen, or empty; `rule` what decided in place of the user.
    """
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "session": session[:_ID_CHARACTERS],
        "principal": principal,
        "token": token,
        "mode": None,
        "tool": tool,
        "title": title[:_TEXT_CHARACTERS],
        "decision": "allow" if is_allowed else "deny",
        "option": option[:_KIND_CHARACTERS] or None,
        "rule": rule if rule is None else rule[:_TEXT_CHARACTERS],
        "by": by,
        "agent": agent[:_ID_CHARACTERS],
    }
    with suppress(OSError):
        append_line(decisions_file(), json.dumps(line).encode() + b"\n")


def hide_secrets(text: str) -> str:
    """Return the text with what looks like a key taken out."""
    return without_keys(text, "[hidden]")


def decisions_file() -> str:
    """Return the path of the file with the newest decisions, which need not exist."""
    return os.path.join(own_path("log"), NAME)


def decisions_of(given: str) -> dict[str, list[bytes]]:
    """Return the lines of the sessions whose ids are, or begin with, what is given; by their ids, the oldest first."""
    found: dict[str, list[bytes]] = {}
    for line in _lines():
        try:
            session = json.loads(line)["session"]
        except (ValueError, TypeError, KeyError):
            continue  # half a line, after a full disk
        if isinstance(session, str) and session.startswith(given):
            found.setdefault(session, []).append(line)
    return {given: found[given]} if given in found else found


def _lines() -> Iterator[bytes]:
    file = decisions_file()
    for path in [*(f"{file}.{number}" for number in range(OLDER_FILES, 0, -1)), file]:
        with suppress(OSError):
            yield from read_regular(path, 2 * FILE_BYTES).splitlines()

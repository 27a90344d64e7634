"""Who allowed and refused what to an agent of the fleet, through `dragoman serve`.

The lines stand in the file of `decisions`, among those of `run` and `chat`, with the same fields: `session` is the id
by which clients know the session, `principal` and `token` are those of the client that answered. `dragoman sessions
audit ID` shows them. Our own agent keeps its decisions with its sessions instead (`coder.decision_log`).
"""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from dragoman.cli.decisions import decisions_file
from dragoman.cli.log import append_line
from dragoman.client.call_facts import evidence
from dragoman.client.decision import method_of
from dragoman.host.environment import without_keys
from dragoman.vocabulary.services import Selected

if TYPE_CHECKING:
    from dragoman.gateway.open_questions import AnsweredPermission

# What an agent can make long is cut.
_TEXT_CHARACTERS: Final = 500
_ID_CHARACTERS: Final = 200
_KIND_CHARACTERS: Final = 40
_UNANSWERED: Final = "no answer came"


class ServedDecisionRecorder:
    """Records the answers to one agent. `content`: with what was shown to the client that answered."""

    def __init__(self, agent: str, *, content: bool) -> None:
        self._agent = agent
        self._content = content

    def record(self, answered: "AnsweredPermission") -> None:
        """Append an answer to the file, as a decision. Does nothing where the file cannot be written."""
        request, identity = answered.request, answered.identity
        kinds = _chosen_kinds(answered)
        is_allowed = bool(kinds) and all(kind.startswith("allow") for kind in kinds)
        title = without_keys(request.title, "[hidden]") if self._content else evidence(request).kind
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "session": request.session_id[:_ID_CHARACTERS],
            "principal": identity.principal,
            "token": identity.token,
            "mode": None,
            "tool": method_of(request),
            "title": title[:_TEXT_CHARACTERS],
            "decision": "allow" if is_allowed else "deny",
            "option": kinds[0][:_KIND_CHARACTERS] if kinds else None,
            "rule": None if answered.is_answered else _UNANSWERED,
            "by": "user",
            "agent": self._agent[:_ID_CHARACTERS],
        }
        with suppress(OSError):
            append_line(decisions_file(), json.dumps(line).encode() + b"\n")


def _chosen_kinds(answered: "AnsweredPermission") -> list[str]:
    """Return the kinds of the options that have the chosen id, which may stand for several; none: no client chose."""
    outcome = answered.answer.outcome
    if not answered.is_answered or not isinstance(outcome, Selected):
        return []
    return [option.kind for option in answered.request.options if option.option_id == outcome.option_id]

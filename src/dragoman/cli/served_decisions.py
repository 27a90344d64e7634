"""Who allowed and refused what to an agent of the registry, through `dragoman serve`.

The lines stand in the file of `decisions`, among those of `run` and `chat`, with the same fields: `session` is the id
by which clients know the session, `principal` and `token` are those of the client that answered. `dragoman sessions
audit ID` shows them. Our own agent keeps its decisions with its sessions instead (`coder.decision_log`).
"""

from typing import TYPE_CHECKING, Final

from dragoman.cli.decisions import append_decision, hide_secrets
from dragoman.client.call_facts import call_facts
from dragoman.client.decision import method_of
from dragoman.vocabulary.services import PermissionOption, Selected

if TYPE_CHECKING:
    from dragoman.gateway.open_questions import AnsweredPermission

_UNANSWERED: Final = "no answer came"


class ServedDecisionRecorder:
    """Records the answers to one agent. `content`: with what was shown to the client that answered."""

    def __init__(self, agent: str, *, content: bool) -> None:
        self._agent = agent
        self._content = content

    def record(self, answered: "AnsweredPermission") -> None:
        """Append an answer to the file, as a decision. Does nothing where the file cannot be written."""
        request, identity = answered.request, answered.identity
        chosen = _chosen_options(answered)
        is_allowed = bool(chosen) and all(option.allows for option in chosen)
        append_decision(
            session=request.session_id,
            principal=identity.principal,
            token=identity.token,
            tool=method_of(request),
            title=hide_secrets(request.title) if self._content else call_facts(request).kind,
            is_allowed=is_allowed,
            option=chosen[0].kind if chosen else "",
            rule=None if answered.is_answered else _UNANSWERED,
            by="user",
            agent=self._agent,
        )


def _chosen_options(answered: "AnsweredPermission") -> list[PermissionOption]:
    """Return the options that have the chosen id, which may stand for several; none: no client chose."""
    outcome = answered.answer.outcome
    if not answered.is_answered or not isinstance(outcome, Selected):
        return []
    return [option for option in answered.request.options if option.option_id == outcome.option_id]

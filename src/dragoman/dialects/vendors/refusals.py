"""Refusals for agents that are known to take every chosen option for a yes.

Releases of iac-code up to 0.16.0 run a tool call even when the user has chosen an option that rejects it; only the
outcome `cancelled` is a no to them. So every refusal is sent to them as `cancelled`, in any dialect, also by a bridge.
"""

from typing import Final

import msgspec

from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.services import PermissionAnswer, RequestPermission, Selected

# The names of such agents in `agentInfo`. No version is compared: a no as `cancelled` is right for fixed ones as well.
RUN_REJECTED_CALLS: Final = frozenset({"iac-code"})


def runs_rejected_calls(agent: AgentHello) -> bool:
    """Return whether an agent is known to run a tool call although the user has rejected it."""
    return agent.info is not None and agent.info.name in RUN_REJECTED_CALLS


def encode_refusal(request: RequestPermission, answer: PermissionAnswer) -> bytes | None:
    """Return the answer that such an agent takes for a no; None where the answer is a yes.

    What was chosen is in `_meta`, where the program's own tests have it.
    """
    chosen = answer.outcome.option_id if isinstance(answer.outcome, Selected) else ""
    # An id that is not offered, or that an allowing and a rejecting option share, counts as a no.
    kinds = [option.kind for option in request.options if option.option_id == chosen]
    if kinds and all(kind in ("allow_once", "allow_always") for kind in kinds):
        return None
    refusal = {"outcome": {"outcome": "cancelled"}} | ({"_meta": {"option_id": chosen}} if chosen else {})
    return msgspec.json.encode(refusal)

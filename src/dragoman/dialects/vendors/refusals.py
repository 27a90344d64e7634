"""Refusals for agents that are known to take every chosen option for a yes.

Releases of iac-code up to 0.16.0 run a tool call even when the user has chosen an option that rejects it; only the
outcome `cancelled` is a no to them. So every refusal is sent to them as `cancelled`, in any dialect, also by a bridge.
"""

from typing import Final

import msgspec

from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.services import PermissionAnswer, RequestPermission, Selected

# What such agents call themselves.
RUN_REJECTED_CALLS: Final = frozenset({"iac-code"})


def runs_rejected_calls(agent: AgentHello) -> bool:
    """Whether an agent takes a chosen no for a yes."""
    return agent.info is not None and agent.info.name in RUN_REJECTED_CALLS


def encode_refusal(request: RequestPermission, answer: PermissionAnswer) -> bytes | None:
    """The answer that such an agent hears as a no; None where the answer is a yes. What was chosen is in `_meta`."""
    chosen = answer.outcome.option_id if isinstance(answer.outcome, Selected) else ""
    kinds = [option.kind for option in request.options if option.option_id == chosen]
    if kinds and all(kind in ("allow_once", "allow_always") for kind in kinds):
        return None
    said = {"outcome": {"outcome": "cancelled"}} | ({"_meta": {"option_id": chosen}} if chosen else {})
    return msgspec.json.encode(said)

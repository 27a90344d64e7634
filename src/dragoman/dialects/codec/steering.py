"""Steering: words of the user for a turn that runs, by an extension that agents advertise in `_meta` of `initialize`.

The adapters of Claude and Codex serve `_session/steering`, and this is their contract: the params of a prompt, answered
with an `outcome` when the words have a place, while the turn goes on. An agent without it has the method as any other
extension.
"""

from functools import cache
from typing import Any, Final

from msgspec import UNSET, UnsetType

from dragoman.dialects.codec.dialect_base import Route
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.requests import Steered, SteerTurn
from dragoman.wire import types as wire

METHOD: Final = "_session/steering"


class SteeringResponse(wire.MetaWire, frozen=True, kw_only=True):
    """The answer. `message_id` is ours, between a gateway and its agent."""

    outcome: str
    reason: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET


@cache
def steering_route(params: Any) -> Route:
    """Return the route of the method; `params` is the wire's type of a prompt request."""
    return Route(METHOD, SteerTurn, params, SteeringResponse, Steered, needs="steering")


def steering_routes(agent: AgentHello, params: Any) -> list[Route]:
    """Return the route for the agent's side: none for an agent without steering, whose author may serve the method."""
    return [steering_route(params)] if agent.capabilities.steering else []

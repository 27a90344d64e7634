"""Requests of clients that an agent works on, by the numbers it knows them by: it may ask about them."""

from typing import TYPE_CHECKING, NamedTuple

from dragoman.dialects.contract import Id
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.requests import PromptRequest

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.client_side import ClientSide


class InFlightRequest(NamedTuple):
    """A request of a client that the agent works on."""

    client_side: "ClientSide"
    id: Id
    request: Request


class WatchedRequest:
    """One request on its way: which number the agent knows it by."""

    def __init__(self, agent_side: "AgentSide", asked: InFlightRequest) -> None:
        self._agent_side = agent_side
        self._asked = asked
        self._number = 0

    def on_sent(self, number: int) -> None:
        self._agent_side.asked.pop(self._number, None)  # it may be asked again, under another name
        self._number = number
        self._agent_side.asked[number] = self._asked

    def on_reply(self) -> None:
        """It is answered. A prompt is spoken of until its turn is over."""

    def over(self, *, failed: bool) -> None:
        if failed or not isinstance(self._asked.request, PromptRequest):
            self._agent_side.asked.pop(self._number, None)

"""Requests of clients that an agent works on, by the numbers under which it got them: it may ask about them.

A request is in flight from the moment it was sent until its reply; a prompt until its turn is over, because a version 2
agent replies when it accepts a prompt and asks about it afterwards.
"""

from typing import TYPE_CHECKING, NamedTuple

from dragoman.dialects.contract import Id
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.requests import ForkSession, NewSession, PromptRequest

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide


class InFlightRequest(NamedTuple):
    """A request that the agent works on; `id` is the client's own for it."""

    client_side: "ClientSide"
    id: Id
    request: Request


class InFlightRequests:
    """The requests in flight at one agent."""

    def __init__(self) -> None:
        # By our own numbers on the agent's link: the ids of several clients may be the same.
        self._requests: dict[int, InFlightRequest] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def watch(self, request: InFlightRequest) -> "WatchedRequest":
        """Return the `Watch` for a request that is about to be sent; it is added here when it has its number."""
        return WatchedRequest(self, request)

    def add(self, number: int, request: InFlightRequest) -> None:
        """Add a request that was sent under this number."""
        self._requests[number] = request

    def remove(self, number: int) -> None:
        """Remove a request. Nothing happens if there is none of this number."""
        self._requests.pop(number, None)

    def find(self, number: Id) -> InFlightRequest | None:
        """Return the request that the agent knows by `number`; None if it is over, or never was."""
        # Ours are numbers: a text is an id that the agent has made up.
        return self._requests.get(number) if isinstance(number, int) else None

    def is_opening_session(self) -> bool:
        """Return whether a session is being made, whose id is not known before the reply."""
        # Not `ResumeSession`: its id is known, and the session registered here before the agent is asked.
        return any(isinstance(one.request, (NewSession, ForkSession)) for one in self._requests.values())

    def end_turn(self, session_id: str) -> None:
        """Remove the prompts of a session whose turn is over."""
        # By the id that clients know: a request stands here as its client has sent it.
        for number, one in list(self._requests.items()):
            if isinstance(one.request, PromptRequest) and one.request.session_id == session_id:
                del self._requests[number]

    def clear(self) -> None:
        """Remove all: the process that worked on them has died."""
        self._requests.clear()


class WatchedRequest:
    """The `Watch` of one request, which the link calls; `end` is for the caller that awaits the reply."""

    def __init__(self, in_flight: InFlightRequests, request: InFlightRequest) -> None:
        self._in_flight = in_flight
        self._request = request
        self._number = 0  # no request has this number, so to remove it does nothing

    def on_sent(self, number: int) -> None:
        # A dialect may ask twice, under another method name: the number of the first try is over.
        self._in_flight.remove(self._number)
        self._number = number
        self._in_flight.add(number, self._request)

    def on_reply(self) -> None:
        """Do nothing: `end` follows, and a prompt stays in flight until its turn is over."""

    def end(self, *, failed: bool) -> None:
        """Remove the request, unless it is a prompt that was accepted."""
        if failed or not isinstance(self._request.request, PromptRequest):
            self._in_flight.remove(self._number)

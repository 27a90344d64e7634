"""What an agent behind the gateway works on, by the numbers it knows."""

from types import SimpleNamespace
from typing import Any

from dragoman.gateway.in_flight import InFlightRequest, WatchedRequest
from dragoman.vocabulary.requests import ListSessions


def test_a_request_that_is_asked_again_is_known_by_its_last_number_and_by_none_when_it_is_over() -> None:
    agent_side: Any = SimpleNamespace(asked={})
    asked = InFlightRequest(SimpleNamespace(), 7, ListSessions())  # type: ignore[arg-type]
    watched = WatchedRequest(agent_side, asked)
    watched.on_sent(1)
    watched.on_sent(2)
    assert agent_side.asked == {2: asked}
    watched.on_reply()
    watched.over(failed=False)
    assert agent_side.asked == {}

"""What an agent behind the gateway works on, by the numbers it knows."""

from types import SimpleNamespace

from dragoman.gateway.in_flight import InFlightRequest, InFlightRequests
from dragoman.vocabulary.requests import ListSessions


def test_a_request_that_is_asked_again_is_known_by_its_last_number_and_by_none_when_it_is_over() -> None:
    in_flight = InFlightRequests()
    asked = InFlightRequest(SimpleNamespace(), 7, ListSessions())  # type: ignore[arg-type]
    watched = in_flight.watch(asked)
    watched.on_sent(1)
    watched.on_sent(2)
    assert (in_flight.find(1), in_flight.find(2), len(in_flight)) == (None, asked, 1)
    watched.on_reply()
    watched.end(failed=False)
    assert (in_flight.find(2), len(in_flight)) == (None, 0)

"""Refusals that OpenAI sends in the stream, and a fixture for tests whose requests to Google fail."""

import gc
from collections.abc import Iterator

import pytest

from tests.support.provider_streams import named, openai_response
from tests.support.upstream import Reply, streams


def response_failed(code: str, message: str) -> Reply:
    """Answers with a response that has failed."""
    error = {"code": code, "message": message}
    return _after_beginning(named("response.failed", response=openai_response("failed", [], error=error)))


def error_event(code: str, message: str) -> Reply:
    """Answers with the stream's own event for an error."""
    return _after_beginning(named("error", code=code, message=message, param=None))


def _after_beginning(event: bytes) -> Reply:
    begins = named("response.created", response=openai_response("in_progress", []))
    numbered = [
        one.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, one in enumerate([begins, event])
    ]
    return streams(*numbered)


@pytest.fixture(autouse=True)
def google_clients_are_collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect the client of Google's SDK after the loop has ended: its `__del__` starts a task in a running one."""
    yield
    if "google" in request.node.name:
        gc.collect()

"""What every test of the coding agent has around it."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def google_clients_are_collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect the client of Google's SDK after the loop of its test has ended.

    Its `__del__` starts a task in a running loop, which would be that of another test, and fail it. Collecting takes
    time, so only tests that name Google pay for it.
    """
    yield
    if "google" in request.node.name or "gemini" in request.node.name:
        gc.collect()

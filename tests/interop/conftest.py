"""What the tests with peers share: their clients, which take long to start and play one plan after another."""

from collections.abc import Iterator

import pytest

from tests.support.sdk_peers import Clients


@pytest.fixture(scope="session")
def clients() -> Iterator[Clients]:
    """Started when they are wanted."""
    started = Clients()
    yield started
    started.close()

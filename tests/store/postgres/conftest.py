"""The releases of the database that tests of kills and outages run on."""

from pathlib import Path

import pytest

from tests.support.needs import need
from tests.support.postgres import DEBIAN_15


@pytest.fixture(params=[None, pytest.param(DEBIAN_15, marks=pytest.mark.slow)], ids=["newest", "oldest"])
def release(request: pytest.FixtureRequest) -> Path | None:
    """The newest release of the database that we promise, and the oldest: where its programs are; None: the wheel's."""
    installed: Path | None = request.param
    if installed is not None:
        need(str(installed / "postgres"))
    return installed

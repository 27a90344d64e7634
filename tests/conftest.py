"""What every test shares: asyncio for async tests, and how hard hypothesis tries."""

import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline anywhere: a busy machine is not a bug. pytest-timeout bounds each test.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "fuzz", deadline=None, max_examples=5_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"

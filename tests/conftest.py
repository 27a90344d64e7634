"""What every test shares: asyncio for async tests, a home of our own, and how hard hypothesis tries."""

import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

# Modules that check things for tests explain what they found, as tests do.
pytest.register_assert_rewrite("tests.cli.drawn_session", "tests.cli.killed_sessions")

# A shell starts what it runs in the background without Ctrl-C, and whatever a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How many examples a property gets in a run that is waited for; `./dev fuzz` is for the rare ones.
EXAMPLES = 30

# No deadline, and no complaint of slow examples: a busy machine is not a bug. pytest-timeout bounds each test.
PATIENT = settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True, database=None, print_blob=True)
settings.register_profile("fuzz", PATIENT, max_examples=5_000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: the collector does not look among it, neither meanwhile nor while the tests run.

    And then seldom: looking after every 700 objects, as Python does, takes a twentieth of the time of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(10_000, 10, 10)
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_home_of_yours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever a test starts, and forgets to say where: its data never comes to the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_HOME", str(tmp_path_factory.mktemp("home")))
        # No test reaches the network: those about lists have a server of their own, and turn them on.
        patch.setenv("DRAGOMAN_LIST_MODELS", "false")
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):  # of this machine: tests name their own
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        yield

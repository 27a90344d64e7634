"""What tests of the gateway ask for by name."""

import pytest

from dragoman.gateway import hub


@pytest.fixture
def _often_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test has to wait long until a gateway has seen what is over."""
    monkeypatch.setattr(hub, "_SWEEP_SECONDS", 0.02)

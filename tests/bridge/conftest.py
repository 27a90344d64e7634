"""What every test of a bridge starts with."""

import pytest


@pytest.fixture(autouse=True)
def unsalted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that a bridge makes up are the same in every run."""
    monkeypatch.setattr("dragoman.link.link._new_salt", str)

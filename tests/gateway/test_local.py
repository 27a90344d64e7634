"""Agents of this machine behind a gateway: what is looked at before a start can refuse it."""

from pathlib import Path

import pytest

from dragoman.errors import StartFailed
from dragoman.gateway.local import spawned


def test_what_is_refused_before_a_start_is_not_started(tmp_path: Path) -> None:
    def refuse() -> None:
        raise StartFailed("it has changed")

    mark = tmp_path / "ran"
    with pytest.raises(StartFailed, match="it has changed"):
        spawned(["touch", str(mark)], cwd=None, env={}, before=refuse)()
    assert not mark.exists()

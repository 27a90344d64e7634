"""A stored session loads at no less than half the speed at which it was lived."""

import pytest

from bench import load
from bench.harness import Guardian


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_100_000_events_load_at_half_the_speed_of_streaming_or_faster() -> None:
    guardian = Guardian()
    try:
        lines = list(load.lines(guardian, load.EVENTS, 1))
    finally:
        guardian.close()
    assert [str(line) for line in lines if line.is_missed] == []
    assert sum(line.promise is not None for line in lines) == len(load.KINDS)

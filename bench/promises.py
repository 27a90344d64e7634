"""The figures we promise, as data: each against a peer that is measured in the same run."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Promise:
    """Ours is at least `times` as good as `peer`, by the benchmark's first figure."""

    benchmark: str
    peer: str
    times: float

    @property
    def words(self) -> str:
        if self.times < 1:
            return f"within {1 / self.times:g}x"
        return f"at least {self.times:g}x"


PROMISES: Final = (
    Promise("start", "py", 5),
    Promise("start", "ts", 2),
    Promise("stream-agent", "py", 15),
    Promise("stream-agent", "ts", 5),
    Promise("stream-agent", "floor", 1 / 2),
    Promise("stream-client", "py", 10),
    Promise("stream-client", "ts", 5),
    Promise("stream-client", "floor", 1 / 2),
    Promise("sequential-agent", "py", 3),
    Promise("sequential-both", "py", 3),
    Promise("sequential-client", "py", 3),
    Promise("inflight", "py", 3),
    # Both ends ours, against a loop that checks and bounds nothing.
    Promise("mode-both", "floor", 1 / 1.6),
    Promise("inflight-both", "floor", 0.6),
    Promise("big-client", "floor", 1 / 1.2),
    Promise("first-diff", "floor", 1 / 2),
)

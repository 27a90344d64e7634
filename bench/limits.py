"""Every size, count and second of the bench, with its reason."""

from dataclasses import dataclass
from typing import Final

READ_BYTES: Final = 65_536
"""One pipe full. Larger reads make the allocator map fresh pages: 11 us a message instead of 0.8 (performance.md)."""

PROCESS_SECONDS: Final = 60.0
"""A peer process past this is killed with its group: the slowest measurement takes about 10 s on two shared cores."""

START_SECONDS: Final = 30.0
"""A peer that has not answered initialize by then is not a peer."""

FAREWELL_SECONDS: Final = 3.0
"""How long a client may take to end its own agent before the group is killed."""

INSTALL_SECONDS: Final = 300.0
"""pip or npm past this has no network."""

CHUNK_TEXT: Final = "the quick "
"""10 bytes of text make a line of 178 bytes with a session id of 13, the size performance.md measured with."""

IN_FLIGHT: Final = 64
"""Half of what Dragoman allows on one link, so nothing is refused."""


SMALL_DIFF_BYTES: Final = 70_000
"""A diff as an agent often sends it first: more than one read, and less than anything that takes long to decode."""


@dataclass(frozen=True)
class Sizes:
    """How much one run measures."""

    starts: int
    """Repetitions of `start`: short and noisy, so many."""
    repetitions: int
    chunks: int
    requests: int
    big_bytes: int
    sessions: int


FULL: Final = Sizes(starts=20, repetitions=5, chunks=100_000, requests=20_000, big_bytes=10_000_000, sessions=1_000)
QUICK: Final = Sizes(starts=5, repetitions=3, chunks=50_000, requests=5_000, big_bytes=10_000_000, sessions=200)

"""Which probe judges which row."""

from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.conformance.trial import Trial

Probe = Callable[[Trial], Awaitable[None]]
PROBES: Final[dict[str, Probe]] = {}


def probe(*ids: str) -> Callable[[Probe], Probe]:
    """Register a function as the probe of these rows. Raise `ValueError` if one of them has another probe."""

    def register(function: Probe) -> Probe:
        for id in ids:
            if id in PROBES:
                raise ValueError(f"{id} has two probes")
            PROBES[id] = function
        return function

    return register

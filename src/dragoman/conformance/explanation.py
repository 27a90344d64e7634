"""The frames of a correct exchange for a row: what the conforming peer and the row's probe say to each other."""

from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.frames import Frame
from dragoman.conformance.peer.subject import PeerSubject
from dragoman.conformance.probes import PROBES
from dragoman.conformance.rows import Requirement
from dragoman.conformance.trial import CheckSettings, Trial

_SETTINGS = CheckSettings(
    "/home/you/project", CheckLimits(quiet=0.01), prompt="hello", slow_prompt="slow", permission_prompt="ask"
)


async def correct_exchange(row: Requirement) -> list[Frame]:
    """Return the frames of the row's probe at the conforming peer, in the latest version that the row has."""
    trial = Trial(PeerSubject(row.versions[-1]), row.versions[-1], _SETTINGS, {})
    try:
        await PROBES[row.id](trial)
    finally:
        await trial.close()
    return trial.frames()

"""The frames of a correct exchange for a row: what the conforming peer of its role and the probe send each other."""

from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.frames import Frame
from dragoman.conformance.rows import Requirement
from dragoman.conformance.trial import CheckSettings, Trial

_LIMITS = CheckLimits(quiet=0.01, exit=0.2)
_SETTINGS = CheckSettings("/home/you/project", _LIMITS, prompt="hello", slow_prompt="slow", permission_prompt="ask")


async def correct_exchange(row: Requirement) -> list[Frame]:
    """Return the frames of a run of the row at the conforming peer, in the latest version that the row has."""
    if row.role == "client":
        return await _of_client(row)
    if row.role == "server":
        return await _of_server(row)
    from dragoman.conformance.peer.subject import PeerSubject
    from dragoman.conformance.probes import PROBES

    trial = Trial(PeerSubject(row.versions[-1]), row.versions[-1], _SETTINGS, {})
    try:
        await PROBES[row.id](trial)
    finally:
        await trial.close()
    return trial.frames()


async def _of_client(row: Requirement) -> list[Frame]:
    from dragoman.conformance.clients.peer_subject import PeerClientSubject
    from dragoman.conformance.clients.run import frames_of, played

    subject = PeerClientSubject(row.versions[-1], lends=not row.capability.startswith("no "))
    return frames_of(await played(subject, row.scenario, row.versions[-1], _LIMITS))


async def _of_server(row: Requirement) -> list[Frame]:
    from dragoman.conformance.servers.peer_subject import PeerServerSubject
    from dragoman.conformance.servers.run import frames_of_row

    return await frames_of_row(PeerServerSubject(row.versions[-1]), row, row.versions[-1], _LIMITS)

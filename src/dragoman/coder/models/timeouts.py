"""How long we wait for a hosted model, and how much of it we take."""

from typing import Final, NamedTuple

from dragoman.limits import MIB

# One whole answer as it is on the wire. The longest real ones (128k tokens, 200 bytes an event) have about 30 MiB.
ANSWER_BYTES: Final = 64 * MIB


class ModelTimeouts(NamedTuple):
    """Seconds. Tests take less of it."""

    # To be connected, TLS included: who takes longer is not there.
    connect: float = 10.0
    # Between two reads. A thinking model may be silent for a minute.
    chunk: float = 120.0
    # Between two things it says: a server that drips bytes and no words is as dead as a silent one.
    piece: float = 300.0
    # For one answer. Long thoughts take a quarter of an hour.
    answer: float = 3600.0
    # A connection that is idle for this long is closed: many sessions are idle, and should cost little.
    idle: float = 60.0

"""Where the gateway's agents come from, and how many processes of them may live how long."""

from collections.abc import Callable
from typing import NamedTuple

from dragoman.transports.contract import Transport


class Agents(NamedTuple):
    """Where agents come from: a transport to a fresh one, and the versions it is known to speak.

    An agent is spoken to in the version of its client where it can be, because then nothing is lost between them.

    - `each_session`: a process for every session; else one for all sessions of a connection.
    - `idle_seconds`: one that has nothing to do for so long is stopped, and started when it is needed; 0: never.
    - `restarts`: so often in a row one that dies is started again.
    - `most`: so many run at once; 0: as many as there are connections.
    - `start_seconds`: how long its reply to `initialize` may take, at most `limits.START_SECONDS`; 0: exactly that.
    - `renames`: clients know its sessions by ids of ours, because each of its processes may count its own.
    """

    open: Callable[[], Transport]
    versions: tuple[int, ...] = (1, 2)
    dialect: str = ""
    each_session: bool = False
    idle_seconds: float = 0.0
    restarts: int = 3
    most: int = 0
    start_seconds: float = 0.0
    renames: bool = False

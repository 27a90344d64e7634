"""What one principal may use of a server, the same for all of its tokens; and the error that says which limit it met.

Pure: the counting is done where the things are (`principal_usage`, `principal_processes`).
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from dragoman.errors import LIMIT_REACHED, LinkClosed, RequestFailed
from dragoman.limits import MIB

LimitName = Literal["sessions", "turns", "processes", "tasks", "memory", "spend"]


class PrincipalLimits(Struct, frozen=True):
    """Limits of one principal; 0 (for `spend` None) is no limit.

    - `sessions`: open at once. `turns`: running at once.
    - `processes`: agents that run at once as processes of this machine.
    - `tasks`, `memory` (bytes): processes with their threads, and memory, of those agents and all they have started.
    - `spend`: dollars on one day, as far as agents report what they cost.
    """

    sessions: int = 0
    turns: int = 0
    processes: int = 0
    tasks: int = 0
    memory: int = 0
    # None and not 0 for no limit: a principal that may spend nothing is something that an operator can want.
    spend: float | None = None


NO_LIMITS: Final = PrincipalLimits()


class LimitTable(NamedTuple):
    """The limits of every principal, and those of some by their names in place of them."""

    every: PrincipalLimits = NO_LIMITS
    # Whole ones: what an operator leaves out of a named table has been filled in from `every` (`principal_options`).
    named: Mapping[str, PrincipalLimits] = {}

    def of(self, principal: str) -> PrincipalLimits:
        """Return what a principal may use."""
        return self.named.get(principal, self.every)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is limited for any principal."""
        return self.every == NO_LIMITS and all(one == NO_LIMITS for one in self.named.values())


NO_LIMIT_TABLE: Final = LimitTable()

_WORDS: Final[dict[LimitName, str]] = {
    "sessions": "have at most {} open sessions: close one first",
    "turns": "have at most {} running turns: wait for the end of one",
    "processes": "have at most {} agents that run: close a session of another one, or try again later",
    "tasks": "have at most {} processes and threads of its agents",
    "memory": "have at most {} of memory for its agents: close sessions, or try again later",
    "spend": "spend at most {} a day; go on tomorrow",
}


def limit_reached(name: LimitName, limits: PrincipalLimits) -> RequestFailed:
    """Return the error for a request that would exceed a limit."""
    # `retry`: the same request can succeed later, when something has ended; a client need not give it up.
    data = {"reason": "limit", "limit": name, "most": getattr(limits, name), "retry": True}
    return RequestFailed(LIMIT_REACHED, f"This principal may {words_of(name, limits)}", data)


def words_of(name: LimitName, limits: PrincipalLimits) -> str:
    """Return what a principal may do, and what to do about it, as a person says it."""
    match name:
        case "memory":
            most = f"{limits.memory / MIB:,.0f} MiB"
        case "spend":
            most = f"${limits.spend or 0:,.2f}"
        case _:
            most = str(getattr(limits, name))
    return _WORDS[name].format(most)


class LimitEndedAgent(LinkClosed):
    """An agent's process was ended because its principal may not use more; the text is for its clients."""

    def __init__(self, name: LimitName, limits: PrincipalLimits) -> None:
        super().__init__(f"The agent was ended: this principal may {words_of(name, limits)}")
        # A `LinkClosed`, so that what waits for the agent fails as for any death; `AgentSide` passes only this text on.
        self.limit: Final = name

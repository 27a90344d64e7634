"""What each principal uses of a server now, and whether it may use more: one object for all agents of the server.

What begins something asks here first, in the step in which it begins, so that a thousand requests at once do not get
past a limit:

    a session        `reserve_session`, and `Reservation.release` when it is registered or was not opened
    a turn           `reserve_turn`, and `end_turn` at its end, or when the prompt was refused
    a prompt         `check_spend`
    an agent         `check_processes`, with the number that runs

Memory, and processes with their threads, are limited where they are used: `principal_processes`.
"""

from collections import Counter, defaultdict
from typing import Final, NamedTuple

from dragoman.gateway.day_spend import DaySpend
from dragoman.gateway.principal_limits import LimitTable, PrincipalLimits, limit_reached
from dragoman.vocabulary.events import Cost


class PrincipalUsage:
    """The use of every principal, within the limits of `table`. `spend` has what was spent today."""

    def __init__(self, table: LimitTable | None = None, spend: DaySpend | None = None) -> None:
        self._table: Final = table or LimitTable()
        self.spend: Final = spend or DaySpend()
        self._sessions: Counter[str] = Counter()
        self._opening: Counter[str] = Counter()
        # By principal: the sessions in which a turn of it runs, or a prompt was sent that begins one.
        self._turns: defaultdict[str, set[str]] = defaultdict(set)
        # By session, whom its turn was counted for: another principal may prompt before it ends, and the end is counted
        # off where the beginning was counted.
        self._turn_of: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<PrincipalUsage sessions={self._sessions.total()} turns={len(self._turn_of)}>"

    # -- sessions ----------------------------------------------------------------------------------------------------

    def reserve_session(self, principal: str) -> "Reservation":
        """Count a session that is going to be opened. Raise `RequestFailed` if the principal may have no more."""
        limits = self._table.of(principal)
        if limits.sessions and self._sessions[principal] + self._opening[principal] >= limits.sessions:
            raise limit_reached("sessions", limits)
        return Reservation(self._opening, principal)

    def add_session(self, principal: str) -> None:
        """Count a session that is open."""
        self._sessions[principal] += 1

    def remove_session(self, principal: str, session_id: str) -> None:
        """Count a session no more, nor a turn of it."""
        self._sessions[principal] -= 1
        if self._sessions[principal] <= 0:
            del self._sessions[principal]
        # A prompt may have reserved a turn that has not begun: no end of a turn comes for that.
        self.end_turn(session_id)

    # -- turns -------------------------------------------------------------------------------------------------------

    def reserve_turn(self, principal: str, session_id: str) -> bool:
        """Count a turn from its prompt on; return False if the session has one already. Raise `RequestFailed` if the
        principal may have no more, or may spend no more today."""
        # Also for a prompt that waits behind a running turn: it will cost something as well.
        self.check_spend(principal)
        if session_id in self._turn_of:
            return False
        limits = self._table.of(principal)
        if limits.turns and len(self._turns[principal]) >= limits.turns:
            raise limit_reached("turns", limits)
        self.begin_turn(principal, session_id)
        return True

    def begin_turn(self, principal: str, session_id: str) -> None:
        """Count a turn that runs, whether it was reserved or its prompt has waited in the agent."""
        if session_id not in self._turn_of:
            self._turn_of[session_id] = principal
            self._turns[principal].add(session_id)

    def end_turn(self, session_id: str) -> None:
        """Count a turn no more: it is over, or its prompt was refused."""
        principal = self._turn_of.pop(session_id, None)
        if principal is not None:
            self._turns[principal].discard(session_id)
            if not self._turns[principal]:
                del self._turns[principal]

    # -- processes ---------------------------------------------------------------------------------------------------

    def limits_processes(self, principal: str) -> bool:
        """Return whether the number of its agents is limited, so that it has to be counted."""
        return self._table.of(principal).processes > 0

    def check_processes(self, principal: str, running: int) -> None:
        """Raise `RequestFailed` if a principal with so many agents that run may have no more."""
        limits = self._table.of(principal)
        if limits.processes and running >= limits.processes:
            raise limit_reached("processes", limits)

    # -- spending ----------------------------------------------------------------------------------------------------

    def check_spend(self, principal: str) -> None:
        """Raise `RequestFailed` if a principal may spend no more today."""
        limits = self._table.of(principal)
        if limits.spend is not None and self.spend.today(principal) >= limits.spend:
            raise limit_reached("spend", limits)

    def add_cost(self, principal: str, session_id: str, cost: Cost) -> bool:
        """Note what a session has cost so far; return whether that takes the principal to what it may spend today."""
        limits = self._table.of(principal)
        # Other currencies count for nothing: no rate of exchange is known here.
        if cost.currency != "USD" or not self.spend.add(principal, session_id, cost.amount):
            return False
        return limits.spend is not None and self.spend.today(principal) >= limits.spend

    # -- for the operator --------------------------------------------------------------------------------------------

    def in_use(self) -> list["PrincipalUse"]:
        """Return what each principal uses now, those with limits of their own too, by name."""
        # `get` below: looking into a `defaultdict` would keep every name for ever.
        names = {*self._sessions, *self._turns, *self._table.named}
        return [
            PrincipalUse(
                name, self._sessions[name], len(self._turns.get(name, ())), self.spend.today(name), self._table.of(name)
            )
            for name in sorted(names)
        ]


class PrincipalUse(NamedTuple):
    """What a principal uses now, within which limits; `spent` is in dollars, today."""

    principal: str
    sessions: int
    turns: int
    spent: float
    limits: PrincipalLimits


class Reservation:
    """A session that is being opened. `release` may be called more than once."""

    def __init__(self, opening: Counter[str], principal: str) -> None:
        self._opening = opening
        self._principal = principal
        self._is_held = True
        opening[principal] += 1

    def __repr__(self) -> str:
        return f"<Reservation {'held' if self._is_held else 'released'}>"

    def release(self) -> None:
        """Count it no more: it is open, and counted as that, or could not be opened."""
        if self._is_held:
            self._is_held = False
            self._opening[self._principal] -= 1
            if self._opening[self._principal] <= 0:
                del self._opening[self._principal]

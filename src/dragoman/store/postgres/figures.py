"""What a store in PostgreSQL counts about itself, for an operator: commits, refusals of the fence, its leases."""

from dataclasses import dataclass


@dataclass(slots=True)
class StoreFigures:
    """Counts since the start of the process. Each has one writer: the part of the store that does what is counted."""

    # Entries that are committed, and the statements that did it.
    entries: int = 0
    groups: int = 0
    # Commits that were tried again because the database was away, or did not say whether it had done them.
    tried_again: int = 0
    # Parts of a group that the fence refused: another node has the session, or the log has another end.
    fenced: int = 0
    # Leases that were not renewed for two thirds of their time, and those that were lost.
    leases_late: int = 0
    leases_lost: int = 0
    # Sessions of an owner that had died.
    taken_over: int = 0

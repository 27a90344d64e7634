"""The verdict on a row, and the exceptions by which a probe gives it.

    CheckStopped
    ├── RowFailed         the subject breaks the row
    │   ├── AnswerMissing      ... it did not send in time what it owes
    │   └── SubjectGone   ... it ended the connection where it owes an answer
    ├── NotTested         the row could not be judged on this subject; never green
    └── RowBlocked        a login or a version stands before it; the next step says what to do

A probe that returns has found nothing wrong. Any other exception is a fault of ours, and no verdict on the subject.
"""

from collections.abc import Sequence
from enum import Enum

from dragoman.conformance.frames import Frame


class Verdict(Enum):
    """What was found out about a row."""

    PASS = "pass"
    FAIL = "fail"
    NOT_TESTED = "not tested"
    BLOCKED = "blocked"


class CheckStopped(Exception):
    """A probe ends before its end, with a verdict. `next_step` says what a person can do about it, if anything."""

    def __init__(self, reason: str, next_step: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.next_step = next_step


class RowFailed(CheckStopped):
    """The subject breaks the row; `frames` are the shortest that show it, or none: then the last ones do."""

    def __init__(self, reason: str, frames: Sequence[Frame] = ()) -> None:
        super().__init__(reason)
        self.frames = tuple(frames)


class AnswerMissing(RowFailed):
    """The subject has not sent in time what the probe waits for."""


class SubjectGone(RowFailed):
    """The connection ended while the probe waited."""


class NotTested(CheckStopped):
    """The row cannot be judged here: nothing happened that it is about, or the subject has no such capability."""

    def __init__(self, reason: str, next_step: str = "", *, is_unadvertised: bool = False) -> None:
        super().__init__(reason, next_step)
        self.is_unadvertised = is_unadvertised


class RowBlocked(CheckStopped):
    """Something stands before the row that the subject's user has to remove."""

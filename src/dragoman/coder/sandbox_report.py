"""What the model is told of the end of a sandboxed turn: which changes are in the workspace, and which are gone.

The question about the changes comes when the model has said its last word, so without this the model would believe that
its files exist. The report is a message of the user's side in the context, which every provider takes; it says of
itself that it is not the user's. It is added before the next model call, and kept in the log with the context.

A process that is killed writes no report. So the log has notes of how far a sandbox has come (`SANDBOX`): a session
that is loaded with one that was opened and not settled has lost it, and the model is told so then (`lost_report`).
"""

from collections.abc import Sequence
from typing import Final

from dragoman.agent.session import new_id
from dragoman.coder.context import NOT_THE_USER, ContextUserMessage
from dragoman.coder.permissions import quoted
from dragoman.coder.tools.result_text import title_text
from dragoman.host.view import Conflict, ViewChange
from dragoman.vocabulary.content import Text

# How the notes are called in a session's log; their values, in the order of a sandbox's life.
SANDBOX: Final = "sandbox"
OPENED: Final = "opened"
APPLYING: Final = "applying"
SETTLED: Final = "settled"
_MOST_LINES: Final = 100
_GONE: Final = (
    "None of them is in the workspace, and the sandbox was thrown away; what is still wanted must be done again."
)
_STAYS: Final = "None of them is in the workspace. They are still in the sandbox: go on from there."

NOTHING_CHANGED: Final = "The sandbox has ended, and nothing had changed in it."
STOPPED: Final = (
    "The turn was stopped before the user had agreed to the changes in the sandbox. They are still in the sandbox, and "
    "not in the workspace: go on from there."
)
DISCARDED: Final = (
    "The user has thrown the sandbox away: nothing of it that was not applied is in the workspace, and the next call "
    "begins with a new one."
)
_KILLED: Final = (
    "The session ended before the user had agreed to the changes in the sandbox. The sandbox is gone: nothing that was "
    "changed in it is in the workspace."
)
_UNKNOWN: Final = (
    "The session ended while the changes of the sandbox were being applied to the workspace. It is not known which of "
    "them are there: look at the files before you rely on them."
)


def report_item(text: str) -> ContextUserMessage:
    """Return a report as an item of the context."""
    return ContextUserMessage(new_id("sandbox"), [Text(f"{NOT_THE_USER} {text}")])


def applied_report(changes: Sequence[ViewChange]) -> str:
    """Say that the user agreed, and what the workspace has now."""
    head = "The user agreed to the changes in the sandbox. They were applied; the workspace has all of them now:"
    return _with_lines(head, _change_lines(changes))


def refused_report(changes: Sequence[ViewChange], feedback: str = "") -> str:
    """Say that the user did not agree, and what the user wrote to that."""
    head = f"The user did not agree to the changes in the sandbox. {_STAYS}"
    return _with_lines(head, _change_lines(changes)) + quoted(feedback).replace(" ", "\n", 1)


def partly_applied_report(applied: Sequence[ViewChange], refused: Sequence[ViewChange]) -> str:
    """Say to what the user agreed, and to what not."""
    heads = (
        "The user agreed to a part of the changes in the sandbox. These were applied, and are in the workspace now:",
        f"The user refused the others. {_STAYS}",
    )
    lines = (_change_lines(applied), _change_lines(refused))
    return "\n".join(_with_lines(head, some) for head, some in zip(heads, lines, strict=True))


def unasked_report(changes: Sequence[ViewChange], reasons: Sequence[str]) -> str:
    """Say that the user was not asked, because of these reasons."""
    head = "The changes in the sandbox were not applied, and the user was not asked:"
    return _with_reasons(head, reasons, changes, _STAYS)


def conflict_report(changes: Sequence[ViewChange], conflicts: Sequence[Conflict]) -> str:
    """Say that the user agreed, but the changes did not fit to the workspace."""
    reasons = [f"{title_text(conflict.path)}: {title_text(conflict.reason)}" for conflict in conflicts]
    head = "The user agreed to the changes in the sandbox, but applying them failed:"
    return _with_reasons(head, reasons, changes, _GONE)


def failed_report(reason: str) -> str:
    """Say that the changes could not even be listed."""
    return f"The changes in the sandbox are lost: {title_text(reason)} Nothing of them is in the workspace."


def lost_report(state: object) -> str:
    """Say what became of the sandbox of a process that is gone, by the last note about it; empty: it was settled."""
    return {OPENED: _KILLED, APPLYING: _UNKNOWN}.get(state, "") if isinstance(state, str) else ""


def _with_reasons(head: str, reasons: Sequence[str], changes: Sequence[ViewChange], end: str) -> str:
    return "\n".join(
        [_with_lines(head, [title_text(reason) for reason in reasons]), _with_lines(end, _change_lines(changes))]
    )


def _change_lines(changes: Sequence[ViewChange]) -> list[str]:
    return [f"{change.kind}: {title_text(change.path)}" for change in changes]


def _with_lines(head: str, lines: Sequence[str]) -> str:
    shown = [f"- {line}" for line in lines[:_MOST_LINES]]
    more = [f"- … and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return "\n".join([head, *shown, *more])

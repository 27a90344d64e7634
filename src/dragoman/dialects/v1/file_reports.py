"""Which files a turn has changed, for JetBrains AIR that asks for it with a prompt (`handshake/air`).

The list is made of what tool calls have shown: the files of their diffs, and where a call that edits, deletes or moves
has worked. What commands change is in no tool call, so the list never claims to be complete; as those of the adapters
do not. It has only paths below the folders of the session.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from dragoman.dialects.handshake.air import FILE_CHANGE_REPORT, payload_of, with_air
from dragoman.vocabulary.events import Idle
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import Diff, FileChange
from dragoman.vocabulary.word import Meta

REQUEST: Final = "agentFileChangeReportRequest"
# What the client takes at most, by the contract.
PATHS: Final = 1024
PATH_CHARACTERS: Final = 4096
REPORT_BYTES: Final = 256 * 1024
UNCERTAINTY: Final = "Changes made by commands are not in this list."
# What is kept of a call for this, beside its content.
FIELDS: Final = ("kind", "locations")
_CHANGING: Final = frozenset({"edit", "delete", "move"})
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.A)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def requested_report(meta: Meta | None) -> str | None:
    """Return the id under which a prompt asks for a report; None: it asks for none, or not as the contract says."""
    asked: Any = payload_of(meta, REQUEST)
    if not isinstance(asked, dict) or asked.keys() != {"version", "requestId"} or asked["version"] != 1:
        return None
    request_id = asked["requestId"]
    return request_id if isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id) else None


class FileReport:
    """The files of one turn, of which the client wants to know under the id `request_id`."""

    __slots__ = ("_paths", "_request_id", "_roots", "_truncated")

    def __init__(self, request_id: str, roots: Iterable[str]) -> None:
        self._request_id = request_id
        self._roots = [_segments(root) for root in roots]
        self._paths: dict[str, None] = {}
        self._truncated = False

    def __repr__(self) -> str:
        return f"<FileReport {self._request_id!r} paths={len(self._paths)}>"

    def note(self, call: ToolCallState) -> None:
        """Take the files of a call, once it has completed."""
        # A diff is shown before the user is asked: of one that was refused or has failed nothing is known.
        if call.header.status != "completed":
            return
        for path in _changed_by(call):
            if path not in self._paths:
                self._add(path)

    def ended(self, turn: Idle) -> dict[str, object]:
        """Return `_meta` of the update that reports a turn which has ended so."""
        if turn.stop_reason in ("cancelled", "error"):
            return self.unavailable("cancelled" if turn.stop_reason == "cancelled" else "providerError")
        report: dict[str, Any] = {
            **self._begun("reported"),
            "paths": list(self._paths),
            "declaredComplete": False,
            "truncated": self._truncated,
            "uncertainty": UNCERTAINTY,
        }
        # The limit is one of the JSON, in which a character may take six.
        while len(msgspec.json.encode(report)) > REPORT_BYTES:
            report |= {"paths": report["paths"][:-64], "truncated": True}
        return with_air(None, FILE_CHANGE_REPORT, report)

    def unavailable(self, reason: str) -> dict[str, object]:
        """Return `_meta` of the update that says why there is no report."""
        return with_air(None, FILE_CHANGE_REPORT, self._begun("unavailable") | {"reason": reason})

    def _begun(self, status: str) -> dict[str, Any]:
        return {"version": 1, "requestId": self._request_id, "status": status}

    def _add(self, path: str) -> None:
        if len(path) > PATH_CHARACTERS or _CONTROL.search(path) or not self._is_inside(path) or self._is_full:
            self._truncated = True
            return
        self._paths[path] = None

    @property
    def _is_full(self) -> bool:
        return len(self._paths) >= PATHS

    def _is_inside(self, path: str) -> bool:
        # By the names alone: nothing here may look at a disk. A way up is left out, as it may lead anywhere.
        parts = _segments(path)
        roots = [root for root in self._roots if len(parts) > len(root) and parts[: len(root)] == root]
        return bool(roots) and ".." not in parts


def _changed_by(call: ToolCallState) -> Iterator[str]:
    for item in call.content:
        for change in item.changes if isinstance(item, Diff) else ():
            if isinstance(change, FileChange):
                yield change.path
                # A copy leaves the file that it was made of as it is.
                if change.operation == "move" and isinstance(change.old_path, str):
                    yield change.old_path
    header = call.header
    if header.kind in _CHANGING:
        yield from (place.path for place in header.locations or ())


def _segments(path: str) -> list[str]:
    # A path of Windows may have both separators; in any other a backslash is a letter of a name.
    parts = path.split("/") if path.startswith("/") else re.split(r"[\\/]", path)
    return [part for part in parts if part not in ("", ".")]

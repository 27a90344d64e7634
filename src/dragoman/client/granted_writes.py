"""Writes that the user has just allowed, so that the same write is not asked about a second time.

Some agents ask for an edit, make it, and then have the client write the same file with the same text. A yes counts for
one write of exactly the text that the question showed, in the same session and turn, and only if the question showed
the whole file: what it gave as the text before was all that the file held then. The file must still hold that, or the
new text already. Anything else is asked.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.client.text_files import current_bytes, encode_text
from dragoman.host.paths import PathRefused, Roots
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject, WriteTextFile
from dragoman.vocabulary.tools import Diff, FileChange

# Of one question, and in all: an edit is about a handful of files.
_FILES: Final = 64
_MOST: Final = 256


class GrantedWrite(NamedTuple):
    """One write: the session, the real path of the file, and the hash of all it is to hold."""

    session_id: str
    path: str
    digest: bytes


class ShownWrite(NamedTuple):
    """A write that a question shows, and the hash of all that the file held then; None: there was no file."""

    write: GrantedWrite
    before: bytes | None


class GrantedWrites:
    """The writes of the running turn that may be made once without a question."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        # With the hash of what the file held when the question was shown.
        self._open: OrderedDict[GrantedWrite, bytes | None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<GrantedWrites open={len(self._open)}>"

    def shown_by(self, request: RequestPermission) -> list[ShownWrite]:
        """Return the writes that a question shows whole. Blocks: files are read, as they are before the answer."""
        if not isinstance(request.subject, ToolCallSubject):
            return []
        diffs = [item for item in request.subject.tool_call.content or () if isinstance(item, Diff)]
        changes = [change for diff in diffs for change in diff.changes if isinstance(change, FileChange)]
        found = (self._shown_write(request.session_id, change) for change in changes[:_FILES])
        return [shown for shown in found if shown is not None]

    def add(self, writes: Iterable[ShownWrite]) -> None:
        """Let each of these writes be made once: the user has allowed them."""
        self._open |= dict(writes)
        limits.evict_oldest(self._open, _MOST)

    def consume(self, request: WriteTextFile, now: bytes | None) -> bool:
        """Return whether a write was granted, and end its grant. `now` is what the file holds."""
        write = self._write(request)
        if write is None or write not in self._open:
            return False
        before = self._open.pop(write)
        held = None if now is None else hashlib.sha256(now).digest()
        return held in (before, write.digest)

    def is_open(self, request: WriteTextFile) -> bool:
        """Return whether a write may have been granted, so that it is worth looking at the file."""
        return self._write(request) in self._open

    def _write(self, request: WriteTextFile) -> GrantedWrite | None:
        try:
            path = self._roots.place(request.path).path
        except (PathRefused, OSError, ValueError):
            return None
        return GrantedWrite(request.session_id, path, _digest(request.content))

    def clear(self) -> None:
        """End every grant: the turn has ended, or was cancelled."""
        self._open.clear()

    def _shown_write(self, session_id: str, change: FileChange) -> ShownWrite | None:
        """Return the write that a change shows; None if it does not show the whole file, before and after."""
        if change.operation not in ("add", "modify") or not isinstance(change.new_text, str):
            return None
        try:
            place = self._roots.place(change.path)
            before = current_bytes(place)
        except (PathRefused, OSError, ValueError):
            return None
        if before is None:
            is_whole = not change.old_text
        else:
            is_whole = isinstance(change.old_text, str) and before == encode_text(change.old_text)
        if not is_whole:
            return None
        digest = None if before is None else hashlib.sha256(before).digest()
        return ShownWrite(GrantedWrite(session_id, place.path, _digest(change.new_text)), digest)


def _digest(text: str) -> bytes:
    return hashlib.sha256(encode_text(text)).digest()

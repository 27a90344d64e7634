"""One SQLite file a session: its log, what the list shows of it, and who holds it. Used only from the writer thread.

A file stays open while its session is held and busy; other sessions' files are opened for one question. So a process
never keeps hold of a file that another may delete.

A session is free, held by us (`_held`), or held by another holder. One that we hold is unverified until its log was
read to the end (`_unverified`): bad rows are found by the reading itself, not by a pass before it, and repaired then.
"""

import logging
import os
import re
import sqlite3
import stat
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from dragoman import limits
from dragoman.limits import MIB
from dragoman.store.connections import (
    JOURNALS,
    check_kind,
    close,
    connect,
    connect_to_look,
    is_at_rest,
    put_in_place,
    store_errors,
    unlink,
)
from dragoman.store.contract import Check, Record, SessionDamaged, SessionHeld, SessionMeta, SessionMissing, StoreFailed
from dragoman.store.entries import Batch, Entry, join_texts
from dragoman.store.locks import Holder, locked, same_file
from dragoman.store.rows import (
    BadRow,
    UndecodableEntry,
    add,
    add_lone,
    build,
    last_in,
    meta_and_holder,
    meta_in,
    records_behind,
    rows_behind,
    rows_of,
    transaction,
)
from dragoman.store.salvage import ASIDE, NEW, salvage

_log: Final = logging.getLogger(__name__)
# Without a handler Python prints warnings to stderr; whether ours are shown is for the program to decide.
logging.getLogger("dragoman").addHandler(logging.NullHandler())

# Names we give; anything else was never a session here, and is not asked of the file system.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_SUFFIX: Final = ".session"
# Files kept open: sessions that are busy, not sessions that are held. Each costs three descriptors of the usual 1024.
_OPEN_FILES: Final = 100
# Microseconds. Of a lone entry the file notes only now and then when it came; a turn's end is noted exactly.
_ACTIVITY_STEP: Final = 1_000_000
# Entries read at a time: enough to be quick, few enough that writers do not wait.
BATCH: Final = 500
BATCH_BYTES: Final = 4 * MIB


class _Open:
    """A file in use. Only who holds a session writes its log, so its last number need not be asked for each time."""

    __slots__ = ("activity", "connection", "identity", "last", "path")

    def __init__(self, path: Path, connection: sqlite3.Connection, identity: os.stat_result) -> None:
        self.path = str(path)
        self.connection = connection
        self.identity = identity
        self.last: int | None = None  # the number of the last entry; None: not known
        self.activity = 0  # as it stands in the file


class _Unverified:
    """A log whose lease was acquired and that was not read to its end yet."""

    __slots__ = ("meta", "verified")

    def __init__(self, meta: SessionMeta) -> None:
        self.meta = meta
        self.verified = 0  # the number of the last entry that was checked; all before it were


class SessionFiles:
    """The folder of sessions."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self.folder: Final = folder
        self._holder = holder
        self._held: set[str] = set()  # sessions whose lease is ours
        self._unverified: dict[str, _Unverified] = {}  # those of them whose log was not read to its end
        self._open: OrderedDict[str, _Open] = OrderedDict()  # the least recently used first

    def __repr__(self) -> str:
        return f"<SessionFiles held={len(self._held)} unverified={len(self._unverified)} open={len(self._open)}>"

    # -- whole sessions ----------------------------------------------------------------------------------------------

    def create(self, meta: SessionMeta, source: str | None = None, last: int | None = None) -> None:
        """Make a new session, held by us; with a source, a copy of its log as it is at one moment, or up to `last`."""
        path = self._path(meta.id)
        # Built under another name and given its own at the end: at every moment the session is there whole, or not at
        # all. A kill leaves a `.new` file, which no listing shows and the next attempt replaces.
        new = Path(f"{path}{NEW}")
        with store_errors():
            make_folder(self.folder)
            try:
                if source is None:
                    build(new, meta, self._holder.name, lasting=False)
                else:
                    with self._file(source) as original, transaction(original, "DEFERRED"):
                        # One read transaction over all rows: the copy is the source at one moment, although its holder
                        # goes on writing.
                        build(new, meta, self._holder.name, rows_behind(original, 0, last), lasting=True)
                put_in_place(new, path)
            except BadRow as error:
                raise SessionDamaged("the session's log has an entry that cannot be read") from error
            finally:
                unlink(new)
        self._held.add(meta.id)

    def restore(self, meta: SessionMeta, entries: Sequence[Entry]) -> None:
        """Make a session of these entries, held by no store; as `create`, it is there whole or not at all."""
        path = self._path(meta.id)
        new = Path(f"{path}{NEW}")
        # To the disk itself before it has its name: its source may be deleted when this returns.
        with store_errors():
            make_folder(self.folder)
            try:
                build(new, meta, None, rows_of(entries), lasting=True)
                put_in_place(new, path)
            finally:
                unlink(new)

    def remove(self, session_id: str) -> bool:
        """Delete a session with everything that was stored of it. False: there was none."""
        self._close_file(session_id)
        self._forget_lease(session_id)
        path = self._path(session_id)
        there = False
        with store_errors():
            # The file first: without it the rest means nothing.
            for suffix in ("", *JOURNALS, NEW, ASIDE, f"{ASIDE}-wal"):
                try:
                    os.unlink(f"{path}{suffix}")
                    there = there or not suffix
                except FileNotFoundError:
                    pass
                except (IsADirectoryError, PermissionError):
                    if not os.path.isdir(f"{path}{suffix}"):
                        raise
                    raise SessionDamaged("a folder stands where the session's file should be") from None
        return there

    def ids(self) -> Iterator[str]:
        """Yield the ids of all sessions in the folder."""
        with store_errors():
            try:
                with os.scandir(self.folder) as found:
                    for entry in found:
                        name = entry.name.removesuffix(_SUFFIX)
                        if name != entry.name and _NAME.fullmatch(name):
                            yield name
            except FileNotFoundError:
                return

    def exists(self, session_id: str) -> bool:
        """Return whether there is a file for that session, whatever is in it."""
        try:
            os.lstat(f"{self.folder}/{session_id}{_SUFFIX}")
        except FileNotFoundError:
            return False
        return True

    # -- one session -------------------------------------------------------------------------------------------------

    def read_meta(self, session_id: str) -> SessionMeta:
        """Return the metadata of a session."""
        path = self._path(session_id)
        with store_errors():
            check_kind(path)
            # A file without a journal is read as it is, without locks and without leaving journal files behind. If a
            # journal appears meanwhile another process has begun to write, and what we read may be torn: read it
            # again, with locks.
            if session_id not in self._held and is_at_rest(path):
                with closing(connect_to_look(path)) as file:
                    meta = _meta(file, session_id)
                if is_at_rest(path):
                    return meta
            with self._file(session_id) as file:
                return _meta(file, session_id)

    def acquire(
        self, session_id: str, remembered: SessionMeta | None, check: Check | None = None
    ) -> tuple[SessionMeta, str | None]:
        """Acquire the lease; raise `SessionHeld` if another living holder has it. The log is verified when it is read.

        A file that cannot be opened, or whose metadata is damaged, is repaired first. The second result says what is
        known to be lost; None: nothing. `remembered` is the metadata that the list has.
        """
        try:
            meta = self._acquire(session_id, check)
            # Entries and activity are committed together, so a file that is older than the list has lost commits.
            lost = remembered is not None and remembered.activity > meta.activity
            return meta, "the end of the log is lost" if lost else None
        except SessionDamaged:
            self._close_file(session_id)
        path = self._path(session_id)
        with store_errors(), locked(self.folder, alone=True):
            try:
                return self._acquire(session_id, check), None  # another process has repaired it while we waited
            except SessionDamaged:
                self._close_file(session_id)
            check_kind(path)
            report = salvage(path, session_id, remembered, self._is_other)
        # Outside of the lock, and without a lease since the repair: another process may be faster, and has the session.
        meta = self._acquire(session_id, check)
        _log.warning("session %s repaired: %s", session_id[limits.SHORT_ID], report)
        return meta, report

    def _acquire(self, session_id: str, check: Check | None) -> SessionMeta:
        """Read the metadata once and write our name as the holder, in one transaction."""
        try:
            with store_errors(), self._file(session_id) as file:
                with transaction(file):
                    meta, holder = meta_and_holder(file)
                    if meta.id != session_id:
                        raise SessionDamaged("the file of another session stands in this one's place")
                    if check is not None:
                        check(meta)
                    if self._is_other(holder):
                        _log.debug("session %s: lease refused, another process has it", session_id[limits.SHORT_ID])
                        raise SessionHeld("another process has the session open")
                    file.execute("UPDATE session SET holder = ?", (self._holder.name,))
                self._held.add(session_id)  # inside of `_file`, which closes the files of sessions that are not held
        except (SessionDamaged, SessionHeld, SessionMissing):
            raise
        except StoreFailed:
            # The disk, or damage that only a write runs into: a flipped bit in the header makes SQLite call a file
            # read-only. A log with bad rows is repaired; anything else stays the failure that it is.
            self._scan(session_id)
            raise
        self._unverified[session_id] = _Unverified(meta)
        _log.debug("session %s: lease acquired", session_id[limits.SHORT_ID])
        return meta

    def _scan(self, session_id: str, after: int = 0) -> None:
        """Check every row behind a sequence number without decoding it; raise `SessionDamaged` at a bad one."""
        with store_errors(), self._file(session_id) as file:
            try:
                for _ in rows_behind(file, after):
                    pass
            except BadRow as error:
                raise SessionDamaged("the session's log has an entry that cannot be read") from error

    def _repair_held(self, session_id: str, known: _Unverified) -> str:
        """Cut a log that we hold at its damage. The new file has our lease from its first moment.

        A kill before the files are exchanged leaves the damaged file, to be repaired again; after it, the repaired one
        with a holder that is dead.
        """
        self._close_file(session_id)
        path = self._path(session_id)
        with store_errors(), locked(self.folder, alone=True):
            check_kind(path)
            report = salvage(path, session_id, known.meta, self._is_other, self._holder.name)
        _log.warning("session %s repaired: %s", session_id[limits.SHORT_ID], report)
        return report

    def release(self, session_id: str) -> None:
        """Release the lease, if it is ours."""
        try:
            with store_errors(), self._file(session_id) as file:
                # Only our own name: after a take-over the lease is another holder's.
                file.execute("UPDATE session SET holder = NULL WHERE holder = ?", (self._holder.name,))
        finally:
            self._close_file(session_id)
            self._forget_lease(session_id)
        _log.debug("session %s: lease released", session_id[limits.SHORT_ID])

    def _forget_lease(self, session_id: str) -> None:
        self._held.discard(session_id)
        self._unverified.pop(session_id, None)

    def check_name(self, session_id: str) -> None:
        """Raise `SessionMissing` for an id that no session of ours can have."""
        self._path(session_id)

    def check_free(self, session_id: str) -> None:
        """Raise `SessionHeld` if another living holder has the session."""
        with store_errors(), self._file(session_id) as file:
            if self._is_held_elsewhere(file):
                raise SessionHeld("another process has the session open")

    def append(self, session_id: str, entries: Sequence[Entry], activity: int) -> str | None:
        """Add entries in one transaction. The lease must still be ours, and the file in its place.

        What was not verified yet is verified first: an entry behind damage would be cut off with it, although it was
        promised to be on disk. The result says what was lost by that; None: nothing.
        """
        lost = self._verify(session_id) if session_id in self._unverified else None
        entries = join_texts(entries)
        with store_errors(), self._file(session_id) as file:
            known = self._open[session_id]
            # `known.last` is None after the file was opened anew: then the number is read inside of the transaction.
            if len(entries) == 1 and known.last is not None and activity - known.activity < _ACTIVITY_STEP:
                # A lone entry takes one statement, which is a transaction by itself: tokens of many sessions come so.
                added = add_lone(file, known.last + 1, entries[0], self._holder.name)
            else:
                added = self._append_all(file, known, entries, activity)
            if not added:
                # Nothing was written: both statements want our name in the row of the session.
                raise SessionHeld("the session was taken over by another process")
            assert known.last is not None
            known.last += len(entries)
            # After the commit: a process that deletes the file later deletes these entries with it.
            if not same_file(known.path, known.identity):
                raise SessionMissing("the session's file was taken away")
        return lost

    def _verify(self, session_id: str) -> str | None:
        """Check the rows that were not read yet; repair the log if they are damaged, and return what was lost."""
        known = self._unverified[session_id]
        lost = None
        try:
            self._scan(session_id, known.verified)
        except SessionDamaged:
            lost = self._repair_held(session_id, known)
        self._unverified.pop(session_id, None)
        return lost

    def _append_all(self, file: sqlite3.Connection, known: _Open, entries: Sequence[Entry], activity: int) -> bool:
        with transaction(file):
            moved = file.execute(
                "UPDATE session SET activity = max(activity, ?) WHERE holder = ?", (activity, self._holder.name)
            )
            if moved.rowcount != 1:
                return False
            known.last = last_in(file)
            add(file, known.last, entries)
        known.activity = activity
        return True

    def length(self, session_id: str) -> int:
        """Return the sequence number of the last entry; 0: there is none."""
        with store_errors(), self._file(session_id) as file:
            return last_in(file)

    def read(self, session_id: str, after: int) -> Batch:
        """Return the next entries behind a sequence number, each checked.

        Damage in a log that we hold, and have not verified before, is repaired: the reading goes on in the repaired
        log, which has the same entries up to there. In any other log it is `SessionDamaged`.
        """
        known = self._unverified.get(session_id)
        try:
            records, is_last = self._records(session_id, after)
        except UndecodableEntry:
            raise
        except SessionDamaged:
            if known is None:
                raise
            lost = self._repair_held(session_id, known)
            self._unverified.pop(session_id, None)
            records, is_last = self._records(session_id, after)
            return Batch(records, is_last, lost)
        if known is not None and after <= known.verified:
            known.verified = max(known.verified, records[-1].sequence if records else after)
            if is_last:
                self._unverified.pop(session_id, None)
        return Batch(records, is_last, None)

    def _records(self, session_id: str, after: int) -> tuple[list[Record], bool]:
        with store_errors(), self._file(session_id) as file:
            return records_behind(file, after, BATCH, BATCH_BYTES)

    def change(self, session_id: str, title: str | None, archived: bool | None) -> SessionMeta:
        """Change what the list shows, unless another process has the session open."""
        with store_errors(), self._file(session_id) as file:
            with transaction(file):
                if self._is_held_elsewhere(file):
                    raise SessionHeld("another process has the session open")
                if title is not None:
                    file.execute("UPDATE session SET title = ?", (title,))
                if archived is not None:
                    file.execute("UPDATE session SET archived = ?", (archived,))
            return _meta(file, session_id)

    def _is_held_elsewhere(self, file: sqlite3.Connection) -> bool:
        row = file.execute("SELECT holder FROM session").fetchone()
        return row is not None and self._is_other(row[0])

    def _is_other(self, holder: object) -> bool:
        return holder != self._holder.name and self._holder.lives(holder)

    # -- connections -------------------------------------------------------------------------------------------------

    def _close_file(self, session_id: str) -> None:
        """Close a file that is not needed for now."""
        file = self._open.pop(session_id, None)
        if file is not None:
            close(file.connection)

    def close(self) -> None:
        """Close every file. Leases stay: they end with the holder."""
        for session_id in list(self._open):
            self._close_file(session_id)

    @contextmanager
    def _file(self, session_id: str) -> Iterator[sqlite3.Connection]:
        """Yield the connection to a session's file. After a failure it is closed, and opened anew the next time."""
        file = self._open.get(session_id)
        if file is None:
            path = self._path(session_id)
            identity = check_kind(path)
            file = self._open[session_id] = _Open(path, connect(path), identity)
        self._open.move_to_end(session_id)
        try:
            yield file.connection
        except BaseException:
            self._close_file(session_id)
            raise
        if session_id not in self._held:
            self._close_file(session_id)
        # Its lease stays ours: that is a name in the file, not an open file.
        elif len(self._open) > _OPEN_FILES:
            self._close_file(next(iter(self._open)))

    def _path(self, session_id: str) -> Path:
        if _NAME.fullmatch(session_id) is None:
            raise SessionMissing("there is no such session")
        return self.folder / f"{session_id}{_SUFFIX}"


def make_folder(folder: Path) -> None:
    """Make a folder, if it is not there, that only its owner may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
        os.chmod(folder, 0o700)


def _meta(file: sqlite3.Connection, session_id: str) -> SessionMeta:
    meta = meta_in(file)
    if meta.id != session_id:
        raise SessionDamaged("the file of another session stands in this one's place")
    return meta

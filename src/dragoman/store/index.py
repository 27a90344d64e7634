"""The list of sessions: newest first, in pages, stable while sessions change. Used only from the writer thread.

It can be thrown away: everything in it also stands in the sessions' own files, and it is made again from them when it
is lost or wrong. Each time it gets a new name, because a process that still has the old one open takes away the
journal of that name when it closes it.

This is the list's file: which one is current, and how it is made. What stands in it is in `listing`.
"""

import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from dragoman.store import listing
from dragoman.store.connections import UNREADABLE, close, connect, connect_to_build, is_damage, store_errors, unlink
from dragoman.store.contract import ArchiveFilter, SessionDamaged, SessionMeta, SessionMissing, SessionPage, StoreFailed
from dragoman.store.cursor import Cursor, decode_cursor, encode_cursor
from dragoman.store.files import SessionFiles, make_folder
from dragoman.store.locks import Holder, locked, same_file
from dragoman.store.rows import transaction

T = TypeVar("T")

_NAME: Final = re.compile(r"[0-9a-f]{16}\.db")


def no_progress(done: int, total: int) -> None:
    """Default `progress` callback: ignore it."""


class Index:
    """The list, in a folder of its own beside the sessions."""

    def __init__(
        self,
        folder: Path,
        sessions: SessionFiles,
        holder: Holder,
        progress: Callable[[int, int], None] = no_progress,
    ) -> None:
        self._folder = folder
        # Told how many sessions of how many were looked at while the list is made again. What it raises stops that.
        self._progress = progress
        self._sessions = sessions
        self._holder = holder
        self._file: sqlite3.Connection | None = None
        self._path = folder
        self._identity: os.stat_result | None = None

    # -- changes -----------------------------------------------------------------------------------------------------

    def mark(self, session_id: str) -> int:
        """Note that a session's file is about to change; return the latest activity of any session."""

        def work(file: sqlite3.Connection) -> int:
            listing.mark(file, session_id, self._holder.name)
            return listing.newest_activity(file)

        return self._write(work)

    def put(self, meta: SessionMeta) -> None:
        """Add a session to the list, or replace what the list has of it."""
        self._write(lambda file: listing.put(file, meta))

    def drop(self, session_id: str) -> None:
        """Remove a session from the list."""
        self._write(lambda file: listing.drop(file, session_id))

    # -- questions ---------------------------------------------------------------------------------------------------

    def read_meta(self, session_id: str) -> SessionMeta | None:
        """Return what the list has of a session; None: nothing."""
        return self._do(lambda file: listing.read_meta(file, session_id))

    def page(self, folders: Sequence[str], cursor: str | None, archived: ArchiveFilter) -> SessionPage:
        """Return the page behind a cursor, or the first one."""
        place = None if cursor is None else decode_cursor(cursor)
        self._update_index()

        def work(file: sqlite3.Connection) -> tuple[list[SessionMeta], Cursor | None]:
            with transaction(file, "DEFERRED"):
                return listing.page(file, place, folders, archived)

        found, next_place = self._do(work)
        shown = [meta for meta in found if self._sessions.exists(meta.id)]
        # The list is a copy, the folder is the truth: a user may delete a session's file by hand.
        if len(shown) < len(found):
            for meta in found:
                if meta not in shown:
                    self.drop(meta.id)  # the file was deleted outside of the store
        return SessionPage(shown, None if next_place is None else encode_cursor(next_place))

    def _update_index(self) -> None:
        """Look at the sessions that a process was busy with when it died."""
        for session_id in self._do(lambda file: listing.orphaned_ids(file, self._holder.lives)):
            try:
                self.put(self._sessions.read_meta(session_id))
            except SessionMissing:
                self.drop(session_id)
            except SessionDamaged:
                # The row stays: opening the session salvages its file with what the list remembers.
                self._write(partial(listing.unmark, session_id=session_id))
            except StoreFailed:
                pass  # it stays pending

    # -- the file ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            close(file)

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def whole(file: sqlite3.Connection) -> T:
            with transaction(file):
                return work(file)

        return self._do(whole)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work with the list. When it turns out to be lost or wrong, it is made again and the work done with that."""
        try:
            with store_errors():
                make_folder(self._sessions.folder)
                wrong = None
                try:
                    with self._current() as file:
                        if file is not None:
                            return work(file)
                except UNREADABLE as error:
                    wrong = self._path
                    self.close()
                    if not is_damage(error):
                        raise
                except SessionDamaged:
                    wrong = self._path
                self.close()
                self._rebuild(wrong)
                with self._current() as file:
                    if file is not None:
                        return work(file)
        except SessionDamaged as error:
            raise StoreFailed("the list of sessions cannot be read") from error
        raise StoreFailed("the list of sessions cannot be made")

    @contextmanager
    def _current(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the current list, under a shared lock that prevents a rebuild. None: it is missing or wrong."""
        with locked(self._sessions.folder, alone=False):
            if self._identity is not None and not same_file(self._path, self._identity):
                self.close()  # it was rebuilt by another process, or deleted
            if self._file is None:
                path = self._newest()
                if path is not None:
                    self._open(path)
            yield self._file

    def _rebuild(self, wrong: Path | None) -> None:
        with locked(self._sessions.folder, alone=True):
            newest = self._newest()
            # We waited for the lock; meanwhile another process may have made the list that we want.
            if newest is not None and newest != wrong and self._open(newest):
                return  # another process was faster
            if not _is_folder(self._folder):
                self._folder.unlink(missing_ok=True)
                self._folder.mkdir(mode=0o700)
            # The name only grows, also when the clock goes back: the largest name is the current list.
            last = 0 if newest is None else int(newest.stem, 16)
            path = self._folder / f"{max(time.time_ns(), last + 1):016x}.db"
            try:
                with closing(connect_to_build(path)) as file:
                    self._fill(file, os.lstat(path))
            except BaseException:
                unlink(path)
                raise
            for name in os.listdir(self._folder):
                if not name.startswith(path.name) and not os.path.isdir(self._folder / name):
                    unlink(self._folder / name)

    def _fill(self, file: sqlite3.Connection, identity: os.stat_result) -> None:
        with transaction(file):
            listing.create(file, os.urandom(8).hex(), identity.st_ino, _boot())
            names = list(self._sessions.ids())
            for number, name in enumerate(names):
                # Called for every session, since making the list of ten thousand takes seconds and a person may wait
                # for it.
                self._progress(number, len(names))
                self._add(file, name)
        file.execute("PRAGMA journal_mode = WAL")

    def _newest(self) -> Path | None:
        if not _is_folder(self._folder):
            return None
        names = [name for name in os.listdir(self._folder) if _NAME.fullmatch(name)]
        return self._folder / max(names) if names else None

    def _open(self, path: Path) -> bool:
        """Open a list, if it is one, and the one that was made here."""
        self._path, self._identity = path, os.lstat(path)
        if not stat.S_ISREG(self._identity.st_mode):
            return False
        file = None
        try:
            file = connect(path)
            format_, inode, boot = file.execute("SELECT format, file, boot FROM about").fetchone() or (None, None, "")
            # A copy, brought back from somewhere, tells of another time.
            if format_ == listing.FORMAT and inode == self._identity.st_ino:
                # The list is written without waiting for the disk (see `connect`), so a power cut may have lost its
                # last changes; a new boot id is how that is noticed.
                if boot != _boot():
                    self._compare(file)
                self._file, file = file, None
        except UNREADABLE as error:
            if not is_damage(error):
                raise
        finally:
            if file is not None:
                close(file)
        return self._file is not None

    def _compare(self, file: sqlite3.Connection) -> None:
        """Once after a start of the machine: it may have stopped before the last changes reached the disk."""
        with transaction(file):
            known = listing.all_ids(file)
            there = set(self._sessions.ids())
            for session_id in known - there:
                listing.drop(file, session_id)
            for number, session_id in enumerate(new := there - known):
                self._progress(number, len(new))
                self._add(file, session_id)
            file.execute("UPDATE about SET boot = ?", (_boot(),))

    def _add(self, file: sqlite3.Connection, session_id: str) -> None:
        """Add a session that the list does not have. A bad file harms one session."""
        try:
            listing.put(file, self._sessions.read_meta(session_id))
        except (SessionMissing, SessionDamaged):
            pass
        except StoreFailed:
            listing.mark(file, session_id)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _boot() -> str:
    """Return the id of this start of the machine; a constant where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""

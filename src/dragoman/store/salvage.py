"""A damaged session's file: what can still be read is kept, the rest is cut off, and the damaged file is set aside.

Call it with the folder locked exclusively: two processes must not repair the same file at once.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from dragoman.store.connections import UNREADABLE, connect_to_salvage, is_damage, unlink
from dragoman.store.contract import SessionDamaged, SessionHeld, SessionMeta
from dragoman.store.rows import BadRow, Row, build, meta_in, rows_behind

# Suffix of the damaged file, kept for other recovery tools; only the latest one of a session is kept.
ASIDE: Final = ".damaged"
NEW: Final = ".new"


def salvage(
    path: Path,
    session_id: str,
    remembered: SessionMeta | None,
    is_held: Callable[[object], bool],
    holder: str | None = None,
) -> str:
    """Put the readable part of a log in the place of the damaged file; return a sentence on what was lost.

    `remembered`: the metadata to use if that of the file cannot be read. `is_held` tells whether a name found in the
    file is that of another living holder: then `SessionHeld`. `holder`: whose lease the new file has, so that a session
    that is held while it is repaired stays held. `SessionDamaged` if nothing can be read.
    """
    with closing(connect_to_salvage(path)) as damaged:
        # The lease is looked at first: a file that another process writes only looks damaged from outside.
        meta = _meta(damaged, is_held) or remembered
        rows, is_whole = _readable(damaged)
    if meta is not None and meta.id != session_id:
        raise SessionDamaged("the file of another session stands in this one's place")
    # An empty log that is whole is a session that was just made; an empty one that is not whole has lost everything,
    # and replacing its file would destroy what a recovery tool could still find.
    if meta is None or (not rows and not is_whole):
        raise SessionDamaged("nothing of the session can be read")
    new = Path(f"{path}{NEW}")
    try:
        unlink(new)
        build(new, meta, holder, rows, lasting=True)
        _exchange(path, new)
    finally:
        unlink(new)
    if is_whole:
        return "the session's file was damaged; the log is whole"
    return f"the session's file was damaged; the log is kept up to entry {len(rows)}, the rest is lost"


def _meta(damaged: sqlite3.Connection, is_held: Callable[[object], bool]) -> SessionMeta | None:
    try:
        row = damaged.execute("SELECT holder FROM session").fetchone()
        if row is not None and is_held(row[0]):
            raise SessionHeld("another process has the session open")
        return meta_in(damaged)
    except SessionDamaged:
        return None
    except UNREADABLE as error:
        if not is_damage(error):
            raise
        return None


def _readable(damaged: sqlite3.Connection) -> tuple[list[Row], bool]:
    """Return the rows before the damage, and whether those are all."""
    rows: list[Row] = []
    try:
        for row in rows_behind(damaged, 0):
            rows.append(row)  # noqa: PERF402  # what was read before the damage stays
    except BadRow:
        return rows, False
    except UNREADABLE as error:
        if not is_damage(error):
            raise
        return rows, False
    return rows, True


def _exchange(path: Path, new: Path) -> None:
    """Move the damaged file aside and the new one into its place. At every moment one of them is there."""
    aside = f"{path}{ASIDE}"
    # States a kill can leave: the damaged file alone; both names for it; the journal moved; the new file in place. In
    # each of them `path` names a whole file or the damaged one, so the repair can be done again.
    unlink(aside)
    unlink(f"{aside}-wal")
    try:
        os.link(path, aside)
    except OSError:
        shutil.copyfile(path, aside)  # a file system without links
        os.chmod(aside, 0o600)
    # The journal goes before the new file comes: SQLite would write what is in it into whatever it finds.
    try:
        os.rename(f"{path}-wal", f"{aside}-wal")
    except FileNotFoundError:
        pass
    unlink(f"{path}-shm")
    os.replace(new, path)

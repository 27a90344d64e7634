"""Where our data lives: `$DRAGOMAN_HOME`, or the platform's own folder for such things."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.store.sqlite import SqliteStore


def home() -> Path:
    """The folder. It need not exist yet."""
    named = os.environ.get("DRAGOMAN_HOME")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dragoman"
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification has a relative path ignored.
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "dragoman"


def open_store(progress: Callable[[int, int], None] | None = None) -> "SqliteStore":
    """The sessions of this user. `progress` is told how far it is when their list has to be made again."""
    from dragoman.store.index import no_progress
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(home() / "sessions", progress=progress or no_progress)

"""Where our data lives: `$DRAGOMAN_HOME`, or the platform's own folder for such things."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.store.sqlite import SqliteStore


def home_folder() -> str:
    """Return the folder. It need not exist yet."""
    named = os.environ.get("DRAGOMAN_HOME")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    user = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "dragoman")
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification has a relative path ignored.
    return os.path.join(data if os.path.isabs(data) else os.path.join(user, ".local", "share"), "dragoman")


def home() -> "Path":
    """Return `home_folder()` as a `Path`. It imports `pathlib`, which a quick start-up avoids."""
    from pathlib import Path

    return Path(home_folder())


def open_store(progress: Callable[[int, int], None] | None = None) -> "SqliteStore":
    """Return the sessions of this user. `progress` is told how far it is when their list has to be made again."""
    from dragoman.store.index import no_progress
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(home() / "sessions", progress=progress or no_progress)

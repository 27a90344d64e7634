"""Find our data: `$DRAGOMAN_HOME`, or the platform's own folder for such things.

Part of every start: what takes time to import is imported where it is used.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
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
    """Return the sessions of this user. `progress` is called with done and total while their list is made again."""
    from dragoman.store.index import no_progress
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(home() / "sessions", progress=progress or no_progress, on_delete=_delete_what_belongs_to)


def _delete_what_belongs_to(session_id: str) -> None:
    """Delete what is kept outside of the store for a session that was deleted."""
    from dragoman.coder.kept_results import delete_results

    delete_results(home_folder(), session_id)


def started_files() -> list[str]:
    """Return the files that configurations of trusted projects start: no agent writes one without a question.

    As they are named, and where links lead. Most users have none, and import nothing for it.
    """
    registry = os.path.join(home_folder(), "trust.json")
    if not os.path.lexists(registry):
        return []
    from pathlib import Path

    from dragoman.host import trust

    return trust.started_files(Path(registry))


def why_unwritable(folder: str, *, make: bool = True) -> str | None:
    """Return why nothing can be kept in a folder, with the way out; None if something can.

    It is made if it is not there; or else, without `make`, the folder is looked at that it would be made in.
    """
    import tempfile

    try:
        if make:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, file = tempfile.mkstemp(prefix=".writable-", dir=folder if make else _nearest(folder))
        try:
            os.write(descriptor, b"1")  # a full disk makes files, and fills none
        finally:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(file)
    except OSError as error:
        reason = (error.strerror or "no").lower()
        return f"{folder}: cannot be written ({reason}); DRAGOMAN_HOME can name another folder"
    return None


def _nearest(folder: str) -> str:
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder

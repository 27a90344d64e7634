"""Find our folders: settings, data, state and cache, each in the platform's own; with `$DRAGOMAN_HOME`, all in one.

The rule is that of `platformdirs` (a test holds it against ours), without importing it: see
docs/decisions/platform-folders.md. Earlier versions had everything in one folder, the former folder. What
`former_files` has not moved yet is used where it is, so every path comes from `own_path`.

Part of every start: what takes time to import is imported where it is used.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.client.registry import AgentRegistry
    from dragoman.store.postgres.store import PostgresStore
    from dragoman.store.sqlite import SqliteStore

_NAME: Final = "dragoman"
_MACOS: Final = "Library/Application Support"


def config_folder() -> str:
    """Return the folder of what the user writes. Like the others it need not exist yet.

    `CommandError` if there is no home folder, and no variable that names a folder.
    """
    return _named() or _platform_folder("XDG_CONFIG_HOME", ".config", _MACOS)


def data_folder() -> str:
    """Return the folder of sessions, keys, tokens, and of what is trusted."""
    return _named() or _platform_folder("XDG_DATA_HOME", ".local/share", _MACOS)


def state_folder() -> str:
    """Return the folder of logs and of what was typed in `chat`."""
    return _named() or _platform_folder("XDG_STATE_HOME", ".local/state", _MACOS)


def cache_folder() -> str:
    """Return the folder of what can be fetched again."""
    named = _named()
    return os.path.join(named, "cache") if named else _platform_folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def own_folders() -> list[str]:
    """Return every folder of ours, also the former one: hidden from tools and commands, and written after a yes."""
    named = _named()
    if named:
        return [named]
    folders = [data_folder(), config_folder(), state_folder(), cache_folder(), former_folder()]
    return [folder for folder in dict.fromkeys(folders) if folder]


def folders_by_kind() -> dict[str, str]:
    """Return the folders by what they are for, to be shown."""
    return {"config": config_folder(), "data": data_folder(), "state": state_folder(), "cache": cache_folder()}


def own_path(name: str) -> str:
    """Return the path of what `name` is in our folders; in the former folder as long as it is there alone."""
    path = new_path(name)
    if _named():
        return path
    former = os.path.join(former_folder(), name)
    is_former = former not in (path, name) and not os.path.lexists(path) and os.path.lexists(former)
    return former if is_former else path


def new_path(name: str) -> str:
    """Return the path that `name` has when nothing is left in the former folder."""
    place = PLACES.get(name, data_folder)
    return place() if place is cache_folder else os.path.join(place(), name)


# Whose folder is which; what is not named here is data.
PLACES: Final[dict[str, Callable[[], str]]] = {
    "config.toml": config_folder,
    "acp.json": config_folder,
    "commands": config_folder,
    "agents": config_folder,
    "skills": config_folder,
    "hooks.json": config_folder,
    "AGENTS.md": config_folder,
    "CLAUDE.md": config_folder,
    "GEMINI.md": config_folder,
    "log": state_folder,
    "history": state_folder,
    "cache": cache_folder,
}
# Stands in the former folder where something stays there that the user has been told of.
STAYED: Final = ".stayed-here"


def former_folder() -> str:
    """Return the folder that everything was in; empty: none, or one that depends on the working folder."""
    if _named():
        return ""
    user = os.path.expanduser("~")
    data = os.environ.get("XDG_DATA_HOME", "")
    if sys.platform == "darwin":
        above = os.path.join(user, _MACOS)
    else:
        above = data if os.path.isabs(data) else os.path.join(user, ".local", "share")
    return os.path.join(above, _NAME) if os.path.isabs(above) else ""


def former_names(*, stayed: bool = False) -> list[str]:
    """Return the names in the former folder that belong elsewhere now; those that stay there only with `stayed`.

    One look at the folder: part of every start.
    """
    former = former_folder()
    try:
        names = os.listdir(former) if former else []
    except OSError:
        return []
    if STAYED in names and not stayed:
        return []
    if former == data_folder():
        names = [name for name in names if name in PLACES]
    return sorted(name for name in names if name != STAYED and new_path(name) != os.path.join(former, name))


def _named() -> str:
    """Return the one folder that the user wants to have for everything; empty: none is named."""
    named = os.environ.get("DRAGOMAN_HOME")
    return os.path.abspath(os.path.expanduser(named)) if named else ""


def _platform_folder(variable: str, usual: str, macos: str) -> str:
    above = os.environ.get(variable, "")
    # The XDG specification has a relative path ignored.
    if not os.path.isabs(above):
        above = os.path.join(_user_home(), macos if sys.platform == "darwin" else usual)
    return os.path.join(above, _NAME)


def _user_home() -> str:
    """Return `$HOME`; where that is no absolute path, what the system has for this user."""
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    if not os.path.isabs(home):
        raise CommandError("there is no home folder: set HOME, or name a folder for everything in DRAGOMAN_HOME")
    return home.rstrip("/") or "/"


def own_file(*names: str) -> "Path":
    """Return `own_path` as a `Path`, with names below it. It imports `pathlib`, which a quick start-up avoids."""
    from pathlib import Path

    return Path(own_path(names[0]), *names[1:])


def open_store(progress: Callable[[int, int], None] | None = None) -> "SqliteStore":
    """Return the sessions of this user. `progress` is called with done and total while their list is made again."""
    from dragoman.store.index import no_progress
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(own_file("sessions"), progress=progress or no_progress, on_delete=_delete_what_belongs_to)


def open_database(url: str, **options: Any) -> "PostgresStore":
    """Return the sessions in the PostgreSQL database of an address; `options` are those of `PostgresStore`."""
    from dragoman.store.postgres.store import PostgresStore

    return PostgresStore(url, on_delete=_delete_what_belongs_to, **options)


def open_recordings() -> "SqliteStore":
    """Return the recorded sessions of other agents."""
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(own_file("recorded"))


def _delete_what_belongs_to(session_id: str) -> None:
    """Delete what is kept outside of the store for a session that was deleted."""
    from dragoman.coder.kept_results import delete_results

    delete_results(data_folder(), session_id)


def read_registry(folder: str) -> "AgentRegistry":
    """Return the agents known by name, also those of the nearest trusted project from `folder` upwards."""
    from dragoman.client.registry import AgentRegistry

    home, trust = own_file("acp.json").parent, own_file("trust.json")
    return AgentRegistry.read(home, environment=os.environ, folder=folder, trust=trust)


def started_files() -> list[str]:
    """Return the files that configurations of trusted projects start: no agent writes one without a question.

    As they are named, and where links lead. Most users have none, and import nothing for it.
    """
    registry = own_path("trust.json")
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

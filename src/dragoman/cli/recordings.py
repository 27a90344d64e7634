"""Record the sessions of other agents, as the settings say."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.store.recording import Recordings


def recordings_of(agent: str, on_failure: Callable[[str], None]) -> "Recordings | None":
    """Return the recordings of an agent's sessions; None for our own, which stores them itself, and where the user
    wants none. `on_failure` is called with a sentence if the disk does not take one; the command goes on.

    Raises `SettingsError`.
    """
    if not agent:
        return None
    from dragoman.cli.settings import read_settings

    settings = read_settings()
    if not settings.flag("record_sessions"):
        return None
    from dragoman.cli.home import open_recordings
    from dragoman.store.recording import Recordings

    return Recordings(open_recordings(), agent, days=settings.number("record_days"), on_failure=on_failure)

"""The administrator's file of this machine: where it is, and its settings, read once in a process.

Part of every start: without a file nothing is imported and one look is taken.
"""

import functools
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.coder.managed_settings import ManagedSettings

MANAGED_FILE: Final = (
    "/Library/Application Support/Dragoman/managed.toml" if sys.platform == "darwin" else "/etc/dragoman/managed.toml"
)
# Whose file it has to be: root's.
OWNER: Final = 0


@functools.cache
def managed_settings() -> "ManagedSettings | None":
    """Return what the administrator has set; None: there is no file. `CommandError` where it cannot be used."""
    try:
        os.lstat(MANAGED_FILE)
    except FileNotFoundError:
        return None
    except OSError:
        pass  # read_managed says why
    from dragoman.coder.managed_file import ManagedFileFailed, read_managed

    try:
        return read_managed(MANAGED_FILE, OWNER)
    except ManagedFileFailed as error:
        raise CommandError(str(error)) from None

"""The administrator's file of this machine: where it is, and its settings, read once in a process.

Part of every start: without a file nothing is imported and one look is taken.
"""

import functools
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.client.permission_policy import Level, PermissionPolicy
    from dragoman.coder.managed_settings import ManagedSettings

MANAGED_FILE: Final = (
    "/Library/Application Support/Dragoman/managed.toml" if sys.platform == "darwin" else "/etc/dragoman/managed.toml"
)
# Whose file it has to be: root's.
OWNER: Final = 0


def managed_file() -> str:
    """Return the path of the administrator's file, whether there is one or not."""
    return MANAGED_FILE


@functools.cache
def managed_settings() -> "ManagedSettings | None":
    """Return what the administrator has set; None: nothing. `CommandError` where the file cannot be used.

    Where its folder is there and the file is not, the folder is looked at all the same: a user who can write in it
    could have taken the file away.
    """
    try:
        os.lstat(os.path.dirname(MANAGED_FILE))
    except FileNotFoundError:
        return None
    except OSError:
        pass  # read_managed says why
    from dragoman.coder.managed_file import ManagedFileFailed, read_managed

    try:
        found = read_managed(MANAGED_FILE, OWNER)
    except ManagedFileFailed as error:
        raise CommandError(str(error)) from None
    return found if found.file else None


# What a level of `--allow` is as a mode of ours: one that lets as much happen without a question.
_AS_MODES: Final[dict[str, str]] = {"edit": "workspace-write", "all": "full-access"}


def check_level(level: "Level") -> None:
    """Raise `CommandError` for a level of `--allow` that the administrator does not permit, and for a broken file."""
    settings = managed_settings()
    if settings is not None and level in _AS_MODES and not settings.modes.permits(mode := _AS_MODES[level]):
        raise CommandError(f"--allow {level} is what mode {mode} is, and {settings.says('that mode')}")


def managed_policy(policy: "PermissionPolicy") -> "PermissionPolicy":
    """Return the policy of a client within the administrator's bounds, with the rules that come before the user's.

    A level that is not permitted becomes the next lower one that is.
    """
    settings = managed_settings()
    if settings is None:
        return policy
    from dataclasses import replace

    permits = settings.modes.permits
    level = policy.allow
    if level == "all" and not permits("full-access"):
        level = "edit"
    if level == "edit" and not permits("workspace-write"):
        level = "read"
    unasked = policy.unasked if permits("full-access") else "reject"
    return replace(policy, allow=level, unasked=unasked, fixed=settings.fixed_rules())

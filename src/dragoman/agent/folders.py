"""The folders a session is opened in: they exist on this machine, and a link to a folder is that folder."""

import os

from dragoman.errors import INVALID_PARAMS, RequestFailed


def check_folders(cwd: str, more: object) -> None:
    """Refuse a session whose folders are not all there."""
    for path in [cwd, *(more if isinstance(more, list) else [])]:
        if not os.path.isdir(path):
            raise RequestFailed(INVALID_PARAMS, f"Not a folder on the agent's machine: {path}", {"path": path})


def check_same(known: str, cwd: str) -> None:
    """Refuse to open a session again in another folder than its own."""
    if not is_same(known, cwd):
        raise RequestFailed(INVALID_PARAMS, "The session has another cwd")


def is_same(one: str, other: str) -> bool:
    """Whether two paths are one folder."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)

"""The folders a session is opened in: they exist on this machine, and a link to a folder is that folder."""

import os

from dragoman.errors import INVALID_PARAMS, RequestFailed


def check_folders(cwd: str, more: object) -> None:
    """Refuse a session whose folders are not all there."""
    for path in [cwd, *(more if isinstance(more, list) else [])]:
        if not os.path.isdir(path):
            raise RequestFailed(INVALID_PARAMS, f"Not a folder on the agent's machine: {path}", {"path": path})


def check_same(known: str, cwd: str) -> None:
    """Refuse to open a session again in another folder than its own, and say which one that is.

    A client that may not know the folder is not told of the session: a gateway has refused it before.
    """
    if not is_same(known, cwd):
        message = f"The session belongs to another folder: open it with the cwd {known}"
        raise RequestFailed(INVALID_PARAMS, message, {"cwd": known})


def is_same(one: str, other: str) -> bool:
    """Whether two paths are one folder."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)

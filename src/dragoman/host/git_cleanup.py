"""Takes away what no git has put into a git folder: after a confined command could write in its objects, refs and logs.

A link there leads out of the repository, and a folder with the right names is a repository of its own. Nothing is
followed, and no folder is too deep or too closed to be deleted. Blocks.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from dragoman.host.openat import folder_at, remove_tree

# Folders in folders of refs, logs and large files; git makes fewer.
_MOST_DEPTH: Final = 40
# What is read of a file to see whether git has written it.
_BEGINNING_BYTES: Final = 4096
# What git has in its folder of objects.
_OBJECT_FOLDERS: Final = ("pack", "info", *(f"{number:02x}" for number in range(256)))
_PACK: Final = re.compile(r"(pack|multi-pack-index|tmp_|\.tmp).*")
_INFO: Final = re.compile(r"(packs|commit-graph|alternates|http-alternates).*")
_LOOSE: Final = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}|tmp_obj_.*")


def remove_odd_files(folder: str, since: int, is_good: Callable[[str, bytes], object]) -> Iterator[str]:
    """Delete what is neither file nor folder, and files that were changed since and are not `is_good`; yield the paths.

    `since` is a change time in nanoseconds. `is_good` is given a name and the beginning of the file. `OSError` if
    something cannot be deleted.
    """
    if os.path.isdir(folder):
        with folder_at(folder, ".") as fd:
            yield from _odd_files_in(folder, fd, since, is_good, 0)


def remove_odd_objects(folder: str, since: int) -> Iterator[str]:
    """Delete what no git has put among the objects, in folders that were changed since; yield the paths. `OSError`."""
    for name in ("", *_OBJECT_FOLDERS):
        path = os.path.join(folder, name)
        if not os.path.isdir(path) or os.path.islink(path) or os.lstat(path).st_ctime_ns < since:
            continue
        with folder_at(folder, ".") as top, _opened_folder(name or ".", top) as fd:
            for inner in os.listdir(fd):
                if not _is_object(name, inner, os.stat(inner, dir_fd=fd, follow_symlinks=False).st_mode):
                    _delete(inner, fd)
                    yield os.path.join(path, inner)


def _odd_files_in(path: str, fd: int, since: int, is_good: Callable[[str, bytes], object], depth: int) -> Iterator[str]:
    for name in os.listdir(fd):
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        whole = os.path.join(path, name)
        if stat.S_ISDIR(status.st_mode) and depth < _MOST_DEPTH:
            with _opened_folder(name, fd) as inner:
                yield from _odd_files_in(whole, inner, since, is_good, depth + 1)
            continue
        is_known = stat.S_ISREG(status.st_mode) and status.st_ctime_ns < since
        if is_known or (stat.S_ISREG(status.st_mode) and is_good(name, _beginning(name, fd))):
            continue
        _delete(name, fd)
        yield whole


@contextmanager
def _opened_folder(name: str, folder: int) -> Iterator[int]:
    """Open a folder below an open one, also where the command has taken away the right to enter it."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(PermissionError):  # it is not ours
            os.chmod(name, mode | stat.S_IRWXU, dir_fd=folder)
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _delete(name: str, folder: int) -> None:
    """Delete a file, or a folder of any depth with all that is in it; `OSError` if it is still there."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        with _opened_folder(name, folder):  # and opened up
            remove_tree(f"/proc/self/fd/{folder}/{name}")
        if name in os.listdir(folder):
            raise OSError(errno.ENOTEMPTY, "it could not be deleted", name) from None


def _is_object(folder: str, name: str, mode: int) -> bool:
    """Return whether git has such a thing in this folder of its objects."""
    if not folder:
        return stat.S_ISDIR(mode) and name in _OBJECT_FOLDERS
    if folder == "info" and name == "commit-graphs":
        return stat.S_ISDIR(mode)
    known = {"pack": _PACK, "info": _INFO}.get(folder, _LOOSE)
    return stat.S_ISREG(mode) and known.fullmatch(name) is not None


def _beginning(name: str, folder: int) -> bytes:
    """Return the first bytes of a file; of one that cannot be read, a byte that no file of git begins with."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return b"\0"
    with open(fd, "rb") as file:
        return file.read(_BEGINNING_BYTES)

"""Landlock: which files this process, and all it becomes, may read and write. Asked of the kernel by ctypes.

Rules only allow, and a rule for a folder holds for all that is in it. So whatever is to be left out is left out by
allowing its neighbours one by one: `around`.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final

_CREATE_RULESET: Final = 444  # the numbers are the same on every machine
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_IOCTL_DEVICE: Final = 1 << 15
READ: Final = EXECUTE | READ_FILE | READ_DIR
_ALL_SINCE: Final = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEVICE}
_FOR_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_MAKE_DEVICES: Final = (1 << 6) | (1 << 11)
_TCP: Final = 0b11
_SCOPES: Final = 0b11  # abstract sockets and signals, to processes outside

# Before 3, `truncate` is free everywhere: no promise about writing could be kept.
LEAST_VERSION: Final = 3
NETWORK_VERSION: Final = 4
SCOPE_VERSION: Final = 6
# Rules. A folder with more neighbours than this is not opened one by one.
_MOST_RULES: Final = 20_000


def version() -> int:
    """Return the kernel's version of Landlock, 0 if it has none."""
    try:
        return max(0, _syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    except OSError:
        return 0


def everything(abi: int) -> int:
    """Return all rights that this version knows."""
    return sum(rights for since, rights in _ALL_SINCE.items() if since <= abi)


def writing(abi: int) -> int:
    """Return all that may be done in a folder of one's own: everything but making devices."""
    return everything(abi) & ~_MAKE_DEVICES & ~_IOCTL_DEVICE


def restrict(rules: Collection[tuple[str, int]], *, abi: int, network: bool) -> None:
    """Restrict this thread, for good, to what the rules allow. The caller has set no_new_privs. Raises `OSError`."""
    if len(rules) > _MOST_RULES:
        raise OSError("there are too many files beside those that are hidden")
    handled = everything(abi)
    attributes = struct.pack("=Q", handled)
    if abi >= NETWORK_VERSION:
        attributes += struct.pack("=Q", 0 if network else _TCP)
    if abi >= SCOPE_VERSION:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def around(folder: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield the largest parts of a folder that hold nothing of what is excluded.

    Links are left out: they are no place.
    """
    below = [path for path in excluded if path == folder or path.startswith(folder.rstrip("/") + "/")]
    if not below:
        yield folder
        return
    if folder in below:
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from around(entry.path, below)
        elif not entry.is_symlink() and entry.path not in below:
            yield entry.path


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = _open_through_no_link(path)
    except OSError:
        return  # gone: nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FOR_FILES
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


def _open_through_no_link(path: str) -> int:
    """Open what a real path names; `OSError` if a link stands anywhere in it by now: that would allow another place."""
    *above, name = path.split("/")
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in filter(None, above):
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name or ".", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

"""Move what is left in the former folder, which had everything in it, to the folders of `home`.

`dragoman.cli.home.former_names` has found something, so a start comes here once in a life. Promises:
- Nothing is overwritten and nothing is lost. What stands at the new place already counts; what is at the former one
  stays there, the user is told once, and `STAYED` has later starts not look again.
- A thing is at its former place, or at its new one, or whole at both: a kill at any moment leaves that, and the next
  start goes on. So `home.own_path` finds it at every moment.
- Nothing moves while a session of the folder is leased: its process may be one of an earlier version, which reads its
  settings here. Then everything stays for now, and is used where it is.
- No link is followed. One that is moved leads where it led. Modes stay.
- One process moves at a time, and others wait for it (the lock is that of the folder, as `credentials` has it).
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from dragoman.cli.errors import print_notice
from dragoman.cli.home import PLACES, STAYED, former_folder, former_names, new_path
from dragoman.host.private_file import write_private
from dragoman.store.contract import StoreFailed
from dragoman.store.locks import is_in_use, locked

# What is copied to another file system at most, of one thing; more of it stays.
_MOST_NAMES: Final = 10_000
_FILE_BYTES: Final = 64 * 1024 * 1024
_DEPTH: Final = 8
# Not every file system can give a file a second name.
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def move_former_files() -> None:
    """Move them, and say on stderr what was moved where. A failure is none: they are used where they are."""
    former = former_folder()
    sentences: list[str] = []
    try:
        with locked(Path(former), alone=True):
            # Who runs this as another user, as by sudo, would make the folders theirs.
            if os.stat(former).st_uid != os.geteuid() or is_in_use(Path(former, "sessions")):
                return
            sentences = _move_all(former)
    except (OSError, StoreFailed):
        return
    for sentence in sentences:
        print_notice(sentence)


def _move_all(former: str) -> list[str]:
    """Return what to tell the user."""
    moved: dict[str, list[str]] = {}
    stayed: list[str] = []
    is_over = True
    for name in former_names():
        source, target = os.path.join(former, name), new_path(name)
        try:
            left = list(_move_named(name, source, target))
        except OSError:
            is_over = False  # such as a folder that cannot be written: tried again at the next start
            continue
        if not os.path.lexists(source):
            moved.setdefault(os.path.dirname(target) if name != "cache" else target, []).append(name)
        stayed += [f"{at} stays there and is not used: {to} is there already" for at, to in left]
    if is_over and former_names():
        write_private(Path(former, STAYED), "".join(f"{sentence}\n" for sentence in stayed).encode())
    told = "; ".join(f"{', '.join(names)} to {folder}" for folder, names in moved.items())
    return [*([f"moved from {former}: {told}"] if told else []), *stayed]


def _move_named(name: str, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Move a thing of the former folder; yield what stays and what it is in the way of."""
    if os.path.realpath(source) == os.path.realpath(target):
        return  # the user has linked one to the other
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    if name not in PLACES and _is_folder(source):
        # Sessions: files in it belong together, so all of it moves in one step or stays.
        yield from _rename_folder(source, target)
        return
    yield from _move(source, target, [_MOST_NAMES], _DEPTH)


def _rename_folder(source: str, target: str) -> Iterator[tuple[str, str]]:
    if os.path.lexists(target):
        yield source, target
        return
    os.rename(source, target)


def _move(source: str, target: str, names_left: list[int], depth: int) -> Iterator[tuple[str, str]]:
    names_left[0] -= 1
    if names_left[0] < 0 or depth < 0:
        raise OSError(errno.E2BIG, "more than is moved", source)
    status = os.lstat(source)
    if stat.S_ISLNK(status.st_mode):
        is_moved = _move_link(source, target)
    elif not stat.S_ISDIR(status.st_mode):
        is_moved = _move_file(source, target, status)
    elif not os.path.lexists(target) and _can_be_renamed(source, target):
        is_moved = True
    else:
        with suppress(FileExistsError):
            os.mkdir(target, stat.S_IMODE(status.st_mode))
        is_moved = _is_folder(target)
        if is_moved:
            for name in sorted(os.listdir(source)):
                yield from _move(os.path.join(source, name), os.path.join(target, name), names_left, depth - 1)
            with suppress(OSError):  # what stays is in it
                os.rmdir(source)
    if not is_moved:
        yield source, target


def _can_be_renamed(source: str, target: str) -> bool:
    """Rename a folder; False: the new place is on another file system."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _move_link(source: str, target: str) -> bool:
    """Make a link that leads where the former one leads, and delete that. False: something else is there."""
    leads = os.path.join(os.path.realpath(os.path.dirname(source)), os.readlink(source))
    leads = os.path.join(os.path.realpath(os.path.dirname(leads)), os.path.basename(leads))
    with suppress(FileExistsError):
        os.symlink(leads, target)
    if not os.path.islink(target) or os.readlink(target) != leads:
        return False
    os.unlink(source)
    return True


def _move_file(source: str, target: str, status: os.stat_result) -> bool:
    """Give a file its new name, then take the former one away. False: another file is there."""
    try:
        _put(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target, status)
    if not os.path.lexists(source):
        return True
    if not _is_same(source, target):
        return False
    for name in (_unfinished(target), source):  # in this order: as long as there is a source, this is done again
        with suppress(FileNotFoundError):
            os.unlink(name)
    return True


def _put(source: str, target: str) -> None:
    """Give a file its new name, beside the former one or in its place, unless something has that name."""
    try:
        os.link(source, target, follow_symlinks=False)  # unlike a rename, it overwrites nothing
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not os.path.lexists(target):
            os.rename(source, target)


def _unfinished(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.moving")


def _copy(source: str, target: str, status: os.stat_result) -> None:
    """Put a copy at the new place, whole and on disk, unless something is there."""
    if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
        raise OSError(errno.EFBIG, "is not copied", source)
    new = _unfinished(target)
    with suppress(FileNotFoundError):
        os.unlink(new)  # of a process that was killed
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with (
        open(os.open(source, flags), "rb") as given,
        open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as made,
    ):
        shutil.copyfileobj(given, made)
        made.flush()
        os.fchmod(made.fileno(), stat.S_IMODE(status.st_mode))
        os.utime(made.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(made.fileno())
    _put(new, target)
    with suppress(FileNotFoundError):
        os.unlink(new)


def _is_same(source: str, target: str) -> bool:
    """Return whether two names have the same file, or two files the same bytes: then one of them is enough."""
    one, other = os.lstat(source), os.lstat(target)
    if os.path.samestat(one, other):
        return True
    if not (stat.S_ISREG(one.st_mode) and stat.S_ISREG(other.st_mode)) or one.st_size != other.st_size:
        return False
    import filecmp

    return filecmp.cmp(source, target, shallow=False)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)

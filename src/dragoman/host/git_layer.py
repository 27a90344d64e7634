"""The `.git` of a workspace while a confined command runs: a layer, of which only the usual files go back.

Git makes a commit by writing objects, refs and logs, and by replacing files such as `index` and `HEAD` beside each
other. Everything else in a git folder can make git run a program, or find another configuration: config, hooks, info,
modules, worktrees, commondir, config.worktree, and whatever a later git adds. So the command sees, in the place of the
git folder, a folder of ours:

| in it | is |
|---|---|
| `objects`, `refs`, `logs`, `lfs` | the real ones, writable; no link is left in them, and no other place for objects |
| other folders | the real ones, read-only |
| files | copies. `index`, `HEAD` and others of `_RETURNED` go back afterwards if they were changed, the rest does not |

A file goes back as git itself would write it: under its lock, only if it is a regular file with the content it should
have, and only if the real one is still the one that was copied; else it stays away and that is said.

A linked worktree has a git folder of its own below the main one's `worktrees`. Its files go back there; of the main git
folder only `packed-refs` does. It is taken for one only if the main repository names it, too: a `.git` file that came
with the workspace could point anywhere.
"""

import filecmp
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.host.bubblewrap import Bind
from dragoman.host.git_cleanup import remove_odd_files, remove_odd_objects
from dragoman.host.git_index import index_paths, is_good_index
from dragoman.host.path_backup import (
    BackupLimit,
    FileStamp,
    PathBackup,
    TooLarge,
    back_up,
    is_unchanged,
    restore,
    stamp_of,
)
from dragoman.host.paths import is_inside
from dragoman.host.regular_file import read_whole

_HEX: Final = rb"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_REF: Final = rb"refs/[^\x00-\x20\x7f~^:?*\[\\]+"
_HEAD: Final = re.compile(rb"(?:ref: " + _REF + rb"|" + _HEX + rb")\n?")
_OBJECTS: Final = re.compile(rb"(?:" + _HEX + rb"\n?)*")
_PACKED: Final = re.compile(rb"(?:#[^\n]*\n|\^" + _HEX + rb"\n|" + _HEX + rb" " + _REF + rb"\n)*")
_LOG: Final = re.compile(rb"$|" + _HEX + rb" " + _HEX + rb" ")
_SHARED_INDEX: Final = re.compile(r"sharedindex\.[0-9a-f]{40,64}")


def _any(data: bytes) -> bool:
    return True


def _head(data: bytes) -> bool:
    return _HEAD.fullmatch(data) is not None and b".." not in data


# Files that go back, in this order, and what each must be. The last names what is checked out.
_RETURNED: Final[Mapping[str, Callable[[bytes], object]]] = {
    "packed-refs": _PACKED.fullmatch,
    "index": _any,  # judged by `git_index`
    "ORIG_HEAD": _OBJECTS.fullmatch,
    "FETCH_HEAD": _any,
    "MERGE_HEAD": _OBJECTS.fullmatch,
    "MERGE_MODE": re.compile(rb"[a-z-]*\n?").fullmatch,
    "MERGE_MSG": _any,
    "SQUASH_MSG": _any,
    "AUTO_MERGE": _OBJECTS.fullmatch,
    "CHERRY_PICK_HEAD": _OBJECTS.fullmatch,
    "REVERT_HEAD": _OBJECTS.fullmatch,
    "COMMIT_EDITMSG": _any,
    "HEAD": _head,
}
_COMMON_RETURNED: Final = frozenset({"packed-refs"})
# A change of these alone is not reported: git makes them again.
_UNREMARKABLE: Final = re.compile(r".*\.lock|.*~|gc\.pid|gc\.log|fsmonitor--daemon.*|description|sharedindex\..*")
# The real folders that are writable.
_WRITABLE: Final = ("objects", "refs", "logs", "lfs")
_ALTERNATES: Final = ("objects/info/alternates", "objects/info/http-alternates")
_MOST_BYTES: Final = 256 * 1024 * 1024  # of one file that is copied
_MOST_FILES: Final = 200  # files and folders directly in a git folder
_LOCK_SECONDS: Final = 2.0
_LOCK_STEP_SECONDS: Final = 0.02
_POINTER_BYTES: Final = 4096
_CONFIG_BYTES: Final = 1024 * 1024
_SHA256: Final = re.compile(rb"objectformat\s*=\s*\"?sha256", re.IGNORECASE)
_WORKTREE: Final = re.compile(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.MULTILINE | re.IGNORECASE)


# What a changed file in these must be. Large files are anything, but for what makes a folder a repository.
_CHECKED: Final[Mapping[str, Callable[[str, bytes], object]]] = {
    "refs": lambda name, data: _head(data),
    "logs": lambda name, data: _LOG.match(data),
    "lfs": lambda name, data: name.lower() not in ("head", "commondir", "config"),
}


class GitFolders(NamedTuple):
    """Where the repository of a workspace is: `own` has its index and HEAD, `common` the rest; often the same."""

    own: str
    common: str


class _Copy(NamedTuple):
    """A file of the real git folder, and its copy as it was made."""

    real: FileStamp
    copy: FileStamp


def git_folders_of(root: str) -> GitFolders | None:
    """Find the git folders of a workspace whose commands may commit; None if none can be layered."""
    path = os.path.join(root, ".git")
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            found = GitFolders(path, path)
        else:
            own = os.path.realpath(os.path.join(root, _pointer(path).removeprefix("gitdir:").strip()))
            common = os.path.join(own, "commondir")
            if os.path.lexists(common):
                # Both sides name each other.
                back = os.path.realpath(_pointer(os.path.join(own, "gitdir")))
                found = GitFolders(own, os.path.realpath(os.path.join(own, _pointer(common))))
                is_known = back == path and os.path.dirname(own) == os.path.join(found.common, "worktrees")
            else:
                names = _WORKTREE.search(_pointer(os.path.join(own, "config"), 1024 * 1024))
                is_known = names is not None and os.path.realpath(os.path.join(own, names[1])) == root
                found = GitFolders(own, own)
            if not is_known or is_inside(own, root):
                return None
    except (OSError, ValueError):
        return None
    return found if all(map(_can_be_layered, {found.common, found.own} - {""})) else None


def _can_be_layered(folder: str) -> bool:
    """Return whether a git folder is one of a kind that is known here."""
    with os.scandir(folder) as entries:
        names = {entry.name: entry for entry in entries}
    if len(names) > _MOST_FILES or "HEAD" not in names or "reftable" in names:
        return False
    if any(names[name].is_symlink() for name in (*_WRITABLE, *_RETURNED) if name in names):
        return False
    return all(
        entry.stat(follow_symlinks=False).st_size <= _MOST_BYTES
        for entry in names.values()
        if entry.is_file(follow_symlinks=False)
    )


class GitLayer:
    """The layer of one git folder, made in `folder`, which is empty and ours. Blocks."""

    def __init__(self, real: str, folder: str, *, returned: Callable[[str], bool], hash_bytes: int = 20) -> None:
        """`returned` says which files go back; `hash_bytes` is the length of an object's name."""
        self._hash_bytes = hash_bytes
        self.real: Final = real
        self._folder = folder
        self._returned = returned
        self._copies: dict[str, _Copy] = {}
        self._alternates: dict[str, PathBackup | None] = {}
        # Times of files are less exact than ours.
        self._began_at = time.time_ns() - 50_000_000
        self._binds: list[Bind] = [Bind(folder, real, writable=True)]
        self._fill()

    @property
    def binds(self) -> list[Bind]:
        """What to show in the place of the git folder, in this order."""
        return self._binds

    def begin_with(self, others: "Iterable[GitLayer]") -> None:
        """Go by what the layers of other commands, which run now, have found in the same git folder."""
        for other in others:
            if other.real == self.real:
                self._alternates = other._alternates

    def bring_back(self) -> list[str]:
        """Bring what a command has changed to the real git folder; a sentence for each thing that stays away."""
        notes = self._cleaned()
        names = {entry.name: entry for entry in os.scandir(self._folder)}
        for name in (*filter(_SHARED_INDEX.fullmatch, names), *_RETURNED):
            if self._returned(name):
                is_index = name == "index" or name not in _RETURNED
                notes += self._settle(name, self._is_good_index if is_index else _RETURNED[name])
        dropped = [name for name in names if self._is_dropped(name)]
        if dropped:
            notes.append(f"Changes in {self.real} to {', '.join(sorted(dropped)[:20])} were not kept.")
        return notes

    # -- before --------------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        with os.scandir(self.real) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            copy = os.path.join(self._folder, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), copy)
            elif entry.is_dir():
                os.mkdir(copy)
                self._binds.append(Bind(entry.path, entry.path, writable=entry.name in _WRITABLE))
            elif entry.is_file() and not entry.name.endswith(".lock"):
                self._copy(entry.name)
        logs = os.path.join(self.real, "logs")
        if not os.path.isdir(logs):
            # Before the first commit there are none. What stood in the layer's own would not go back.
            os.mkdir(logs)
            os.mkdir(os.path.join(self._folder, "logs"))
            self._binds.append(Bind(logs, logs, writable=True))
        self._alternates = self._kept_alternates()

    def _kept_alternates(self) -> dict[str, PathBackup | None]:
        """Return the files that name further places for objects.

        Outside of the repository, so not a command's to choose.
        """
        limit = BackupLimit(len(_ALTERNATES), _POINTER_BYTES)
        try:
            return {path: back_up(self.real, path, limit) for path in _ALTERNATES}
        except TooLarge:
            raise OSError(f"{self.real} has too many other places for objects") from None

    def _copy(self, name: str) -> None:
        real, copy = os.path.join(self.real, name), os.path.join(self._folder, name)
        before = stamp_of(self.real, name)
        shutil.copy2(real, copy, follow_symlinks=False)
        after = stamp_of(self._folder, name)
        if before is not None and after is not None:
            self._copies[name] = _Copy(before, after)

    # -- after ---------------------------------------------------------------------------------------------------------

    def _is_dropped(self, name: str) -> bool:
        """Return whether a change of the command is lost and may be missed."""
        if (name in _RETURNED and self._returned(name)) or _UNREMARKABLE.fullmatch(name):
            return False
        known = self._copies.get(name)
        if known is None or not os.path.isfile(os.path.join(self._folder, name)):
            return not os.path.lexists(os.path.join(self.real, name))
        if stamp_of(self._folder, name) == known.copy:
            return False
        # Git writes some files anew without a change.
        return not filecmp.cmp(os.path.join(self._folder, name), os.path.join(self.real, name), shallow=False)

    def _settle(self, name: str, is_good: Callable[[bytes], object]) -> Iterator[str]:
        now, known = stamp_of(self._folder, name), self._copies.get(name)
        if now == (known.copy if known else None):
            return
        path = os.path.join(self.real, name)
        data = b"" if now is None else self._content(name)
        changed_at = now[-2] if now else 0
        if data is None or (now is not None and not is_good(data)):
            yield f"{path} was not changed: the command left something else than git does."
            return
        if now is None and name in ("HEAD", "index", "packed-refs"):
            yield f"{path} was not deleted."
            return
        try:
            with _Lock(path) as lock:
                if stamp_of(self.real, name) != (known.real if known else None):
                    yield f"{path} was changed by another program meanwhile, and is as that has left it."
                elif now is None:
                    os.unlink(path)
                else:
                    lock.replace(data, changed_at)
        except OSError as error:
            reason = "another git is at work there" if isinstance(error, FileExistsError) else error.strerror
            yield f"{path} was not changed: {reason}."

    def _is_good_index(self, data: bytes) -> bool:
        return is_good_index(data, self._hash_bytes)

    def _content(self, name: str) -> bytes | None:
        """Return a regular file's bytes; None for anything else, and for what is too large."""
        try:
            return read_whole(os.path.join(self._folder, name), _MOST_BYTES, follow=False)
        except OSError:
            return None

    def _cleaned(self) -> list[str]:
        """Take away what git does not put in the real folders that the command could write: a link leads out, and a
        folder with the right names is a repository of its own."""
        objects = os.path.join(self.real, "objects")
        steps = [
            *(
                remove_odd_files(os.path.join(self.real, name), self._began_at, is_good)
                for name, is_good in _CHECKED.items()
            ),
            remove_odd_objects(objects, self._began_at),
            self._put_alternates_back(),
        ]
        removed: list[str] = []
        notes: list[str] = []
        for step in steps:
            try:
                removed += step
            except OSError as error:  # the others are done all the same
                notes.append(f"Look through {self.real}: the command left something that stays there ({error}).")
        return [*(f"{path} is not for a command to make, and is as it was before." for path in removed), *notes]

    def _put_alternates_back(self) -> Iterator[str]:
        for name, was in self._alternates.items():
            is_there = stamp_of(self.real, name) is not None
            if not is_there if was is None else is_unchanged(self.real, name, was):
                continue
            if is_there:
                os.unlink(os.path.join(self.real, name))
            if was is not None:
                restore(self.real, name, was)
            yield os.path.join(self.real, name)


class _Lock:
    """Git's own lock on a file: a file beside it that only one can make."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> "_Lock":
        until = time.monotonic() + _LOCK_SECONDS
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            try:
                self._fd = os.open(f"{self._path}.lock", flags, 0o666)
            except FileExistsError:
                if time.monotonic() > until:
                    raise
                time.sleep(_LOCK_STEP_SECONDS)
            else:
                return self

    def replace(self, data: bytes, changed_at: int) -> None:
        """Put these bytes in the place of the file, with the time at which git wrote them: it goes by that time."""
        with suppress(FileNotFoundError):
            os.fchmod(self._fd, stat.S_IMODE(os.lstat(self._path).st_mode))
        with open(self._fd, "wb", closefd=False) as file:
            file.write(data)
        os.utime(self._fd, ns=(changed_at, changed_at))
        os.rename(f"{self._path}.lock", self._path)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        with suppress(FileNotFoundError):
            os.unlink(f"{self._path}.lock")


def _pointer(path: str, most: int = _POINTER_BYTES) -> str:
    """Return a short regular file's text; `OSError` if there is none, `ValueError` if it is empty."""
    data = read_whole(path, most, follow=False)
    if not data:
        raise ValueError(path)
    return data.decode("utf-8", "surrogateescape").strip()


def layers_of(folders: GitFolders, scratch: str) -> list[GitLayer]:
    """Make the layers for a workspace, outer first, in folders below `scratch`. `OSError` if one cannot be made."""
    is_linked = folders.own != folders.common
    new_layers: list[GitLayer] = []
    for at, real in enumerate(dict.fromkeys([folders.common, folders.own])):
        folder = os.path.join(scratch, f"git-{at}")
        os.mkdir(folder, 0o700)
        is_common = is_linked and real == folders.common
        returned = (lambda name: name in _COMMON_RETURNED) if is_common else _anyone
        new_layers.append(GitLayer(real, folder, returned=returned, hash_bytes=hash_bytes_of(folders.common)))
    return new_layers


def tracked_files(root: str) -> frozenset[str]:
    """Return the whole paths of the files of a workspace that its repository tracks; none if that cannot be known.

    Blocks.
    """
    folders = git_folders_of(root)
    if folders is None:
        return frozenset()
    try:
        data = read_whole(os.path.join(folders.own, "index"), _MOST_BYTES)
        paths = index_paths(data, hash_bytes_of(folders.common))
    except OSError:
        return frozenset()
    return frozenset(os.path.join(root, os.fsdecode(path)) for path in paths)


def hash_bytes_of(common: str) -> int:
    """Return the length of an object's name in a repository. `OSError` if its configuration cannot be read."""
    config = read_whole(os.path.join(common, "config"), _CONFIG_BYTES)
    return 32 if _SHA256.search(config) else 20


def _anyone(name: str) -> bool:
    return True

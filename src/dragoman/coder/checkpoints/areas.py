"""Where the files of a session are looked at and kept: the repositories and folders of its roots, and touched files.

`GitArea` covers everything of a repository below the roots, changed by a tool or not, and a root that is in none, if
it is small. Beyond both, `TouchedFiles` covers what the file tools write: a file has its content kept before the first
of them writes it. All keep contents in our data folder, by their hashes; a file `ids` for each session says which of
them it needs (`cleaning` reads it).
"""

import fcntl
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from dragoman.coder.checkpoints.records import CheckpointStep, ids_in
from dragoman.host.git_images import FILE_BYTES, LINK, TOO_LARGE, FileImage, ImageChange, Look, is_private
from dragoman.host.git_run import ShadowFailed
from dragoman.host.paths import PathRefused, Place, is_inside, read_bytes
from dragoman.host.plain_size import too_much_in
from dragoman.host.private_file import make_private_folder, replaced_file
from dragoman.host.shadow_git import ShadowGit, find_repository, plain_folder

_log = logging.getLogger(__name__)

# Below our data folder.
CHECKPOINTS: Final = "checkpoints"
# Of the folder of touched files; those of repositories have hashes.
TOUCHED: Final = "touched"
SESSIONS: Final = "sessions"
OBJECTS: Final = "objects"
IDS: Final = "ids"
_PRIVATE: Final = "private"
_SHARED: Final = "sharedindex."


@contextmanager
def area_lock(folder: str, *, alone: bool = False) -> Iterator[bool]:
    """Hold an area: many may keep contents in it at once, and only one `alone` takes some away. False: others hold it.

    Blocks while contents are taken away.
    """
    with open(os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX | fcntl.LOCK_NB) if alone else fcntl.LOCK_SH)
        except BlockingIOError:
            yield False
            return
        yield True


class SessionPlace:
    """The folder of one session in an area: its indexes, and the names of the contents that it needs."""

    def __init__(self, area_folder: str, session_id: str) -> None:
        self.area_folder: Final = area_folder
        self.folder: Final = os.path.join(area_folder, SESSIONS, session_id)

    def make(self) -> None:
        make_private_folder(self.folder)

    def new_index(self) -> str:
        """Return a name for an index that no run of git has used; one that was killed may still write its own."""
        return f"index.{os.urandom(6).hex()}"

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def note_ids(self, ids: Iterable[str]) -> None:
        """Add names to those that are needed; they are on disk when this returns."""
        self._append(IDS, "".join(f"{id}\n" for id in ids).encode())

    def note_private(self, paths: Iterable[str]) -> None:
        """Add paths to those whose files are for their owner alone when they come back; on disk when this returns."""
        known = self.private_paths()
        self._append(_PRIVATE, b"".join(os.fsencode(path) + b"\0" for path in paths if path not in known))

    def private_paths(self) -> set[str]:
        """Return the paths that were private when they were looked at."""
        try:
            with open(self.path(_PRIVATE), "rb") as file:
                return {os.fsdecode(path) for path in file.read().split(b"\0")[:-1]}
        except FileNotFoundError:
            return set()

    def _append(self, name: str, data: bytes) -> None:
        if data:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with open(os.open(self.path(name), flags, 0o600), "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())

    def adopt(self, steps: Sequence[CheckpointStep]) -> None:
        """Begin with the names that these steps need, if nothing was ever kept here."""
        if steps and not os.path.isdir(self.folder):
            self.make()
            self.note_ids(ids_in(steps))

    def indexes(self) -> list[str]:
        """Return the names of all indexes, the larger parts of split ones too, and what git has left beside them."""
        return [name for name in os.listdir(self.folder) if name.startswith(("index.", _SHARED))]

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of this folder."""
        for name in names:
            with suppress(OSError):
                os.unlink(self.path(name))


class GitArea:
    """The files of a repository, or of a plain folder, below the roots of a session."""

    def __init__(self, shadow: ShadowGit, place: SessionPlace) -> None:
        self.top: Final = shadow.repository.top
        self.is_plain_folder: Final = shadow.repository.is_plain_folder
        self._shadow: Final = shadow
        self._place: Final = place
        self._folder: Final = place.area_folder

    def __repr__(self) -> str:
        return f"<GitArea {self.top}>"

    def look(self, index: str, only: Mapping[str, FileImage | None] | None = None) -> Look:
        """Return what has changed since the index, by path from the top; empty: see everything for the first time.

        Blocks. Raises `ShadowFailed` and `OSError`. The changes count when `accept` is called.
        """
        new = self._place.new_index()
        self._place.make()
        with area_lock(self._folder):
            if not index or not os.path.exists(self._place.path(index)):
                self._shadow.prepare()
                found = self._shadow.first_look(self._place.path(new))
            else:
                found = self._shadow.look(self._place.path(index), self._place.path(new), only)
            self._place.note_ids(found.kept)
            self._place.note_private(found.private)
        return found._replace(index_file=os.path.basename(found.index_file))

    def keep_text(self, path: str, data: bytes) -> FileImage:
        """Keep what a file is to come back as, with the mode it has. Blocks. Raises `ShadowFailed` and `OSError`."""
        with area_lock(self._folder):
            image = FileImage(content_at(path)[0], self._shadow.keep(data))
            self._place.note_ids([image.id])
        return image

    def sync(self) -> None:
        """Wait until everything that was kept is on the disk. Blocks."""
        self._shadow.sync()

    def adopt(self, steps: Sequence[CheckpointStep]) -> None:
        """Keep what these steps of a log need: they are those of the session that this one is a fork of. Blocks."""
        self._place.adopt([step for step in steps if step.area == self.top])

    def accept(self, index: str) -> None:
        """Forget every index but this one, which the log names now. Blocks."""
        names = set(self._place.indexes()) - {index}
        shared = {name for name in names if name.startswith(_SHARED)}
        if len(shared) > 1:
            shared = {self._shadow.shared_index(self._place.path(index))}
        self._place.remove(names - shared)

    def read(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return contents by name; what is not kept any more is left out. Blocks. Raises `ShadowFailed`."""
        return self._shadow.read(ids)

    def private_paths(self) -> set[str]:
        """Return the whole paths of files that were for their owner alone. Blocks."""
        return {os.path.join(self.top, path) for path in self._place.private_paths()}

    def image_of(self, data: bytes, mode: int) -> FileImage:
        """Return the image of a content."""
        return FileImage(mode, self._shadow.id_of(data))


class TouchedFiles:
    """Files that tools write where nothing else covers them."""

    top: Final = ""

    def __init__(self, folder: str, session_id: str) -> None:
        self._folder: Final = folder
        self._place: Final = SessionPlace(folder, session_id)

    def __repr__(self) -> str:
        return f"<TouchedFiles in {self._folder}>"

    def look(self, known: Mapping[str, FileImage | None]) -> Look:
        """Return what has changed of the known files, and keep it. Blocks. Raises `OSError`."""
        changes = {}
        for path in known:
            now = self.keep(path)
            if now != known.get(path):
                changes[path] = ImageChange(known.get(path), now)
        return Look("", changes, ())

    def keep(self, path: str) -> FileImage | None:
        """Keep what stands at a path and return its image; None: no file. Blocks. Raises `OSError`."""
        mode, data = content_at(path)
        if not mode:
            return None
        if data is None:
            status = os.lstat(path)
            return FileImage(mode, f"{TOO_LARGE}{status.st_size}:{status.st_mtime_ns}")
        return self._keep(path, mode, data)

    def keep_text(self, path: str, data: bytes) -> FileImage:
        """Keep what a file is to come back as, with the mode it has. Blocks. Raises `OSError`."""
        return self._keep(path, content_at(path)[0], data)

    def _keep(self, path: str, mode: int, data: bytes) -> FileImage:
        image = self.image_of(data, mode)
        target = self._path(image.id)
        self._place.make()
        with area_lock(self._folder):
            if not os.path.exists(target):
                make_private_folder(os.path.dirname(target))
                with replaced_file(target) as file:
                    file.write(data)
            self._place.note_ids([image.id])
            if is_private(os.lstat(path)):
                self._place.note_private([path])
        return image

    def adopt(self, steps: Sequence[CheckpointStep]) -> None:
        """Keep what these steps of a log need: they are those of the session that this one is a fork of. Blocks."""
        self._place.adopt([step for step in steps if not step.area and step.kind != "rewinding"])

    def accept(self, index: str) -> None:
        """Do nothing: the log alone says what touched files were."""

    def read(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return contents by name; what is not kept any more is left out. Blocks."""
        found = {}
        for id in ids:
            with suppress(OSError), open(self._path(id), "rb") as file:
                found[id] = file.read()
        return found

    def private_paths(self) -> set[str]:
        """Return the whole paths of files that were for their owner alone. Blocks."""
        return self._place.private_paths()

    def image_of(self, data: bytes, mode: int) -> FileImage:
        """Return the image of a content."""
        return FileImage(mode, hashlib.sha256(data).hexdigest())

    def _path(self, id: str) -> str:
        return os.path.join(self._folder, OBJECTS, id[:2], id[2:])


Area = GitArea | TouchedFiles


def content_at(path: str) -> tuple[int, bytes | None]:
    """Return git's mode of what stands at a whole path, 0 for no file, and its content, None for one too large."""
    folder, name = os.path.split(path)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return LINK, os.fsencode(os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return 0, None
        data, has_more = read_bytes(Place(os.path.realpath(folder), (name,)), FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return 0, None
    except PathRefused as error:
        raise OSError(str(error)) from None
    return 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644, None if has_more else data


class Areas:
    """The areas of one session: `git` by their top folders, and `touched`."""

    def __init__(self, git: Mapping[str, GitArea], touched: TouchedFiles, left_out: Sequence[str] = ()) -> None:
        """`left_out`: what no area covers, in sentences for the user."""
        self.git: Final = dict(git)
        self.touched: Final = touched
        self.left_out: Final = list(left_out)
        self._leave_out: Sequence[str] = ()
        self._user_home = ""

    def __repr__(self) -> str:
        return f"<Areas git={list(self.git)}>"

    @classmethod
    def find(
        cls,
        home: str,
        session_id: str,
        roots: Sequence[str],
        environment: Mapping[str, str],
        leave_out: Sequence[str] = (),
    ) -> "Areas":
        """Find the repositories of real roots. Blocks: runs git for each.

        A root that is in none counts as one that is all untracked, until `adopt` has looked at it.
        """
        folder = os.path.join(home, CHECKPOINTS)
        touched = TouchedFiles(os.path.join(folder, TOUCHED), session_id)
        if shutil.which("git", path=environment.get("PATH", os.defpath)) is None:
            return cls({}, touched, ["what commands change is not kept, because git is not installed"])
        # A root that is ignored in a repository above it would be one that nothing is seen of.
        repositories = {root: find_repository(root, environment) for root in roots}
        found = {one.top: one for one in repositories.values() if one is not None}
        for root in sorted(root for root, one in repositories.items() if one is None):
            # A `.git` that git does not take is a place to keep out of.
            is_covered = any(is_inside(root, top) for top, one in found.items() if one.is_plain_folder)
            if not is_covered and not os.path.lexists(os.path.join(root, ".git")):
                found[root] = plain_folder(root)
        areas = {}
        for top, repository in found.items():
            own = [one for one in roots if is_inside(one, top)]
            area = os.path.join(folder, hashlib.sha256(os.fsencode(top)).hexdigest()[:32])
            place = SessionPlace(area, session_id)
            shadow = ShadowGit(repository, place.folder, os.path.join(area, OBJECTS), own, environment, leave_out)
            areas[top] = GitArea(shadow, place)
        made = cls(areas, touched)
        made._leave_out = leave_out
        made._user_home = os.path.realpath(environment.get("HOME") or os.path.expanduser("~"))
        return made

    def adopt(self, steps: Sequence[CheckpointStep]) -> None:
        """Keep what the steps of a log need, and decide which plain folders are covered. Blocks.

        The steps may be those of the session that this one is a fork of. What they say of a folder stays so: files of
        which some steps are in one area and some in another would be restored twice.
        """
        for top in [top for top, area in self.git.items() if area.is_plain_folder]:
            reason = self._why_uncovered(top, steps)
            if reason:
                del self.git[top]
                self.left_out.append(f"what commands change in {top} is not kept, because {reason}")
        for area in self.git.values():
            area.adopt(steps)
        self.touched.adopt(steps)

    def _why_uncovered(self, top: str, steps: Sequence[CheckpointStep]) -> str:
        if any(step.area == top for step in steps):
            return ""
        if is_inside(self._user_home, top):
            return "it holds your home folder"
        touched = (path for step in steps if not step.area for path, _ in step.images())
        if any(is_inside(path, top) for path in touched):
            return "it was not from the beginning"
        too_much = too_much_in(top, self._leave_out)
        return f"it is no git repository and has {too_much}" if too_much else ""

    def of(self, top: str) -> Area | None:
        """Return the area with this top folder; None: it is not there any more."""
        return self.git.get(top) if top else self.touched

    def touches(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the paths that only `touched` covers."""
        for path in paths:
            if self.top_of(path) == "":
                yield path

    def top_of(self, path: str) -> str:
        """Return the top folder of the area that covers a path with all around it; empty: none does."""
        top = max((top for top in self.git if is_inside(path, top)), key=len, default="")
        return "" if not top or _is_in_inner_repository(path, top) else top


def _is_in_inner_repository(path: str, top: str) -> bool:
    folder = os.path.dirname(path)
    while folder != top and is_inside(folder, top):
        if os.path.lexists(os.path.join(folder, ".git")):
            return True
        folder = os.path.dirname(folder)
    return False


@contextmanager
def failures_named() -> Iterator[None]:
    """Raise `ShadowFailed` for what the disk refuses as well, and for what git says in words that are not understood.

    A mistake of ours there must not end a turn.
    """
    try:
        yield
    except OSError as error:
        raise ShadowFailed((error.strerror or str(error) or "the disk refuses").lower()) from error
    except (ValueError, LookupError) as error:
        _log.exception("what git says of files is not understood")
        raise ShadowFailed("what git says of them is not understood") from error

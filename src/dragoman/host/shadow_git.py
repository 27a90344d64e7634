"""Keep what files looked like with git, in a git folder of our own: the project's `.git` is read and never written.

A shadow has objects of its own, which all sessions of a repository share by content, and takes those of the project
as alternates: a file that is tracked and clean costs nothing. Each session has a git folder beside them, with an index
that says what every file looked like when it was looked at last; so a look costs what `git status` costs. The index is
a split one: what a look writes is as small as what has changed. Blobs are kept and nothing else, no trees and commits:
what a look has found is the caller's to remember.

A kill leaves the index of the look before. Of a power cut the same is true of what `sync` has returned for.

Files are kept byte by byte. The shadow's own attributes, which count before those of the project, turn off filters
and conversions of line ends; so no program of the project's is run, and what is put back is what was there. A file
that the project's own index has converted is found by its size and kept anew.

Not seen are ignored files, submodules and repositories inside of this one, what is marked `skip-worktree` or
`assume-unchanged`, and files that are larger than `FILE_BYTES`. Everything here blocks: it is for a thread.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.host.git_images import FILE_BYTES, FileImage, ImageChange, Look, SortedFiles, sort_out
from dragoman.host.git_run import GitRuns, ShadowFailed, safe_environment
from dragoman.host.paths import is_inside
from dragoman.host.plain_size import FILLED_BY_PROGRAMS
from dragoman.host.private_file import make_private_folder, replaced_file
from dragoman.host.regular_file import open_regular, read_regular
from dragoman.host.safe_git import leads_elsewhere

# In a name that git is given on a line of its own, without its end: git drops a carriage return there.
_ENDS_A_LINE: Final = re.compile(r"[\r\n]")
_SUBMODULE: Final = "160000"
# Raw bytes: no filter, no line ends, no keywords, no other encoding.
_ATTRIBUTES: Final = "* -text !eol -filter -ident !working-tree-encoding\n"
_CONVERTING: Final = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")


class Repository(NamedTuple):
    """A repository of the user's, by whole paths: its top folder, its objects, its index and its list of exclusions.

    One without objects is a plain folder: all of its files are untracked.
    """

    top: str
    objects: str
    index_file: str
    exclude: str
    object_format: str

    @property
    def is_plain_folder(self) -> bool:
        """Whether git knows nothing of it."""
        return not self.objects


def plain_folder(real: str) -> Repository:
    """Return a folder that no repository covers, as one that nothing was ever added to."""
    return Repository(real, "", "", "", "sha1")


def find_repository(folder: str, environment: Mapping[str, str]) -> Repository | None:
    """Return the repository that a folder is in; None: in none that says anything about it.

    Git may not be installed, the repository may be that of another folder, or it may ignore this one.
    """
    if leads_elsewhere(folder):
        return None
    paths = ("--git-path", "objects", "--git-path", "index", "--git-path", "info/exclude")
    words = ["rev-parse", "--path-format=absolute", "--show-object-format", "--show-toplevel", *paths]
    try:
        said = GitRuns(folder).run(words, safe_environment(environment, [folder]))
        lines = said.decode("utf-8").split("\n")[:-1]
    except (ShadowFailed, UnicodeDecodeError):
        return None
    if len(lines) != 5 or not os.path.isdir(lines[1]):
        return None
    object_format, top, objects, index, exclude = lines
    inner = os.path.relpath(os.path.realpath(folder), os.path.realpath(top))
    if inner != ".":
        with suppress(ShadowFailed):  # it fails where the folder is not ignored
            # The one command here that takes no literal paths.
            plain = {**safe_environment(environment, [folder]), "GIT_LITERAL_PATHSPECS": "0"}
            GitRuns(top).run(["check-ignore", "-q", "--", f"./{inner}"], plain)
            return None
    return Repository(os.path.realpath(top), objects, index, exclude, object_format)


class ShadowGit:
    """Looks at the files of one repository below `roots`, for one session: its git folder is `folder`."""

    def __init__(
        self,
        repository: Repository,
        folder: str,
        objects: str,
        roots: Sequence[str],
        environment: Mapping[str, str],
        leave_out: Sequence[str] = (),
    ) -> None:
        """`objects`: the folder of contents. `roots`: real paths, each the top of the repository or below it.
        `leave_out`: real paths that are not looked at, with what is in them."""
        self.repository: Final = repository
        self.folder: Final = folder
        self._objects: Final = objects
        self._runs: Final = GitRuns(repository.top)
        # Contents that may not have reached the disk yet.
        self._unsynced: list[str] = []
        self._pathspecs: Final = self._inside(roots)
        self._left_out: Final = [f"{path}/" for path in self._inside(leave_out) if path != "."]
        self._environment: Final = {
            **safe_environment(environment, [repository.top]),
            "GIT_DIR": folder,
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_WORK_TREE": repository.top,
        }
        # For what only reads. A git that writes an object which an alternate has gives that one a new time, and that
        # would be a change in the project's own folder.
        alternates = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.objects)}
        self._reading: Final = {**self._environment, **({} if repository.is_plain_folder else alternates)}

    def __repr__(self) -> str:
        return f"<ShadowGit of {self.repository.top} in {self.folder}>"

    def _inside(self, paths: Sequence[str]) -> list[str]:
        top = self.repository.top
        return [os.path.relpath(path, top) for path in paths if is_inside(path, top)]

    def prepare(self) -> None:
        """Make the shadow, or bring it up to date with the repository. Raises `OSError`."""
        for path in (self._objects, os.path.join(self.folder, "refs"), os.path.join(self.folder, "info")):
            make_private_folder(path)
        is_plain = self.repository.object_format == "sha1"
        version, extension = (
            (0, "") if is_plain else (1, f"[extensions]\n\tobjectformat = {self.repository.object_format}\n")
        )
        _write(f"{self.folder}/HEAD", "ref: refs/heads/none\n")
        _write(
            f"{self.folder}/config",
            f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tsharedRepository = 0600\n"
            f"\tuntrackedCache = false\n\tfsync = none\n\tcompression = 1\n\tsplitIndex = true\n"
            f"[splitIndex]\n\tsharedIndexExpire = never\n{extension}",
        )
        _write(f"{self.folder}/info/attributes", _ATTRIBUTES)
        if self.repository.is_plain_folder:
            _write(f"{self.folder}/info/exclude", "".join(f"{name}/\n" for name in FILLED_BY_PROGRAMS))
            return
        with suppress(OSError):
            excluded = read_regular(self.repository.exclude, FILE_BYTES)
            _write(f"{self.folder}/info/exclude", excluded.decode("utf-8", "surrogateescape"))

    def first_look(self, index: str) -> Look:
        """Keep what no object of the project has, and make an index of all files. Its changes are none."""
        try:
            self._copy_index(index)
            self._drop_converted(index)
            found = self._compare(index)
        except ShadowFailed:
            # An index that git reads in its own folder only: a split one, or one that is not whole.
            with suppress(FileNotFoundError):
                os.unlink(index)
            self._git(index, "read-tree", self._head() or "--empty")
            with suppress(ShadowFailed):  # it fails where a file has changed
                self._git(index, "update-index", "-q", "--refresh")
            found = self._compare(index)
        look = self._keep(index, found, sort_out(self.repository.top, found))
        return look._replace(changes={})

    def look(self, before: str, after: str, only: Mapping[str, FileImage | None] | None = None) -> Look:
        """Find what has changed since the index `before`, keep it, and make the index `after`.

        `only`: look at these paths and no others; it says what the index has of them. Where nothing has changed the
        index of the result is `before`.
        """
        found = self._compare(before) if only is None else dict(only)
        if not found:
            return Look(before, {}, ())
        sorted_out = sort_out(self.repository.top, found)
        if not sorted_out.kept and all(found[path] is None for path in sorted_out.large):
            return Look(before, {}, sorted_out.sentences)
        _copy(before, after)
        return self._keep(after, found, sorted_out)

    def keep(self, data: bytes) -> str:
        """Keep a content that is in no file, and return its name."""
        id = self._git("", "hash-object", "-w", "--stdin", input=data).decode().strip()
        self._unsynced.append(id)
        return id

    def sync(self) -> None:
        """Wait until what was kept is on the disk."""
        ids, self._unsynced = self._unsynced, []
        for id in ids:
            with suppress(OSError):
                fd = os.open(os.path.join(self._objects, id[:2], id[2:]), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

    def shared_index(self, index: str) -> str:
        """Return the name of the larger part of a split index; empty: it is whole."""
        return os.path.basename(self._git(index, "rev-parse", "--shared-index-path").decode().strip())

    def read(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return contents by their names; what is not there any more is left out."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        data = self._git("", "cat-file", "--batch", input="".join(f"{id}\n" for id in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for id in wanted:
            end = data.index(b"\n", at)
            words = data[at:end].split()
            at = end + 1
            if len(words) == 3 and words[1] == b"blob":
                size = int(words[2])
                found[id] = data[at : at + size]
                at += size + 1
        return found

    def id_of(self, data: bytes) -> str:
        """Return the name that git gives to a content."""
        digest = hashlib.new(self.repository.object_format, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(data))
        digest.update(data)
        return digest.hexdigest()

    # -- looking -----------------------------------------------------------------------------------------------------

    def _copy_index(self, index: str) -> None:
        source = os.path.dirname(self.repository.index_file)
        try:
            for name in os.listdir(source):
                if name.startswith("sharedindex."):
                    # It is there already, or cannot be copied: then git cannot read the index, which is made anew.
                    with suppress(OSError):
                        _copy(os.path.join(source, name), os.path.join(self.folder, name))
            _copy(self.repository.index_file, index)
        except FileNotFoundError:  # nothing was ever added
            self._git(index, "read-tree", "--empty")
        self._git(index, "update-index", "--split-index")

    def _head(self) -> str:
        if self.repository.is_plain_folder:
            return ""  # git would find a repository above it that ignores this folder
        try:
            environment = safe_environment(self._environment, [self.repository.top])
            words = ["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]
            return self._runs.run(words, environment).decode().strip()
        except ShadowFailed:
            return ""

    def _drop_converted(self, index: str) -> None:
        """Take files out of a copied index whose content in it may not be what stands on the disk, byte by byte."""
        converted = self._converted(index)
        if converted:
            paths = b"".join(os.fsencode(path) + b"\0" for path in converted)
            self._git(index, "update-index", "--force-remove", "-z", "--stdin", input=paths)

    def _converted(self, index: str) -> list[str]:
        """Return the tracked files that git converts, where their sizes are not those of what it has stored."""
        listed = self._listed(index)
        if not listed:
            return []
        top = self.repository.top
        # With the project's own attributes: those of the shadow say that nothing is converted.
        environment = safe_environment(self._environment, [top])
        names = b"".join(os.fsencode(path) + b"\0" for path in listed)
        said = self._runs.run(["check-attr", "--stdin", "-z", *_CONVERTING], environment, names).split(b"\0")
        values = zip(said[::3], said[2::3], strict=False)
        suspects = {os.fsdecode(path) for path, value in values if value != b"unspecified"}
        try:
            if self._runs.run(["config", "--get", "core.autocrlf"], environment).strip() not in (b"", b"false"):
                suspects = set(listed)
        except ShadowFailed:
            pass  # git fails where there is no such setting
        sizes = self._sizes([listed[path].id for path in suspects])
        return [path for path in suspects if sizes.get(listed[path].id) != _size(os.path.join(top, path))]

    def _sizes(self, ids: Sequence[str]) -> dict[str, int]:
        asked = "".join(f"{id}\n" for id in dict.fromkeys(ids)).encode()
        found: dict[str, int] = {}
        for line in self._git("", "cat-file", "--batch-check=%(objectname) %(objectsize)", input=asked).splitlines():
            name, _, size = line.partition(b" ")
            if size.isdigit():
                found[name.decode()] = int(size)
        return found

    def _listed(self, index: str, only: Sequence[str] | None = None) -> dict[str, FileImage]:
        """Return what an index has, of `only` these paths."""
        found: dict[str, FileImage] = {}
        for line in self._git(index, "ls-files", "-s", "-z", "--", *(only or self._pathspecs)).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, id, _ = facts.decode().split(" ")
            if mode != _SUBMODULE:
                found[os.fsdecode(path)] = FileImage(int(mode, 8), id)
        return found

    def _compare(self, index: str) -> dict[str, FileImage | None]:
        """Return the files that are not what the index says, with what it says; None: it has none of that name."""
        with ThreadPoolExecutor(2) as both:
            others = both.submit(self._git, index, "ls-files", "-z", "-o", "--exclude-standard", "--", *self._pathspecs)
            # In a submodule git would run `git status`, and with it the filters of the submodule's own configuration.
            words = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all", "--", *self._pathspecs)
            said = self._git(index, *words).split(b"\0")
            found: dict[str, FileImage | None] = {}
            for facts, path in zip(said[::2], said[1::2], strict=False):
                fields = facts.decode().removeprefix(":").split(" ")
                if _SUBMODULE not in fields[:2]:
                    known = FileImage(int(fields[0], 8), fields[2])
                    # An entry of a merge that has conflicts has no content of its own yet.
                    found[os.fsdecode(path)] = known if fields[4] != "U" else None
            for path in others.result().split(b"\0")[:-1]:
                if not path.endswith(b"/"):  # a repository inside of this one
                    found[os.fsdecode(path)] = None
        links = [
            path for path in found if found[path] is None and os.path.islink(os.path.join(self.repository.top, path))
        ]
        # Of a folder that has become a link to itself git cannot say that its files are gone.
        for name, image in self._listed(index, links).items() if links else ():
            found.setdefault(name, image)
        return {path: image for path, image in found.items() if self._is_looked_at(path)}

    def _is_looked_at(self, path: str) -> bool:
        return not any(path.startswith(folder) for folder in self._left_out)

    def _keep(self, index: str, found: Mapping[str, FileImage | None], sorted_out: SortedFiles) -> Look:
        """Put the files into the index, and their contents among the objects; return what has become of them."""
        # Of one too large it is known what it was, and cannot be known what it is.
        large = [path for path, image in sorted_out.large.items() if found[path] is not None]
        # First what is gone: a folder may have taken the place of a file, and a file or a link that of a folder.
        gone = [*large, *(path for path, mode in sorted_out.kept.items() if not mode)]
        self._update(index, "--force-remove", gone)
        self._update(index, "--add", [path for path, mode in sorted_out.kept.items() if mode])
        now: dict[str, FileImage] = {}
        if sorted_out.kept:
            now = self._entries(index, sorted_out.kept)
            self._unsynced += [image.id for image in now.values()]
        changes = {path: ImageChange(found[path], now.get(path)) for path in sorted_out.kept}
        changes |= {path: ImageChange(found[path], sorted_out.large[path]) for path in large}
        changed = {path: change for path, change in changes.items() if change.before != change.after}
        return Look(index, changed, sorted_out.sentences, [image.id for image in now.values()], sorted_out.private)

    def _update(self, index: str, deed: str, paths: Sequence[str]) -> None:
        if paths:
            names = b"".join(os.fsencode(path) + b"\0" for path in paths)
            self._git(index, "update-index", deed, "--remove", "-z", "--stdin", input=names)

    def _entries(self, index: str, paths: Mapping[str, int]) -> dict[str, FileImage]:
        """Return what an index has of these paths, whose modes are known; looked up one by one, in one run of git."""
        plain = [path for path in paths if not _ENDS_A_LINE.search(path)]
        asked = b"".join(b":0:" + os.fsencode(path) + b"\n" for path in plain)
        # Not `splitlines`: git says the name of a file that is not there, which may have other ends of lines in it.
        said = self._git(index, "cat-file", "--batch-check=%(objectname)", input=asked).split(b"\n")[:-1]
        found: dict[str, FileImage] = {}
        for path, name in zip(plain, said, strict=True):
            if b" " not in name and paths[path]:
                found[path] = FileImage(paths[path], name.decode())
        odd = [path for path in paths if _ENDS_A_LINE.search(path)]
        return found | (self._listed(index, odd) if odd else {})

    def _git(self, index: str, *words: str, input: bytes = b"") -> bytes:
        environment = self._environment if words[0] in _WRITING else self._reading
        environment = {**environment, "GIT_INDEX_FILE": index} if index else environment
        return self._runs.run(words, environment, input)


# What puts objects into the shadow.
_WRITING: Final = ("update-index", "hash-object")


def _quoted(path: str) -> str:
    """Return a path for a list of paths: git reads one in quotes as it stands."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return -1


def _copy(source: str, target: str) -> None:
    with (
        open_regular(source) as read,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as write,
    ):
        while data := read.read(1 << 20):
            write.write(data)
        write.flush()
        # Git tells by the time of an index which files may have changed in the same moment.
        status = os.fstat(read.fileno())
        os.utime(write.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _write(path: str, text: str) -> None:
    """Write a file of the shadow, unless it is so already: git of another session may read it now."""
    data = text.encode("utf-8", "surrogateescape")
    with suppress(OSError), open(path, "rb") as file:
        if file.read() == data:
            return
    with replaced_file(path) as new:
        new.write(data)

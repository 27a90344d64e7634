"""The folders of this machine that a principal may choose for a new session. Bounded; waits for the disk in threads.

A folder is shown only where the token may open a session in it, by where links lead; the server's own folders are
shown to no token. What may not be seen looks like what is not there.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.http_replies import Stop
from dragoman.gateway.token_types import TokenIdentity
from dragoman.vocabulary.identity import Identity

# Folders that are shown of one, and names that are looked at to find them.
SHOWN: Final = 500
_LOOKED_AT: Final = 20_000
_SECONDS: Final = 5.0
# At once: a network drive that hangs must not take every thread of the server.
_AT_ONCE: Final = 4
_PATH_LENGTH: Final = 4096


class Folder(msgspec.Struct):
    """A folder by its path."""

    name: str
    path: str


class FolderPage(msgspec.Struct, rename="camel"):
    """A folder and what is in it; `parent` is empty where that may not be seen, `more`: there are more than these.

    `files` are names, where they were asked for: a prompt names them.
    """

    path: str
    parent: str
    folders: list[Folder]
    roots: list[str]
    more: bool
    files: list[str] = []


class FolderList:
    """Lists folders. `private` are paths that are the server's own, `start` is shown where none is asked for."""

    def __init__(self, ceilings: Ceilings, private: Sequence[str], start: str) -> None:
        self._ceilings = ceilings
        self._private = tuple(os.path.realpath(path) for path in private)
        self._start = start
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def list(self, path: str, identity: TokenIdentity, *, hidden: bool, files: bool = False) -> FolderPage:
        """Return the folders in one. Raise `Stop`: 404 where the token may see none such, 503 where the disk hangs."""
        if "\0" in path or len(path) > _PATH_LENGTH or (path and not path.startswith("/")):
            raise UsageError("That is no absolute path of a folder.")
        limits = self._ceilings.identity(identity)
        wanted = path or self._ceilings.first_folder(self._start, identity)
        # Refused and not queued: behind a disk that hangs a queue would only grow.
        if self._at_once.locked():
            raise Stop(503, "Too many folders are looked at now. Try again.")
        await self._at_once.acquire()
        looking = asyncio.ensure_future(asyncio.to_thread(self._look, wanted, limits, hidden, files))
        # Only when the thread has ended, which may be long after the answer.
        looking.add_done_callback(lambda _: self._at_once.release())
        try:
            return await asyncio.wait_for(asyncio.shield(looking), _SECONDS)
        except TimeoutError:
            looking.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise Stop(503, "The disk did not answer in time. Try again.") from None
        except (OSError, ValueError):
            # One answer for both: whether a folder is missing or forbidden must not show.
            raise Stop(404, "There is no such folder, or this token may not open it.") from None

    def _look(self, path: str, limits: Identity, hidden: bool, with_files: bool) -> FolderPage:
        real = os.path.realpath(path)
        if not self._may_see(real, limits):
            raise FileNotFoundError(path)
        folders: list[Folder] = []
        files: list[str] = []
        more = False
        with os.scandir(real) as entries:
            for number, entry in enumerate(entries):
                if number >= _LOOKED_AT:
                    more = True
                    break
                if entry.name.startswith(".") and not hidden:
                    continue
                kind = self._kind(entry, limits)
                if kind == "folder":
                    folders.append(Folder(entry.name, os.path.join(real, entry.name)))
                elif kind == "file" and with_files:
                    files.append(entry.name)
        folders.sort(key=lambda one: (one.name.casefold(), one.name))
        parent = os.path.dirname(real)
        shown = parent if parent != real and self._may_see(parent, limits) else ""
        roots = [root for listed in limits.workspaces for root in listed if limits.may_open(root)]
        files.sort(key=lambda name: (name.casefold(), name))
        more = more or len(folders) > SHOWN or len(files) > SHOWN
        return FolderPage(real, shown, folders[:SHOWN], list(dict.fromkeys(roots)), more, files[:SHOWN])

    def _kind(self, entry: "os.DirEntry[str]", limits: Identity) -> Literal["folder", "file", "hidden"]:
        """Return what an entry is for this token, by where it leads."""
        try:
            entry.name.encode()  # a name that is no text cannot be sent
            if not self._may_see(os.path.realpath(entry.path), limits):
                return "hidden"
            return "folder" if entry.is_dir() else "file" if entry.is_file() else "hidden"
        except (OSError, UnicodeEncodeError):
            return "hidden"

    def _may_see(self, real: str, limits: Identity) -> bool:
        inside = any(real == own or real.startswith(f"{own}/") for own in self._private)
        return not inside and limits.may_open(real)

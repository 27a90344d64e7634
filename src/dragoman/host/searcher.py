"""The process that searches a tree for us: it can be killed, and its CPU time is not taken from the event loop.

It reads one request (a JSON line) and writes records: a path from the root, a NUL, what is to say about it, a newline.
The last record has no path and says how it ended, in JSON. Matches come in any order, because two processes share the
files; the first `limit` of them all are among them. It ends by itself when its parent is gone.
"""

import json
import mmap
import os
import re
import select
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from types import FrameType
from typing import Any, Final

from dragoman.host import wildcards
from dragoman.host.finder import Finder
from dragoman.host.paths import Place
from dragoman.host.secrets import is_credential
from dragoman.host.walk import FILE_FLAGS, Walk, open_file
from dragoman.host.wildcards import PatternRefused

# Larger files are data, not text written by hand.
FILE_BYTES: Final = 16 * 1024 * 1024
# One read takes most files whole.
_FIRST_READ: Final = 64 * 1024
# CPU time that one try of the expression may take: 64 KiB of text take 1 ms, one line of 16 MiB up to 0.3 s.
_TICK_SECONDS: Final = 0.1
_TICKS: Final = 5
# What a pipe takes as a whole from one of several writers; a longer path is left out.
_WRITE_BYTES: Final = select.PIPE_BUF
_NO_END: Final = 2**63


class TooSlow(Exception):
    """The expression does not come to an end."""


def main() -> None:
    """Serve one request."""
    request = json.loads(sys.stdin.buffer.readline())
    out = _Output(request["limit"])
    ending: dict[str, Any]
    try:
        place = Place(request["root"], tuple(request["parts"]))
        if request["task"] == "glob":
            ending = _glob(place, request, out)
        else:
            ending = _grep(place, request, out)
    except PatternRefused as error:
        ending = {"refused": str(error)}
    except TooSlow:
        ending = {"refused": "The pattern takes too long on this text; use one with fewer nested repetitions."}
    except OSError as error:
        ending = {"refused": f"The folder cannot be searched: {(error.strerror or 'unknown error').lower()}."}
    out.end(ending)


def _glob(place: Place, request: dict[str, Any], out: "_Output") -> dict[str, Any]:
    matches = re.compile("|".join(wildcards.path(each) for each in request["patterns"]), re.DOTALL).fullmatch
    walk = Walk(place, depth=request["depth"])
    start = sum(len(part) + 1 for part in request["base"])
    for _, folder, name in walk.files():
        if matches((folder + name)[start:]) is not None and not out.put(folder + name, ""):
            return {"more": True}
    return {"walk_cut": walk.is_cut}


def _grep(place: Place, request: dict[str, Any], out: "_Output") -> dict[str, Any]:
    finder = Finder(request["pattern"], ignore_case=request["ignore_case"])
    if request["is_file"]:
        _watch(finder)
        data = _read(open_file(place))
        for hit in finder.find(data):
            if not out.put("/".join(place.parts), f"{hit.line}:{hit.column}:{hit.offset}:"):
                return {"more": True}
        return {}
    return _Pair().search(lambda pair: _grep_share(place, request, out, finder, pair), finder, out)


def _grep_share(place: Place, request: dict[str, Any], out: "_Output", finder: Finder, pair: "_Pair") -> dict[str, Any]:
    """This process's part of the files."""
    wanted = wildcards.file_filter(request["patterns"])
    walk = Walk(place)
    start = sum(len(part) + 1 for part in place.parts)
    home: str | None = request["credentials_of"]
    without = tuple(request["without"])
    for index, (folder_fd, folder, name) in enumerate(walk.files()):
        if not pair.is_mine(index):
            if pair.is_over(index):
                return {"more": True}
            continue
        if wanted is not None and not wanted(folder[start:], name):
            continue
        if without and f"{place.root.rstrip('/')}/{folder}{name}/".startswith(without):
            continue
        try:
            data = _read(os.open(name, FILE_FLAGS, dir_fd=folder_fd))
        except OSError:
            continue
        hits = finder.find(data)
        first = next(hits, None)
        if first is None or (home is not None and is_credential(f"{place.root}/{folder}{name}", home)):
            continue
        for hit in chain([first], hits):
            if not out.put(folder + name, f"{hit.line}:{hit.column}:{hit.offset}:"):
                pair.end_at(index)
                return {"more": True}
    return {"walk_cut": walk.is_cut}


class _Pair:
    """Two processes that share the files of one walk, every other one for each; one, where there is one processor.

    When one has as many matches as were asked for, the other need not go further than that.
    """

    def __init__(self) -> None:
        self._ends = memoryview(mmap.mmap(-1, 16)).cast("Q")
        self._ends[0] = self._ends[1] = _NO_END
        self._me = 0
        self._are_two = (os.cpu_count() or 1) > 1

    def is_mine(self, index: int) -> bool:
        return not self._are_two or index & 1 == self._me

    def is_over(self, index: int) -> bool:
        """Whether the other process has found enough before this file."""
        return index > self._ends[1 - self._me]

    def end_at(self, index: int) -> None:
        self._ends[self._me] = index

    def search(self, share: "Callable[[_Pair], dict[str, Any]]", finder: Finder, out: "_Output") -> dict[str, Any]:
        """How both ended."""
        partner = os.fork() if self._are_two else None
        if partner == 0:
            self._me = 1
            os._exit(self._second(share, finder, out))
        _watch(finder)
        try:
            ending = share(self)
        except TooSlow:
            self.end_at(0)
            raise
        if partner is not None:
            code = os.waitstatus_to_exitcode(os.waitpid(partner, 0)[1])
            if code not in _CODES:
                raise TooSlow if code == _TOO_SLOW else OSError
            ending |= _CODES[code]
        return ending

    def _second(self, share: "Callable[[_Pair], dict[str, Any]]", finder: Finder, out: "_Output") -> int:
        """What the second process does; its exit code says how it ended."""
        try:
            _watch(finder)
            ending = share(self)
            out.flush()
            return next(code for code, meant in _CODES.items() if meant.items() <= ending.items())
        except TooSlow:
            self.end_at(0)
            return _TOO_SLOW
        except BaseException:
            return _FAILED


# The most telling first: a second process tells by its exit code.
_CODES: Final[dict[int, dict[str, Any]]] = {3: {"more": True}, 4: {"walk_cut": True}, 0: {}}
_TOO_SLOW: Final = 5
_FAILED: Final = 6


def _read(fd: int) -> bytes:
    """A file's bytes, none if it is too large; the descriptor is closed."""
    try:
        data = os.read(fd, _FIRST_READ)
        if len(data) == _FIRST_READ:
            data = b"".join([data, *_rest(fd)])
    finally:
        os.close(fd)
    return data if len(data) <= FILE_BYTES else b""


def _rest(fd: int) -> Iterator[bytes]:
    left = FILE_BYTES + 1 - _FIRST_READ
    while left > 0 and (data := os.read(fd, min(left, 1024 * 1024))):
        left -= len(data)
        yield data


def _watch(finder: Finder) -> None:
    """Looks at the expression ten times a second of CPU time, and breaks it off when it does not get on."""
    parent = os.getppid()
    last = -1
    ticks = 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal last, ticks
        if os.getppid() != parent:
            os._exit(1)
        ticks = ticks + 1 if finder.is_matching and finder.calls == last else 0
        last = finder.calls
        if ticks >= _TICKS:
            raise TooSlow

    signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, _TICK_SECONDS, _TICK_SECONDS)


class _Output:
    def __init__(self, limit: int) -> None:
        self._left = limit
        self._waiting = bytearray()

    def put(self, path: str, words: str) -> bool:
        """Whether there was room for it."""
        if self._left == 0:
            return False
        record = os.fsencode(path) + b"\0" + words.encode() + b"\n"
        if len(self._waiting) + len(record) > _WRITE_BYTES:
            self.flush()
        if len(record) <= _WRITE_BYTES:
            self._left -= 1
            self._waiting += record
        return True

    def end(self, ending: dict[str, Any]) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.flush()
        self._waiting += b"\0" + json.dumps({"done": True} | ending).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        sys.stdout.buffer.write(self._waiting)
        sys.stdout.buffer.flush()
        self._waiting.clear()


if __name__ == "__main__":
    main()

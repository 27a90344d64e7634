"""The process that searches a tree for us: it can be killed, and it takes nobody's time but its own.

It reads one request (a JSON line) and writes records: a path from the root, a NUL, what is to say about it, a newline.
The last record has no path and says how it ended, in JSON. It ends by itself when its parent is gone.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from dragoman.host import wildcards
from dragoman.host.finder import Finder
from dragoman.host.paths import Place
from dragoman.host.walk import FILE_FLAGS, Walk, open_file
from dragoman.host.wildcards import PatternRefused

# Larger files are data, not text that somebody wrote.
FILE_BYTES: Final = 16 * 1024 * 1024
# One read takes most files whole.
_FIRST_READ: Final = 64 * 1024
# CPU time that one try of the expression may take: 64 KiB of text take 1 ms, one line of 16 MiB up to 0.3 s.
_TICK_SECONDS: Final = 0.1
_TICKS: Final = 5
_FLUSH_BYTES: Final = 16 * 1024


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
    _watch(finder)
    if request["is_file"]:
        data = _read(open_file(place))
        for hit in finder.find(data):
            if not out.put("/".join(place.parts), f"{hit.line}:{hit.column}:{hit.offset}:"):
                return {"more": True}
        return {}
    wanted = wildcards.file_filter(request["patterns"])
    walk = Walk(place)
    start = sum(len(part) + 1 for part in place.parts)
    for folder_fd, folder, name in walk.files():
        if wanted is not None and not wanted(folder[start:], name):
            continue
        try:
            data = _read(os.open(name, FILE_FLAGS, dir_fd=folder_fd))
        except OSError:
            continue
        for hit in finder.find(data):
            if not out.put(folder + name, f"{hit.line}:{hit.column}:{hit.offset}:"):
                return {"more": True}
    return {"walk_cut": walk.is_cut}


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
        self._left -= 1
        self._waiting += os.fsencode(path) + b"\0" + words.encode() + b"\n"
        if len(self._waiting) >= _FLUSH_BYTES:
            self._flush()
        return True

    def end(self, ending: dict[str, Any]) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self._waiting += b"\0" + json.dumps({"done": True} | ending).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        sys.stdout.buffer.write(self._waiting)
        sys.stdout.buffer.flush()
        self._waiting.clear()


if __name__ == "__main__":
    main()

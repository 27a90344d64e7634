"""Judges whether an index that a command has left is one that git itself could have written, as far as paths go.

Git trusts the paths in its index: `git restore .` and `git checkout .` write what they say. An index that was made by
hand could name `.git/hooks/x`, or a file outside of the repository. So every path is read here, in the way git reads
them, and one that git would not add to an index makes it a bad one. Pure.

An index has a header, the entries, extensions and a checksum. Two extensions let git find entries without reading those
before: where they say another thing than the entries themselves, the index is a bad one, too.
"""

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.host.protected_names import plain

_HEADER: Final = struct.Struct(">4sII")
_EXTENSION: Final = struct.Struct(">4sI")
_BLOCK: Final = struct.Struct(">II")
# Times, numbers, mode, owner and size of a file, before the name of its content.
_FACTS_BYTES: Final = 40
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0xFFF
# A path with one of these is looked at part by part; most have none.
_ODD: Final = re.compile(rb"(?:^|/)(?:[./]|$)|[~:\x00-\x1f\x7f-\xff]")
_BAD_PARTS: Final = frozenset({"", ".git", "git~1"})


class _Entry(NamedTuple):
    """Where an entry begins, its path, and whether that stands there whole."""

    begin: int
    path: bytes
    is_whole: bool


def is_good_index(data: bytes, hash_bytes: int) -> bool:
    """Return whether an index can be read whole, and no path in it leads into a git folder or out of the repository.

    `hash_bytes`: the length of an object's name in this repository, 20 or 32.
    """
    try:
        return _is_good(data, hash_bytes)
    except (struct.error, IndexError, ValueError):
        return False


def index_paths(data: bytes, hash_bytes: int) -> frozenset[bytes]:
    """Return the paths of the files that an index tracks; none if it cannot be read."""
    try:
        _, version, count = _HEADER.unpack_from(data)
        return frozenset(entry.path for entry, _ in _entries(data, version, count, hash_bytes))
    except (struct.error, IndexError, ValueError):
        return frozenset()


def _is_good(data: bytes, hash_bytes: int) -> bool:
    mark, version, count = _HEADER.unpack_from(data)
    if mark != b"DIRC" or version not in (2, 3, 4):
        return False
    limit = len(data) - hash_bytes
    entries: list[_Entry] = []
    end = _HEADER.size
    for entry, end in _entries(data, version, count, hash_bytes):
        if end > limit:
            return False
        entries.append(entry)
    found = list(_extensions(data, end, limit))
    extensions = dict(found)
    if len(extensions) != len(found):
        return False
    is_split = b"link" in extensions  # then paths may be left out that stand in another file
    if not all(_is_good_path(entry.path) or (is_split and not entry.path) for entry in entries):
        return False
    return _says_end(data, end, hash_bytes) and _fits(extensions.get(b"IEOT"), entries)


def _entries(data: bytes, version: int, count: int, hash_bytes: int) -> Iterator[tuple[_Entry, int]]:
    """Yield the entries, each with where it ends."""
    at = _HEADER.size
    before = b""
    for _ in range(count):
        name_at = at + _FACTS_BYTES + hash_bytes + 2
        flags = int.from_bytes(data[name_at - 2 : name_at], "big")
        if flags & _EXTENDED:
            if version < 3:
                raise ValueError("an old index has no extended entries")
            name_at += 2
        cut = 0
        if version == 4:
            cut, name_at = _number(data, name_at)
            if cut > len(before):
                raise ValueError("more is cut than there is")
        end = data.index(b"\0", name_at)
        path = before[: len(before) - cut] + data[name_at:end] if version == 4 else data[name_at:end]
        # Git goes by this length, where it fits in.
        if flags & _LENGTH != min(len(path), _LENGTH):
            raise ValueError("a path has another length")
        entry = _Entry(at, path, version != 4 or cut == len(before))
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        yield entry, at
        before = path


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    byte = data[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1


def _extensions(data: bytes, at: int, limit: int) -> Iterator[tuple[bytes, bytes]]:
    while at < limit:
        name, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        if at + size > limit:
            raise ValueError("an extension goes beyond the end")
        yield name, data[at : at + size]
        at += size


def _says_end(data: bytes, end: int, hash_bytes: int) -> bool:
    """Return whether the extension that says where the entries end, if there is one, is right.

    Git looks for it by its place before the checksum.
    """
    at = len(data) - hash_bytes - (_EXTENSION.size + 4 + hash_bytes)
    if at < end or data[at : at + 4] != b"EOIE":
        return True
    return int.from_bytes(data[at + _EXTENSION.size : at + _EXTENSION.size + 4], "big") == end


def _fits(table: bytes | None, entries: list[_Entry]) -> bool:
    """Return whether a table of where blocks of entries begin says what is so."""
    if table is None:
        return True
    first = 0
    for begin, count in _BLOCK.iter_unpack(table[4:]):
        if first >= len(entries) or entries[first].begin != begin or not entries[first].is_whole:
            return False
        first += count
    return first == len(entries)


def _is_good_path(path: bytes) -> bool:
    if not _ODD.search(path):
        return bool(path)
    parts = path.removesuffix(b"/").split(b"/")  # a folder that is not checked out has a slash behind it
    return not any(plain(part.decode("utf-8", "surrogateescape")) in _BAD_PARTS for part in parts)

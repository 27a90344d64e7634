"""Decides whether bytes are text, and which: the one place for files, command output, web pages and MCP results.

Bytes are text if they begin with the mark of UTF-16 or UTF-32 and decode as that, or if they hold no NUL and are, but
for a small part, UTF-8; and if only a small part is control characters that no program writes on purpose. Everything
else is binary: a model gets one sentence about it (`describe_binary`), because a page of replacement or control
characters costs as much as a page of text and tells nothing. Pure.
"""

import codecs
import re
from typing import Final, NamedTuple

from dragoman.host.media import picture_type

# A larger part of characters that mean nothing is a flood. Text in Latin-1 stays below: one character in ten or so is
# no UTF-8. Compressed data has about one in two.
FLOOD_SHARE: Final = 0.3
# What a program writes on purpose: bell, backspace, tab, newline, form feed, carriage return, escape, next line.
_WRITTEN: Final = frozenset("\a\b\t\n\f\r\x1b\x85")
_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0))
_MEANINGLESS: Final = ("\ufffd", *(chr(code) for code in _CONTROLS if chr(code) not in _WRITTEN))
# UTF-32 before UTF-16, whose little-endian mark begins the same.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_KINDS: Final = (
    (b"BM", "BMP image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"OggS", "Ogg sound"),
    (b"ID3", "MP3 sound"),
    (b"\x00\x00\x01\x00", "icon"),
)
_PICTURES: Final = {
    "image/png": "PNG image",
    "image/jpeg": "JPEG image",
    "image/gif": "GIF image",
    "image/webp": "WebP image",
}
_BINARY: Final = "binary data"


class DecodedText(NamedTuple):
    """Text, and its encoding. `is_exact`: no byte had to be replaced."""

    text: str
    encoding: str = "UTF-8"
    is_exact: bool = True


def decode_text(data: bytes, *, is_cut: bool = False) -> DecodedText | None:
    """Return the text of these bytes, None if they are binary. `is_cut`: more bytes follow, so the last may be half."""
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data, codec, name, is_cut=is_cut)
    if b"\0" in data:
        return None
    try:
        decoded = DecodedText(codecs.utf_8_decode(data, "strict", not is_cut)[0])
    except UnicodeDecodeError:
        decoded = DecodedText(data.decode("utf-8", "replace"), is_exact=False)
    # Control characters are valid UTF-8, and a page of them tells as little as a page of replacement characters.
    return None if is_flood(decoded.text) else decoded


def _decode_marked(data: bytes, codec: str, name: str, *, is_cut: bool) -> DecodedText | None:
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or is_flood(text) else DecodedText(text, name)


def is_flood(text: str) -> bool:
    """Return whether so many characters of a text are meaningless that its bytes were binary data."""
    return sum(map(text.count, _MEANINGLESS)) > FLOOD_SHARE * len(text)


def is_binary_text(text: str) -> bool:
    """Return whether a text that a peer decoded was a binary file: it holds a NUL, or is a flood."""
    return "\0" in text or is_flood(text)


def describe_binary(data: bytes, size: int) -> str:
    """Name binary data by its first bytes and its whole size: `PNG image, 43,718 bytes`."""
    picture = picture_type(data)
    kind = (
        _PICTURES[picture] if picture else next((kind for begins, kind in _KINDS if data.startswith(begins)), _BINARY)
    )
    return f"{kind}, {size:,} byte{'' if size == 1 else 's'}"


def without_binary(output: str) -> str:
    """Return the output of a command without the binary part of it, where that is a flood; lines around it stay."""
    if not is_flood(output):
        return output
    lines = re.split(r"(?<=\n)", output)
    binary = [at for at, line in enumerate(lines) if is_flood(line)]
    if not binary:  # many lines, each of them short and just below
        return f"[{len(output):,} characters of binary data]"
    first, last = binary[0], binary[-1] + 1
    left_out = sum(map(len, lines[first:last]))
    return "".join([*lines[:first], f"[{left_out:,} characters of binary data]\n", *lines[last:]])

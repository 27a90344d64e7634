"""What the user wrote, with everything quoted put out of reach: it is data, and no rule looks inside it.

A masked text has a mark for every fenced block, code span, quotation and mention. Rules match the masked text; what
they catch is turned back by `Phrase.value` (what is meant) or `Phrase.raw` (what was typed).
"""

import re
from collections.abc import Sequence
from shlex import quote
from typing import Final, Literal, NamedTuple

MARK: Final = r"\x00\d+\x00"
_MARKS: Final = re.compile(r"\x00(\d+)\x00")
# Fences first, then code spans, then quotations that do not begin or end inside a word (don't).
_QUOTED: Final = re.compile(
    r"(?P<fence>^[ \t]*(?P<ticks>```+|~~~+)[ \t]*(?P<info>[^\n`]*)\n(?P<block>.*?)^[ \t]*(?P=ticks)[ \t]*$)"
    r"|(?P<span>(?P<tick>`+)(?P<code>[^`\n]+?)(?P=tick))"
    r"|(?<!\w)(?P<quote>\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)'|“(?P<curly>[^”\n]*)”)(?!\w)",
    re.MULTILINE | re.DOTALL,
)

ChunkKind = Literal["fence", "code", "quote", "mention"]


class PhraseChunk(NamedTuple):
    """A piece that no rule looks into. `info` is what stands behind the ticks of a fence."""

    kind: ChunkKind
    raw: str
    value: str
    info: str = ""


class Phrase(NamedTuple):
    """A masked text and its pieces."""

    masked: str
    chunks: tuple[PhraseChunk, ...] = ()

    def part(self, masked: str) -> "Phrase":
        """A part of this one."""
        return Phrase(masked.strip(), self.chunks)

    def chunk(self, masked: str) -> PhraseChunk | None:
        """The piece that the text consists of, if it is no more than that."""
        found = _MARKS.fullmatch(masked.strip())
        return self.chunks[int(found[1])] if found else None

    def value(self, masked: str) -> str:
        """What is meant: without its quotes, if all of it is quoted."""
        chunk = self.chunk(masked)
        return self.raw(masked).strip() if chunk is None else chunk.value

    def raw(self, masked: str) -> str:
        """What was typed."""
        return _MARKS.sub(lambda mark: self.chunks[int(mark[1])].raw, masked)

    def command(self, masked: str) -> str:
        """Return what was typed, for a shell. The name of an attachment is quoted: it is one argument."""

        def typed(mark: re.Match[str]) -> str:
            chunk = self.chunks[int(mark[1])]
            return quote(chunk.value) if chunk.kind == "mention" else chunk.raw

        return _MARKS.sub(typed, masked)

    def mentions(self) -> list[PhraseChunk]:
        """The attachments in it, in order."""
        found = (self.chunks[int(mark[1])] for mark in _MARKS.finditer(self.masked))
        return [chunk for chunk in found if chunk.kind == "mention"]


def phrase(parts: Sequence[str | PhraseChunk]) -> Phrase:
    """Mask the user's own words; mentions among them are pieces already."""
    chunks: list[PhraseChunk] = []

    def mark(chunk: PhraseChunk) -> str:
        chunks.append(chunk)
        return f"\0{len(chunks) - 1}\0"

    def quoted(found: re.Match[str]) -> str:
        if found["fence"]:
            return mark(PhraseChunk("fence", found[0], found["block"], found["info"].strip()))
        if found["span"]:
            return mark(PhraseChunk("code", found[0], found["code"]))
        inside = next(found[name] for name in ("double", "single", "curly") if found[name] is not None)
        return mark(PhraseChunk("quote", found[0], inside))

    masked: list[str] = []
    for part in parts:
        if isinstance(part, PhraseChunk):
            masked.append(f" {mark(part)} ")
        else:
            masked.append(_QUOTED.sub(quoted, part.replace("\0", "").replace("\r\n", "\n")))
    return Phrase("".join(masked).strip(), tuple(chunks))

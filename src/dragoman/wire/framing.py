"""Bytes to frames and back: where one message ends and the next begins.

Owns the two framings of stdio: one JSON text a line (NDJSON) and `Content-Length` header blocks. Knows nothing of
JSON. The promise: whatever the bytes, and however they are torn, the same frames come out in the same order; what a
frame may not hold is refused once with a code and skipped without being kept; nothing is raised.
"""

from typing import Final, Literal, TypeAlias

from dragoman import limits
from dragoman.errors import INVALID_REQUEST, PARSE_ERROR, FrameTooLarge, LargeFrameHead, PeerMistake

Style: TypeAlias = Literal["ndjson", "content-length"]
Found: TypeAlias = list[bytes | PeerMistake]

# Programs on Windows may write it before their first message. It is no JSON, and no fault worth an error.
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"
_LENGTH: Final = b"content-length"
_NEWLINE: Final = ord("\n")
_RETURN: Final = ord("\r")
# elephant.ai's clients may use the headers of the Language Server Protocol; every other known peer sends lines.
# `Content-Type` may come before `Content-Length`, so the decision is made at their common beginning.
_FIRST_WORD: Final = b"content-"
# While resynchronising only the end of a line is looked at: a header behind a body is this short.
_WINDOW: Final = 128
# What is kept of a frame that is refused: enough to see whom it answers, if it says so first, as most peers do.
_HEAD: Final = 128
# From here on a piece of a line is kept as it is. One read is 64 KiB, so the pieces of a large frame are larger.
_SMALL_PIECE: Final = 4096
# More digits than any length that could be meant; also keeps `int` away from absurd work.
_LENGTH_DIGITS: Final = 18
_ABSURD: Final = 10**_LENGTH_DIGITS


def frame(payload: bytes, style: Style) -> bytes:
    """Return one message as bytes for the pipe."""
    if style == "content-length":
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)
    return one_line(payload) + b"\n"


def one_line(payload: bytes) -> bytes:
    """Return the JSON text without line breaks.

    Inside a JSON string a line break is escaped, so a raw one can only be whitespace between two tokens, as in parts
    of a peer's JSON that are passed on: it becomes a space.
    """
    if _NEWLINE in payload or _RETURN in payload:
        return payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return payload


class Framer:
    """Feed it what was read; it gives the complete frames, and a `PeerMistake` where there should have been one.

    The style is decided by the first bytes that are not blank: "Content-" in any case, or else lines. A byte order
    mark before them is skipped. `limit` counts the bytes of a body, or of a line without its newline.

    `broken` is a reason once the peer has announced more than can be skipped (`skip_limit`): nothing that follows can
    be told from that message, so no more frames come out, and the connection has to end.
    """

    def __init__(
        self, *, limit: int, header_limit: int = limits.HEADER_BYTES, skip_limit: int = limits.SKIP_BYTES
    ) -> None:
        self.style: Style | None = None  # None until the first bytes have decided; then it stays
        self.broken = ""
        self._opening = b""  # bytes that could still begin either style
        self._marked = False  # a byte order mark was skipped: a second one is content
        self._lines = _Lines(limit)
        self._blocks = _Blocks(limit, header_limit, skip_limit)

    def feed(self, data: bytes) -> Found:
        """Return the frames that `data` completes, in order."""
        if self.style is None:
            data = self._open(data)
        if self.style == "ndjson":
            return self._lines.feed(data)
        found = self._blocks.feed(data)  # before the style is known there is nothing to feed
        self.broken = self._blocks.broken
        return found

    def eof(self) -> Found:
        """Note that no more bytes will come; an unfinished message is never returned, `pending` counts its bytes."""
        return []

    @property
    def pending(self) -> int:
        """How many bytes are held of a message that is not complete."""
        return len(self._opening) + self._lines.held.size + len(self._blocks.held)

    def _open(self, data: bytes) -> bytes:
        """Decide the style: return what is to be framed, or nothing while it could still be either."""
        data = (self._opening + data).lstrip(_BLANK)
        if not self._marked and data.startswith(_BOM):
            self._marked = True
            data = data[len(_BOM) :].lstrip(_BLANK)
        word = data[: len(_FIRST_WORD)].lower()
        half_a_mark = not self._marked and _BOM.startswith(data)
        half_a_word = word != _FIRST_WORD and _FIRST_WORD.startswith(word)
        # Nothing was refused yet and nothing is lost by waiting: these are fewer bytes than any message has.
        if half_a_mark or half_a_word:
            self._opening = data
            return b""
        self._opening = b""
        self.style = "content-length" if word == _FIRST_WORD else "ndjson"
        return data


def _too_large(limit: int, head: bytes, kind: type[FrameTooLarge] = FrameTooLarge) -> FrameTooLarge:
    mistake = kind(INVALID_REQUEST, "Message too large", {"limit": limit})
    mistake.head = head
    return mistake


class _Lines:
    """NDJSON. Blank lines are no frames; a line past the limit is reported as soon as it is, and dropped to its end."""

    # Two states. Gathering: `held` has the beginning of a line that is within the limit. Dropping: the line was refused
    # already, `held` is empty, and bytes are ignored up to the next newline.
    def __init__(self, limit: int) -> None:
        self.held = _HeldLine()
        self._limit = limit
        self._dropping = False

    def feed(self, data: bytes) -> Found:
        try:
            # One line, whole: a peer that asks one thing at a time sends this.
            is_line = data.find(_NEWLINE) == len(data) - 1 and data >= b"!"
            if is_line and len(data) <= self._limit and not self.held.size and not self._dropping:
                return [data[:-1]]
            return self._feed(data)
        except MemoryError:  # it may be allowed, and there is no room for it
            return self._drop_line(data)

    def _drop_line(self, data: bytes) -> Found:
        head = self.held.head() or data[:_HEAD]
        self.held = _HeldLine()
        _, newline, rest = data.partition(b"\n")
        self._dropping = not newline
        return [_too_large(self._limit, head), *(self.feed(rest) if rest else ())]

    def _feed(self, data: bytes) -> Found:
        # Whether a line can pass the limit in this read at all. If not, no line has to be measured by itself.
        held = self.held.size
        slowly = self._dropping or held + len(data) > self._limit
        if not slowly and _NEWLINE not in data:
            self.held.add(data)  # the middle of a large frame: it is copied once, when the frame is complete
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        if slowly:
            return self._feed_slowly(lines, rest)
        if held and lines:
            self.held.add(lines[0])
            lines[0] = self.held.take()
        if rest:
            self.held.add(rest)
        # A line that begins below "!" is blank, or has blanks before it: look again. Nothing else is that cheap.
        found: Found = [line for line in lines if line >= b"!"]
        return found if len(found) == len(lines) else [line for line in lines if line.strip(_BLANK)]

    def _feed_slowly(self, lines: list[bytes], rest: bytes) -> Found:
        """Frame line by line, with each one measured: some line may be past the limit, or is being dropped."""
        found: Found = []
        for line in lines:
            if self._dropping:
                self._dropping = False  # this is the end of the line that was refused; the next one counts again
            elif self._hold(line, found):
                whole = self.held.take()
                if whole.strip(_BLANK):
                    found.append(whole)
            else:
                self._dropping = False  # `_hold` refused the line, and it ends here
        if rest and not self._dropping:
            self._hold(rest, found)
        return found

    def _hold(self, piece: bytes, found: Found) -> bool:
        """Add a piece of a line; False if the line is past the limit now, which is reported once."""
        if self.held.size + len(piece) <= self._limit:
            self.held.add(piece)
            return True
        head = self.held.head() + piece[:_HEAD]
        found.append(_too_large(self._limit, head[: min(_HEAD, self._limit)]))
        self.held = _HeldLine()
        self._dropping = True
        return False


class _HeldLine:
    """The beginning of a line, in pieces: a large frame is copied once, when it is complete, and not as it grows.

    Small pieces are gathered in one buffer. A peer that writes single bytes would otherwise cost an object for each.
    """

    __slots__ = ("_pieces", "_small", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # before `_small`
        self._small = bytearray()
        self.size = 0  # in bytes

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(piece) < _SMALL_PIECE:
            self._small += piece
            return
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()
        self._pieces.append(piece)

    def take(self) -> bytes:
        """Return the line, and begin the next one."""
        line = b"".join([*self._pieces, self._small]) if self._pieces else bytes(self._small)
        self._pieces.clear()
        self._small = bytearray()
        self.size = 0
        return line

    def head(self) -> bytes:
        """Return the first bytes, enough to see whom a response is for."""
        return (self._pieces[0] if self._pieces else bytes(self._small[:_HEAD]))[:_HEAD]


class _Blocks:
    """Content-Length. Headers other than the length are read over; blank lines between messages too.

    After a header block that makes no sense (no length, not a number, two lengths, not a header, too long) the
    end of the body is unknown. Reading goes on at the next `Content-Length` that stands at the beginning of a line, or
    ends a line right behind a closing bracket, as it does behind a body. A body past the limit is refused with its
    header and skipped by length; its head follows when it has come, because it may be the answer that a call waits for.
    A length that cannot be skipped is the end: whatever follows is part of that body, if the peer says the truth.
    """

    def __init__(self, limit: int, header_limit: int, skip_limit: int) -> None:
        self.held = bytearray()
        self.broken = ""
        self._limit = limit
        self._header_limit = header_limit
        self._skip_limit = skip_limit
        # Where the next byte belongs: in the body while `_body` is not 0, else in a line. A line is a header, unless
        # `_lost`: then lines are searched for a header. A body is kept in `held`, or skipped if `_keep` is False.
        self._body = 0  # bytes of the body still to come
        self._keep = True
        self._head: bytes | None = None  # of a body that is not kept, until it is handed on
        self._lost = False  # the last header block made no sense: where the next message begins is not known
        self._seen = 0  # bytes of the line being read; `held` has them, or the end of them when lost
        self._block = 0  # bytes of the block's finished lines
        self._any = False  # a header of this block was read
        self._length: int | None = None

    def feed(self, data: bytes) -> Found:
        found: Found = []
        at = 0
        while at < len(data) and not self.broken:
            at = self._take_body(data, at, found) if self._body else self._take_line(data, at, found)
        return found

    def _take_body(self, data: bytes, at: int, found: Found) -> int:
        end = min(len(data), at + self._body)
        self._body -= end - at
        if self._keep and not self._body and not self.held:
            found.append(data[at:end])  # whole in one read: no copy in between
        elif self._keep:
            self.held += data[at:end]
            if not self._body:
                found.append(bytes(self.held))
                self.held.clear()
        elif self._head is not None:
            # The refusal went out with the header. Whom the body answers is in its first bytes, if anywhere.
            self._head += data[at : min(end, at + _HEAD)]
            if len(self._head) >= _HEAD or not self._body:
                found.append(_too_large(self._limit, self._head[:_HEAD], LargeFrameHead))
                self._head = None
        return end

    def _take_line(self, data: bytes, at: int, found: Found) -> int:
        newline = data.find(b"\n", at)
        end = len(data) if newline < 0 else newline
        self._seen += end - at
        # Checked before the bytes are kept: a peer that never ends a line must not fill the memory.
        if not self._lost and self._block + self._seen > self._header_limit:
            self._lose("too long", found)
        if self._lost:
            self.held += data[max(at, end - _WINDOW) : end]
            del self.held[:-_WINDOW]
        else:
            self.held += data[at:end]
        if newline >= 0:
            self._end_of_line(found)
        return end + 1

    def _end_of_line(self, found: Found) -> None:
        line, cut = bytes(self.held), self._seen > len(self.held)
        self._block += self._seen + 1
        self._seen = 0
        self.held.clear()
        if self._lost:
            line = self._search(line, cut)
        if not self._lost:
            self._header(line.strip(_BLANK), found)

    def _search(self, line: bytes, cut: bool) -> bytes:
        """Return the header that ends this line, if one does; then reading is no longer lost."""
        # The text of a body may contain the word as well. Only one behind a closing bracket, or at the beginning of a
        # line of which no byte was dropped (`cut`), can be a header; whatever else would frame a part of a body.
        start = line.lower().rfind(_LENGTH)
        if start < 0 or (cut if start == 0 else line[start - 1 : start] not in (b"}", b"]")):
            return b""
        self._lost = False
        self._forget_block()
        return line[start:]

    def _header(self, line: bytes, found: Found) -> None:
        if not line:
            return self._end_of_headers(found)
        self._any = True
        name, colon, value = line.partition(b":")
        name = name.strip().lower()
        # Other headers are allowed and ignored, so anything that looks like one passes; JSON never does.
        if not colon or not name.replace(b"-", b"").isalnum():
            self._lose("not a header", found)
            return self._header_behind_body(line, found)
        if name != _LENGTH:
            return None
        value = value.strip()
        if not value.isdigit():
            return self._lose("the length is not a number", found)
        length = int(value) if len(value.lstrip(b"0")) <= _LENGTH_DIGITS else _ABSURD
        # The same length twice is harmless. Two lengths are two opinions on where the next message begins, and to
        # take either would let a body be read as messages.
        if self._length not in (None, length):
            return self._lose("two lengths", found)
        self._length = length
        return None

    def _header_behind_body(self, line: bytes, found: Found) -> None:
        """Go on with the header that ends a line which is none: the rest of a body that was longer than announced."""
        rest = self._search(line, cut=True)
        if not self._lost:
            self._header(rest, found)

    def _end_of_headers(self, found: Found) -> None:
        if not self._any:
            return self._forget_block()  # blank lines between two messages
        if self._length is None:
            return self._lose("no length", found)
        self._body = self._length
        self._keep = self._length <= self._limit
        if not self._keep:
            found.append(_too_large(self._limit, b""))
            self._head = b""
            if self._length > self._skip_limit:
                self.broken = f"a message of more than {self._skip_limit} bytes was announced, too many to be skipped"
        elif not self._body:
            found.append(b"")  # a body of no bytes is a frame, and no message: the peer is told so
        return self._forget_block()

    def _lose(self, reason: str, found: Found) -> None:
        found.append(PeerMistake(PARSE_ERROR, f"Parse error: bad Content-Length header, {reason}"))
        self._lost = True
        self._forget_block()

    def _forget_block(self) -> None:
        self._block = 0
        self._any = False
        self._length = None

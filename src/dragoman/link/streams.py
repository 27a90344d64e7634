"""A message said in pieces, where a dialect says the text twice, or does not say it at all."""

from collections.abc import Sequence

import msgspec

from dragoman.outbox import Outbox, TextStream


def text_stream(outbox: Outbox, frame: Sequence[bytes]) -> TextStream:
    """Return a stream that sends texts inside `frame`, the dialect's bytes around a text.

    Two parts enclose one text, three parts hold the text twice; without parts the stream sends nothing.
    """
    if len(frame) == 2:
        return TextStream(outbox, *frame)
    return _Twice(outbox, *frame) if frame else _Unsaid(outbox, b"", b"")


class _Twice(TextStream):
    """A stream whose frame holds the text in two places."""

    __slots__ = ("_middle",)

    def __init__(self, outbox: Outbox, head: bytes, middle: bytes, tail: bytes) -> None:
        super().__init__(outbox, head, tail)
        self._middle = middle

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting."""
        # Half of a surrogate pair is no text on any wire.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        piece = msgspec.json.encode(whole)
        outbox = self._outbox
        outbox.put(self._head + piece + self._middle + piece + self._tail)
        return outbox.size >= outbox.mark


class _Unsaid(TextStream):
    """A stream that sends nothing: the dialect has no update for this text. A session log may still record it."""

    __slots__ = ()

    def put(self, text: str) -> bool:
        """Return False: nothing waits to be written."""
        return False

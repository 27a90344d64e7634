"""A message said in pieces, where a dialect says the text twice, or does not say it at all."""

from collections.abc import Sequence

import msgspec

from dragoman.outbox import Outbox, TextStream


def text_stream(outbox: Outbox, frame: Sequence[bytes]) -> TextStream:
    """What stands around the text: two parts, three where it stands there twice, none where nobody is told."""
    if len(frame) == 2:
        return TextStream(outbox, *frame)
    return _Twice(outbox, *frame) if frame else _Unsaid(outbox, b"", b"")


class _Twice(TextStream):
    """The same text in two places of the frame."""

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
    """Kept by whoever keeps it, and said to nobody."""

    __slots__ = ()

    def put(self, text: str) -> bool:
        """Nothing waits."""
        return False

"""What a command prints, read as it comes: head and tail kept, the rest counted and thrown away.

Held apart: what is still to be shown to the user (`fresh`), and what is still to be told to the model (`text`, `take`).
"""

import codecs
from collections.abc import Callable
from typing import Final

from dragoman.host.decoding import without_binary
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process import Child

# Kept for the model: the head says what was tried, the tail how it ended.
KEPT_BYTES: Final = 1024 * 1024
# Output is shown at most this often; a million tiny lines are a few hundred updates.
SHOW_SECONDS: Final = 0.05
# Kept for the user, who asks what a command does.
_LATEST_BYTES: Final = 2048


class ShellOutput:
    """The output of one command. Reads from its beginning until `finish` or `stop`."""

    def __init__(self, child: Child, on_data: Callable[[], object] = lambda: None) -> None:
        """`on_data` is called after each piece that was read."""
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._fresh = bytearray()
        self._latest = bytearray()
        self._shown = 0
        self._on_data = on_data
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = PolledReadEnd(child.stdout, self._take, lambda error: None)
        self._end.resume()

    def __repr__(self) -> str:
        return f"<ShellOutput {len(self._head) + len(self._tail)} bytes kept, {self._dropped} cut>"

    def fresh(self) -> bytes:
        """Return what came since the last time, as far as it is still worth showing."""
        data, self._fresh = bytes(self._fresh), bytearray()
        return data

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines of the output, also of what was taken."""
        return without_binary(self._latest.decode("utf-8", "replace")).splitlines()[-count:]

    def text(self) -> str:
        """Return the output that is kept; of binary output a sentence."""
        return without_binary((bytes(self._head) + self._middle() + bytes(self._tail)).decode("utf-8", "replace"))

    def take(self, *, final: bool) -> str:
        """Return the kept output and keep it no longer; `final`: nothing comes after it.

        A character of which only the first bytes have come is left for the next time.
        """
        data = bytes(self._head) + self._middle() + bytes(self._tail)
        self._head.clear()
        self._tail.clear()
        self._dropped = 0
        return without_binary(self._decoder.decode(data, final=final))

    def has(self, text: str) -> bool:
        """Return whether a text is in the output that is kept."""
        wanted = text.encode("utf-8", "replace")
        if self._dropped:
            return wanted in self._head or wanted in self._tail
        return wanted in bytes(self._head) + bytes(self._tail)

    def finish(self) -> None:
        """Read what the exited command has left in its pipe, and wait for no more."""
        self._end.finish()

    def stop(self) -> None:
        """Stop reading."""
        self._end.pause()

    def _middle(self) -> bytes:
        return f"\n[… {self._dropped} bytes cut …]\n".encode() if self._dropped else b""

    def _take(self, data: bytes) -> None:
        half = KEPT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * half:
            self._dropped += len(self._tail) - half
            del self._tail[:-half]
        self._latest += data[-_LATEST_BYTES:]
        del self._latest[:-_LATEST_BYTES]
        # A screen shows the last of a flood, not all of it.
        if self._shown < KEPT_BYTES:
            self._fresh += data[: KEPT_BYTES - self._shown]
            self._shown += len(data)
        self._on_data()

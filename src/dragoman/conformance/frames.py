"""A frame as it was sent or received, and the recording of one connection.

A recording is bounded: of a frame it holds `KEPT_BYTES`, of frames the first and last `KEPT_FRAMES` each. What was cut
is said in the text that is shown.
"""

from typing import Final, Literal, NamedTuple

from dragoman.host.text import harmless

KEPT_BYTES: Final = 16 * 1024
KEPT_FRAMES: Final = 2_000
Sender = Literal["check", "agent", "client", "server"]


class Frame(NamedTuple):
    """One frame of a recording.

    `fault` is what the schema has against it, `intent` why `check` sent something wrong on purpose.
    """

    at: float
    sender: Sender
    head: bytes
    size: int
    fault: str = ""
    intent: str = ""

    def text(self, limit: int = 300) -> str:
        """Return what to show of it, on one line."""
        shown = harmless(self.head[:limit].decode(errors="replace")).replace("\n", " ")
        return f"{shown} … ({self.size} bytes)" if self.size > limit else shown


class Recording:
    """The frames of one connection, in the order in which they were sent and received."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<Recording {len(self.frames)} frames, {self.dropped} dropped>"

    def add(self, at: float, sender: Sender, data: bytes, *, fault: str = "", intent: str = "") -> Frame:
        """Record a frame; beyond the bound the oldest of the second half goes."""
        frame = Frame(at, sender, bytes(data[:KEPT_BYTES]), len(data), fault, intent)
        self.frames.append(frame)
        if len(self.frames) > 2 * KEPT_FRAMES:
            del self.frames[KEPT_FRAMES]
            self.dropped += 1
        return frame

    def faults(self, sender: Sender) -> list[Frame]:
        """Return the frames of one side that the schema does not allow, without those that were wrong on purpose."""
        return [frame for frame in self.frames if frame.sender == sender and frame.fault and not frame.intent]

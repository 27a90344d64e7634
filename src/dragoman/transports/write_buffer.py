"""What a transport has not accepted yet, in order. Owns the retry after a short write, and nothing else.

For programs that write little by themselves: relays, recorders, peers of tests. A link has an `Outbox`, which also
bounds what is queued, joins small frames and holds producers back; here the caller looks at `size` and stops reading.
"""

from collections import deque

from dragoman.transports.contract import Transport


class WriteBuffer:
    """Bytes on their way to one transport. `size` is how many it has not accepted."""

    def __init__(self, transport: Transport) -> None:
        self.size = 0
        self._transport = transport
        self._pieces: deque[memoryview] = deque()

    def __repr__(self) -> str:
        return f"<WriteBuffer of {self.size} bytes>"

    def write(self, data: bytes) -> None:
        """Write a piece behind what waits; what the transport does not accept stays here. Does not wait."""
        self._pieces.append(memoryview(data))
        self.size += len(data)
        self.writable()

    def writable(self) -> None:
        """Write on, until nothing is left or the transport has no room: call it when the transport says that it has."""
        while self._pieces:
            piece = self._pieces[0]
            accepted = self._transport.write(piece)
            self.size -= accepted
            if accepted < len(piece):
                self._pieces[0] = piece[accepted:]
                return
            self._pieces.popleft()

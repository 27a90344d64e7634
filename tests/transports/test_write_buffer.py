"""What a transport has not accepted waits in order, and leaves when there is room."""

from dragoman.transports.contract import Receiver
from dragoman.transports.write_buffer import WriteBuffer


class NarrowTransport:
    """Accepts `room` bytes in all."""

    def __init__(self) -> None:
        self.room = 0
        self.accepted = b""

    def write(self, data: bytes | memoryview) -> int:
        count = min(self.room, len(data))
        self.room -= count
        self.accepted += bytes(data[:count])
        return count

    def start(self, receiver: Receiver) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close_writing(self) -> None: ...

    async def close(self) -> None: ...


def test_pieces_leave_in_order_as_far_as_there_is_room() -> None:
    transport = NarrowTransport()
    buffer = WriteBuffer(transport)
    transport.room = 3
    for piece in (b"ab", b"", b"cd", b"ef"):
        buffer.write(piece)
    assert (transport.accepted, buffer.size) == (b"abc", 3)
    transport.room = 1
    buffer.writable()
    assert (transport.accepted, buffer.size) == (b"abcd", 2)
    transport.room = 10
    buffer.writable()
    assert (transport.accepted, buffer.size) == (b"abcdef", 0)


def test_what_comes_later_does_not_overtake_what_waits() -> None:
    transport = NarrowTransport()
    buffer = WriteBuffer(transport)
    buffer.write(b"first")
    transport.room = 10
    buffer.write(b"second")
    assert transport.accepted == b"firstsecon"

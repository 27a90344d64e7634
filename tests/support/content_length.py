"""Messages in blocks with a `Content-Length`, and peers that write them."""

import json

from dragoman.transports.memory import MemoryTransport
from tests.support.messages import Message
from tests.support.waiting import until

ABSURD = [b"10995116277760", b"9" * 18, b"9" * 5000]


def block(message: Message) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def announced(length: bytes) -> bytes:
    return b"Content-Length: %b\r\n\r\n" % length


class Blocks:
    """The far end of a link, in header blocks."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.heard: list[Message] = []
        self.lost: list[Exception | None] = []
        self._data = b""
        self._transport = transport
        transport.start(self)

    def write(self, data: bytes) -> None:
        assert self._transport.write(data) == len(data)

    def close_writing(self) -> None:
        self._transport.close_writing()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, rest = self._data.partition(b"\r\n\r\n")
            size = int(head.removeprefix(b"Content-Length: "))
            if len(rest) < size:
                return
            self.heard.append(json.loads(rest[:size]))
            self._data = rest[size:]

    def writable(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    async def answer(self, id: object) -> Message:
        def found() -> list[Message]:
            return [m for m in self.heard if m.get("id") == id and "method" not in m]

        await until(lambda: bool(found()))
        return found()[0]

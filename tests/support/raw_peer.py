"""The far end of a connection as JSON lines, with nothing of ours in it: it reads when it is told to."""

import json
from collections import deque

from dragoman.transports.contract import Transport
from tests.support.messages import Message
from tests.support.waiting import until

PIPE = 64 * 1024


class RawPeer:
    """One end, in raw JSON. What it says is queued without a bound: the bounds under test are on the other side."""

    def __init__(self, transport: Transport, *, reading: bool = True) -> None:
        self.heard: list[Message] = []
        self.received = 0
        self.lost: list[Exception | None] = []
        self._read = 0
        self._part = bytearray()
        self._unsent: deque[memoryview] = deque()
        self._transport = transport
        transport.start(self)
        if not reading:
            transport.pause_reading()

    def say(self, *messages: Message) -> None:
        self.write(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))

    def write(self, data: bytes) -> None:
        self._unsent.append(memoryview(data))
        if len(self._unsent) == 1:
            self._flush()

    @property
    def unsent(self) -> int:
        """What the other side has not read."""
        return sum(map(len, self._unsent))

    async def hear(self) -> Message:
        """The next message."""
        await until(lambda: len(self.heard) > self._read)
        self._read += 1
        return self.heard[self._read - 1]

    async def answer(self, id: object) -> Message:
        """The answer to a request, whenever it comes."""
        return (await self.answers(id))[0]

    async def answers(self, id: object) -> list[Message]:
        def found() -> list[Message]:
            return [message for message in self.heard if message.get("id") == id and "method" not in message]

        await until(lambda: bool(found()))
        return found()

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    def end(self) -> None:
        """Say that nothing more comes; go on reading."""
        self._transport.close_writing()

    async def leave(self) -> None:
        await self._transport.close()

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        *lines, rest = data.split(b"\n")
        for line in lines:
            self.heard.append(json.loads(self._part + line))
            self._part.clear()
        self._part += rest

    def writable(self) -> None:
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def _flush(self) -> None:
        while self._unsent:
            data = self._unsent[0]
            taken = self._transport.write(data)
            if taken < len(data):
                self._unsent[0] = data[taken:]
                return
            self._unsent.popleft()

"""Play one side of a recording to a live program, and find the first message in which the other side differs.

What our side sent is sent again, each message when the other side has sent what it had sent before it in the recording.
Ids that the live side makes up (sessions, calls, requests) take the places of the recorded ones in what we send.

    recording    ──► ours 1 ──┐            ours 2 waits for theirs 1
                 ◄── theirs 1 │ expected
                 ──► ours 2   ▼
    live side    ◄── theirs 1'   compared with theirs 1 as soon as it is whole

Promise: every wait is bounded, and nothing is sent after the first difference.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dragoman import limits
from dragoman.errors import LargeFrameHead, PeerMistake
from dragoman.trace.comparison import Difference, is_equal
from dragoman.trace.exchanges import Exchange, Exchanges
from dragoman.trace.normal_form import ID_FIELDS, NormalForm, continues, is_ignored
from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction, TraceFrame
from dragoman.trace.summary import chunk_text
from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer
from dragoman.wire.framing import Framer, frame


class ReplayOutcome(NamedTuple):
    """How a replay has ended. `messages` of the live side were as recorded; `reason` says why it did not go on."""

    messages: int
    difference: Difference | None = None
    reason: str = ""

    @property
    def is_equal(self) -> bool:
        """Return whether the live side did what was recorded."""
        return self.difference is None and not self.reason


class ReplayOptions(NamedTuple):
    """`seconds`: how long the live side may take for its next message. `paths` are put in the place of recorded ones,
    such as a folder that this machine does not have."""

    seconds: float = 30.0
    ignored_methods: Sequence[str] = ()
    ignored_fields: Sequence[str] = ()
    paths: Mapping[str, str] = {}


class _Item:
    """A message of one side, or the pieces of one text that have come so far."""

    def __init__(self, first: Exchange) -> None:
        self.first: Final = first
        text = chunk_text(first)
        self._texts: list[str] | None = None if text is None else [text]

    @property
    def text(self) -> str | None:
        return None if self._texts is None else "".join(self._texts)

    def takes(self, exchange: Exchange) -> bool:
        """Add a piece of the same text; False if it is none."""
        text = chunk_text(exchange)
        if text is None or self._texts is None or not continues(self.first, exchange):
            return False
        self._texts.append(text)
        return True


class _Step(NamedTuple):
    """A message of ours, and how many items of the other side come before it."""

    exchange: Exchange
    after: int


class Replayer:
    """Replays the side `ours` of a recorded connection over a transport."""

    def __init__(
        self,
        transport: Transport,
        recorded: Iterable[Exchange],
        ours: Direction,
        options: ReplayOptions,
    ) -> None:
        self._transport = transport
        self._ours: Final = ours
        self._theirs: Final[Direction] = TO_CLIENT if ours == TO_AGENT else TO_AGENT
        self._options = options
        self._expected: list[_Item] = []
        self._steps = list(self._read(recorded))
        self._actual: list[_Item] = []
        self._forms = (
            NormalForm(ignored_fields=options.ignored_fields),
            NormalForm(ignored_fields=options.ignored_fields),
        )
        self._compared = self._equal = 0
        self._difference: Difference | None = None
        self._live = Exchanges()
        self._ids: dict[str, str] = {}  # recorded ids, and what the live side has in their place
        self._requests: dict[int, Any] = {}  # ids of its requests, by the recorded request
        self._framer = Framer(limit=limits.FRAME_BYTES)
        self._unwritten = WriteBuffer(transport)
        self._changed = asyncio.Event()
        self._lost: Exception | None = None
        self._is_lost = False

    def __repr__(self) -> str:
        return f"<Replayer steps={len(self._steps)} received={len(self._actual)} of {len(self._expected)}>"

    async def run(self) -> ReplayOutcome:
        """Replay, and close the transport."""
        try:
            self._transport.start(self)
            for step in self._steps:
                reason = await self._wait_for(step.after)
                if reason or self._difference is not None:
                    return self._outcome(reason)
                self._send(step.exchange)
            reason = await self._wait_for(len(self._expected), to_the_end=True)
            return self._outcome(reason)
        finally:
            await self._transport.close()

    # -- the recording -----------------------------------------------------------------------------------------------

    def _read(self, recorded: Iterable[Exchange]) -> Iterator[_Step]:
        for exchange in recorded:
            if exchange.frame.direction == self._ours:
                yield _Step(exchange, len(self._expected))
            elif not is_ignored(exchange, self._options.ignored_methods):
                _put(self._expected, exchange)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _send(self, recorded: Exchange) -> None:
        if recorded.kind == "unreadable":
            self._write(recorded.frame.data)
            return
        message = self._renamed(recorded.message)
        if recorded.kind == "response" and recorded.request is not None:
            message["id"] = self._requests.get(id(recorded.request), recorded.message.get("id"))
        self._write(msgspec.json.encode(message))

    def _write(self, data: bytes) -> None:
        self._live.add(TraceFrame(0, 0, "", self._ours, data))
        self._unwritten.write(frame(data, "ndjson"))

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._renamed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._renamed(one) for one in value]
        return self._ids.get(value, self._on_this_machine(value)) if isinstance(value, str) else value

    def _on_this_machine(self, text: str) -> str:
        for recorded, here in self._options.paths.items():
            if text == recorded or text.startswith(recorded.rstrip("/") + "/"):
                return here + text[len(recorded) :]
        return text

    # -- receiving: the transport calls these ------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for found in self._framer.feed(data):
            if isinstance(found, PeerMistake):
                if not isinstance(found, LargeFrameHead):
                    self._receive(found.message.encode())
            else:
                self._receive(found)
        self._changed.set()

    def writable(self) -> None:
        self._unwritten.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost, self._lost = True, error
        self._changed.set()

    def _receive(self, data: bytes) -> None:
        exchange = self._live.add(TraceFrame(0, 0, "", self._theirs, data))
        if is_ignored(exchange, self._options.ignored_methods) or not _put(self._actual, exchange):
            return
        at = len(self._actual) - 1
        if at < len(self._expected):
            self._learn(self._expected[at].first, exchange)
        # A text is whole when something else follows it.
        self._compare(at if self._actual[at].text is not None else at + 1)

    def _learn(self, recorded: Exchange, live: Exchange) -> None:
        """Note which ids of the live side stand where the recording has others."""
        if (recorded.kind, recorded.method) != (live.kind, live.method):
            return
        if recorded.kind == "request":
            self._requests[id(recorded)] = live.message.get("id")
        self._ids.update(_pairs(recorded.message, live.message))

    # -- comparing ---------------------------------------------------------------------------------------------------

    def _compare(self, end: int) -> None:
        """Compare the items before `end`, which are whole."""
        while self._compared < end and self._difference is None:
            at = self._compared
            self._compared += 1
            if at >= len(self._expected):
                return  # behind the end of the recording
            expected, actual = self._expected[at], self._actual[at]
            left = self._forms[0].message(self._moved(expected.first), expected.text)
            right = self._forms[1].message(actual.first, actual.text)
            if is_equal(left, right):
                self._equal += 1
                continue
            self._difference = Difference(left, right)
            self._changed.set()

    def _moved(self, recorded: Exchange) -> Exchange:
        """Return a recorded message with the paths of this machine, as the live side has them."""
        if not self._options.paths:
            return recorded
        data = recorded.frame.data
        for path, here in self._options.paths.items():
            data = data.replace(msgspec.json.encode(path)[1:-1], msgspec.json.encode(here)[1:-1])
        moved = Exchange(recorded.frame._replace(data=data), recorded.kind, msgspec.json.decode(data))
        moved.method, moved.session, moved.request = recorded.method, recorded.session, recorded.request
        return moved

    async def _wait_for(self, count: int, *, to_the_end: bool = False) -> str:
        """Wait until so many items have begun, or all are whole; return why that is not so, or nothing."""
        while self._difference is None and not self._has(count, to_the_end=to_the_end):
            if self._is_lost:
                return f"the other side is gone{'' if self._lost is None else f': {self._lost}'}"
            self._changed.clear()
            try:
                async with asyncio.timeout(self._options.seconds):
                    await self._changed.wait()
            except TimeoutError:
                return f"nothing came for {self._options.seconds:g} s"
        return ""

    def _has(self, count: int, *, to_the_end: bool) -> bool:
        if len(self._actual) < count or not to_the_end or not count:
            return len(self._actual) >= count
        expected, actual = self._expected[count - 1].text, self._actual[count - 1].text
        return expected is None or actual is None or len(actual) >= len(expected)

    def _outcome(self, reason: str) -> ReplayOutcome:
        self._compare(len(self._actual))
        if self._difference is None and reason and len(self._actual) < len(self._expected):
            missing = self._expected[len(self._actual)]
            self._difference = Difference(self._forms[0].message(missing.first, missing.text), None)
        return ReplayOutcome(self._equal, self._difference, reason)


def _put(items: list[_Item], exchange: Exchange) -> bool:
    """Add a message to the items of a side; False: it was a piece of the last one."""
    if items and items[-1].takes(exchange):
        return False
    items.append(_Item(exchange))
    return True


def _pairs(recorded: Any, live: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids that stand in the same places of two messages."""
    if isinstance(recorded, dict) and isinstance(live, dict):
        for name in recorded.keys() & live.keys():
            one, other = recorded[name], live[name]
            if name in ID_FIELDS and isinstance(one, str) and isinstance(other, str):
                yield one, other
            else:
                yield from _pairs(one, other)
    elif isinstance(recorded, list) and isinstance(live, list):
        for one, other in zip(recorded, live, strict=False):
            yield from _pairs(one, other)

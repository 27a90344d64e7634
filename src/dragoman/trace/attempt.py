"""Send some of the recorded messages of a client to a fresh agent, and say what fails.

What the agent asks meanwhile is answered as it was in the recording: the first request of a method as the first one of
that method there, and so on; what was never asked there, with an error. Ids are the live agent's own.

Promise: every wait is bounded, and the agent is gone when `run` returns.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman import limits
from dragoman.errors import METHOD_NOT_FOUND, LargeFrameHead, PeerMistake
from dragoman.trace.exchanges import Exchange, Exchanges, id_key
from dragoman.trace.normal_form import ID_FIELDS
from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction, TraceFrame
from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer
from dragoman.wire.framing import Framer, frame


class ClientMessage(NamedTuple):
    """A recorded message of the client. `waits`: its answer came before the client's next message."""

    exchange: Exchange
    message: dict[str, Any]
    waits: bool = False


class AttemptResult(NamedTuple):
    """What passed, and what failed, the worst first: sentences that are the same for the same failure."""

    frames: Sequence[TraceFrame]
    failures: Sequence[str]


Judge = Callable[[Sequence[TraceFrame]], Sequence[str]]


def client_messages(recorded: Sequence[Exchange]) -> list[ClientMessage]:
    """Return what the client of a recording has sent by itself, in order: requests and notifications."""
    own = [one for one in recorded if one.frame.direction == TO_AGENT and one.kind in ("request", "notification")]
    places = {id(one): at for at, one in enumerate(recorded)}
    found = []
    for one, following in zip(own, [*own[1:], None], strict=True):
        answered = places.get(id(one.response), len(recorded)) if one.response is not None else len(recorded)
        waits = one.kind == "request" and (following is None or answered < places[id(following)])
        found.append(ClientMessage(one, dict(one.message), waits))
    return found


class Attempt:
    """One run: `messages` to the agent behind `transport`. `judge` names further failures in what has passed."""

    def __init__(
        self,
        transport: Transport,
        messages: Sequence[ClientMessage],
        recorded: Iterable[Exchange],
        *,
        seconds: float,
        judge: Judge,
        paths: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._transport = transport
        self._messages = messages
        self._seconds = seconds
        self._judge = judge
        self._paths = paths
        self._answers: dict[str, list[Exchange]] = {}
        for one in recorded:
            if one.kind == "response" and one.frame.direction == TO_AGENT:
                self._answers.setdefault(one.method, []).append(one)
        self._frames: list[TraceFrame] = []
        self._exchanges = Exchanges()
        self._open: dict[str, ClientMessage] = {}
        self._ids: dict[str, str] = {}
        self._failed: list[str] = []
        self._framer = Framer(limit=limits.FRAME_BYTES)
        self._unwritten = WriteBuffer(transport)
        self._changed = asyncio.Event()
        self._end: str | None = None
        self._started_at = asyncio.get_running_loop().time()

    def __repr__(self) -> str:
        return f"<Attempt messages={len(self._messages)} open={len(self._open)} frames={len(self._frames)}>"

    async def run(self) -> AttemptResult:
        """Send the messages, wait for what is open, and close the transport."""
        try:
            self._transport.start(self)
            for one in self._messages:
                if self._end is not None:
                    break
                self._send(one)
                if one.waits:
                    await self._wait_for({_key(one)})
            await self._wait_for(set(self._open))
            ended = [f"the agent has ended: {self._end}"] if self._end is not None else []
            silent = [f"{one.exchange.method} is not answered" for one in self._open.values() if not ended]
        finally:
            await self._transport.close()
        return AttemptResult(self._frames, [*ended, *silent, *self._judge(self._frames), *self._failed])

    def _send(self, one: ClientMessage) -> None:
        if one.exchange.kind == "request":
            self._open[_key(one)] = one
        self._write(self._renamed(one.message))

    def _write(self, message: Any) -> None:
        data = msgspec.json.encode(message)
        self._exchanges.add(self._note(TO_AGENT, data))
        self._unwritten.write(frame(data, "ndjson"))

    def _note(self, direction: Direction, data: bytes) -> TraceFrame:
        elapsed = asyncio.get_running_loop().time() - self._started_at
        passed = TraceFrame(len(self._frames) + 2, 0, "1", direction, data, elapsed)
        self._frames.append(passed)
        return passed

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._renamed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._renamed(one) for one in value]
        if not isinstance(value, str):
            return value
        for recorded, here in self._paths:
            if value == recorded or value.startswith(recorded.rstrip("/") + "/"):
                return here + value[len(recorded) :]
        return self._ids.get(value, value)

    async def _wait_for(self, requests: set[str]) -> None:
        """Wait until these are answered, or the agent is gone, or time is up: what is open then is reported."""
        try:
            async with asyncio.timeout(self._seconds):
                while requests & self._open.keys() and self._end is None:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for found in self._framer.feed(data):
            if not isinstance(found, PeerMistake):
                self._receive(found)
            elif not isinstance(found, LargeFrameHead):
                self._receive(found.message.encode())
        self._changed.set()

    def writable(self) -> None:
        self._unwritten.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._end = "" if error is None else str(error).partition("\n")[0]
        self._changed.set()

    def _receive(self, data: bytes) -> None:
        exchange = self._exchanges.add(self._note(TO_CLIENT, data))
        match exchange.kind:
            case "response":
                asked = self._open.pop(id_key(exchange.message.get("id")), None)
                if asked is not None:
                    self._on_answer(asked, exchange)
            case "request":
                self._answer(exchange)
            case "unreadable":
                self._failed.append("a line is no message")
            case "notification":
                pass

    def _on_answer(self, asked: ClientMessage, live: Exchange) -> None:
        if "error" in live.message:
            self._failed.append(f"{live.method} is answered with the error {live.error.get('code')}")
        recorded = asked.exchange.response
        if recorded is not None:
            for name in ID_FIELDS & recorded.result.keys() & live.result.keys():
                self._ids[str(recorded.result[name])] = str(live.result[name])

    def _answer(self, asked: Exchange) -> None:
        answers = self._answers.get(asked.method)
        id = asked.message.get("id")
        if not answers:
            error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            self._write({"jsonrpc": "2.0", "id": id, "error": error})
            return
        recorded = answers.pop(0) if len(answers) > 1 else answers[0]
        self._write({**self._renamed(dict(recorded.message)), "id": id})


def _key(one: ClientMessage) -> str:
    return id_key(one.message.get("id"))

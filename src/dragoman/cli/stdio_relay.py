"""An editor here, a remote agent there: every message is passed on as it is.

The far transport comes back by itself after a drop. Where the server has forgotten the connection (it was restarted,
or we were away for too long), a new one is made here: the editor's own `initialize` is said again, the sessions it
has open are resumed, and what it still waits for, an answer or the end of a turn, ends with an error.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, LargeFrameHead, LinkClosed, PeerMistake
from dragoman.transports.contract import Receiver, Transport
from dragoman.wire.framing import Framer, Style, frame

# Connections made anew in a row without a word from the agent; then we give up.
_RETURNS: Final = 5
_OPENING: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_KEPT: Final = ("cwd", "mcpServers", "additionalDirectories")
_STATE: Final = b'"state_update"'
_OURS: Final = "dragoman-relay-"
_NEVER: Final = "The agent had not answered yet when the editor left"
_LOST: Final = "The connection to the agent was lost; what it was doing may have been interrupted"


class _Message(msgspec.Struct):
    id: object = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class Relay:
    """Joins them. `open_far` makes a transport to the agent; `run` ends when the editor or the agent is gone."""

    def __init__(
        self, near: Transport, open_far: Callable[[], Transport], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._near = _Near(self, near)
        self._open_far = open_far
        self._tell = tell
        self._far = _Far(self, open_far())
        self._hello = b""
        self._greeted = False
        self._returns = 0
        self._failure: str | None = None
        self._waiting: dict[str, tuple[object, str, msgspec.Raw]] = {}  # what the editor has asked
        self._sessions: dict[str, dict[str, Any]] = {}  # what it has open: the params that resume it
        self._running: set[str] = set()  # sessions whose turn has no answer of its own: version 2
        self._ours: set[str] = set()
        self._numbers = 0
        self._over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def run(self) -> str | None:
        """Pass on until one is gone; why, if it was not the editor's own wish."""
        self._far.start()
        self._near.start()
        reason = await self._over
        if reason is None:
            await self._answered()
            reason = self._failure
        self._fail_all(reason)
        await self._far.transport.close()
        await self._near.flushed()
        await self._near.transport.close()
        return reason

    # -- the editor --------------------------------------------------------------------------------------------------

    def from_near(self, message: bytes) -> None:
        """The editor has said something."""
        read = _read(message)
        if read.method and read.id is not None:
            self._waiting[_key(read.id)] = (read.id, read.method, read.params)
            if read.method == "initialize" and not self._greeted:
                self._hello = message
        elif read.method == "session/close":
            self._sessions.pop(_session(read.params) or "", None)
        self._far.say(message)

    def near_gone(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    # -- the agent ---------------------------------------------------------------------------------------------------

    def from_far(self, message: bytes) -> None:
        """The agent has said something."""
        read = _read(message)
        if not read.method:
            self._returns = 0
            if isinstance(read.id, str) and read.id in self._ours:
                self._ours.discard(read.id)
                return
            self._heard_answer(read)
        elif _STATE in message:
            self._heard_state(read)
        self._near.say(message)

    def far_gone(self, far: "_Far", error: Exception | None) -> None:
        if far is not self._far:
            return
        if self._over.done():  # the editor waits for nothing but its last answers
            self._failure = None if error is None else str(error)
            self._fail_all(self._failure)
            return
        self._returns += 1
        if not self._greeted or self._returns > _RETURNS:
            self._over.set_result(str(error) if error is not None else "the agent is gone")
            return
        self._tell(f"{error}; connecting anew")
        self._fail_all()
        self._far = _Far(self, self._open_far())
        self._far.start()
        self._far.say(self._own("initialize", msgspec.Raw(_read(self._hello).params)))
        for params in self._sessions.values():
            self._far.say(self._own("session/resume", params))

    # -- small steps -------------------------------------------------------------------------------------------------

    def _heard_answer(self, read: _Message) -> None:
        asked = self._waiting.pop(_key(read.id), None)
        if asked is None or read.error:
            return
        _, method, params = asked
        if method == "initialize":
            self._greeted = True
        elif method in _OPENING:
            session_id = _session(read.result) or _session(params)
            if session_id is not None:
                given = msgspec.json.decode(params)
                kept = {name: given[name] for name in _KEPT if name in given}
                self._sessions[session_id] = {"mcpServers": [], **kept, "sessionId": session_id}
        elif method in ("session/close", "session/delete"):
            self._sessions.pop(_session(params) or "", None)

    def _heard_state(self, read: _Message) -> None:
        session_id = _session(read.params)
        update = msgspec.json.decode(read.params).get("update", {})
        if session_id is None or not isinstance(update, dict) or update.get("sessionUpdate") != "state_update":
            return
        if update.get("state") == "idle":
            self._running.discard(session_id)
        else:
            self._running.add(session_id)

    def _own(self, method: str, params: object) -> bytes:
        """A request of our own, whose answer the editor does not see."""
        self._numbers += 1
        id = f"{_OURS}{self._numbers}"
        self._ours.add(id)
        return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def _fail_all(self, reason: str | None = None) -> None:
        """What the editor waits for ends. Where the agent never answered, nothing was lost: the reason is told."""
        error = {"code": INTERNAL_ERROR, "message": _LOST if self._greeted else reason or _NEVER}
        for id, _, _ in self._waiting.values():
            self._near.say(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": error}))
        self._waiting.clear()
        ended = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error}
        for session_id in sorted(self._running):
            params = {"sessionId": session_id, "update": ended}
            self._near.say(msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        self._running.clear()

    async def _answered(self) -> None:
        """What the editor asked before it left is answered, within a bound."""
        try:
            async with asyncio.timeout(limits.EOF_ANSWER_SECONDS):
                while self._waiting:
                    self._near.changed.clear()
                    await self._near.changed.wait()
        except TimeoutError:
            pass


class _Side:
    """One side: what could not be written yet, and whether the other side is held back for it."""

    def __init__(self, relay: Relay, transport: Transport) -> None:
        self.transport: Final = transport
        self.other: Callable[[], _Side]
        self.changed: Final = asyncio.Event()
        self._relay = relay
        self._unsaid: list[bytes | memoryview] = []
        self._size = 0

    def start(self) -> None:
        self.transport.start(self._receiver())

    def _receiver(self) -> Receiver:
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        self._unsaid.append(data)
        self._size += len(data)
        self.writable()

    def writable(self) -> None:
        while self._unsaid:
            data = self._unsaid[0]
            taken = self.transport.write(data)
            self._size -= taken
            if taken < len(data):
                self._unsaid[0] = memoryview(data)[taken:]
                break
            self._unsaid.pop(0)
        self.changed.set()
        if self._size > limits.OUTBOX_BYTES:
            self.other().transport.pause_reading()
        elif not self._unsaid:
            self.other().transport.resume_reading()

    async def flushed(self) -> None:
        """Until everything is written, within a bound."""
        try:
            async with asyncio.timeout(limits.CLOSE_FLUSH_SECONDS):
                while self._unsaid:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pass


class _Near(_Side):
    """The editor: lines or header blocks, as it likes, and it is answered in kind."""

    def __init__(self, relay: Relay, transport: Transport) -> None:
        super().__init__(relay, transport)
        self._framer = Framer(limit=limits.FRAME_BYTES)
        self.other = lambda: relay._far

    def _receiver(self) -> Receiver:
        return self

    def say(self, message: bytes) -> None:
        style: Style = self._framer.style or "ndjson"
        self.write(frame(message, style))

    def data_received(self, data: bytes) -> None:
        for one in self._framer.feed(data):
            if isinstance(one, LargeFrameHead):
                continue
            if isinstance(one, PeerMistake):
                error = {"code": one.code, "message": one.message}
                self.say(msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}))
            else:
                self._relay.from_near(one)
        if self._framer.broken:
            self._relay.near_gone()

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.near_gone()


class _Far(_Side):
    """The agent: lines."""

    def __init__(self, relay: Relay, transport: Transport) -> None:
        super().__init__(relay, transport)
        self._framer = Framer(limit=limits.FRAME_BYTES)
        self.other = lambda: relay._near

    def _receiver(self) -> Receiver:
        return self

    def say(self, message: bytes) -> None:
        self.write(frame(message, "ndjson"))

    def data_received(self, data: bytes) -> None:
        for one in self._framer.feed(data):
            if not isinstance(one, PeerMistake):
                self._relay.from_far(one)

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.far_gone(self, error)


async def relay_stdio(open_far: Callable[[], Transport], tell: Callable[[str], None]) -> str | None:
    """The editor is on our stdin and stdout."""
    from dragoman.transports.stdio import StdioTransport

    try:
        return await Relay(StdioTransport.of_this_process(), open_far, tell).run()
    except LinkClosed as closed:
        return str(closed)


def _read(message: bytes) -> _Message:
    try:
        return msgspec.json.decode(message, type=_Message)
    except (ValueError, RecursionError):
        return _Message()


def _session(params: msgspec.Raw) -> str | None:
    try:
        found = msgspec.json.decode(params).get("sessionId") if params else None
    except (ValueError, RecursionError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def _key(id: object) -> str:
    return f"{type(id).__name__}:{id}"

"""The relay of `dragoman connect`: an editor on stdin and stdout, a remote agent, and every message passed on as it is.

The remote transport comes back by itself after a drop. Where the server has forgotten the connection (it was restarted,
or we were away for too long), a new one is made here: the editor's own `initialize` is sent again, the sessions it
has open are resumed, and what it still waits for, an answer or the end of a turn, ends with an error.

Messages are not decoded into the vocabulary: of each the envelope is read, and of a few the params, to know what a new
connection has to be told. So it works for every version and dialect, and loses nothing.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, LargeFrameHead, LinkClosed, PeerMistake
from dragoman.transports.contract import Transport
from dragoman.transports.message_head import MessageHead, read_head, session_in
from dragoman.transports.write_buffer import WriteBuffer
from dragoman.wire.framing import Framer, frame

if TYPE_CHECKING:
    from dragoman.trace.writer import TracedConnection

# Connections made anew in a row without a reply from the agent; then the relay ends.
_RECONNECTS: Final = 5
_OPENING: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_RESUME_FIELDS: Final = ("cwd", "mcpServers", "additionalDirectories")
_STATE: Final = b'"state_update"'
_OWN_ID: Final = "dragoman-relay-"
_NOT_ANSWERED: Final = "The agent had not answered yet when the editor left"
_LOST: Final = "The connection to the agent was lost; what it was doing may have been interrupted"


class StdioRelay:
    """Join an editor and a remote agent. `open_agent` makes a transport to the agent; `report` is called with a line
    when the connection is made anew."""

    def __init__(
        self, editor: Transport, open_agent: Callable[[], Transport], report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._editor = _End(
            editor, lambda: self._agent, self.from_editor, lambda _: self.editor_lost(), self._reject_unreadable
        )
        self._open_agent = open_agent
        self._report = report
        self._agent = self._new_agent_end()
        self._initialize = b""
        self._is_initialized = False
        self._reconnects = 0
        self._failure: str | None = None
        self._pending: dict[tuple[str, str], tuple[object, str, msgspec.Raw]] = {}  # what the editor has asked
        self._sessions: dict[str, dict[str, Any]] = {}  # what it has open: the params that resume it
        self._running: set[str] = set()  # sessions whose turn has no answer of its own: version 2
        self._own_ids: set[str] = set()
        self._own_requests = 0
        self._over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def run(self) -> str | None:
        """Pass messages on until the editor or the agent is gone; return why, or None where the editor has left."""
        self._agent.start()
        self._editor.start()
        reason = await self._over
        if reason is None:
            await self._wait_until_replied()
            reason = self._failure
        self._fail_pending(reason)
        await self._agent.transport.close()
        await self._editor.drain()
        await self._editor.transport.close()
        return reason

    # -- the editor --------------------------------------------------------------------------------------------------

    def from_editor(self, message: bytes) -> None:
        """Pass a message of the editor on, and remember what a new connection would need of it."""
        envelope = read_head(message)
        if envelope.is_request:
            self._pending[envelope.key] = (envelope.id, envelope.method, envelope.params)
            if envelope.method == "initialize" and not self._is_initialized:
                self._initialize = message
        elif envelope.method == "session/close":
            self._sessions.pop(session_in(envelope.params) or "", None)
        self._agent.send(message)

    def _reject_unreadable(self, mistake: PeerMistake) -> None:
        error = {"code": mistake.code, "message": mistake.message}
        self._editor.send(msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}))
        if self._editor.is_broken:
            self.editor_lost()

    def editor_lost(self) -> None:
        """End the relay: the editor has closed its end."""
        if not self._over.done():
            self._over.set_result(None)

    # -- the agent ---------------------------------------------------------------------------------------------------

    def _new_agent_end(self) -> "_End":
        end = _End(self._open_agent(), lambda: self._editor, self.from_agent, lambda error: self.agent_lost(end, error))
        return end

    def from_agent(self, message: bytes) -> None:
        """Pass a message of the agent on; a reply to a request of our own ends here."""
        envelope = read_head(message)
        if not envelope.method:
            self._reconnects = 0
            if isinstance(envelope.id, str) and envelope.id in self._own_ids:
                self._own_ids.discard(envelope.id)
                return
            self._on_reply(envelope)
        elif _STATE in message:
            self._on_state_update(envelope)
        self._editor.send(message)

    def agent_lost(self, agent: "_End", error: Exception | None) -> None:
        """Connect anew, unless the editor has left, was never initialized, or this has failed too often in a row."""
        if agent is not self._agent:  # of a connection that was replaced already
            return
        if self._over.done():  # the editor waits for nothing but its last answers
            self._failure = None if error is None else str(error)
            self._fail_pending(self._failure)
            return
        self._reconnects += 1
        if not self._is_initialized or self._reconnects > _RECONNECTS:
            self._over.set_result(str(error) if error is not None else "the agent is gone")
            return
        self._report(f"{error}; connecting anew")
        self._fail_pending()
        self._agent = self._new_agent_end()
        self._agent.start()
        self._agent.send(self._own_request("initialize", msgspec.Raw(read_head(self._initialize).params)))
        for params in self._sessions.values():
            self._agent.send(self._own_request("session/resume", params))

    # -- small steps -------------------------------------------------------------------------------------------------

    def _on_reply(self, envelope: MessageHead) -> None:
        asked = self._pending.pop(envelope.key, None)
        if asked is None or envelope.error:
            return
        _, method, params = asked
        if method == "initialize":
            self._is_initialized = True
        elif method in _OPENING:
            session_id = session_in(envelope.result) or session_in(params)
            if session_id is not None:
                given = msgspec.json.decode(params)
                kept = {name: given[name] for name in _RESUME_FIELDS if name in given}
                self._sessions[session_id] = {"mcpServers": [], **kept, "sessionId": session_id}
        elif method in ("session/close", "session/delete"):
            self._sessions.pop(session_in(params) or "", None)

    def _on_state_update(self, envelope: MessageHead) -> None:
        session_id = session_in(envelope.params)
        update = msgspec.json.decode(envelope.params).get("update", {})
        if session_id is None or not isinstance(update, dict) or update.get("sessionUpdate") != "state_update":
            return
        if update.get("state") == "idle":
            self._running.discard(session_id)
        else:
            self._running.add(session_id)

    def _own_request(self, method: str, params: object) -> bytes:
        """Return a request of our own, whose reply the editor does not see."""
        self._own_requests += 1
        id = f"{_OWN_ID}{self._own_requests}"
        self._own_ids.add(id)
        return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def _fail_pending(self, reason: str | None = None) -> None:
        """End everything that the editor waits for with an error: its requests, and turns whose end is an event. Where
        the agent never answered, nothing was lost, and the error says why."""
        error = {"code": INTERNAL_ERROR, "message": _LOST if self._is_initialized else reason or _NOT_ANSWERED}
        for id, _, _ in self._pending.values():
            self._editor.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": error}))
        self._pending.clear()
        ended = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error}
        for session_id in sorted(self._running):
            params = {"sessionId": session_id, "update": ended}
            self._editor.send(msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        self._running.clear()

    async def _wait_until_replied(self) -> None:
        """Wait until what the editor asked before it left is answered, for at most `EOF_ANSWER_SECONDS`."""
        try:
            async with asyncio.timeout(limits.EOF_ANSWER_SECONDS):
                while self._pending:
                    self._editor.changed.clear()
                    await self._editor.changed.wait()
        except TimeoutError:
            pass


class _End:
    """One end of the relay: what could not be written yet, and whether the other end is paused for it.

    It is written to in the style in which it writes: an editor has lines or header blocks, as it likes, an agent lines.
    `on_mistake` is called with what cannot be read.
    """

    def __init__(
        self,
        transport: Transport,
        other: "Callable[[], _End]",
        on_message: Callable[[bytes], None],
        on_lost: Callable[[Exception | None], None],
        on_mistake: Callable[[PeerMistake], None] = lambda _: None,
    ) -> None:
        self.transport: Final = transport
        self.changed: Final = asyncio.Event()
        self.connection_lost: Final = on_lost
        self._other = other
        self._on_message = on_message
        self._on_mistake = on_mistake
        self._framer = Framer(limit=limits.FRAME_BYTES)
        self._unwritten = WriteBuffer(transport)

    @property
    def is_broken(self) -> bool:
        """Return whether nothing that still comes can be read."""
        return bool(self._framer.broken)

    def start(self) -> None:
        self.transport.start(self)

    def data_received(self, data: bytes) -> None:
        for one in self._framer.feed(data):
            if not isinstance(one, PeerMistake):
                self._on_message(one)
            elif not isinstance(one, LargeFrameHead):
                self._on_mistake(one)

    def send(self, message: bytes) -> None:
        self.write(frame(message, self._framer.style or "ndjson"))

    def write(self, data: bytes) -> None:
        self._unwritten.write(data)
        self._after_writing()

    def writable(self) -> None:
        self._unwritten.writable()
        self._after_writing()

    def _after_writing(self) -> None:
        self.changed.set()
        if self._unwritten.size > limits.OUTBOX_BYTES:
            self._other().transport.pause_reading()
        elif not self._unwritten.size:
            self._other().transport.resume_reading()

    async def drain(self) -> None:
        """Wait until everything is written, for at most `CLOSE_FLUSH_SECONDS`."""
        try:
            async with asyncio.timeout(limits.CLOSE_FLUSH_SECONDS):
                while self._unwritten.size:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pass


async def relay_stdio(
    open_agent: Callable[[], Transport], report: Callable[[str], None], traced: "TracedConnection | None" = None
) -> str | None:
    """Relay between an editor on our stdin and stdout and the agent, as `StdioRelay.run` does.

    `traced`: what passes between the editor and us is written there.
    """
    from dragoman.transports.stdio import StdioTransport

    editor: Transport = StdioTransport.of_this_process()
    if traced is not None:
        from dragoman.trace.recorder import TracedTransport
        from dragoman.trace.records import TO_AGENT

        editor = TracedTransport(editor, traced, TO_AGENT)
    try:
        return await StdioRelay(editor, open_agent, report).run()
    except LinkClosed as closed:
        return str(closed)

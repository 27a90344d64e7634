"""What every probe of a server needs: requests that are recorded, connections, sessions, turns."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dragoman.conformance import schema
from dragoman.conformance.connection import Message
from dragoman.conformance.frames import Frame, Recording, Sender
from dragoman.conformance.servers.doors import EventStream, ServerDoor, ServerReply, ServerSocket, ServerSubject
from dragoman.conformance.verdicts import AnswerMissing, NotTested, RowBlocked, RowFailed
from dragoman.errors import AUTH_REQUIRED
from dragoman.version import VERSION

CONNECTION: Final = "acp-connection-id"
SESSION: Final = "acp-session-id"
LAST_EVENT: Final = "last-event-id"
JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
STREAM: Final[Mapping[str, str]] = {"accept": "text/event-stream"}
_SHOWN_BODY: Final = 4096


class ServerSettings(NamedTuple):
    """How a server is talked to; seconds, and the size of a body that no server has to take."""

    cwd: str = "/tmp"
    prompt: str = "Say hello in one short sentence, and do nothing else."
    login: str = ""
    answer: float = 10.0
    turn: float = 60.0
    quiet: float = 0.3
    oversized: int = 64 * 1024 * 1024
    connections: int = 12


class StreamEnd(NamedTuple):
    """An event stream with what was read of it."""

    stream: EventStream
    events: list[tuple[Message, str]]

    async def close(self) -> None:
        await self.stream.close()


class PostedConnection:
    """One connection over HTTP: its id, and its streams by session; the stream of the connection has None."""

    def __init__(self, trial: "ServerTrial", door: ServerDoor, id: str, hello: Message) -> None:
        self.trial: Final = trial
        self.door: Final = door
        self.id: Final = id
        self.hello: Final = hello
        self.streams: Final[dict[str | None, StreamEnd]] = {}

    def headers(self, session: str | None = None) -> dict[str, str]:
        """Return the headers that name the connection, and a session."""
        return {CONNECTION: self.id, **({SESSION: session} if session else {})}

    async def post(self, message: Message, session: str | None = None) -> ServerReply:
        """Post a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return await self.trial.request(self.door, "POST", {**JSON, **self.headers(session)}, body)

    async def accepted(self, message: Message, session: str | None = None) -> None:
        """Post a message that must be accepted."""
        reply = await self.post(message, session)
        if reply.status not in (200, 202, 204):
            raise RowFailed(f"{message.get('method', 'an answer')} is answered with status {reply.status}")

    async def open(self, session: str | None = None, **more: str) -> StreamEnd:
        """Open a stream. Raise `RowFailed` if it is refused."""
        reply = await self.get({**STREAM, **self.headers(session), **more})
        if isinstance(reply, ServerReply):
            raise RowFailed(f"the stream is refused with status {reply.status}")
        self.streams[session] = StreamEnd(reply, [])
        return self.streams[session]

    async def get(self, headers: Mapping[str, str]) -> EventStream | ServerReply:
        """Send a GET."""
        self.trial.note("check", f"GET {_named(headers)}")
        reply = await self.door.open_stream(headers)
        status = reply.status if isinstance(reply, ServerReply) else 200
        self.trial.note("server", f"{status} {reply.headers.get('content-type', '')}")
        if not isinstance(reply, ServerReply):
            self.trial.opened.append(reply)
        return reply

    async def read(self, end: StreamEnd, seconds: float = 0) -> Message | None:
        """Return the next message of a stream; None at its end. Raise `TimeoutError`, `RowFailed`."""
        event = await end.stream.next(seconds or self.trial.settings.answer)
        if event is None:
            self.trial.note("server", "the stream ends")
            return None
        self.trial.note("server", f"event {event.id}: {event.data.decode(errors='replace')}")
        try:
            message = json.loads(event.data)
        except ValueError:
            raise RowFailed("an event is no JSON") from None
        if not isinstance(message, dict):
            raise RowFailed("an event is no message")
        end.events.append((message, event.id))
        return message

    async def response(self, id: Any, *sessions: str | None, seconds: float = 0) -> Message:
        """Wait for a response on one of these streams, that of the connection if none is named."""
        deadline = time.monotonic() + (seconds or self.trial.settings.answer)
        ends = [self.streams[session] for session in sessions or (None,)]
        while time.monotonic() < deadline:
            for end in ends:
                for message, _ in end.events:
                    if "method" not in message and message.get("id") == id:
                        return message
            await self._read_any(ends, deadline)
        raise AnswerMissing(f"the answer to request {id!r} has not come on its stream")

    async def _read_any(self, ends: list[StreamEnd], deadline: float) -> None:
        """Read a message of whichever stream has one first."""
        for end in ends:
            left = deadline - time.monotonic()
            wait = min(left, self.trial.settings.quiet) if len(ends) > 1 else left
            try:
                if await self.read(end, max(wait, 0.001)) is None and len(ends) == 1:
                    raise RowFailed("the stream ends before the answer has come")
                return
            except TimeoutError:
                continue

    async def drain(self, session: str | None) -> None:
        """Read what is still on its way on a stream."""
        try:
            while await self.read(self.streams[session], self.trial.settings.quiet) is not None:
                pass
        except TimeoutError:
            return

    async def new_session(self, id: Any = "new") -> str:
        """Open a session, and its stream. Raise `RowBlocked` where a login is asked for."""
        if None not in self.streams:
            await self.open()
        params = {"cwd": self.trial.settings.cwd, "mcpServers": []}
        await self.accepted({"id": id, "method": "session/new", "params": params})
        session = self.trial.session_in(await self.response(id))
        await self.open(session)
        return session

    async def prompt(self, session: str, text: str = "", id: Any = "prompt") -> None:
        """Send a prompt."""
        content = [{"type": "text", "text": text or self.trial.settings.prompt}]
        message = {"id": id, "method": "session/prompt", "params": {"sessionId": session, "prompt": content}}
        await self.accepted(message, session)

    async def end_of_turn(self, session: str, id: Any = "prompt") -> Message:
        """Wait for the end of a turn and return its last message."""
        if self.trial.version == schema.VERSIONS[0]:
            return await self.response(id, session, None, seconds=self.trial.settings.turn)
        deadline = time.monotonic() + self.trial.settings.turn
        while time.monotonic() < deadline:
            for message, _ in self.streams[session].events:
                update = (message.get("params") or {}).get("update") or {}
                if update.get("state") == "idle" and update.get("stopReason"):
                    return message
            if await self.read(self.streams[session], max(deadline - time.monotonic(), 0.001)) is None:
                raise RowFailed("the stream ends before its turn")
        raise AnswerMissing("the turn does not end")

    async def play(self, session: str, id: Any = "prompt") -> Message:
        """Play a turn."""
        await self.prompt(session, id=id)
        try:
            return await self.end_of_turn(session, id)
        except TimeoutError:
            raise AnswerMissing("the turn does not end") from None


class SocketConnection:
    """One connection over a WebSocket."""

    def __init__(self, trial: "ServerTrial", socket: ServerSocket) -> None:
        self.trial: Final = trial
        self.socket: Final = socket
        self.received: Final[list[Message]] = []

    async def send(self, message: Message, *, pieces: int = 1) -> None:
        """Send a message. Raise `RowFailed` if the socket is closed."""
        text = json.dumps({"jsonrpc": "2.0", **message})
        await self.send_raw(text, pieces=pieces)

    async def send_raw(self, data: str | bytes, *, pieces: int = 1) -> None:
        """Send a frame as it is."""
        self.trial.note("check", data if isinstance(data, str) else f"binary: {data!r}")
        try:
            await self.socket.send(data, pieces=pieces)
        except OSError:
            raise RowFailed("the server has closed the socket") from None

    async def read(self, seconds: float = 0) -> Message:
        """Return the next message. Raise `RowFailed` at the end, `TimeoutError`."""
        data = await self.socket.receive(seconds or self.trial.settings.answer)
        if data is None:
            raise RowFailed("the server has closed the socket")
        self.trial.note("server", data if isinstance(data, str) else f"binary: {data[:100]!r}")
        if not isinstance(data, str):
            raise RowFailed("a message comes as a binary frame")
        try:
            message = json.loads(data)
        except ValueError:
            raise RowFailed("a frame is no JSON") from None
        if not isinstance(message, dict):
            raise RowFailed("a frame is no message")
        self.received.append(message)
        return message

    async def response(self, id: Any, seconds: float = 0) -> Message:
        """Wait for a response."""
        deadline = time.monotonic() + (seconds or self.trial.settings.answer)
        try:
            while True:
                message = await self.read(max(deadline - time.monotonic(), 0.001))
                if "method" not in message and message.get("id") == id:
                    return message
        except TimeoutError:
            raise AnswerMissing(f"the answer to {id!r} has not come") from None

    async def greet(self) -> Message:
        """Send `initialize` and return its result."""
        await self.send({"id": "hello", "method": "initialize", "params": self.trial.greeting()})
        return self.trial.hello_in(await self.response("hello"))

    async def call(self, method: str, params: Any = None, id: Any = "call") -> Message:
        """Ask, and return the response."""
        await self.send({"id": id, "method": method, "params": params or {}})
        return await self.response(id)

    async def new_session(self) -> str:
        """Open a session."""
        params = {"cwd": self.trial.settings.cwd, "mcpServers": []}
        return self.trial.session_in(await self.call("session/new", params, id="new"))

    async def play(self, session: str) -> None:
        """Play a turn."""
        content = [{"type": "text", "text": self.trial.settings.prompt}]
        await self.send({"id": "p", "method": "session/prompt", "params": {"sessionId": session, "prompt": content}})
        deadline = time.monotonic() + self.trial.settings.turn
        try:
            while True:
                message = await self.read(max(deadline - time.monotonic(), 0.001))
                update = (message.get("params") or {}).get("update") or {}
                if self.trial.version == schema.VERSIONS[0]:
                    if "method" not in message and message.get("id") == "p":
                        return
                elif update.get("state") == "idle" and update.get("stopReason"):
                    return
        except TimeoutError:
            raise AnswerMissing("the turn does not end") from None


class ServerTrial:
    """One row at one server: what its probe opens, and what was sent and received."""

    def __init__(self, subject: ServerSubject, version: int, settings: ServerSettings) -> None:
        self.subject: Final = subject
        self.version: Final = version
        self.settings: Final = settings
        self.recording: Final = Recording()
        self.opened: Final[list[Any]] = []

    def __repr__(self) -> str:
        return f"<ServerTrial version={self.version} {self.recording!r}>"

    # -- what was sent and received ------------------------------------------------------------------------------------

    def note(self, sender: Sender, text: str) -> Frame:
        """Record a line."""
        return self.recording.add(time.monotonic(), sender, text.encode(errors="replace"))

    async def request(
        self, door: ServerDoor, method: str, headers: Mapping[str, str], body: bytes = b""
    ) -> ServerReply:
        """Send a request; what cannot be sent or answered is a failure of the server."""
        self.note("check", f"{method} {_named(headers)} {body[:_SHOWN_BODY].decode(errors='replace')}")
        try:
            async with asyncio.timeout(self.settings.turn):
                reply = await door.request(method, headers, body)
        except TimeoutError:
            raise AnswerMissing(f"{method} is not answered") from None
        except OSError as error:
            raise RowFailed(f"{method} is not answered: {error}") from None
        self.note("server", f"{reply.status} {reply.body[:_SHOWN_BODY].decode(errors='replace')}")
        return reply

    # -- connections ---------------------------------------------------------------------------------------------------

    def door(self, *, with_token: bool = True) -> ServerDoor:
        """Return a new client of the server."""
        door = self.subject.door(with_token=with_token)
        self.opened.append(door)
        return door

    def greeting(self) -> Message:
        """Return the params of `initialize`."""
        info = {"name": "dragoman-check", "version": VERSION}
        if self.version == schema.VERSIONS[0]:
            return {"protocolVersion": 1, "clientInfo": info, "clientCapabilities": {}}
        return {"protocolVersion": self.version, "info": info, "capabilities": {}}

    def initialize(self) -> bytes:
        """Return the body of `initialize`."""
        return json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": self.greeting()}).encode()

    async def connect(self, door: ServerDoor | None = None) -> PostedConnection:
        """Make a connection. Raise `RowFailed` if there is none, `RowBlocked` for a version or a token."""
        door = door or self.door()
        reply = await self.request(door, "POST", JSON, self.initialize())
        if reply.status in (401, 403):
            raise RowBlocked(f"the server answers {reply.status}", "give a token: --token-file F, or DRAGOMAN_TOKEN")
        id = reply.headers.get(CONNECTION)
        if reply.status != 200 or not id:
            raise RowFailed(f"initialize makes no connection (status {reply.status})")
        try:
            hello = self.hello_in(json.loads(reply.body))
        except ValueError:
            raise RowFailed("the answer to initialize is no JSON") from None
        connection = PostedConnection(self, door, id, hello)
        await self._log_in(connection)
        return connection

    async def _log_in(self, connection: PostedConnection) -> None:
        if self.settings.login:
            method = "authenticate" if self.version == schema.VERSIONS[0] else "auth/login"
            await connection.open()
            await connection.accepted({"id": "login", "method": method, "params": {"methodId": self.settings.login}})
            await connection.response("login", seconds=self.settings.turn)

    async def socket(self, **headers: str) -> SocketConnection:
        """Open a WebSocket. Raise `RowFailed` if it is refused."""
        opened = await self.open_socket(self.door(), headers)
        if isinstance(opened, ServerReply):
            if opened.status in (401, 403):
                raise RowBlocked(f"the server answers {opened.status}", "give a token: --token-file F")
            raise RowFailed(f"the WebSocket is refused with status {opened.status}")
        return SocketConnection(self, opened)

    async def open_socket(self, door: ServerDoor, headers: Mapping[str, str]) -> ServerSocket | ServerReply:
        """Open a WebSocket, or return the answer that refuses it."""
        self.note("check", f"GET, Upgrade: websocket {_named(headers)}")
        try:
            async with asyncio.timeout(self.settings.answer):
                opened = await door.open_socket(headers)
        except (OSError, TimeoutError) as error:
            raise RowFailed(f"the WebSocket cannot be opened: {error}") from None
        self.note("server", str(opened.status if isinstance(opened, ServerReply) else 101))
        if not isinstance(opened, ServerReply):
            self.opened.append(opened)
        return opened

    async def greeted_socket(self) -> SocketConnection:
        """Open a WebSocket and greet; log in if the user named a login."""
        connection = await self.socket()
        await connection.greet()
        if self.settings.login:
            method = "authenticate" if self.version == schema.VERSIONS[0] else "auth/login"
            await connection.call(method, {"methodId": self.settings.login}, id="login")
        return connection

    # -- answers -------------------------------------------------------------------------------------------------------

    def hello_in(self, response: Message) -> Message:
        """Return the result of `initialize`. Raise `RowFailed`, `RowBlocked` for another version."""
        result = response.get("result")
        if not isinstance(result, dict):
            raise RowFailed("initialize is not answered with a result")
        if result.get("protocolVersion") != self.version:
            found = result.get("protocolVersion")
            raise RowBlocked(f"the server answers version {found!r}", f"check that version: --protocol {found}")
        return result

    def session_in(self, response: Message) -> str:
        """Return the session of an answer to `session/new`. Raise `RowBlocked` where a login is asked for."""
        result, error = response.get("result"), response.get("error")
        if isinstance(error, dict) and error.get("code") == AUTH_REQUIRED and not self.settings.login:
            raise RowBlocked("the agent asks for a login", "name one of its logins: --login METHOD")
        if not isinstance(result, dict) or not isinstance(result.get("sessionId"), str):
            raise RowFailed(f"session/new opens no session: {error}")
        return str(result["sessionId"])

    async def expect_serving(self, after: str) -> None:
        """Judge that the server still makes connections."""
        try:
            await self.connect()
        except RowFailed as failed:
            raise RowFailed(f"after {after} the server makes no connection: {failed.reason}") from None

    def expect_token(self) -> None:
        """Raise `NotTested` where the user has given no token, so none is known to be wanted."""
        if not self.subject.has_token:
            raise NotTested("no token was given, so the server may want none", is_unadvertised=True)

    async def close(self) -> None:
        """Release what the probe has opened."""
        for one in reversed(self.opened):
            await one.close()


def _named(headers: Mapping[str, str]) -> str:
    shown = {name: "…" if name == "authorization" else value for name, value in headers.items()}
    return " ".join(f"{name}: {value};" for name, value in shown.items())

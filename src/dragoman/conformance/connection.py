"""One connection to a subject, in raw JSON-RPC: every frame of both directions is recorded and judged by the schema.

The subject is an agent, or a client whose agent we are: `role` says which, and so which schema each direction has.

Not our `Link` and not our client: those refuse to send what is wrong, and forgive what others send. Here a probe sends
any bytes, and sees any. What `check` sends wrong without an `intent` is a fault of ours and is reported as one.

Every wait has a bound. A probe that expects that something does not come sends a request behind it and waits for its
answer, or waits `quiet` seconds.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from dragoman import limits
from dragoman.conformance import schema
from dragoman.conformance.frames import Frame, Recording, Sender
from dragoman.conformance.verdicts import AnswerMissing, CheckStopped, SubjectGone
from dragoman.errors import PeerMistake
from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer
from dragoman.wire.framing import Framer

T = TypeVar("T")
Message = dict[str, Any]
_SHOWN_STDERR_LINES: Final = 5


class CheckLimits(NamedTuple):
    """How long a probe waits, in seconds: for an answer, for the end of a turn, for silence, for a process to end."""

    answer: float = 10.0
    turn: float = 60.0
    quiet: float = 0.15
    exit: float = 5.0


class Received(NamedTuple):
    """A message of the subject; `frame` is how it came."""

    message: Message
    frame: Frame


class CheckConnection:
    """A connection that is judged. `version` is 0 until `initialize` was answered."""

    def __init__(
        self,
        transport: Transport,
        limits_: CheckLimits,
        stderr_tail: Callable[[], str],
        role: Literal["agent", "client"] = "agent",
    ) -> None:
        self.role: Final[Sender] = role
        self.recording: Final = Recording()
        self.received: Final[list[Received]] = []
        self.noise: Final[list[Frame]] = []
        self.version = 0
        self.lost: Exception | None = None
        self.is_lost = False
        # Answers requests of the subject; what it returns is sent, None leaves the request open.
        self.on_request: Callable[[Message], Message | None] = refuse_request
        # Gets notifications of the subject.
        self.on_notification: Callable[[Message], None] = lambda message: None
        self._limits: Final = limits_
        self._stderr_tail: Final = stderr_tail
        self._transport: Final = transport
        self._framer: Final = Framer(limit=limits.FRAME_BYTES)
        self._unsent: Final = WriteBuffer(transport)
        self._methods: Final[dict[Any, str]] = {}
        # Methods of the requests of the subject: what their answers are judged by.
        self._asked: Final[dict[Any, str]] = {}
        self._last_id = 0
        self._stopped: CheckStopped | None = None
        self._changed: Final = asyncio.Event()
        transport.start(self)

    def __repr__(self) -> str:
        state = "lost" if self.is_lost else "open"
        return f"<CheckConnection {state} version={self.version} {len(self.recording.frames)} frames>"

    # -- sending -------------------------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """Return an id that no request of ours has yet."""
        self._last_id += 1
        return self._last_id

    def send(self, message: Message, *, intent: str = "") -> Frame:
        """Send a message. `intent` says why it is wrong, if it is meant to be."""
        if "method" in message and "id" in message:
            self._methods[_key(message["id"])] = message["method"]
        return self.send_bytes(json.dumps(message, ensure_ascii=False).encode() + b"\n", intent=intent)

    def send_bytes(self, data: bytes, *, intent: str = "") -> Frame:
        """Send bytes as they are; a frame of its own in the recording, whatever they are."""
        text = data.rstrip(b"\n")
        fault = "" if intent else self._own_fault(text)
        frame = self.recording.add(time.monotonic(), "check", text, fault=fault, intent=intent)
        self.write(data)
        return frame

    def write(self, data: bytes) -> None:
        """Send bytes that are no frame of their own: a part of one that is recorded elsewhere."""
        self._unsent.write(data)

    def ask(self, method: str, params: Any = None, *, intent: str = "", id: Any = None) -> Any:
        """Send a request without waiting; return its id."""
        id = self.next_id() if id is None else id
        params = {} if params is None else params
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, intent=intent)
        return id

    def expect_answer(self, id: Any, method: str) -> None:
        """Note a request that is sent as bytes, so that its answer is one."""
        self._methods[_key(id)] = method

    def notify(self, method: str, params: Any, *, intent: str = "") -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params}, intent=intent)

    def answer(self, id: Any, result: Any, *, intent: str = "") -> None:
        """Answer a request of the subject."""
        self.send({"jsonrpc": "2.0", "id": id, "result": result}, intent=intent)

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def call(self, method: str, params: Any = None, *, intent: str = "", seconds: float = 0) -> Message:
        """Send a request and return the whole response, an error too."""
        return await self.response(self.ask(method, params, intent=intent), seconds=seconds)

    async def response(self, id: Any, *, seconds: float = 0) -> Message:
        """Wait for the response with exactly this id, in value and type, and return it."""
        method = self._methods.get(_key(id), "the request")
        return await self.until(lambda: self.find_response(id), f"the answer to {method}", seconds)

    def find_response(self, id: Any) -> Message | None:
        """Return the first response with this id, if there is one."""
        key = _key(id)
        return next((one.message for one in self.received if is_response(one.message, key)), None)

    async def until(self, find: Callable[[], T | None], what: str, seconds: float = 0) -> T:
        """Wait until `find` returns something, and return that. Raise `AnswerMissing` or `SubjectGone`."""
        deadline = time.monotonic() + (seconds or self._limits.answer)
        while True:
            # What has arrived before the loss counts.
            found = find()
            if found is not None:
                return found
            if self._stopped is not None:
                raise self._stopped
            if self.is_lost:
                raise SubjectGone(f"the {self.role} ended the connection before {what} came{self._last_words()}")
            left = deadline - time.monotonic()
            if left <= 0:
                waited = seconds or self._limits.answer
                raise AnswerMissing(f"{what} has not come within {waited:g} s")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue

    async def quiet(self) -> None:
        """Let what is still on its way arrive."""
        if not self.is_lost:
            await asyncio.sleep(self._limits.quiet)

    def pause_reading(self) -> None:
        """Read nothing more, as a client that is busy."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._transport.resume_reading()

    async def close(self) -> None:
        """End the connection, and the process behind it."""
        await self._transport.close()

    def close_writing(self) -> None:
        """Close our direction: the subject reads the end of its input."""
        self._transport.close_writing()

    # -- the receiver of a transport -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for found in self._framer.feed(data):
            if isinstance(found, PeerMistake):
                self.noise.append(self.recording.add(time.monotonic(), self.role, b"", fault=found.message))
            elif found.strip():
                self._on_frame(found)
        self._changed.set()

    def writable(self) -> None:
        self._unsent.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost, self.lost = True, error
        self._changed.set()

    def _on_frame(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            message = json.loads(data)
        except UnicodeDecodeError:
            self.noise.append(self.recording.add(now, self.role, data, fault="not UTF-8"))
            return
        except (ValueError, RecursionError):
            self.noise.append(self.recording.add(now, self.role, data, fault="not JSON"))
            return
        fault = self._fault_of(message)
        frame = self.recording.add(now, self.role, data, fault=fault)
        if not isinstance(message, dict):
            self.noise.append(frame)
            return
        self.received.append(Received(message, frame))
        if "method" in message and "id" in message:
            self._asked[_key(message["id"])] = str(message["method"])
            self._on_request(message)
        elif "method" in message:
            self.on_notification(message)

    def _on_request(self, message: Message) -> None:
        try:
            answer = self.on_request(message)
        except CheckStopped as stopped:
            # The probe waits for something else; it ends where it does.
            self._stopped = stopped
            return
        if answer is not None:
            self.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    def _fault_of(self, message: Any) -> str:
        """Return what is wrong with a message of the subject."""
        fault = schema.envelope_fault(message)
        if fault or not isinstance(message, dict):
            return fault
        if "method" in message:
            return self._call_fault(message, to_agent=self.role == "client")
        method = self._methods.get(_key(message["id"]))
        if method is None:
            # What could not be read has no id that an answer could repeat.
            return "" if message["id"] is None else "it answers no request"
        return self._result_fault(method, message, of_agent=self.role == "agent")

    def _own_fault(self, data: bytes) -> str:
        """Return what is wrong with a frame of ours that is meant to be right."""
        try:
            message = json.loads(data)
        except ValueError:
            return "not JSON"
        fault = schema.envelope_fault(message)
        if fault:
            return fault
        if "method" in message:
            return self._call_fault(message, to_agent=self.role == "agent")
        method = self._asked.get(_key(message["id"]))
        return "" if method is None else self._result_fault(method, message, of_agent=self.role == "client")

    def _call_fault(self, message: Message, *, to_agent: bool) -> str:
        version = self.version
        params = message.get("params")
        if message["method"] == "initialize" and isinstance(params, dict):
            version = _named_version(params)
            # A client that speaks both versions greets in both shapes; every agent reads its own.
            other = schema.GREETING_FIELDS[schema.VERSIONS[0]] if version != schema.VERSIONS[0] else ()
            message = {**message, "params": {key: value for key, value in params.items() if key not in other}}
        return schema.call_fault(message, version or schema.VERSIONS[0], to_agent=to_agent)

    def _result_fault(self, method: str, message: Message, *, of_agent: bool) -> str:
        if "result" not in message:
            return ""
        version = self.version
        if method == "initialize":
            version = _named_version(message["result"])
        return schema.result_fault(method, message["result"], version or schema.VERSIONS[0], of_agent=of_agent)

    def _last_words(self) -> str:
        lines = self._stderr_tail().splitlines()[-_SHOWN_STDERR_LINES:]
        return "; it last wrote to stderr: " + " / ".join(lines) if lines else ""


def refuse_request(message: Message) -> Message:
    """Answer any request of a subject as a client does that has no such method."""
    return {"error": {"code": -32601, "message": f"Method not found: {message['method']}"}}


def _named_version(greeting: Any) -> int:
    """Return the version that a greeting or its answer names, the first one where that is unknown."""
    named = greeting.get("protocolVersion") if isinstance(greeting, dict) else None
    return named if named in schema.VERSIONS and not isinstance(named, bool) else schema.VERSIONS[0]


def is_response(message: Message, key: tuple[str, Any]) -> bool:
    """Return whether a message is a response with the id of this key."""
    return "method" not in message and "id" in message and _key(message["id"]) == key


def _key(id: Any) -> tuple[str, Any]:
    """Return an id with its type: in Python 1 is True and 1.0."""
    return type(id).__name__, id if isinstance(id, str | int | float | None) else repr(id)

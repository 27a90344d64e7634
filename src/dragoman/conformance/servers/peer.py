"""A server that keeps to the remote transport, in this process, and breaks one row when a switch is set.

Behind each of its connections stands the agent that proves the rows of agents (`dragoman.conformance.peer`).
"""

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.conformance.peer.subject import PeerSubject
from dragoman.conformance.servers.doors import ServerReply, StreamedEvent
from dragoman.conformance.servers.trial import CONNECTION, LAST_EVENT, SESSION
from dragoman.transports.contract import Transport
from dragoman.transports.write_buffer import WriteBuffer

Message = dict[str, Any]
TOKEN: Final = "peer-token"
HOST: Final = "peer.example"
# More is refused with 413.
BODY_BYTES: Final = 2 * 1024 * 1024
_IN_SESSION: Final = frozenset(
    {"session/prompt", "session/cancel", "session/close", "session/set_mode", "session/set_config_option"}
)
_METHODS: Final = frozenset({"POST", "GET", "DELETE"})


class PeerStop(Exception):
    """A request is refused with a status."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(str(status))
        self.reply: Final = ServerReply(status, {name.replace("_", "-"): value for name, value in headers.items()})


class PeerStream:
    """The events of a stream, those that were read too, and its one reader."""

    def __init__(self) -> None:
        self.events: Final[list[StreamedEvent]] = []
        self.readers: Final[list[asyncio.Queue[StreamedEvent | None]]] = []
        self.unread = 0

    def add(self, event: StreamedEvent) -> None:
        """Append an event and give it to the readers."""
        self.events.append(event)
        for queue in self.readers:
            queue.put_nowait(event)

    def end(self) -> None:
        """Let the readers see the end."""
        for queue in self.readers:
            queue.put_nowait(None)


class PeerLink:
    """One connection of a client: the agent behind it, and where its messages go."""

    def __init__(self, server: "PeerServer", transport: Transport, number: int) -> None:
        self.server: Final = server
        self.id: Final = f"c{number}" if server.breaks("short_connection_ids") else str(uuid.uuid4())
        self.streams: Final[dict[str | None, PeerStream]] = {None: PeerStream()}
        self.waiters: Final[dict[Any, asyncio.Future[Message]]] = {}
        self.sessions: Final[dict[Any, str | None]] = {}
        self.opened: Final[set[str]] = set()
        self.is_greeted = False
        # Gets every message of the agent, for a socket.
        self.on_message: Callable[[Message], None] | None = None
        self.transport: Final = transport
        self._unsent: Final = WriteBuffer(transport)
        self._part = b""
        self._numbers = 0
        transport.start(self)

    def feed(self, message: Message, session: str | None = None) -> None:
        """Pass a message of the client to the agent."""
        if "id" in message and "method" in message:
            self.sessions[str(message["id"])] = session
        self._unsent.write(json.dumps(message).encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._on_message(json.loads(line))

    def writable(self) -> None:
        self._unsent.writable()

    def connection_lost(self, error: Exception | None) -> None:
        """Leave the streams as they are."""

    def _on_message(self, message: Message) -> None:
        result = message.get("result")
        if isinstance(result, dict) and isinstance(result.get("sessionId"), str):
            self.opened.add(result["sessionId"])
            self.server.sessions.add(result["sessionId"])
            self.streams.setdefault(result["sessionId"], PeerStream())
        if self.on_message is not None:
            self.on_message(message)
            if "method" in message:
                self._leak(str(message.get("params", {}).get("sessionId")), message)
            return
        waiter = self.waiters.pop(message.get("id"), None) if "method" not in message else None
        if waiter is not None and not waiter.done():
            waiter.set_result(message)
            return
        self.route(message)

    def route(self, message: Message) -> None:
        """Put a message on its stream."""
        breaks = self.server.breaks
        params = message.get("params")
        is_response = "method" not in message
        session = self.sessions.get(str(message.get("id"))) if is_response else None
        if not is_response and isinstance(params, dict):
            session = params.get("sessionId")
        if is_response and breaks("loses_responses"):
            return
        if session is not None and not is_response and breaks("loses_updates"):
            return
        self._put(session, message)
        if session is not None and not is_response:
            self._leak(session, message)

    def _put(self, session: str | None, message: Message) -> None:
        stream = self.streams.setdefault(session, PeerStream())
        breaks = self.server.breaks
        self._numbers += 1
        data = json.dumps(message).encode()
        if breaks("joins_events") and session is not None:
            data = data + b"\n" + data
        id = "1" if breaks("same_event_ids") else str(self._numbers)
        if not stream.readers and session is None and breaks("loses_early_messages"):
            return
        if breaks("answers_before_updates") and session is not None and _ends_turn(message):
            stream.add(StreamedEvent(data, id))
            said = [event.data for event in stream.events if b"agent_message" in event.data]
            data, id = said[-1], f"{id}-late"
        stream.add(StreamedEvent(data, id))

    def _leak(self, session: str, message: Message) -> None:
        if self.server.breaks("leaks_to_other_streams"):
            for other, stream in self.streams.items():
                if other not in (None, session):
                    stream.add(StreamedEvent(json.dumps(message).encode(), "0"))
        if self.server.breaks("leaks_to_other_connections"):
            for link in self.server.links.values():
                if link is not self:
                    link.put_foreign(message)

    def put_foreign(self, message: Message) -> None:
        """Take a message of another connection, as a switch wants it."""
        if self.on_message is not None:
            self.on_message(message)
        else:
            self.streams[None].add(StreamedEvent(json.dumps(message).encode(), "0"))

    async def close(self) -> None:
        """End the agent, and the streams."""
        for stream in self.streams.values():
            if not self.server.breaks("streams_after_delete"):
                stream.end()
        await self.transport.close()


def _ends_turn(message: Message) -> bool:
    """Return whether a message is the end of a turn, in either version."""
    result, params = message.get("result"), message.get("params")
    update = params.get("update", {}) if isinstance(params, dict) else {}
    return (isinstance(result, dict) and "stopReason" in result) or "stopReason" in update


class PeerServer:
    """The server. `guards`: it wants a token, its own host name, and no other origin."""

    def __init__(self, version: int, switch: str = "") -> None:
        self.switch: Final = switch
        self.links: Final[dict[str, PeerLink]] = {}
        self.sessions: Final[set[str]] = set()
        self.is_dead = False
        self._agents: Final = PeerSubject(version)
        self._number = 0
        self._at_once = 0

    def breaks(self, switch: str) -> bool:
        """Return whether this switch is set."""
        return self.switch == switch

    async def open_link(self) -> PeerLink:
        """Start an agent for a new connection."""
        self._number += 1
        opened = await self._agents.open()
        link = PeerLink(self, opened.transport, self._number)
        self.links[link.id] = link
        return link

    # -- the guard -----------------------------------------------------------------------------------------------------

    def guard(self, headers: Mapping[str, str], what: str) -> None:
        """Raise `PeerStop` for a request that is not let in. `what`: post, stream or socket."""
        breaks = self.breaks
        if self.is_dead:
            raise OSError("The server is gone.")
        origins = {"post": "takes_foreign_posts", "stream": "takes_foreign_streams", "socket": "takes_foreign_sockets"}
        if headers.get("origin") not in (None, f"https://{HOST}") and not breaks(origins[what]):
            cors = {"access_control_allow_origin": "*"} if breaks("allows_all_origins") else {}
            raise PeerStop(403, **cors)
        if headers.get("host", HOST) != HOST and not breaks("takes_foreign_hosts"):
            raise PeerStop(421)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        wanted = "takes_sockets_without_token" if what == "socket" else "takes_no_token"
        if not token and not breaks(wanted):
            raise PeerStop(401, **({} if breaks("names_no_scheme") else {"www_authenticate": "Bearer"}))
        if token and token != TOKEN and not breaks("takes_any_token"):
            raise PeerStop(401, www_authenticate="Bearer")

    def link_of(self, headers: Mapping[str, str]) -> PeerLink:
        """Return the connection that headers name. Raise `PeerStop`."""
        id = headers.get(CONNECTION)
        if id is None:
            raise PeerStop(400)
        link = self.links.get(id)
        if link is None and self.breaks("takes_similar_names"):
            link = next((one for one in self.links.values() if one.id[:-1] == id[:-1]), None)
        if link is None:
            raise PeerStop(404)
        return link

    # -- requests ------------------------------------------------------------------------------------------------------

    async def request(self, method: str, headers: Mapping[str, str], body: bytes) -> ServerReply:
        """Serve a POST or a DELETE; whatever else is refused."""
        try:
            self.guard(headers, "post")
            if method == "PUT" and self.breaks("takes_put"):
                return ServerReply(200)
            if method not in _METHODS:
                raise PeerStop(405)
            if method == "DELETE":
                return await self._delete(headers)
            return await self._post(headers, body)
        except PeerStop as stop:
            return self._refused(stop.reply, headers)
        except Exception:
            if self.breaks("shows_internals"):
                return ServerReply(500, {}, b"Traceback (most recent call last):\n")
            raise

    def _refused(self, reply: ServerReply, headers: Mapping[str, str]) -> ServerReply:
        if self.breaks("shows_internals") and reply.status == 400:
            return reply._replace(body=b'Traceback (most recent call last):\n  File "/srv/app.py", line 7')
        if self.breaks("other_status_for_strangers") and reply.status == 404:
            return reply._replace(status=400)
        return reply

    async def _delete(self, headers: Mapping[str, str]) -> ServerReply:
        if headers.get(CONNECTION) is None and self.breaks("deletes_nothing"):
            return ServerReply(202)
        link = self.link_of(headers)
        if self.breaks("refuses_delete"):
            raise PeerStop(405)
        if self.breaks("delete_needs_a_stream") and not link.streams[None].readers:
            raise PeerStop(500)
        await link.close()
        if not self.breaks("keeps_deleted"):
            del self.links[link.id]
        return ServerReply(202)

    async def _post(self, headers: Mapping[str, str], body: bytes) -> ServerReply:
        breaks = self.breaks
        if not headers.get("content-type", "").startswith("application/json") and not breaks("takes_any_type"):
            raise PeerStop(415)
        if len(body) > BODY_BYTES:
            raise PeerStop(200 if breaks("takes_any_size") else 413)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            raise PeerStop(500 if breaks("fails_at_no_json") else 400) from None
        if isinstance(message, list):
            if breaks("serves_batches"):
                return ServerReply(202)
            raise PeerStop(400 if breaks("other_status_for_batches") else 501)
        if not isinstance(message, dict):
            raise PeerStop(500 if breaks("fails_at_bad_bodies") else 400)
        if headers.get(CONNECTION) is None:
            return await self._initialize(message)
        return self._accept(self.link_of(headers), headers, message)

    async def _initialize(self, message: Message) -> ServerReply:
        breaks = self.breaks
        if message.get("method") != "initialize":
            if breaks("takes_missing_connection"):
                return ServerReply(202)
            raise PeerStop(400)
        self._at_once += 1
        if breaks("one_connection_at_once"):
            await asyncio.sleep(0)
            if self._at_once > 1:
                self._at_once -= 1
                raise PeerStop(503)
        link = await self.open_link()
        waiter: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        link.waiters[message.get("id")] = waiter
        link.feed(message)
        reply = await waiter
        self._at_once -= 1
        named = {} if breaks("names_no_connection") else {CONNECTION: link.id}
        if breaks("accepts_initialize"):
            return ServerReply(202, named)
        return ServerReply(200, {"content-type": "application/json", **named}, json.dumps(reply).encode())

    def _accept(self, link: PeerLink, headers: Mapping[str, str], message: Message) -> ServerReply:
        breaks = self.breaks
        params = message.get("params")
        named, session = headers.get(SESSION), params.get("sessionId") if isinstance(params, dict) else None
        if message.get("method") in _IN_SESSION and named is None and not breaks("takes_missing_session"):
            raise PeerStop(400)
        if named is not None and session is not None and named != session and not breaks("takes_other_session"):
            raise PeerStop(400)
        if "method" not in message:
            if breaks("ends_at_strange_answers"):
                self.is_dead = True
            raise PeerStop(400)
        if breaks("answers_notes") and "id" not in message:
            link.streams[None].add(StreamedEvent(b'{"jsonrpc":"2.0","id":null,"result":{}}', "0"))
        if breaks("answers_in_body") and "id" in message and session is None:
            return ServerReply(200, {}, b'{"jsonrpc":"2.0","id":1,"result":{}}')
        is_repeated = "id" in message and str(message["id"]) in link.sessions
        if is_repeated and not breaks("serves_repeated_requests"):
            raise PeerStop(409)
        link.feed(message, session if message.get("method") in _IN_SESSION else None)
        return ServerReply(202)

    # -- streams -------------------------------------------------------------------------------------------------------

    def stream(self, headers: Mapping[str, str]) -> tuple[PeerStream, asyncio.Queue[StreamedEvent | None]]:
        """Open a stream. Raise `PeerStop`."""
        breaks = self.breaks
        self.guard(headers, "stream")
        if "text/event-stream" not in headers.get("accept", "") and not breaks("streams_to_all"):
            raise PeerStop(406)
        if headers.get(CONNECTION) is None and breaks("streams_without_connection"):
            return PeerStream(), asyncio.Queue()
        if headers.get(CONNECTION) not in (None, *self.links) and breaks("streams_for_strangers"):
            return PeerStream(), asyncio.Queue()
        link = self.link_of(headers)
        session = headers.get(SESSION)
        if session is not None and session not in self.sessions and not breaks("streams_any_session"):
            raise PeerStop(404)
        stream = link.streams.setdefault(session, PeerStream())
        if stream.readers and LAST_EVENT not in headers and not breaks("shares_streams"):
            raise PeerStop(409)
        return stream, self._reader(stream, headers.get(LAST_EVENT))

    def _reader(self, stream: PeerStream, position: str | None) -> asyncio.Queue[StreamedEvent | None]:
        queue: asyncio.Queue[StreamedEvent | None] = asyncio.Queue()
        missed = list(stream.events[stream.unread :]) if position is None else []
        if position is not None:
            ids = [event.id for event in stream.events]
            if position not in ids and not self.breaks("ignores_lost_positions"):
                raise PeerStop(409)
            at = ids.index(position) + 1 if position in ids else len(ids)
            missed = [] if self.breaks("forgets_missed_events") else list(stream.events[at:])
            if self.breaks("repeats_events"):
                missed = list(stream.events)
        for event in missed:
            queue.put_nowait(event)
        stream.readers.append(queue)
        return queue

    def on_stream_left(self, stream: PeerStream, queue: asyncio.Queue[StreamedEvent | None]) -> None:
        """Forget a reader. What it did not read stays for the next."""
        if queue in stream.readers:
            stream.readers.remove(queue)
            stream.unread = len(stream.events) - queue.qsize()
        if self.breaks("ends_with_stream"):
            for link in list(self.links.values()):
                if stream in link.streams.values():
                    del self.links[link.id]

    def is_held_up(self, stream: PeerStream) -> bool:
        """Return whether a switch keeps a reader waiting for another one."""
        if not self.breaks("waits_for_slow_readers"):
            return False
        others = [one for link in self.links.values() for one in link.streams.values() if one is not stream]
        return any(queue.qsize() > 1 for one in others for queue in one.readers)

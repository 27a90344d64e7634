"""The agent's side of the gateway: one connection to an agent, shared by everybody who watches its sessions."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake import SPOKEN
from dragoman.errors import LinkClosed, UsageError
from dragoman.gateway.rooms import Room
from dragoman.link import Link
from dragoman.transports.contract import Receiver, Transport
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import Prompt
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, RequestScope, SessionScope

if TYPE_CHECKING:
    from dragoman.gateway.front import Front
    from dragoman.gateway.hub import Hub


class Agents(NamedTuple):
    """Where agents come from: a transport to a fresh one, and the versions it is known to speak.

    An agent is spoken to in the version of its client where it can be, because then nothing is lost between them.
    """

    open: Callable[[], Transport]
    versions: tuple[int, ...] = (1, 2)


class Asked(NamedTuple):
    """A request of a client that the agent works on."""

    front: "Front"
    id: Id
    request: Request


class Back:
    """The handler of a link in the role of the client."""

    def __init__(self, hub: "Hub", origin: "Front", agents: Agents) -> None:
        version = origin.connection.version
        spoken = (version,) if version in agents.versions else agents.versions or SPOKEN
        self.origin: Final = origin
        self.rooms: Final[dict[str, Room]] = {}
        self.asked: Final[dict[int, Asked]] = {}
        self.agent = AgentHello(None)
        self._hub = hub
        self._gate = Gate(agents.open())
        self._early: dict[str, list[AnyEvent]] = {}
        self._closing: asyncio.Task[None] | None = None
        self.link: Final = Link(self._gate, self, "client", spoken=spoken)

    async def greet(self, hello: ClientHello) -> AgentHello:
        """Start it; what it says of itself."""
        self.link.start()
        async with asyncio.timeout(limits.START_SECONDS):
            self.agent = await self.link.hello(hello)
        return self.agent

    # -- rooms -------------------------------------------------------------------------------------------------------

    def room(self, session_id: str) -> Room:
        """The room of a session of this agent."""
        room = self.rooms.get(session_id)
        if room is None:
            room = self.rooms[session_id] = self._hub.rooms[session_id] = Room(session_id, self)
        return room

    def adopt(self, session_id: str, front: "Front") -> Room:
        """A session whose id has become known; what was heard of it before is heard now."""
        room = self.room(session_id)
        room.enter(front)
        for event in self._early.pop(session_id, ()):
            room.hear(event)
        return room

    def drop(self, room: Room) -> None:
        """The session is closed."""
        self.rooms.pop(room.id, None)
        if self._hub.rooms.get(room.id) is room:
            del self._hub.rooms[room.id]
        for front in list(room.fronts):
            room.leave(front)
            front.connection.forget(room.id)

    def ended(self, session_id: str) -> None:
        """A turn is over."""
        for number, asked in list(self.asked.items()):
            if isinstance(asked.request, Prompt) and asked.request.session_id == session_id:
                del self.asked[number]
        self.settle()

    def settle(self, *, now: bool = False) -> None:
        """End it when nobody needs it: whoever opened it is gone, nobody watches, nothing runs (or that is over)."""
        if self._closing is not None or not self.origin.ended:
            return
        if any(room.fronts or (room.running and not now) for room in self.rooms.values()):
            return
        self._closing = asyncio.get_running_loop().create_task(self.close())

    async def close(self) -> None:
        """End the connection; the agent frees the sessions, and they can be opened again."""
        await self.link.close()
        self._hub.backs.discard(self)

    def pace(self) -> None:
        """Read the agent, or do not, as its listeners can take it."""
        self._gate.hold(any(room.behind for room in self.rooms.values()))

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_hello(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client is not greeted")

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.link.taken()
        room = self.rooms.get(session_id)
        if room is not None:
            room.hear(event)
            if room.behind:
                self.pace()
            return
        held = self._early.setdefault(session_id, [])
        if len(self._early) <= limits.IN_FLIGHT and len(held) < limits.EARLY_UPDATES:
            held.append(event)

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        if isinstance(request, Elicit) and isinstance(request.scope, RequestScope):
            return self._ask_about(request, request.scope)
        scope = request.scope if isinstance(request, Elicit) else request
        room = self.rooms.get(getattr(scope, "session_id", ""))
        if room is None:
            return self.origin.answer(request)
        return room.ask(request)

    def on_note(self, note: Note) -> None:
        fronts = {self.origin, *(front for room in self.rooms.values() for front in room.fronts)}
        for front in fronts:
            front.note(note)

    def on_noise(self, reason: str) -> None:
        self._hub.counts["noise"] += 1

    def on_bug(self, error: Exception) -> None:
        self._hub.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        for room in list(self.rooms.values()):
            room.end("The agent is gone")
            self.drop(room)
        self.origin.agent_gone()

    async def _ask_about(self, request: Elicit, scope: RequestScope) -> Reply:
        """A question about a request, asked of whoever made it, under the name it gave that."""
        number = scope.request_id
        asked = self.asked.get(number) if isinstance(number, int) else None
        if asked is None:
            return ElicitationAnswer("cancel")
        there: RequestScope | SessionScope = RequestScope(asked.id)
        if isinstance(asked.request, Prompt) and asked.front.link.version != 1:
            there = SessionScope(asked.request.session_id)
        try:
            return await asked.front.answer(replace(request, scope=there))
        except LinkClosed:
            return ElicitationAnswer("cancel")


class Watched:
    """One request on its way: which number the agent knows it by."""

    def __init__(self, back: Back, asked: Asked) -> None:
        self._back = back
        self._asked = asked
        self._number = 0

    def sent(self, number: int) -> None:
        self._number = number
        self._back.asked[number] = self._asked

    def heard(self) -> None:
        """It is answered. A prompt is spoken of until its turn is over."""

    def over(self, *, failed: bool) -> None:
        if failed or not isinstance(self._asked.request, Prompt):
            self._back.asked.pop(self._number, None)


class Gate:
    """A transport that is read when the link wants to read and the listeners can take it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._link_pauses = False
        self._held = False
        self.start: Final[Callable[[Receiver], None]] = transport.start
        self.write: Final = transport.write
        self.close_writing: Final = transport.close_writing
        self.close: Final = transport.close

    def hold(self, held: bool) -> None:
        if held != self._held:
            self._held = held
            self._follow()

    def pause_reading(self) -> None:
        self._link_pauses = True
        self._follow()

    def resume_reading(self) -> None:
        self._link_pauses = False
        self._follow()

    def _follow(self) -> None:
        if self._held or self._link_pauses:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

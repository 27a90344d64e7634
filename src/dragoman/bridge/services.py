"""What a bridge does beyond forwarding: the interface, and a chain of several.

A service stands between the two sides. The requests and notifications of the client pass the services from the first
to the last; what the agent sends passes them from the last to the first. So the last one is nearest to the agent.

Promise: the default supplies nothing and changes nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.requests import ForkSession, NewSession, ResumeSession, SessionOpened

if TYPE_CHECKING:
    from dragoman.bridge.sides import BridgeSide

Opening = NewSession | ResumeSession | ForkSession
# Asks the request at the other side, or at the next service; raises what `Link.ask` raises.
AskOther = Callable[[Request], Awaitable[Reply]]
# Lets what was received behind a request go on: it is asked later, or not at all.
StepAside = Callable[[], None]
SessionEvents = Sequence[tuple[str, AnyEvent]]


class BridgeServices:
    """Supplies what one side of a bridge lacks. Used by one bridge, in its loop."""

    # Whether pieces of text must pass `from_agent` too. They are passed on as they came else.
    watches_text = False
    # The same of updates that only their reader needs: tool calls, plans, terminals.
    watches_updates = False
    # Whether a prompt that comes during a turn is held back, where the client's version has one prompt at a time.
    queues_prompts = False

    def attach(self, client: "BridgeSide", agent: "BridgeSide") -> None:
        """Learn both sides, before either link starts."""

    def hello(self, agent: AgentHello) -> AgentHello:
        """Return the agent's hello as the client gets it."""
        return agent

    def serve_client(self, request: Request, ask: AskOther, aside: StepAside) -> Awaitable[Reply]:
        """Reply to a request of the client."""
        return ask(request)

    def serve_agent(self, request: Request, ask: AskOther, aside: StepAside) -> Awaitable[Reply]:
        """Reply to a request of the agent."""
        return ask(request)

    def from_client(self, note: Note) -> Note:
        """Return a notification of the client as the agent gets it."""
        return note

    def from_agent(self, session_id: str, event: AnyEvent) -> SessionEvents:
        """Return an event of the agent as the client gets it: none, one, or several."""
        return ((session_id, event),)

    def note_from_agent(self, note: Note) -> Note:
        """Return a notification of the agent as the client gets it."""
        return note

    def on_opened(self, request: Opening, reply: SessionOpened) -> SessionOpened:
        """Note that the agent has opened a session for this request of the client; called before any later event.

        Return the reply with the id that the client knows the session by.
        """
        return reply

    def on_lost(self) -> None:
        """Note that the agent is gone: nothing that waits for it will get an answer."""

    async def close(self) -> None:
        """Release what is held, when both links are closed. Bounded."""


class ServiceChain(BridgeServices):
    """Several services, each behind the one before it."""

    def __init__(self, services: Sequence[BridgeServices]) -> None:
        self._services = tuple(services)
        self.watches_text = any(one.watches_text for one in self._services)
        self.watches_updates = any(one.watches_updates for one in self._services)
        self.queues_prompts = any(one.queues_prompts for one in self._services)

    def __repr__(self) -> str:
        return f"<ServiceChain {', '.join(map(repr, self._services))}>"

    def attach(self, client: "BridgeSide", agent: "BridgeSide") -> None:
        for one in self._services:
            one.attach(client, agent)

    def hello(self, agent: AgentHello) -> AgentHello:
        for one in reversed(self._services):
            agent = one.hello(agent)
        return agent

    def serve_client(self, request: Request, ask: AskOther, aside: StepAside) -> Awaitable[Reply]:
        for one in reversed(self._services):
            ask = partial(_serve, one.serve_client, ask, aside)
        return ask(request)

    def serve_agent(self, request: Request, ask: AskOther, aside: StepAside) -> Awaitable[Reply]:
        for one in self._services:
            ask = partial(_serve, one.serve_agent, ask, aside)
        return ask(request)

    def from_client(self, note: Note) -> Note:
        for one in self._services:
            note = one.from_client(note)
        return note

    def from_agent(self, session_id: str, event: AnyEvent) -> SessionEvents:
        found: SessionEvents = ((session_id, event),)
        for one in reversed(self._services):
            found = [later for named, earlier in found for later in one.from_agent(named, earlier)]
        return found

    def note_from_agent(self, note: Note) -> Note:
        for one in reversed(self._services):
            note = one.note_from_agent(note)
        return note

    def on_opened(self, request: Opening, reply: SessionOpened) -> SessionOpened:
        for one in reversed(self._services):
            reply = one.on_opened(request, reply)
        return reply

    def on_lost(self) -> None:
        for one in self._services:
            one.on_lost()

    async def close(self) -> None:
        for one in self._services:
            await one.close()


def _serve(
    serve: Callable[[Request, AskOther, StepAside], Awaitable[Reply]],
    ask: AskOther,
    aside: StepAside,
    request: Request,
) -> Awaitable[Reply]:
    return serve(request, ask, aside)

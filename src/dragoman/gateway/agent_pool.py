"""The agents of a gateway: started for a connection or for a session, bounded in number, stopped when idle.

What an `AgentSide` needs of the server is handed to it here: the source of its processes, the registry of sessions, the
rules about them, the monitor, the recorder of permissions, and the recordings of sessions (None: the agent stores its
sessions itself, or nothing is recorded), and in a cluster the places of sessions.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.gateway.agent_restart import start_failure
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.monitor import Monitor
from dragoman.gateway.node_links import NodeLinks
from dragoman.gateway.open_questions import PermissionRecorder
from dragoman.gateway.places import SessionPlaces
from dragoman.gateway.session_access import SessionAccess
from dragoman.gateway.shared_session import SharedSessions
from dragoman.store.recording import Recordings
from dragoman.vocabulary.hello import ClientHello

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide

_log = logging.getLogger(__name__)

# Agents that are looked at in one step of the loop.
_STEP: Final = 128


class AgentPool(Collection[AgentSide]):
    """The agent sides of one server, those without a process included."""

    def __init__(
        self,
        source: AgentSource,
        sessions: SharedSessions,
        access: SessionAccess,
        monitor: Monitor,
        recorder: PermissionRecorder,
        recordings: Recordings | None = None,
        places: SessionPlaces | None = None,
        *,
        beside: "AgentPool | None" = None,
    ) -> None:
        """`beside` is the pool of another agent of the same server: its processes count for a principal as well."""
        # What an agent side reaches of the server, and nothing else of it.
        self.source: Final = source
        self.sessions: Final = sessions
        self.access: Final = access
        self.monitor: Final = monitor
        self.recorder: Final = recorder
        self.recordings: Final = recordings
        self._agent_sides: set[AgentSide] = set()
        # The streams to other nodes; None: this server is no node of a cluster.
        self.nodes: Final = None if places is None else NodeLinks(self, places)
        self._by_origin: dict[ClientSide, set[AgentSide]] = {}
        # Sessions that their agents are being told to close, and that are opened again only then.
        self._closings: dict[str, asyncio.Task[None]] = {}
        self._pools: Final[list[AgentPool]] = [] if beside is None else beside._pools
        self._pools.append(self)

    def __repr__(self) -> str:
        return f"<AgentPool agents={len(self)} processes={self.processes}>"

    def __contains__(self, agent_side: object) -> bool:
        return agent_side in self._agent_sides

    def __iter__(self) -> Iterator[AgentSide]:
        return iter(self._agent_sides)

    def __len__(self) -> int:
        return len(self._agent_sides)

    @property
    def processes(self) -> int:
        """Return how many processes run."""
        return sum(one.has_process and not one.is_of_other_node for one in self._agent_sides)

    async def start(self, origin: "ClientSide", hello: ClientHello) -> AgentSide:
        """Start an agent for a connection, or for one of its sessions, and initialize it with `hello`. Waits for the
        agent; raise `RequestFailed` where there is none."""
        agent_side = None
        try:
            await self.free_slot(origin.agent_principal)
            # Nothing waits between `free_slot` and this, which takes the slot: a thousand requests at once would all
            # find it free.
            agent_side = AgentSide(self, origin)
            # Before the handshake: a slot is taken from here on, and the end of the server has to find it.
            self._agent_sides.add(agent_side)
            self._by_origin.setdefault(origin, set()).add(agent_side)
            await agent_side.initialize(hello)
        # Also when the client has hung up meanwhile: a process that was started for it must not stay.
        except BaseException as error:
            if agent_side is not None:
                await agent_side.close()
            raise start_failure(error) from error
        return agent_side

    def close_before_reopening(self, session_id: str, work: Coroutine[Any, Any, None]) -> None:
        """Close a session in its agent, by `work`, which is bounded; meanwhile it is not opened again."""
        task = asyncio.get_running_loop().create_task(work)
        self._closings[session_id] = task
        task.add_done_callback(lambda _: self._closings.pop(session_id, None))

    async def wait_until_closed(self, session_id: str) -> None:
        """Wait while a session is being closed in its agent."""
        closing = self._closings.get(session_id)
        if closing is not None:
            await asyncio.wait([closing])

    async def free_slot(self, principal: str) -> None:
        """Make sure that one more process may run for a principal: stop the one that has been idle for longest, if
        there are as many as may be. Waits for its end; raise `RequestFailed` if all are busy."""
        usage = self.sessions.usage
        if usage.limits_processes(principal):
            await self._free_one_of(principal)
        if not self.source.most or self.processes < self.source.most or await _stop_idle_one(self._agent_sides):
            return
        _log.warning("all %d agent processes are busy: a client was refused one", self.source.most)
        raise RequestFailed(INTERNAL_ERROR, "Too many agents are at work here; try again later", {"retry": True})

    async def _free_one_of(self, principal: str) -> None:
        """Make sure that one more process may run for a principal whose processes are limited."""
        if self.source.each_principal and self.processes_of(principal):
            return  # it has the one that all of its connections share
        usage = self.sessions.usage
        try:
            usage.check_processes(principal, self._running_for(principal))
        except RequestFailed:
            # Not of our own agent: its process ends when the last connection of the principal does.
            sides = [one for pool in self._pools if not pool.source.each_principal for one in pool]
            if not await _stop_idle_one([one for one in sides if one.principal == principal]):
                raise

    def _running_for(self, principal: str) -> int:
        return sum(pool.processes_of(principal) for pool in self._pools)

    def processes_of(self, principal: str) -> int:
        """Return how many processes run for a principal."""
        running = sum(one.has_process for one in self._agent_sides if one.principal == principal)
        return min(running, 1) if self.source.each_principal else running

    def add(self, agent_side: AgentSide) -> None:
        """Add an agent that was started for no client."""
        self._agent_sides.add(agent_side)

    def started_for(self, origin: "ClientSide") -> set[AgentSide]:
        """Return the agents that were started for a connection."""
        return set(self._by_origin.get(origin, ()))

    async def stop_idle(self, now: float) -> None:
        """Stop the processes that have been idle for long enough at the loop time `now`."""
        for number, agent_side in enumerate(list(self._agent_sides)):
            if number % _STEP == _STEP - 1:
                await asyncio.sleep(0)  # of thousands that are looked at, no stream waits for all
            # One agent that fails must not keep the others running.
            with self.monitor.reporting():
                agent_side.stop_if_idle(now)

    def remove(self, agent_side: AgentSide) -> None:
        """Remove an agent that is closed for good."""
        self._agent_sides.discard(agent_side)
        if agent_side.origin is not None:
            started = self._by_origin.get(agent_side.origin, set())
            started.discard(agent_side)
            if not started:
                self._by_origin.pop(agent_side.origin, None)

    async def close(self) -> None:
        """Close every agent. Waits for the ends of their processes, which are bounded."""
        await asyncio.gather(*self._closings.values(), return_exceptions=True)
        await asyncio.gather(*(agent_side.close() for agent_side in list(self._agent_sides)), return_exceptions=True)


async def _stop_idle_one(agent_sides: Iterable[AgentSide]) -> bool:
    """Stop the process that has been idle for longest and can be stopped without a loss; its sessions are opened again
    when they are needed. Waits for its end; return False if there is none."""
    for agent_side in sorted(agent_sides, key=lambda one: one.idle_since):
        stopping = agent_side.stop_process()
        if stopping is not None:
            _log.debug("stopping %r to make room for another process", agent_side)
            # Shielded: the stop goes on for its own agent if this client gives up.
            await asyncio.shield(stopping)
            return True
    return False

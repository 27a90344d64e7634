"""One agent of a gateway, put together: its sessions, processes and connections, and how all of them end.

    Hub ─┬─ Monitor        counters, measurements, log, unexpected errors
         ├─ SharedSessions the open sessions
         ├─ SessionAccess  who may reach which session
         ├─ AgentPool      the agents
         └─ Connections    the clients

Each part is handed to the code that needs it; nothing reaches through the hub but the server, the routes and tests.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from dragoman import limits
from dragoman.gateway.agent_pool import AgentPool
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.connections import KEPT_SECONDS, Connections, IsValid
from dragoman.gateway.logbook import Logbook
from dragoman.gateway.monitor import BackgroundTasks, Monitor
from dragoman.gateway.node_links import lose_session
from dragoman.gateway.open_questions import OnPermission, PermissionRecorder
from dragoman.gateway.places import SessionPlaces
from dragoman.gateway.principal_usage import PrincipalUsage
from dragoman.gateway.session_access import FolderOf, SessionAccess
from dragoman.gateway.shared_session import SharedSessions
from dragoman.gateway.shared_state import SharedAgentState
from dragoman.store.recording import Recordings

_log = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 5.0
# When the server stops, a turn that was cancelled may end for so long.
_CANCEL_SECONDS: Final = limits.CANCEL_GRACE_SECONDS + 0.5


class Hub:
    """The parts of one agent of a server.

    `state` is what is shared with other servers; None: nothing is. `folder_of` tells where a stored session was made,
    also without this server (empty: there is none). `on_permission` is called in a thread with each answer to a
    permission that an agent asks for, before the agent gets it; None: the agent records them itself. `recordings` are
    those of an agent that is not ours, closed with the hub. `report` is called with unexpected exceptions. `beside` is
    the hub of another agent of the same server: the monitor is its (`report` and `log` are not used then), and so are
    the limits of connections and of what they hold, and what principals use. `places` tells which node works on a
    session; None: there is no other. `usage` is what principals use and may use; None: as much as they like.
    """

    def __init__(
        self,
        source: AgentSource,
        *,
        state: SharedAgentState | None = None,
        report: Callable[[Exception], None] | None = None,
        kept_seconds: float = KEPT_SECONDS,
        log: Logbook | None = None,
        ceilings: Ceilings | None = None,
        folder_of: FolderOf | None = None,
        on_permission: OnPermission | None = None,
        recordings: Recordings | None = None,
        beside: "Hub | None" = None,
        places: SessionPlaces | None = None,
        usage: PrincipalUsage | None = None,
    ) -> None:
        self.monitor: Final[Monitor] = Monitor(log, report) if beside is None else beside.monitor
        state = state or SharedAgentState()
        self.usage: Final[PrincipalUsage] = (usage or PrincipalUsage()) if beside is None else beside.usage
        self.sessions: Final = SharedSessions(state.operations, state.questions, self.usage)
        self.access: Final = SessionAccess(
            self.sessions,
            directory=state.directory,
            ceilings=ceilings,
            folder_of=folder_of,
            renames=source.renames,
        )
        # In this order because each needs those before it, and none needs one behind it.
        recorder = PermissionRecorder(on_permission, self.monitor)
        self.agents: Final[AgentPool] = AgentPool(
            source,
            self.sessions,
            self.access,
            self.monitor,
            recorder,
            recordings,
            places,
            beside=None if beside is None else beside.agents,
        )
        self._recordings = recordings
        self._background = BackgroundTasks(self.monitor)
        others = None if beside is None else beside.connections
        self.connections: Final[Connections] = Connections(self.agents, self._background, kept_seconds, beside=others)

    def __repr__(self) -> str:
        state = "stopping" if self.is_stopping else "open"
        return f"<Hub {state} {self.connections!r} {self.sessions!r} {self.agents!r} {self.monitor!r}>"

    @property
    def is_stopping(self) -> bool:
        """Return whether `close` was called."""
        return not self.connections.accepts

    async def sweep(self, is_valid: IsValid, is_logged_in: IsValid) -> None:
        """Run until cancelled: stop idle agents and close expired connections, at intervals."""
        loop = asyncio.get_running_loop()
        idle_seconds = self.agents.source.idle_seconds or _SWEEP_SECONDS
        while True:
            # As often as the shortest of the times that it watches: a test, or an operator, may have set one to a
            # second.
            await asyncio.sleep(min(_SWEEP_SECONDS, self.connections.kept_seconds, idle_seconds))
            await self.agents.stop_idle(loop.time())
            await self.connections.close_expired(loop.time(), is_valid, is_logged_in)

    def lose_session(self, session_id: str) -> None:
        """End a session of the agent here, because another node may have it: its log takes nothing more. Its clients
        open it again with their next request."""
        shared = self.sessions.get(session_id)
        if shared is None or shared.agent_side.is_of_other_node:
            return
        side, agent_id = shared.agent_side, shared.agent_id
        with self.monitor.reporting():
            lose_session(shared)
        # Else the agent would go on with the log that has ended when the session comes back to it.
        self.agents.close_before_reopening(session_id, side.close_refused(agent_id))

    async def close(self, grace: float) -> None:
        """Let turns end within `grace` seconds, and their last events arrive; then cancel and close everything. What is
        stored can be resumed. No turn begins meanwhile. Bounded."""
        self.connections.accepts = self.sessions.accepts_turns = False
        log = self.monitor.log
        log.info("stopping", turns=len(self.sessions.running()), grace=grace)
        _log.debug("stopping: %r", self)
        await self.sessions.wait_until_idle(grace)
        # Their agents say how they ended, if they can; clients that resume see an interrupted turn.
        interrupted = self.sessions.running()
        for shared in interrupted:
            shared.cancel()
        await self.sessions.wait_until_idle(_CANCEL_SECONDS)
        log.info("stopped", interrupted=len(interrupted))
        # Agents before clients: a turn that did not end is ended by its agent's end, and clients get that event too.
        await self.agents.close()
        await self.agents.source.close()
        await self.connections.drain()
        await self.connections.close_all()
        await self._background.wait()
        if self._recordings is not None:
            await self._recordings.close()

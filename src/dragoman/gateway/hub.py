"""Everything that is open: connections, agents, rooms; who owns what, and what ends when.

A connection without a reader is kept for `KEPT_SECONDS`, so that its client can come back to it; turns that it has
started go on after that until they end.
"""

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from msgspec.structs import replace

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.gateway.agent_restart import TAKEN, start_failure
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.budget import ByteBudgets
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connection import Full, GatewayConnection, Kind
from dragoman.gateway.guard import TokenIdentity
from dragoman.gateway.logbook import Logbook, connection_name, principal_name
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.open_questions import AnsweredPermission, OnPermission
from dragoman.gateway.read_only import reads
from dragoman.gateway.replay_buffer import GOING_AWAY, HELD_ALL_BYTES, HELD_EACH_BYTES, ReplayBuffer
from dragoman.gateway.session_directory import SessionDirectory
from dragoman.gateway.shared_session import SharedSession
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.hello import ClientHello
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.requests import SessionInfo
from dragoman.vocabulary.services import PermissionAnswer, RequestPermission

KEPT_SECONDS: Final = limits.RECONNECT_SECONDS
_SWEEP_SECONDS: Final = 5.0
# Each costs some tens of kibibytes while it is idle.
CONNECTIONS: Final = 4096
CONNECTIONS_EACH: Final = 2048
# When the server stops, a turn that was cancelled may say so for so long.
_CANCEL_SECONDS: Final = limits.CANCEL_GRACE_SECONDS + 0.5
# Then readers may get the messages that are still buffered, until no reader gets any in so many checks in a row.
_LOOK_SECONDS: Final = 0.01
_LAST_LOOKS: Final = 100
# The upper bound of that wait.
_HEARD_SECONDS: Final = 10.0
_PATHS: Final = frozenset({"/", "/acp", "/acp/rpc", "/acp/sse", "/health", "/ready", "/metrics"})

Knows = Callable[[str], Awaitable[bool]]
FolderOf = Callable[[str], Awaitable[str]]
# Folders of sessions that were made without this server, as they were looked up; past this they are looked up again.
_FOLDERS: Final = 10_000


class Hub:
    """One for a server. `knows` tells whether a session is stored that was made without this server, `folder_of` where
    it was made (empty: there is none). `on_permission` is called in a thread with each answer to a permission that an
    agent asks for, before the agent gets it; None: the agent records them itself."""

    def __init__(
        self,
        agents: AgentSource,
        *,
        owners: SessionDirectory | None = None,
        knows: Knows | None = None,
        report: Callable[[Exception], None] | None = None,
        kept_seconds: float = KEPT_SECONDS,
        log: Logbook | None = None,
        ceilings: Ceilings | None = None,
        folder_of: FolderOf | None = None,
        on_permission: OnPermission | None = None,
    ) -> None:
        self.ceilings: Final = ceilings or Ceilings()
        self.connections: Final[dict[str, ClientSide]] = {}
        self.sessions: Final[dict[str, SharedSession]] = {}
        self.agent_sides: Final[set[AgentSide]] = set()
        self.owners: Final = owners or SessionDirectory()
        self.counts: Final[Counter[str]] = Counter()
        self.measured: Final = Metrics()
        self.held: Final = ByteBudgets(HELD_EACH_BYTES, HELD_ALL_BYTES)
        self.log: Final = log or Logbook()
        self.closing = False
        self._agents = agents
        self._knows = knows
        self._report = report
        self._kept_seconds = kept_seconds
        self._folder_of = folder_of
        self._on_permission = on_permission
        self._folders: dict[str, str] = {}
        self._endings: set[asyncio.Task[None]] = set()

    # -- connections -------------------------------------------------------------------------------------------------

    def connect(self, kind: Kind, token_identity: TokenIdentity) -> ClientSide:
        """A new connection. `Full` when there are too many."""
        own = sum(client_side.principal == token_identity.principal for client_side in self.connections.values())
        if self.closing or len(self.connections) >= CONNECTIONS or own >= CONNECTIONS_EACH:
            raise Full
        held = self.held.of(token_identity.principal)
        connection = GatewayConnection(kind, token_identity, self.measured.chunk.observe, held)
        client_side = self.connections[connection.id] = ClientSide(self, connection)
        self.counts["connections"] += 1
        name, principal = connection_name(connection.id), principal_name(token_identity.principal)
        self.log.info("connection_opened", connection=name, principal=principal, kind=kind)
        return client_side

    def find(self, connection_id: str, token_identity: TokenIdentity) -> ClientSide | None:
        """A connection of this principal, which may do no more than who asks for it; any other is as unknown as one
        that never was."""
        client_side = self.connections.get(connection_id)
        if client_side is None or client_side.ended or client_side.principal != token_identity.principal:
            return None
        return client_side if token_identity.covers(client_side.connection.token_identity) else None

    async def end(self, client_side: ClientSide, *, with_work: bool) -> None:
        """End a connection."""
        connection = client_side.connection
        if self.connections.pop(connection.id, None) is not None:
            seconds = round(asyncio.get_running_loop().time() - connection.opened_at, 3)
            name, principal = connection_name(connection.id), principal_name(client_side.principal)
            self.log.info("connection_closed", connection=name, principal=principal, seconds=seconds)
        await client_side.end(with_work=with_work)

    def end_soon(self, client_side: ClientSide) -> None:
        """End a connection in the background, with `with_work=False`; do nothing if it has ended."""
        if not client_side.ended:
            self.soon(self.end(client_side, with_work=False))

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which ends something, in a task that `close` waits for; report its exception."""
        task = asyncio.get_running_loop().create_task(self._reported(work))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _reported(self, work: Coroutine[Any, Any, None]) -> None:
        with self._reporting():
            await work

    async def sweep(
        self, is_valid: Callable[[TokenIdentity], bool], is_logged_in: Callable[[TokenIdentity], bool]
    ) -> None:
        """Run until cancelled: end connections that have had no reader for `kept_seconds` or whose token or login is no
        longer valid; stop the processes of idle agents. An invalid token also stops the work of its connection."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._kept_seconds, self._agents.idle_seconds or _SWEEP_SECONDS))
            for agent_side in list(self.agent_sides):
                with self._reporting():
                    agent_side.look(loop.time())
            for client_side in list(self.connections.values()):
                with self._reporting():
                    connection = client_side.connection
                    if not is_valid(connection.token_identity):
                        await self.end(client_side, with_work=True)
                    elif not is_logged_in(connection.token_identity) or (
                        not connection.readers and loop.time() - connection.alone_since > self._kept_seconds
                    ):
                        await self.end(client_side, with_work=False)

    async def close(self, grace: float) -> None:
        """Let turns end within a bound, and what was said arrive; then end everything. What is stored can be resumed.
        No turn begins meanwhile."""
        self.closing = True
        running = sum(shared.running for shared in self.sessions.values())
        self.log.info("stopping", turns=running, grace=grace)
        await self._all_quiet(grace)
        interrupted = [shared for shared in self.sessions.values() if shared.running]
        for shared in interrupted:
            shared.cancel()
        await self._all_quiet(_CANCEL_SECONDS)
        self.log.info("stopped", interrupted=len(interrupted))
        await asyncio.gather(*(agent_side.close() for agent_side in list(self.agent_sides)), return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARD_SECONDS):
                await self._all_heard()
        for buffer in self._buffers():
            buffer.close(GOING_AWAY)
        await asyncio.gather(*(self.end(one, with_work=True) for one in list(self.connections.values())))
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def _all_quiet(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for shared in list(self.sessions.values()):
                    await shared.quiet.wait()

    async def _all_heard(self) -> None:
        """Wait until every reader has all of its buffer, or no reader got anything in `_LAST_LOOKS` checks in a row."""
        moved, looks = -1, 0
        while looks < _LAST_LOOKS:
            readers = [buffer.reader for buffer in self._buffers() if buffer.reader is not None and buffer.unread]
            if not readers:
                return
            before, moved = moved, sum(reader.moved for reader in readers)
            looks = 0 if moved != before else looks + 1
            await asyncio.sleep(_LOOK_SECONDS)

    def _buffers(self) -> list[ReplayBuffer]:
        connections = [client_side.connection for client_side in self.connections.values()]
        return [buffer for one in connections for buffer in (one.main, *one.session_buffers.values())]

    # -- sessions ----------------------------------------------------------------------------------------------------

    def is_mine(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Return whether a session belongs to this principal and is within the folders of its token. A session made
        without this gateway belongs to every principal with `admin`. An id that only the agent uses, for a session that
        clients know by another id, belongs to none."""
        if not reads(token_identity) or not self._is_within(session_id, token_identity):
            return False
        owner = self.owners.of(session_id)
        if owner is None:
            return token_identity.may("admin") and not self.owners.named(session_id)
        return owner == token_identity.principal

    def _is_within(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Whether a session works in folders that a token may open and no others; one of which nothing is known does
        not."""
        identity = self.ceilings.identity(token_identity)
        if not identity.workspaces:
            return True
        made_in = self._folder(session_id)
        folders = [made_in, *self._added_folders(session_id)]
        return bool(made_in) and all(identity.may_open(os.path.realpath(folder)) for folder in folders)

    def _folder(self, session_id: str) -> str:
        shared = self.sessions.get(session_id)
        opened = shared.opening.cwd if shared is not None and shared.opening is not None else ""
        return self.owners.cwd(session_id) or opened or self._folders.get(session_id, "")

    def _added_folders(self, session_id: str) -> list[str]:
        """Return the other folders of an open session: the token that opened it may have been allowed more."""
        shared = self.sessions.get(session_id)
        return [] if shared is None or shared.opening is None else shared.opening.additional_directories or []

    async def learn_folder(self, session_id: str, token_identity: TokenIdentity) -> None:
        """Find out where a session was made, if that is needed to tell whether a token may have it."""
        limited = bool(self.ceilings.identity(token_identity).workspaces)
        if limited and self._folder_of is not None and not self._folder(session_id):
            self._know_folder(session_id, await self._folder_of(session_id))

    def _know_folder(self, session_id: str, folder: str) -> None:
        if len(self._folders) >= _FOLDERS:
            self._folders.clear()
        self._folders[session_id] = folder

    def listed(self, info: SessionInfo, token_identity: TokenIdentity) -> SessionInfo | None:
        """A session of an agent's list, as this principal may see it."""
        known = self.owners.named(info.session_id)
        session_id = known[-1] if known else info.session_id
        if not known:
            self._know_folder(session_id, info.cwd)
        if not self.is_mine(session_id, token_identity) or self.owners.is_unclear(session_id):
            return None
        return replace(info, session_id=session_id)

    def agent_id(self, session_id: str) -> str:
        """What the agent of a session calls it."""
        shared = self.sessions.get(session_id)
        return self.owners.agent_id(session_id) if shared is None else shared.agent_id

    def claim(self, agent_side: AgentSide, agent_id: str, principal: str, cwd: str) -> str:
        """Return the id by which clients know a session that an agent has just made, and make `principal` its owner.
        Raise `RequestFailed` if another session or principal has the id."""
        agent_side.give_way(agent_id)
        session_id = f"sess_{secrets.token_hex(16)}" if self._agents.renames else agent_id
        taken = not agent_id or agent_id in agent_side.sessions or session_id in self.sessions
        if taken or not self.owners.claim(session_id, principal, agent_id, cwd):
            raise RequestFailed(INTERNAL_ERROR, TAKEN)
        return session_id

    @property
    def renames(self) -> bool:
        """Whether clients know the sessions by ids of ours."""
        return self._agents.renames

    async def exists(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Whether there is such a session for this principal. `Full` when so many watch it already."""
        await self.learn_folder(session_id, token_identity)
        if not self.is_mine(session_id, token_identity):
            return False
        shared = self.sessions.get(session_id)
        if shared is not None and shared.is_full:
            raise Full
        if session_id in self.sessions or self.owners.of(session_id) is not None:
            return True
        return self._knows is not None and await self._knows(session_id)

    # -- agents ------------------------------------------------------------------------------------------------------

    @property
    def each_session(self) -> bool:
        """Whether every session has a process of its own."""
        return self._agents.each_session

    async def new_agent_side(self, origin: ClientSide, hello: ClientHello) -> AgentSide:
        """An agent for a connection, or for one of its sessions. `RequestFailed` says why there is none."""
        agent_side = None
        try:
            await self.free_slot(self._agents.most)
            agent_side = AgentSide(self, origin, self._agents)
            self.agent_sides.add(agent_side)
            await agent_side.greet(hello)
        except BaseException as error:
            if agent_side is not None:
                await agent_side.close()
            raise start_failure(error) from error
        return agent_side

    async def free_slot(self, most: int) -> None:
        """One more process may run: else the one that has had nothing to do for longest sleeps, or it is a no."""
        if not most or sum(not agent_side.asleep for agent_side in self.agent_sides) < most:
            return
        for agent_side in sorted(self.agent_sides, key=lambda agent_side: agent_side.idle_since):
            resting = agent_side.rest()
            if resting is not None:
                await asyncio.shield(resting)
                return
        raise RequestFailed(INTERNAL_ERROR, "Too many agents are at work here; try again later", {"retry": True})

    async def record_answer(self, request: Request, reply: Reply, identity: Identity, *, is_answered: bool) -> None:
        """Call `on_permission` with the answer to a permission. Waits until that is done, so usually for the disk."""
        if self._on_permission is None:
            return
        if isinstance(request, RequestPermission) and isinstance(reply, PermissionAnswer):
            with self._reporting():
                answered = AnsweredPermission(request, reply, identity, is_answered)
                await asyncio.to_thread(self._on_permission, answered)

    # -- logging and errors ------------------------------------------------------------------------------------------

    def refused(self, status: int, method: str, path: str, address: str) -> None:
        """A request was refused. What is no path of ours is not written down."""
        self.measured.refused[status] += 1
        known = path if path in _PATHS else "other"
        self.log.refusal(status=status, method=method, path=known, address=address)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """What fails here is told, and whatever comes after it goes on."""
        try:
            yield
        except Exception as error:
            self.report(error)

    def report(self, error: Exception) -> None:
        """Count an unexpected exception and pass it to the `report` callback of the server; never to a client."""
        self.counts["bugs"] += 1
        if self._report is not None:
            self._report(error)

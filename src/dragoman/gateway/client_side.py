"""The client's side of the gateway: one connection, whose requests go to the agent of the session they name.

Order is what this module keeps. The link hands requests up in the order they came, each in a task; what the agent
replies is sent by that task, while events come straight from the agent's link. So a reply that is known and not yet
sent holds back the events behind it, and waits for those before it (`reply_order`); and a notification of the client
waits for the tasks that began before it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.codec.relayed_text import RelayedText
from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.dialects.contract import Id, NotificationMessage
from dragoman.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
)
from dragoman.gateway.agent_pool import AgentPool
from dragoman.gateway.agent_restart import AMBIGUOUS, GONE, missing
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.ceilings import OPERATOR
from dragoman.gateway.connection import GatewayConnection
from dragoman.gateway.in_flight import InFlightRequest
from dragoman.gateway.logbook import connection_name, principal_name
from dragoman.gateway.metrics import method_of
from dragoman.gateway.monitor import BackgroundTasks
from dragoman.gateway.node_links import LEAVE
from dragoman.gateway.places import node_away
from dragoman.gateway.prompt_ledger import PromptOperation
from dragoman.gateway.read_only import hello_to_read, may_read, to_read, to_read_shared
from dragoman.gateway.replay_buffer import ReplayBuffer
from dragoman.gateway.reply_order import ReplyOrder
from dragoman.gateway.resuming import notification
from dragoman.gateway.session_list import SessionLister
from dragoman.gateway.session_opener import SESSIONS, SessionOpener
from dragoman.gateway.shared_session import SharedSession
from dragoman.gateway.token_types import Scope
from dragoman.link import Link
from dragoman.link.text_relay import OutgoingText
from dragoman.trace.records import TO_AGENT
from dragoman.vocabulary import requests
from dragoman.vocabulary.asking import Done, ExtensionNote, Note, R, Reply, Request
from dragoman.vocabulary.events import AnyEvent, OptionsChanged, RequiresAction, Running
from dragoman.vocabulary.hello import AgentHello, ClientHello, for_shared_agent
from dragoman.vocabulary.identity import Identity, identity_in, needs_in, with_identity, without_ours
from dragoman.vocabulary.mcp_messages import MCP_MESSAGE
from dragoman.vocabulary.session_ids import session_of, with_session
from dragoman.vocabulary.word import Word

# They open or delete a session, so an agent that was restarted need not open it again before them.
_OPENING: Final = (requests.NewSession, requests.ResumeSession, requests.ForkSession, requests.DeleteSession)


class ClientSide:
    """The handler of a client's link, in the role of the agent. `on_closed` is called when the link has closed by
    itself, and has to see to it that `close` is called."""

    def __init__(
        self,
        connection: GatewayConnection,
        pool: AgentPool,
        background: BackgroundTasks,
        on_closed: "Callable[[ClientSide], None]",
    ) -> None:
        self.connection: Final = connection
        self.agent_side: AgentSide | None = None  # the connection's own; from `initialize` on
        self.sessions: Final[dict[str, SharedSession]] = {}  # that it is subscribed to
        # Agents that it may lend MCP servers to; they are not kept alive for that.
        self._lent_to: WeakSet[AgentSide] | None = None  # made with the first one
        self.is_closed = False
        self.hello: ClientHello | None = None
        self._pool = pool
        self._shared_sessions = pool.sessions
        self._access = pool.access
        self._ceilings = pool.access.ceilings
        self._monitor = pool.monitor
        self._on_closed = on_closed
        self._outgoing_text: Final = OutgoingText()
        self._order: Final = ReplyOrder()
        # How sessions were opened that have ended here with their node; see `remember_lost`.
        self._lost: dict[str, requests.ResumeSession] = {}
        self._lister = SessionLister(pool.access)
        self._opener = SessionOpener(self, pool, background)
        self._loop = asyncio.get_running_loop()
        self.link: Final = Link(connection, self, "agent", dialect=connection.dialect)
        connection.attach(on_reader_change=self.on_reader_change, is_open=self.sessions.__contains__)
        self.link.start()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "connected" if self.is_connected else "away"
        return (
            f"<ClientSide {connection_name(self.connection.id)} {state} sessions={len(self.sessions)} {self._order!r}>"
        )

    @property
    def principal(self) -> str:
        """Return the principal of its token."""
        return self.connection.token_identity.principal

    @property
    def agent_principal(self) -> str:
        """Return the principal whose agent works for it, within whose limits: for a share link that of the session's
        owner."""
        share = self.connection.token_identity.share
        return self.principal if share is None else share.owner

    @property
    def identity(self) -> Identity:
        """Return its identity for an agent, with the limits that hold for it."""
        return self._ceilings.identity(self.connection.token_identity)

    @property
    def is_node(self) -> bool:
        """Return whether it is another node of the cluster, which asks for clients of its own."""
        # By its token alone: nothing that a client writes makes it a node.
        return bool(self.connection.token_identity.node)

    @property
    def is_share(self) -> bool:
        """Return whether it has come by a share link."""
        return self.connection.token_identity.share is not None

    def identity_for(self, word: Word) -> Identity:
        """Return who has sent a request or an answer: this client, or a client of the node that passes it on."""
        return identity_in(word).joined(self.identity) if self.is_node else self.identity

    def principal_for(self, word: Word) -> str:
        """Return the principal that a request counts for: of the one who has sent it, or the owner of a share link."""
        return identity_in(word).principal or "" if self.is_node else self.agent_principal

    @property
    def is_connected(self) -> bool:
        """Return whether the connection is open and one of its streams has a reader."""
        return not self.is_closed and self.connection.readers > 0

    def may(self, scope: Scope) -> bool:
        """Return whether the token of this connection has the scope."""
        return self.connection.token_identity.may(scope)

    def may_answer(self, request: Request) -> bool:
        """Return whether a question is put to it: it could do itself what it would say yes to."""
        # A node finds out itself which of its clients may, and says who has.
        return self.is_node or (self.may("prompt") and self._ceilings.may_answer(self.identity, needs_in(request)))

    async def close(self, *, with_work: bool) -> None:
        """Close the connection; a second call does nothing. `with_work`: turns that only this client watches are
        cancelled as well, if it may prompt; else they go on."""
        if self.is_closed:
            return
        self.is_closed = True
        with_work = with_work and self.may("prompt")
        # First out of every session, then the agents, then the turns: an agent that has no subscriber left decides by
        # what it sees, and must not see this client any more.
        sessions = list(self.sessions.values())
        for shared in sessions:
            shared.unsubscribe(self)
        for agent_side in {shared.agent_side for shared in sessions} | self._pool.started_for(self):
            agent_side.close_if_unused(despite_turns=with_work)
        for shared in sessions:
            if with_work and shared.is_running and not shared.subscribers and not shared.agent_side.is_closed:
                shared.cancel()  # its agent stays, for other sessions that have subscribers
        await self.link.close()

    def on_reader_change(self) -> None:
        """Re-check questions and reading after a stream got or lost its reader, or its reader has caught up."""
        for shared in list(self.sessions.values()):
            shared.recheck_questions()
            shared.agent_side.update_reading()

    # -- sending to the client ---------------------------------------------------------------------------------------

    def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Send an event, behind every reply of its session that is on its way. Does not wait: the connection's buffers
        are bounded, and a reader that is behind holds the agent."""
        if self._order.must_wait(session_id):
            self._order.append(session_id, partial(self._send_event, session_id, event))
        else:
            self._send_event(session_id, event)

    def _send_event(self, session_id: str, event: AnyEvent) -> None:
        if not self.link.closed:
            # Each client sees the modes that are open to it, so this event is not the same for all.
            if event.__class__ is OptionsChanged:
                event = self._ceilings.shown(event, self.identity)
            try:
                self.link.enqueue_event(session_id, event)
            except UsageError:
                self.on_noise("in the client's version this message is too large")

    def send_text(self, session_id: str, piece: RelayedText) -> ReplayBuffer | None:
        """Send a piece of a message as it came, inside the frame that this client's dialect has for that message.
        Return the stream that has to be flushed, if there is one."""
        link = self.link
        # The connection takes every frame at once, so nothing is left in the outbox, and this one stands behind all of
        # what was sent before it. Where that is not so, the piece is sent as any event is.
        if self._order.must_wait(session_id) or not link.outbox.flush_all():
            self.send_event(session_id, piece.event())
            return None
        if link.can_send and (frame := self._outgoing_text.frame(link.dialect, session_id, piece)):
            return self.connection.send_update(session_id, frame)
        return None

    def send_update(self, session_id: str, update: RelayedUpdate) -> ReplayBuffer | None:
        """Send an update as it came, where this client is spoken to as the agent speaks; else as an event. Return the
        stream that has to be flushed, if there is one."""
        link = self.link
        is_alike = link.can_send and link.dialect.speech is update.speech
        # Behind what was sent before it, as in `send_text`.
        if self._order.must_wait(session_id) or not is_alike or not link.outbox.flush_all():
            event = update.event()
            if event is not None:
                self.send_event(session_id, event)
            return None
        link.dialect.note_relayed(session_id, update)
        return self.connection.send_update(session_id, update.frame(session_id))

    @property
    def turn_state(self) -> str:
        """Return the state of its turns as one word of the wire."""
        states = {type(shared.state) for shared in self.sessions.values()}
        return "requires_action" if RequiresAction in states else "running" if Running in states else "idle"

    def state_frames(self, buffer: ReplayBuffer) -> list[bytes]:
        """Return an update with the state of each of its sessions whose messages go to `buffer`, without sending it.
        None in version 1, where the answer to a prompt is the state."""
        if not self.link.can_send or self.link.replies_to_prompt_at_turn_end:
            return []
        # Encoded here and not put into the link's outbox: they stand in no stream, and have no number.
        streams, encode = self.connection.streams, self.link.dialect.encode_event
        own = [shared for shared in self.sessions.values() if streams.buffer_of(shared.id) is buffer]
        outs = [out for shared in own for out in encode(shared.id, shared.state)]
        return [notification(out.method, out.params) for out in outs if isinstance(out, NotificationMessage)]

    def send_notification(self, note: Note) -> None:
        """Send a notification, behind every reply of its session that is on its way, unless the link is closed or the
        client has not been initialized."""
        self._order.append(session_of(note) or "", partial(self._send_notification, note))

    def _send_notification(self, note: Note) -> None:
        if self.link.can_send:
            try:
                self.link.send_notification_now(note)
            except UsageError:
                self.on_noise("in the client's version this message is too large")

    async def ask(self, request: Request) -> Reply:
        """Ask the client, wait for its answer and return it; with its identity, where the agent believes that."""
        # A client must not be able to say who it is: what it writes there itself is removed.
        # The node of such a client has to know what the question needs, and who has answered.
        reply = await self.link.ask(request if self.is_node else without_ours(request))
        identity = self.identity_for(reply)
        reply = without_ours(reply)
        # An agent that believes no identity may be another node's, whose gateway does.
        return with_identity(reply, identity) if self._ceilings.trusted or self._pool.nodes is not None else reply

    def remember_lost(self, shared: SharedSession) -> None:
        """Note that a session has ended here because its node cannot be reached: the next request that names it opens
        it again, wherever it is then."""
        if shared.resume_request is not None and not self.is_closed:
            self._lost[shared.id] = shared.resume_request
            limits.evict_oldest(self._lost, SESSIONS)

    def hold_events_until(self, task: "asyncio.Task[Any] | None", session_id: str) -> None:
        """Send what comes from now on of a session behind the reply that `task` is going to send, and that reply behind
        what came before."""
        if task is not None:
            self._order.add_reply(task, session_id)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._initialize(hello)

    async def _initialize(self, hello: ClientHello) -> AgentHello:
        if not may_read(self.connection.token_identity):
            raise RequestFailed(INVALID_REQUEST, "This token may neither read nor prompt", {"reason": "scope"})
        self._ceilings.check_hello(self.connection.token_identity)
        if not self.may("prompt"):
            # A token that only reads must not be asked for files or terminals: the agent is not told that it could be.
            hello = hello_to_read(hello)
        hello = for_shared_agent(without_ours(hello))
        # Kept for further agents of this connection, where each session has its own, and for restarts.
        self.hello = hello
        self.agent_side = await self._pool.start(self, hello)
        if self.is_closed:  # while the agent was started
            self.agent_side.close_if_unused(despite_turns=True)
        return self.agent_side.agent

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        return self._serve(request, id)

    def on_notification(self, note: Note) -> None:
        # In its place behind the requests that were received before it: those have tasks that begin first. A cancel
        # that came before its prompt was sent would cancel nothing.
        self._loop.call_soon(self._forward_notification, note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_noise("a client sent a session event")

    def on_noise(self, reason: str) -> None:
        self._monitor.counts["noise"] += 1

    def on_bug(self, error: Exception) -> None:
        self._monitor.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        self._on_closed(self)

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _serve(self, request: Request, id: Id) -> Reply:
        """Answer a request of the client, measure how long that takes, and log it."""
        began = self._loop.time()
        status: object = "ok"
        try:
            traces = self._monitor.traces
            with nullcontext(request) if traces is None else traces.request(method_of(request), request) as traced:
                asked = traced if self.is_node else without_ours(traced)
                reply = self._ceilings.shown(await self._dispatch(asked, id), self.identity)
                await self._order.wait_for_place(asyncio.current_task())
                return reply
        except RequestFailed as failed:
            status = failed.code
            raise
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            seconds = self._loop.time() - began
            method = method_of(request)
            self._monitor.metrics.on_reply(method, seconds)
            if self._monitor.log.is_on("debug"):
                who = {"connection": connection_name(self.connection.id), "principal": principal_name(self.principal)}
                self._monitor.log.debug("request", **who, method=method, status=status, seconds=round(seconds, 4))

    async def _dispatch(self, request: Request, id: Id) -> Reply:
        # Before any prompt: each names a session, which a request before it has opened.
        self.link.dialect.takes_repeats = True
        if not self.may("prompt"):
            request = to_read_shared(request) if self.is_share else to_read(request)
        # Whatever names a session is judged here, once, before anything else happens; `missing` looks the same for a
        # session of another principal and for one that never was.
        session_id = session_of(request)
        if session_id is not None:
            await self._access.load_folder(session_id, self.connection.token_identity)
            self._refuse_unreachable(session_id)
            # Who reads by a link does not know the folder, and is told nothing of it by a refusal.
            if self.is_share and isinstance(request, requests.ResumeSession):
                request = replace(request, cwd=self._access.folder(session_id) or request.cwd)
        self._ceilings.check(request, self.identity_for(request))
        if session_id is not None and (lost := self._lost.pop(session_id, None)) is not None:
            await self._reopen(lost, request, id)
        match request:
            case requests.NewSession() | requests.ForkSession():
                return await self._opener.open(request, id)
            case requests.ResumeSession():
                return await self._opener.resume(request, id)
            case requests.ListSessions():
                fetch = partial(self.forward, self.own_agent_side(), id=id)
                return await self._lister.list(request, self.connection.token_identity, fetch)
            case requests.CloseSession() | requests.DeleteSession():
                return await self._close_session(request, id, request.session_id)
            case requests.PromptRequest() | requests.SteerTurn():
                return await self._prompt(request, id)
            case _:
                return await self._forward_to_session(request, id, session_id)

    async def _reopen(self, lost: requests.ResumeSession, request: Request, id: Id) -> None:
        """Open a session again whose node was lost, for a request that expects it to be open. Waits for the agent."""
        if isinstance(request, _OPENING) or self._shared_sessions.get(lost.session_id) is not None:
            return
        try:
            await self._opener.resume(lost, id)
        except RequestFailed:
            # Its node may come back, or its lease ends in a moment: then the next request finds it elsewhere.
            self._lost[lost.session_id] = lost
            raise

    async def _close_session(self, request: Request, id: Id, session_id: str) -> Reply:
        shared = self._shared_sessions.get(session_id)
        if shared is not None and isinstance(request, requests.CloseSession) and not shared.agent_side.is_ready(shared):
            # To open it only to close it again would start a process for nothing.
            reply: Reply = Done()  # no process has it open
        else:
            reply = await self.forward(await self._agent_side_for(session_id), request, id)
        if isinstance(request, requests.DeleteSession):  # its decision log went with it, so it is logged here
            principal = principal_name(self.principal)
            self._monitor.log.info("session_deleted", session=session_id[limits.SHORT_ID], principal=principal)
        if shared is not None:
            # Also at an agent that cannot close sessions: for the clients it is closed.
            shared.end("The session was closed")
            shared.agent_side.remove_session(shared)
        return reply

    async def _prompt(self, request: requests.PromptRequest | requests.SteerTurn, id: Id) -> Reply:
        shared = self._shared_sessions.get(request.session_id)
        if shared is None:
            # From an agent of version 1 the error would come as an event of this session, which has no subscriber. An
            # agent that is not started again says so itself.
            if not self.own_agent_side().is_spent:
                raise missing(request.session_id)
            return await self.forward(self.own_agent_side(), request, id)
        shared.refuse_if_full(self)
        if shared.agent_side.is_of_other_node:  # where it is found out whether it has come before
            return await self._send_prompt(request, id)
        operation, is_first = await self._shared_sessions.prompts.begin(self.principal_for(request), request)
        if operation is None:
            return await self._send_prompt(request, id)
        if not is_first:
            return await self._repeat(operation, request)
        return await self._begin_operation(operation, request, id)

    async def _send_prompt(
        self,
        request: requests.PromptRequest | requests.SteerTurn,
        id: Id,
        on_reply: Callable[[SharedSession, Reply], None] | None = None,
    ) -> Reply:
        """Send a prompt to the agent of its session, behind a replay that runs. `on_reply` is called with the session
        in the step in which the reply is received, and may be called again."""
        if not self._shared_sessions.accepts_turns:
            raise RequestFailed(INTERNAL_ERROR, "The server is stopping", {"retry": True})
        shared = self._shared_sessions.get(request.session_id)
        while shared is not None and shared.replay is not None:
            await asyncio.shield(shared.replay)
            shared = self._shared_sessions.get(request.session_id)  # it may have been closed, or opened anew
        if shared is None:
            raise missing(request.session_id)
        self._refuse_unreachable(shared.id)  # it may have got another folder
        if shared.agent_side.away_node:
            raise node_away(shared.agent_side.away_node)
        if isinstance(request, requests.SteerTurn):
            return await self._forward_prompt(shared, request, id, on_reply)
        ticket = shared.reserve_turn(self.principal_for(request))
        self._monitor.counts["turns"] += 1

        def on_accepted(shared: SharedSession, reply: Reply) -> None:
            shared.on_prompt_accepted(ticket)
            if on_reply is not None:
                on_reply(shared, reply)

        try:
            return await self._forward_prompt(shared, request, id, on_accepted)
        except BaseException:
            shared.on_prompt_failed(ticket)
            raise

    async def _forward_prompt(
        self,
        shared: SharedSession,
        request: requests.PromptRequest | requests.SteerTurn,
        id: Id,
        on_reply: Callable[[SharedSession, Reply], None] | None,
    ) -> Reply:
        shared.prompted_by = self.principal_for(request)
        shared.subscribe(self)
        received = None if on_reply is None else partial(on_reply, shared)
        reply = await self.forward(self.agent_side_of(request.session_id), request, id, received)
        # An agent of version 1 replies at the end: its prompt is accepted when it is sent.
        if on_reply is not None:
            on_reply(shared, reply)
        return reply

    async def _begin_operation(
        self, operation: PromptOperation, request: requests.PromptRequest | requests.SteerTurn, id: Id
    ) -> Reply:
        """Send the first prompt of an operation to the agent, and note what becomes of it."""
        operations = self._shared_sessions.prompts

        def on_reply(shared: SharedSession, reply: Reply) -> None:
            # In the step in which it is received: the end of the turn may come in the next one.
            if operation.accept(reply):
                shared.operations.append(operation)

        try:
            reply = await self._send_prompt(request, id, on_reply)
            await operations.save(operation)
            return reply
        except (RequestFailed, PeerError) as failed:
            operation.fail(failed)
            # An agent that has died may have begun the turn: to give it the prompt again could do the work twice.
            if not isinstance(failed, RequestFailed) or failed.message != GONE:
                await operations.forget(operation)
            raise
        except asyncio.CancelledError:
            operation.fail(RequestFailed(CANCELLED, "The request that this one repeats was cancelled"))
            raise

    async def _repeat(self, operation: PromptOperation, request: requests.PromptRequest | requests.SteerTurn) -> Reply:
        """Answer a prompt that was sent before, with what the first one of its operation got."""
        self._monitor.counts["prompts_repeated"] += 1
        reply = await operation.reply()
        shared = self._shared_sessions.get(request.session_id)  # it may have been closed meanwhile
        if shared is not None:
            self._refuse_unreachable(shared.id)
            shared.subscribe(self)
        # Behind the reply: for a client of version 1 the end is the answer.
        if operation.end is not None and isinstance(request, requests.PromptRequest):
            self.hold_events_until(asyncio.current_task(), request.session_id)
            self.send_event(request.session_id, operation.end)
        return reply

    async def _forward_to_session(self, request: Request, id: Id, session_id: str | None) -> Reply:
        shared = None if session_id is None else self._shared_sessions.get(session_id)
        on_reply = None
        if shared is not None:
            shared.refuse_if_full(self)
            if isinstance(request, (requests.SetOption, requests.SetTitle)):
                # At the place of the reply among the agent's events, so that an update behind it is known to be one.
                on_reply = partial(shared.on_setting_reply, self)
            shared.subscribe(self)
        return await self.forward(await self._agent_side_for(session_id), request, id, on_reply)

    async def forward(
        self,
        agent_side: AgentSide,
        request: Request[R],
        id: Id,
        on_reply: Callable[[R], None] | None = None,
    ) -> R:
        """Ask the agent a request of this client, and return its reply. `id` is the client's own for it.

        Waits for the agent, and for its process where none runs. `on_reply` is called in the step of the loop in which
        the reply is received. Raise `RequestFailed` whatever goes wrong.
        """
        task, session_id = asyncio.current_task(), session_of(request)
        watch = agent_side.in_flight.watch(InFlightRequest(self, id, request))

        def on_received(reply: R) -> None:
            # Events that the agent sends behind its reply must not overtake it: this task sends it only later.
            if session_id is not None:
                self.hold_events_until(task, session_id)
            if on_reply is not None:
                on_reply(reply)

        failed = True
        if isinstance(request, (requests.NewSession, requests.ResumeSession, requests.ForkSession)):
            agent_side.lenders.declare(request.mcp_servers or (), self)
            if request.mcp_servers:
                self._lent_to = WeakSet() if self._lent_to is None else self._lent_to
                self._lent_to.add(agent_side)
        shared = None if isinstance(request, _OPENING) else self._shared_sessions.get(session_id or "")
        if not agent_side.is_ready(shared):
            await agent_side.ensure_ready(shared)
        try:
            # Closing and listing pass the limit: they are how a client gets out of a jam.
            if agent_side.link.busy and not isinstance(request, (requests.CloseSession, requests.ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            with self._monitor.live.exchange(session_id, TO_AGENT, request) as replies:
                reply = await agent_side.link.ask(self._for_agent(agent_side, request), watch, on_received)
                replies.append(reply)
            failed = False
            return reply
        except LinkClosed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from None
        except UsageError:
            raise RequestFailed(INVALID_REQUEST, "In the agent's version this message is too large") from None
        finally:
            watch.end(failed=failed)

    def _for_agent(self, agent_side: AgentSide, request: Request[R]) -> Request[R]:
        """Return the request with the agent's id for the session. Raise `RequestFailed` if the agent calls another
        session the same."""
        if self._ceilings.trusted or agent_side.is_of_other_node:
            # What a token that may only read has asked was put together here (`read_only`).
            request = with_identity(request, self.identity_for(request) if self.may("prompt") else OPERATOR)
        elif self.is_node:
            request = without_ours(request)
        session_id = session_of(request)
        if session_id is None:
            return request
        agent_id = self._access.agent_id(session_id)
        shared = agent_side.sessions.get(agent_id)
        # The agent has no session of this id open: whether it would take it for another one, the directory knows.
        if shared is None or shared.process_number != agent_side.process_number:
            is_ambiguous = self._access.directory.is_ambiguous(session_id)
        else:
            is_ambiguous = shared.id != session_id
        if is_ambiguous:
            raise RequestFailed(INTERNAL_ERROR, AMBIGUOUS)
        return with_session(request, agent_id)

    def _forward_notification(self, note: Note) -> None:
        if not self.may("prompt"):
            return
        note = note if self.is_node else without_ours(note)
        if isinstance(note, ExtensionNote) and note.method == MCP_MESSAGE:
            self._forward_from_server(note)
            return
        session_id = session_of(note)
        shared = self._shared_sessions.get(session_id or "")
        if self.is_node and isinstance(note, ExtensionNote) and note.method == LEAVE:
            if shared is not None:
                shared.unsubscribe(self)
            return
        if shared is not None and not self._access.may_reach(shared.id, self.connection.token_identity):
            return
        agent_side = self.agent_side if shared is None else shared.agent_side
        if agent_side is None or not agent_side.link.can_send:
            return
        if shared is not None:
            self._monitor.live.on_note(shared.id, TO_AGENT, note)
            agent_side.link.send_notification_now(with_session(note, shared.agent_id))
        elif session_id not in agent_side.sessions:  # what only the agent calls so is no id for clients
            agent_side.link.send_notification_now(note)

    def _forward_from_server(self, note: ExtensionNote) -> None:
        """Pass on what an MCP server says that this client lends, to the agents that it is lent to."""
        for agent_side in list(self._lent_to or ()):
            if agent_side.link.can_send and agent_side.lenders.is_lent_by(self, note):
                agent_side.link.send_notification_now(note)

    # -- small steps -------------------------------------------------------------------------------------------------

    def own_agent_side(self) -> AgentSide:
        """Return the agent of the connection itself. Raise `RequestFailed` if there is none."""
        if self.agent_side is None:
            raise RequestFailed(INTERNAL_ERROR, GONE)
        return self.agent_side

    def agent_side_of(self, session_id: str | None) -> AgentSide:
        """Return the agent that has this session, or else the connection's own."""
        shared = None if session_id is None else self._shared_sessions.get(session_id)
        return self.own_agent_side() if shared is None else shared.agent_side

    async def _agent_side_for(self, session_id: str | None) -> AgentSide:
        """Return the agent for a session that may be open, stored, or at another node. Waits for the places."""
        # What a node asks for is here, or nowhere: passed on again it could go in circles.
        if session_id is None or self._pool.nodes is None or session_id in self._shared_sessions or self.is_node:
            return self.agent_side_of(session_id)
        place = await self._pool.nodes.places.find(session_id)
        return self.agent_side_of(session_id) if place.is_here else await self._pool.nodes.side(place)

    def _refuse_unreachable(self, session_id: str) -> None:
        if not self._access.may_reach(session_id, self.connection.token_identity):
            raise missing(session_id)

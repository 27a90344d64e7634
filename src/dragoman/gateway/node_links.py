"""The sessions of other nodes: one stream to each node, which all clients of this one share.

A session that another node works on has a `SharedSession` here like any other; the agent behind it is a
`NodeAgentSide`, which is a link to the other node's gateway. So its clients get what clients there get, from buffers of
this node, and that node has one subscriber more, whatever the number of clients here.

    a client opens a session    its place is looked up; the stream to that node is opened, if it is the first
    the stream breaks           the transport reconnects, and goes on behind the last message
    messages of it are lost,    every session on it ends here, and its clients are told of the gap; the next request of
    or the node is gone         such a client looks its place up again, and opens it there, from the log
    this node was fenced        so do its own sessions (`Hub.lose_session`)

A stream is never read slower for one slow client: the others would wait for it. That client has its own buffer, and
when that is full it has to come back and read the log.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dragoman.errors import DragomanError, LinkClosed, RequestFailed
from dragoman.gateway.agent_events import AgentEvents
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.places import NodePlace, SessionPlaces, node_away
from dragoman.vocabulary.asking import ExtensionNote, Note
from dragoman.vocabulary.hello import ClientCapabilities, ClientHello, Implementation
from dragoman.vocabulary.session_ids import session_of

if TYPE_CHECKING:
    from dragoman.gateway.agent_pool import AgentPool
    from dragoman.gateway.shared_session import SharedSession

_log = logging.getLogger(__name__)

# What a node tells another one: none of its clients watches this session any more.
LEAVE: Final = "_dragoman/leave"
# What the transport's other end says when messages were lost.
_GAP: Final = "_dragoman/gap"
_MISSED: Final = "_gateway/missed"
_LOST: Final = "The connection to the node of this session was lost"
# A node shows everything and answers questions; files and terminals are where the session's node is.
_HELLO: Final = ClientHello(
    ClientCapabilities(
        elicitation_form=True,
        elicitation_url=True,
        boolean_options=True,
        compaction=True,
        notices=True,
        plans=True,
        subagents=True,
    ),
    Implementation("dragoman-node", "1"),
)


class NodeLinks:
    """The streams of one agent to other nodes, opened when they are needed."""

    def __init__(self, pool: "AgentPool", places: SessionPlaces) -> None:
        self.places: Final = places
        self._pool = pool
        self._sides: dict[NodePlace, NodeAgentSide] = {}
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        places.on_change(self._close_outdated)

    def __repr__(self) -> str:
        return f"<NodeLinks nodes={sorted(place.node for place in self._sides)}>"

    async def side(self, place: NodePlace) -> AgentSide:
        """Return the agent for a session at another place than here. Waits for the node; `RequestFailed` where it does
        not answer."""
        # One at a time: two clients that come at once must not open two streams.
        async with self._opening:
            side = self._sides.get(place)
            if side is not None and not side.is_closed:
                return side
            # By place, and not by node: what is opened under a new incarnation never shares a stream with what is lost.
            source = self.places.history() if place.is_away else self.places.source(place.node)
            side = NodeAgentSide(self._pool, place, source)
            try:
                await side.initialize(_HELLO)
            except BaseException as error:
                await side.close()
                if isinstance(error, (DragomanError, TimeoutError)) and not isinstance(error, RequestFailed):
                    raise node_away(place.node) from error
                raise
            self._sides[place] = side
            self._pool.add(side)
            return side

    def _close_outdated(self) -> None:
        """Close the streams to nodes that are gone, and what stands for one that was away and is back."""
        for place, side in list(self._sides.items()):
            if side.is_closed:
                del self._sides[place]
            elif not self.places.is_current(place):
                _log.info("node %s has changed; its sessions are looked up again", place.node)
                del self._sides[place]
                side.lose()
                task = asyncio.ensure_future(side.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)


class NodeAgentSide(AgentSide):
    """The agent of another node, for all clients of this one. It is started for no client, and ends when none of its
    sessions has a subscriber here."""

    def __init__(self, pool: "AgentPool", place: NodePlace, source: AgentSource) -> None:
        super().__init__(pool, None, source)
        self.place: Final = place

    def __repr__(self) -> str:
        return f"<NodeAgentSide {self.place.node} {self.state.value} sessions={len(self.sessions)}>"

    @property
    def is_of_other_node(self) -> bool:
        return True

    @property
    def away_node(self) -> str:
        return self.place.node if self.place.is_away else ""

    def make_events(self) -> AgentEvents:
        return _NodeEvents(self)

    def update_reading(self) -> None:
        """Do nothing, unlike `super()`: the other sessions on this stream must not wait for a slow client of one."""

    def on_unwatched(self, shared: "SharedSession") -> None:
        """End a session that has no subscriber left here, and tell its node."""
        if self.sessions.get(shared.agent_id) is shared:
            # The other way round the node would tell us everything of a session that no client here reads.
            if self.link.can_send:
                self.link.send_notification_now(ExtensionNote(LEAVE, {"sessionId": shared.agent_id}))
            self.remove_session(shared)

    def on_link_closed(self, error: LinkClosed) -> None:
        """End its sessions: whether the node has done what it was asked last is not known here."""
        self.lose()
        # For good: the next client that needs the node finds out where the session is then.
        self.close_if_unused()

    def lose(self) -> None:
        """End every session here; their clients are told of a gap, and open them again with their next request."""
        for shared in list(self.sessions.values()):
            with suppress(DragomanError):
                lose_session(shared)


def lose_session(shared: "SharedSession") -> None:
    """End a session that is not worked on by its agent here any more. Its clients are told of a gap, and open it again
    with their next request, wherever it is then."""
    # How much is missing is not known here: the log has it, and a client that loads the session reads that. Also where
    # no turn is known to run: one may have begun that this node has not heard of, or begin before the session is opened
    # again.
    note = ExtensionNote(_MISSED, {"sessionId": shared.id, "missed": 0})
    for subscriber in list(shared.subscribers):
        shared.agent_side.pool.monitor.counts["gaps_told"] += 1
        subscriber.send_notification(note)
        subscriber.remember_lost(shared)
    shared.end(_LOST)
    shared.agent_side.remove_session(shared)


class _NodeEvents(AgentEvents):
    """The events of a node's sessions."""

    def on_notification(self, note: Note) -> None:
        side = self._agent_side
        assert isinstance(side, NodeAgentSide)
        # What belongs to no session, such as a state of the agent, is of that node and none of our clients'.
        if isinstance(note, ExtensionNote) and note.method == _GAP:
            # Answers and questions may be among what was lost: nothing on this stream can be gone on with.
            side.lose()
            side.close_if_unused()
        elif session_of(note) is not None:
            super().on_notification(note)

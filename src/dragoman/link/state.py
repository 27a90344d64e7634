"""The states of a link, and what each of them may receive and send.

A link is one connection in one role: as the *agent* it answers `initialize`, as the *client* it asks it. The five
states are the same for both, and so is their order; a link never goes back further than from GREETING to NEW.

    NEW ──initialize──▶ GREETING ──answered──▶ OPEN
     ▲                      │                    │
     └───────refused────────┘                    │
     │                      │                    │
     └──────────┬───────────┴────────────────────┘
                ▼  end of input, `close`, `finish`, or a fault
             ENDING ──replies sent, or time is up──▶ CLOSED

NEW       Nothing was agreed, so no version and no dialect is known, and no params can be decoded. The agent takes one
          request, `initialize`; any other is rejected, because to decode it by a guessed version could mean a different
          thing. Notifications have no reply that could carry a rejection: they are reported as noise. The client sends
          `initialize` and nothing else.

GREETING  `initialize` is on its way. The agent is in this state while its handler makes up its hello, which may take a
          bridge as long as starting another agent. Clients exist that do not wait for the answer and send `session/new`
          right behind: everything that arrives meanwhile is kept, in order, and received when the state is left. Frames
          are kept, not messages, because whether `"id": null` is a request depends on the version. The client is in
          this state until the agent has answered. It keeps nothing: a request from an agent that has not said which
          version it speaks cannot be decoded, and an `initialize` shows that the program echoes what it reads.
          If `initialize` is answered with an error, the link is NEW again, and may be tried once more.

OPEN      The dialect is known. Both sides send requests, notifications and replies. A second `initialize` to an agent
          is rejected, since sessions and capabilities of the first are in use.

ENDING    No more input will be read: the peer has closed its output, or we have decided to end. Replies are still owed
          and may still leave, because the two directions of a connection end one by one: a script that writes its
          requests and closes stdin reads the answers afterwards. Requests of our own cannot be sent, as no reply would
          be read. An agent whose input ends in GREETING stays there until its hello is answered or refused, and then
          receives here the frames that it has kept. So ENDING may come without a dialect: then requests are rejected,
          as in NEW.

CLOSED    Nothing can be sent. Every call of ours has ended, with a reply, an error or `LinkClosed`.

Back-pressure is no state. Whether the link reads at the moment (`Link.is_reading`) can change any number of times in
NEW, GREETING and OPEN, and changes nothing about what may be received when it does.

Responses have no column in the table: `JsonRpcPeer` matches them to calls, and drops those that no call waits for.
"""

from enum import Enum
from typing import Final, Literal

from msgspec import Struct

Role = Literal["agent", "client"]


class LinkState(Enum):
    """How far a connection has come. The module's text says what moves it on."""

    NEW = "new"
    GREETING = "greeting"
    OPEN = "open"
    ENDING = "ending"
    CLOSED = "closed"


class Reception(Enum):
    """What happens to a message that arrives."""

    GREET = "greet"  # it is `initialize`, and answered by our hello
    HANDLE = "handle"  # it is decoded and given to the handler
    KEEP = "keep"  # it waits, as a frame, until the state is left
    REJECT = "reject"  # a request: it is answered with an error
    IGNORE = "ignore"  # it is reported to the handler as noise


class Permitted(Struct, frozen=True):
    """One row of the table: what a link in one state and role does with messages, and what it may send."""

    initialize: Reception
    request: Reception
    notification: Reception
    # Whether requests of ours may leave. `initialize` is the exception: it leaves in NEW, and only there.
    sends_requests: bool
    # Whether events, notifications and replies may leave. The replies to `initialize` itself always may.
    sends_others: bool


_GREET, _HANDLE, _KEEP, _REJECT, _IGNORE = Reception
_CLOSED: Final = Permitted(_IGNORE, _IGNORE, _IGNORE, sends_requests=False, sends_others=False)

PERMITTED: Final[dict[Role, dict[LinkState, Permitted]]] = {
    # state                           initialize  request  notification
    "agent": {
        LinkState.NEW: Permitted(_GREET, _REJECT, _IGNORE, sends_requests=False, sends_others=False),
        LinkState.GREETING: Permitted(_KEEP, _KEEP, _KEEP, sends_requests=False, sends_others=False),
        LinkState.OPEN: Permitted(_REJECT, _HANDLE, _HANDLE, sends_requests=True, sends_others=True),
        LinkState.ENDING: Permitted(_REJECT, _HANDLE, _HANDLE, sends_requests=False, sends_others=True),
        LinkState.CLOSED: _CLOSED,
    },
    "client": {
        LinkState.NEW: Permitted(_REJECT, _REJECT, _IGNORE, sends_requests=False, sends_others=False),
        LinkState.GREETING: Permitted(_REJECT, _REJECT, _IGNORE, sends_requests=False, sends_others=False),
        # An `initialize` to a client is a request like any other that it does not serve.
        LinkState.OPEN: Permitted(_HANDLE, _HANDLE, _HANDLE, sends_requests=True, sends_others=True),
        LinkState.ENDING: Permitted(_HANDLE, _HANDLE, _HANDLE, sends_requests=False, sends_others=True),
        LinkState.CLOSED: _CLOSED,
    },
}

# Used by `Link._enter`, so a change that is not in here fails at once and not in some later message.
# Where a state may lead. NEW may lead to OPEN at once: `initialize` can be answered before there is a link.
NEXT: Final[dict[LinkState, frozenset[LinkState]]] = {
    LinkState.NEW: frozenset({LinkState.GREETING, LinkState.OPEN, LinkState.ENDING}),
    LinkState.GREETING: frozenset({LinkState.NEW, LinkState.OPEN, LinkState.ENDING}),
    LinkState.OPEN: frozenset({LinkState.ENDING}),
    LinkState.ENDING: frozenset({LinkState.CLOSED}),
    LinkState.CLOSED: frozenset(),
}

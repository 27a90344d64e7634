"""What runs and what waits for an answer: of every session of a principal, at every agent, in one answer.

Only ids, kinds and times. What is asked is asked over ACP, of a client that has opened the session: there it is judged
who may answer.
"""

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.gateway.hub import Hub
from dragoman.gateway.shared_state import WaitingQuestion
from dragoman.gateway.token_types import TokenIdentity

# Sessions of one answer: more than a person can look at.
_SESSIONS: Final = 500


class BusySession(msgspec.Struct, rename="camel"):
    """A session in which a turn runs, or a question waits. `seconds`: the turn has taken so long; questions of sessions
    at other nodes come with their ids and times alone."""

    agent: str
    session_id: str
    state: str
    cwd: str
    seconds: float = 0
    questions: list[dict[str, object]] = []


class Activity(msgspec.Struct, rename="camel"):
    """The answer; `more`: there are more than it has."""

    sessions: list[BusySession]
    more: bool


async def activity_of(hubs: Mapping[str, Hub], identity: TokenIdentity) -> Activity:
    """Return the sessions of a principal that are busy, those that wait first. Waits for what servers share."""
    found: list[BusySession] = []
    for name, hub in hubs.items():
        found += await _of_agent(name, hub, identity)
    found.sort(key=_order)
    return Activity(found[:_SESSIONS], len(found) > _SESSIONS)


async def _of_agent(name: str, hub: Hub, identity: TokenIdentity) -> list[BusySession]:
    waiting = await hub.sessions.questions.waiting_for(identity.principal, with_unclaimed=identity.may("admin"))
    by_session: dict[str, list[WaitingQuestion]] = {}
    for question in waiting:
        by_session.setdefault(question.session_id, []).append(question)
    # Of every principal: each is judged below.
    running = {shared.id for shared in hub.sessions.running()}
    found = []
    for session_id in [*by_session, *(running - by_session.keys())]:
        # Judged as the request of a client would be, whichever way it was found.
        await hub.access.load_folder(session_id, identity)
        if hub.access.may_reach(session_id, identity):
            found.append(_busy(name, hub, session_id, by_session.get(session_id, [])))
    return found


def _busy(name: str, hub: Hub, session_id: str, questions: list[WaitingQuestion]) -> BusySession:
    shared = hub.sessions.get(session_id)
    # A question of another node began by the clock of that machine, which may be ahead of ours.
    return BusySession(
        agent=name,
        session_id=session_id,
        state="waiting" if questions else "running",
        cwd=hub.access.folder(session_id),
        seconds=0 if shared is None else round(shared.turn_seconds, 1),
        questions=[
            {"id": one.id, "kind": one.kind, "seconds": round(max(time.time() - one.began, 0), 1)} for one in questions
        ],
    )


def _order(session: BusySession) -> tuple[bool, str, str]:
    return session.state != "waiting", session.agent, session.session_id

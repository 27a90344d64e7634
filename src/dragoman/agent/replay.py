"""Send a stored session to the client that opens it: its history, its title, and a warning if its log was damaged.

All of it goes to the client alone and never through the journal: the log has it already.
"""

from dragoman.agent.event_sink import EventSink
from dragoman.agent.history import History
from dragoman.agent.journal import client_errors, read_settings
from dragoman.agent.turn import SessionCore
from dragoman.errors import INVALID_PARAMS, LinkClosed, RequestFailed
from dragoman.vocabulary.events import Idle, Notice, OptionsChanged, SessionInfoChanged


async def replay_history(session: SessionCore, sink: EventSink, history: History | None = None) -> None:
    """Send the history of `session`, then its title. `history` is read from the log unless it was just read.

    Raise `RequestFailed` for an agent without a store. Waits while the client is behind.
    """
    if session.journal is None:
        raise RequestFailed(INVALID_PARAMS, "This agent keeps no history to replay")
    if history is None:
        with client_errors(session.id):
            history = (await read_settings(session.journal.log)).history
    for event in history.replay_events():
        # The log has the options as they were after some turn; since then they may have been set, or have other values.
        current = OptionsChanged(session.options) if isinstance(event, OptionsChanged) else event
        await sink.send_event(session.id, current)
    if session.title:
        await sink.send_event(session.id, SessionInfoChanged(title=session.title))


async def replay_after_reply(session: SessionCore, sink: EventSink, history: History) -> None:
    """Send everything behind the reply that has opened the session; a prompt waits for the end of this.

    For a client that learns the id of the session from that reply: events before it would belong to no session.
    """
    try:
        await replay_history(session, sink, history)
        await report_damage(session, sink)
        if session.turn is None:  # a turn that waits for us sends the state itself
            await sink.send_event(session.id, Idle())
    except (LinkClosed, RequestFailed):
        pass  # the client is gone, or the log cannot be read any more: then the next turn reports it


async def report_damage(session: SessionCore, sink: EventSink) -> None:
    """Warn the user, once, of what was lost of a log before it was opened."""
    log = None if session.journal is None else session.journal.log
    if log is not None and log.salvaged is not None:
        from dragoman.agent.handlers import warn

        lost, log.salvaged = log.salvaged, None
        warn(f"dragoman: session {session.id}: {lost}\n")  # not every client can show a notice
        await sink.send_event(session.id, Notice("warning", lost[:1].upper() + lost[1:]))

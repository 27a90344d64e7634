"""A session told again to a client that opens it: its story, what was lost of its log, and how things stand.

All of it goes to the client alone and never through the journal: the log has it already.
"""

from dragoman.agent.event_sink import EventSink
from dragoman.agent.history import History
from dragoman.agent.journal import read_settings
from dragoman.agent.session import Session
from dragoman.errors import INVALID_PARAMS, LinkClosed, RequestFailed
from dragoman.vocabulary.events import Idle, Notice, OptionsChanged, SessionInfoChanged


async def retell(session: Session, speech: EventSink, story: History | None = None) -> None:
    """Tell the story, read from the log unless it was just read."""
    if session.journal is None:
        raise RequestFailed(INVALID_PARAMS, "This agent keeps no history to replay")
    if story is None:
        story = (await read_settings(session.id, session.journal.log)).story
    for event in story.retold():
        # The log has the options as they were after some turn; since then they may have been set, or have other values.
        now = OptionsChanged(session.options) if isinstance(event, OptionsChanged) else event
        await speech.tell(session.id, now)
    if session.title:
        await speech.tell(session.id, SessionInfoChanged(title=session.title))


async def retell_behind(session: Session, speech: EventSink, story: History) -> None:
    """Tell everything behind the answer that has opened the session; a prompt waits for the end of this."""
    try:
        await retell(session, speech, story)
        await tell_of_damage(session, speech)
        if session.turn is None:  # else it waits for us, and tells how things stand
            await speech.tell(session.id, Idle())
    except (LinkClosed, RequestFailed):
        pass  # the client is gone, or the log cannot be read any more: then the next turn reports it


async def tell_of_damage(session: Session, speech: EventSink) -> None:
    """What was lost of a log before it was opened, the user hears once."""
    log = None if session.journal is None else session.journal.log
    if log is not None and log.salvaged is not None:
        from dragoman.agent.connection import complain

        lost, log.salvaged = log.salvaged, None
        complain(f"dragoman: session {session.id}: {lost}\n")  # not every client can show a notice
        await speech.tell(session.id, Notice("warning", lost[:1].upper() + lost[1:]))

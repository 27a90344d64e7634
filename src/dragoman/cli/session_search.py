"""Find words in stored sessions: in titles, prompts and answers. Thoughts and what tools put out are not searched."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.agent.history import History
from dragoman.cli.session_table import summary
from dragoman.cli.text_width import harmless_line
from dragoman.store.contract import SessionMeta, Store, StoreFailed
from dragoman.store.entries import EventEntry
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AgentMessage, Idle, UserMessage

if TYPE_CHECKING:
    from dragoman.cli.session_actions import SessionTask

# Shown of a message: what was found, and so much before and behind it.
_AROUND: Final = 60
# Places of one session.
_PLACES: Final = 3


class _Place(msgspec.Struct, rename="camel"):
    """Where the words stand: who said it, and the words around the first of them."""

    role: str
    message_id: str
    text: str


async def search(task: "SessionTask", sessions: Sequence[tuple[Store, SessionMeta]]) -> int:
    """Print the sessions that have all the words in one message or title; exit code 1 if there is none."""
    words = [word.casefold() for word in task.arguments.words]
    found: list[dict[str, object]] = []
    for number, (store, meta) in enumerate(sessions):
        task.progress.at("Searching", number, len(sessions))
        places = await _places(store, meta, words)
        if not places:
            continue
        found.append({"sessionId": meta.id, "title": meta.title, "cwd": meta.cwd, "places": places})
        if not task.arguments.json:
            task.output.write(f"{await summary(store, meta.id)}\n")
            for place in places:
                task.output.write(f"    {place.role}: {harmless_line(place.text)}\n")
        if len(found) == task.arguments.limit:
            break
    if task.arguments.json:
        task.output.line(msgspec.json.encode(found))
    return 0 if found else 1


async def is_empty(store: Store, session_id: str) -> bool:
    """Return whether a session has no prompt. One that cannot be read is not empty."""
    try:
        async for records in store.read(session_id):
            for record in records:
                if isinstance(record.entry, EventEntry) and isinstance(record.entry.event, UserMessage):
                    return False
    except StoreFailed:
        return False
    return True


async def _places(store: Store, meta: SessionMeta, words: Sequence[str]) -> list[_Place]:
    places = [_Place("title", "", meta.title)] if _has_all(meta.title, words) else []
    history = History()
    try:
        async for records in store.read(meta.id):
            for record in records:
                history.apply((record.entry,))
                event = record.entry.event if isinstance(record.entry, EventEntry) else None
                if isinstance(event, Idle) and isinstance(event.stop_reason, str):  # no more than a turn is held
                    places += _in_messages(history, words)
                    history = History()
                    if len(places) >= _PLACES:
                        return places[:_PLACES]
    except StoreFailed:
        pass  # what can be read of it was searched
    return [*places, *_in_messages(history, words)][:_PLACES]


def _in_messages(history: History, words: Sequence[str]) -> Iterator[_Place]:
    for event in history.replay_events():
        if isinstance(event, UserMessage | AgentMessage) and event.content:
            text = text_of(event.content)
            if _has_all(text, words):
                role = "you" if isinstance(event, UserMessage) else "agent"
                yield _Place(role, event.message_id, _around(text, words[0]))


def _has_all(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _around(text: str, word: str) -> str:
    """Return the words around the first place where one stands."""
    line = " ".join(text.split())
    at = max(line.casefold().find(" ".join(word.split())), 0)
    start, end = max(at - _AROUND, 0), at + len(word) + _AROUND
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")

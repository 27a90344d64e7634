"""What a session's log keeps: its story, its options as they were left, the MCP servers it was begun with, and the
answers to permission requests that count for the rest of it.

Options and servers stand in the log as notes among the events. Of the servers only a fingerprint is kept: their
settings hold secrets.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from dragoman.agent.history import History
from dragoman.agent.journal import Journal
from dragoman.agent.remembered_permissions import NOTE as PERMISSIONS
from dragoman.agent.session import Session
from dragoman.agent.store_failures import as_told, told
from dragoman.store.contract import Log, StoreFailed
from dragoman.store.entries import NoteEntry
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.options import Option, Select, Toggle

_OPTIONS: Final = "options"
_SERVERS: Final = "mcp servers"


class StoredSettings(NamedTuple):
    """A log that was read."""

    story: History
    options: dict[str, object]  # values by the id of their option
    servers: object  # the fingerprint, or None if the log has none
    permissions: list[object]  # notes of answers that count for the rest of the session

    def restored(self, options: Iterable[Option]) -> list[Option]:
        """The options with the values they were left with, where they still have them."""
        return [_restored(option, self.options) for option in options]


async def read(session_id: str, log: Log) -> StoredSettings:
    """Everything a log keeps, read in one go."""
    story = History()
    options: dict[str, object] = {}
    servers: object = None
    permissions: list[object] = []
    try:
        async for records in log.read():
            entries = [record.entry for record in records]
            story.take(entries)
            for entry in entries:
                if isinstance(entry, NoteEntry) and entry.kind == _OPTIONS and isinstance(entry.value, dict):
                    options.update(entry.value)
                elif isinstance(entry, NoteEntry) and entry.kind == _SERVERS:
                    servers = entry.value
                elif isinstance(entry, NoteEntry) and entry.kind == PERMISSIONS:
                    permissions.append(entry.value)
    except StoreFailed as error:
        raise as_told(session_id, error) from error
    return StoredSettings(story, options, servers, permissions)


async def keep_option(session: Session, config_id: str, value: object) -> None:
    """Remember an option over restarts; it is on disk when this returns."""
    if session.journal is not None:
        await told(session.id, _keep(session, session.journal, {config_id: value}))


async def _keep(session: Session, journal: Journal, options: dict[str, object]) -> None:
    if session.turn is None:
        await journal.mend()  # a running turn is told of the failure itself
    await journal.remember(_OPTIONS, options)
    await journal.log.flush()


async def keep_servers(session: Session) -> None:
    """Remember with which servers the session was begun."""
    await told(session.id, session.record_note(_SERVERS, fingerprint(session.opening)))


def fingerprint(request: ask.NewSession | ask.ResumeSession) -> str:
    """The servers as one short text that tells nothing of their secrets; their order counts."""
    import hashlib

    return hashlib.sha256(msgspec.json.encode(request.mcp_servers or [])).hexdigest()


def _restored(option: Option, values: dict[str, object]) -> Option:
    """An option with the value it was left with, if it still has that value."""
    if not isinstance(option, (Select, Toggle)) or option.config_id not in values:
        return option
    value = values[option.config_id]
    if isinstance(option, Toggle):
        return replace(option, current_value=value) if isinstance(value, bool) else option
    return replace(option, current_value=value) if any(c.value == value for c in option.choices()) else option

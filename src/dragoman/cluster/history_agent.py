"""An agent for sessions whose node is away: it opens and replays them from the log, and takes no lease.

It changes nothing: what it would append, such as the end of a turn that was cut off, is not written, because only the
owner of a log writes to it. Prompts do not reach it; the gateway refuses them.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, cast

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import UsageError
from dragoman.store.contract import Check, Committed, Log, Record, SessionMeta, Store
from dragoman.store.entries import Entry
from dragoman.store.postgres.store import PostgresStore


def history_agent(store: PostgresStore) -> Agent:
    """Return an agent that shows the sessions of a store, and does nothing else."""
    agent = Agent("history", store=cast(Store, _HistoryStore(store)))

    @agent.prompt
    async def refuse(session: Session, prompt: Prompt) -> None:
        raise UsageError("a session whose node is away takes no prompt")

    return agent


class _HistoryStore:
    """The sessions of a store, to be read; those methods that an opened session does not need are the store's own."""

    def __init__(self, store: PostgresStore) -> None:
        self._store: Final = store
        self.create = store.create
        self.read_meta = store.read_meta
        self.ids = store.ids
        self.length = store.length
        self.read = store.read
        self.list = store.list
        self.fork = store.fork
        self.restore = store.restore
        self.change = store.change
        self.delete = store.delete

    async def open(self, session_id: str, check: Check | None = None) -> Log:
        """Return a log to read. `check` is not called: it looks for folders, which are where the node is."""
        return _HistoryLog(self._store, await self._store.read_meta(session_id))

    async def close(self) -> None:
        """Do nothing: the store is another's."""


class _HistoryLog:
    """A log of another node. What is appended is dropped, and called committed: nothing depends on it."""

    def __init__(self, store: PostgresStore, meta: SessionMeta) -> None:
        self.meta = meta
        self.salvaged: str | None = None
        self._store = store

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        asyncio.get_running_loop().call_soon(committed, None)

    async def flush(self) -> None:
        pass

    async def read(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        async for records in self._store.read(self.meta.id, after):
            yield records

    async def tail(self, after: int = 0) -> AsyncIterator[Sequence[Record]]:
        async for records in self.read(after):
            yield records

    async def change(self, *, title: str | None = None, archived: bool | None = None) -> SessionMeta:
        return self.meta

    async def touch(self) -> None:
        pass

    async def release(self) -> None:
        pass

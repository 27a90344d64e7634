"""Wake-ups between nodes: "look into the database again". They may be lost, so nothing depends on one.

A node waits for a wake-up or for a second, whichever comes first, and looks then; so a lost one costs a second, and
what a wake-up says is never believed. One that is sent is a transaction of its own: inside of the one that appends, all
appends of the database would wait for each other at its end (`PostgreSQL` takes a lock there).

`Bus` is all that a cluster needs of it. A message system can take the place of the database here, and of nothing else.
"""

import asyncio
import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database, OwnConnection, failures

if TYPE_CHECKING:
    from asyncpg import Record
    from asyncpg.connection import Connection

_log = logging.getLogger(__name__)

# How long a look takes that nothing has asked for.
POLL_SECONDS: Final = 1.0


class Bus(Protocol):
    """Wake-ups for nodes, by name."""

    async def wake(self, *nodes: str) -> None:
        """Wake nodes. Never fails: a wake-up may be lost."""

    async def wait(self, seconds: float) -> None:
        """Wait until this node is woken, for at most so many seconds."""

    async def close(self) -> None:
        """Wait for nothing any more."""


class PostgresBus:
    """Wake-ups by LISTEN and NOTIFY, a channel for each node. Behind a pooler that lends connections for a transaction
    none arrives, and the polls are all there is."""

    def __init__(self, database: Database, node: str) -> None:
        self._database: Final = database
        self._node: Final = node
        self._own: Final = OwnConnection(database)
        self._listening: Connection[Record] | None = None
        self._woken: Final = asyncio.Event()

    def __repr__(self) -> str:
        return f"<PostgresBus of {self._node} {'listening' if self._listening else 'polling'}>"

    async def wake(self, *nodes: str) -> None:
        """Wake nodes by NOTIFY. Never fails."""
        with suppress(StoreFailed):
            async with self._database.transaction() as connection:
                for node in nodes:
                    await connection.execute("SELECT pg_notify($1, '')", channel_of(node))

    async def wait(self, seconds: float) -> None:
        """Wait for a wake-up, for at most so many seconds."""
        await self._listen()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def close(self) -> None:
        """Stop listening."""
        self._own.drop()

    async def _listen(self) -> None:
        try:
            with failures():
                async with asyncio.timeout(POLL_SECONDS):
                    connection = await self._own.get()
                    if connection is not self._listening:
                        await connection.add_listener(channel_of(self._node), self._on_wake)
                        self._listening = connection
        except (StoreFailed, TimeoutError):
            self._own.drop()
            self._listening = None
            _log.debug("node %s hears no wake-ups; it polls", self._node)

    def _on_wake(self, *_: object) -> None:
        self._woken.set()


def channel_of(node: str) -> str:
    """Return the channel of a node: whatever its name, an identifier of the database."""
    return f"dragoman_{hashlib.sha256(node.encode()).hexdigest()[:24]}"

"""The connections to one database: a few that are shared, and failures in the words of the store's contract.

Every piece of work is one transaction, so that a pooler which lends a server for one transaction may stand between.
Whether one does is found out: its process number is not the server's. Statements are not prepared by name then, nor
before that is known: a name that a killed process has left at such a server could not be given again.

What a process holds in the database when it is paused would keep others waiting, so every transaction of several
statements has a bound on the time between two of them, which the server enforces.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from dragoman.errors import UsageError, how_to_install
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.hosts import connect_to_any
from dragoman.store.postgres.schema import migrate

if TYPE_CHECKING:
    from asyncpg import Pool, Record
    from asyncpg.connection import Connection
    from asyncpg.pool import PoolConnectionProxy

    # One of its own, or one lent by the pool.
    AnyConnection = Connection[Record] | PoolConnectionProxy[Record]

# Beside the one that commits. Sessions share them; what they do takes milliseconds.
_CONNECTIONS: Final = 4
# What the database may take for one statement, and for a connection to be made.
COMMAND_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 5.0
# And for one of the shared connections to be free.
_WAIT_SECONDS: Final = 30.0
SCHEMES: Final = ("postgresql://", "postgres://")


def check_url(url: object) -> str:
    """Return the address of a database; raise `UsageError` if it is none, without the password that it may have."""
    if not isinstance(url, str) or not url.startswith(SCHEMES):
        raise UsageError("the address of a store begins with postgresql://")
    return url


class Database:
    """Connects when it is first used, in the event loop that uses it."""

    def __init__(self, url: str) -> None:
        self._url: Final = check_url(url)
        self._pool: Pool | None = None
        self._settings = {**_SETTINGS, "statement_cache_size": 0}
        # One at a time: the tables are made, and the pooler found out, by the first.
        self._opening = asyncio.Lock()
        self._is_closed = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "not connected" if self._pool is None else "connected"
        return f"<Database {state}>"

    @asynccontextmanager
    async def transaction(self, *, read_only: bool = False) -> "AsyncIterator[AnyConnection]":
        """Yield a connection in a transaction, which is committed at the end of the block. `StoreFailed` for what the
        database refuses, or if it is away."""
        with failures():
            async with asyncio.timeout(_WAIT_SECONDS):
                pool = await self._opened()
                connection = await pool.acquire()
            try:
                # A reader sees one moment; a writer what is committed when it has the lock of a row.
                isolation: Literal["repeatable_read", "read_committed"] = (
                    "repeatable_read" if read_only else "read_committed"
                )
                async with connection.transaction(isolation=isolation, readonly=read_only):
                    await connection.execute(_BOUNDS)
                    yield connection
            finally:
                # Bounded: what a cancelled caller has asked is taken back at the server, which may not answer.
                await pool.release(connection, timeout=_CLOSE_SECONDS)

    async def connect(self) -> "Connection[Record]":
        """Return a connection of its own, for the caller to close. Raise `StoreFailed`."""
        with failures():
            _ = await self._opened()  # the tables are there then
            return await self._connect()

    async def close(self, *, at_once: bool = False) -> None:
        """Close the shared connections; nothing can be done after that. `at_once`: without a word to the database."""
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(0 if at_once else _CLOSE_SECONDS):
                    await pool.close()
            except Exception:
                pool.terminate()  # a database that does not answer holds up no end

    async def _opened(self) -> "Pool[Record]":
        async with self._opening:
            if self._is_closed:
                raise StoreFailed("the session store is closed")
            if self._pool is None:
                connection = await self._connect()
                try:
                    await migrate(connection)
                    # A pooler has a number of its own, and the statement is answered by the server behind it.
                    if connection.get_server_pid() == await connection.fetchval("SELECT pg_backend_pid()"):
                        del self._settings["statement_cache_size"]
                finally:
                    with suppress(Exception):
                        await connection.close(timeout=_CLOSE_SECONDS)
                size = {"min_size": 0, "max_size": _CONNECTIONS}
                self._pool = _asyncpg().create_pool(
                    self._url,
                    **size,
                    reset=_keep,
                    connect=partial(connect_to_any, _asyncpg().connect),
                    **self._settings,
                )
                await self._pool
            return self._pool

    async def _connect(self) -> "Connection[Record]":
        return await connect_to_any(_asyncpg().connect, self._url, **self._settings)


class OwnConnection:
    """A connection that one part of the store has for itself, and makes again after it was lost."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._connection: Connection[Record] | None = None

    def __repr__(self) -> str:
        return f"<OwnConnection {'not connected' if self._connection is None else 'connected'}>"

    async def get(self) -> "Connection[Record]":
        """Return the connection; raise `StoreFailed` if there can be none."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._database.connect()
        return self._connection

    def drop(self) -> None:
        """Close the connection at once; what was sent on it may still be done."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.terminate()


_SETTINGS: Final[Mapping[str, Any]] = {
    "timeout": CONNECT_SECONDS,
    "command_timeout": COMMAND_SECONDS,
    "server_settings": {"application_name": "dragoman"},
}
# Milliseconds: between two statements of a transaction, and for a lock. Whatever we do takes far less.
_BOUNDS: Final = "SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL lock_timeout = 10000"


async def _keep(connection: object) -> None:
    """Leave a connection as it is between two uses: nothing is set that outlives a transaction."""


def _asyncpg() -> Any:
    try:
        import asyncpg
    except ImportError:
        raise StoreFailed(f"sessions in PostgreSQL need asyncpg: {how_to_install('cluster')}") from None
    return asyncpg


class failures:
    """Raise what goes wrong with the database in the block as a `StoreFailed`, without its address or content."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, (StoreFailed, asyncio.CancelledError)):
            return
        reason = reason_of(error)
        if reason:
            raise StoreFailed(reason) from error


def is_refusal(error: BaseException) -> bool:
    """Return whether the database has answered that it does not do this. Else the connection is gone, in one of the
    many ways in which that shows, and the outcome of what was sent last is not known."""
    import asyncpg

    # A server that shuts down, or that ended our connection, has answered nothing about the statement. One that has no
    # connection free, that is a standby until it is promoted, or that chose us to end a deadlock will do it later.
    gone = (
        *(asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError, asyncpg.TooManyConnectionsError),
        *(asyncpg.ReadOnlySQLTransactionError, asyncpg.TransactionRollbackError),
    )
    return isinstance(error, asyncpg.PostgresError) and not isinstance(error, gone)


def reason_of(error: BaseException) -> str:
    """Return why the database did not do it, in words; empty: it is no failure of the database."""
    if isinstance(error, TimeoutError):
        return "the database does not answer"
    if isinstance(error, OSError):
        return f"the database cannot be reached ({(error.strerror or 'connection refused').lower()})"
    import asyncpg

    if isinstance(error, (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)):
        return "the database refuses the login of its address"
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return "there is no such database: createdb it first"
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return "the login of the database may not do this: it needs to create tables, or to use those of Dragoman"
    if isinstance(error, asyncpg.UniqueViolationError):
        return "there is a session with this id already"
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return "the database has no connection free"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "none of the database's hosts takes writes"
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return "the database is a standby, which takes no writes"
    if isinstance(error, (asyncpg.DiskFullError, asyncpg.InsufficientResourcesError)):
        return "the database has no room"
    if isinstance(error, asyncpg.PostgresError):
        return f"the database refused ({error.sqlstate})"
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return "the connection to the database is lost"
    return ""

"""The tables, made and brought up to date by numbered migrations.

`node` is who may write: a process of ours with a lease that it renews (`node_lease`). `session` says which node owns
a session and how far its log goes; `entry` is the logs, in parts by session. `place_left` remembers where sessions
stood in the list before they moved, and `about` numbers these moves (`listing`). The other tables are what gateways of
a cluster share (`dragoman.cluster`).

A migration is never changed once it was released: a database has run it. The number of the last one is in `about`; a
database of a later release is not opened.
"""

from typing import TYPE_CHECKING, Final

from dragoman.store.contract import StoreFailed

if TYPE_CHECKING:
    from asyncpg import Record
    from asyncpg.connection import Connection

# Parts of the table of entries. A part is what one vacuum works on.
_PARTS: Final = 16

_FIRST: Final = f"""
    CREATE TABLE dragoman.node (
        id text COLLATE "C" PRIMARY KEY, incarnation bigint NOT NULL, url text NOT NULL, expires timestamptz NOT NULL
    );
    -- Half of a page is left free: the end of the log is updated with every commit, and finds room beside the row.
    CREATE TABLE dragoman.session (
        id text COLLATE "C" PRIMARY KEY, cwd text COLLATE "C" NOT NULL, directories text NOT NULL,
        created bigint NOT NULL, title text NOT NULL, activity bigint NOT NULL, archived boolean NOT NULL,
        changed bigint NOT NULL,
        owner text COLLATE "C", owner_incarnation bigint, fence bigint NOT NULL, last_sequence bigint NOT NULL,
        appended bigint NOT NULL
    ) WITH (fillfactor = 50);
    CREATE INDEX session_by_activity ON dragoman.session (archived, activity DESC, id DESC);
    CREATE INDEX session_by_cwd ON dragoman.session (cwd, archived, activity DESC, id DESC);
    CREATE INDEX session_by_owner ON dragoman.session (owner, owner_incarnation) WHERE owner IS NOT NULL;
    CREATE TABLE dragoman.entry (
        session text COLLATE "C" NOT NULL, sequence bigint NOT NULL, kind text NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (session, sequence)
    ) PARTITION BY HASH (session);
    {
    "".join(
        f"CREATE TABLE dragoman.entry_{part} PARTITION OF dragoman.entry "
        f"FOR VALUES WITH (MODULUS {_PARTS}, REMAINDER {part});"
        for part in range(_PARTS)
    )
}
    CREATE TABLE dragoman.place_left (
        number bigint PRIMARY KEY, previous bigint NOT NULL,
        id text COLLATE "C" NOT NULL, activity bigint NOT NULL, archived boolean NOT NULL
    );
    CREATE INDEX place_left_by_activity ON dragoman.place_left (archived, activity DESC, id DESC);
"""
# Where a session may be worked on: at every node (empty), or at the one that has its folder. An entry says under which
# ownership it was written, so that a log can be checked without the memory of any node.
_NODES: Final = """
    ALTER TABLE dragoman.session ADD home text COLLATE "C" NOT NULL DEFAULT '';
    ALTER TABLE dragoman.node ADD draining boolean NOT NULL DEFAULT false;
    ALTER TABLE dragoman.entry ADD fence bigint NOT NULL DEFAULT 0;
"""
# What the gateways of a cluster share (`dragoman.cluster`): who may use them, whose sessions are, what was asked once.
# Times are the database's own, so the clocks of two nodes need not agree.
_SHARED: Final = """
    CREATE TABLE dragoman.token (
        name text COLLATE "C" PRIMARY KEY, digest text COLLATE "C" NOT NULL UNIQUE, body bytea NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY
    );
    CREATE TABLE dragoman.secret (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE dragoman.login (
        cookie text COLLATE "C" PRIMARY KEY, page_key text NOT NULL, token text COLLATE "C" NOT NULL,
        made timestamptz NOT NULL, used timestamptz NOT NULL
    );
    CREATE INDEX login_by_token ON dragoman.login (token, used);
    CREATE TABLE dragoman.login_grant (
        digest text COLLATE "C" PRIMARY KEY, body bytea NOT NULL, expires timestamptz NOT NULL
    );
    CREATE TABLE dragoman.claim (
        agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL, principal text NOT NULL,
        agent_id text COLLATE "C" NOT NULL, cwd text NOT NULL, node text COLLATE "C" NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (agent, session)
    );
    CREATE INDEX claim_by_agent_id ON dragoman.claim (agent, agent_id);
    CREATE TABLE dragoman.operation (
        principal text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
        digest bytea NOT NULL, reply bytea, ending bytea, began timestamptz NOT NULL,
        PRIMARY KEY (principal, session, id)
    );
    CREATE INDEX operation_by_age ON dragoman.operation (began);
    CREATE TABLE dragoman.question (
        id text COLLATE "C" PRIMARY KEY, agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL,
        kind text NOT NULL, node text COLLATE "C" NOT NULL, incarnation bigint NOT NULL, state text NOT NULL,
        began timestamptz NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY
    );
    CREATE INDEX question_by_session ON dragoman.question (session) WHERE state = 'open';
    CREATE INDEX question_by_age ON dragoman.question (began);
    CREATE TABLE dragoman.rate (
        kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, used bigint NOT NULL,
        noted timestamptz NOT NULL, PRIMARY KEY (kind, key)
    );
    CREATE TABLE dragoman.connection (
        id text COLLATE "C" PRIMARY KEY, principal text NOT NULL, node text COLLATE "C" NOT NULL,
        incarnation bigint NOT NULL, received bigint NOT NULL, newest text NOT NULL, noted timestamptz NOT NULL
    );
"""
MIGRATIONS: Final = (_FIRST, _NODES, _SHARED)


async def migrate(connection: "Connection[Record]") -> None:
    """Bring the tables up to date, or make them. Two that begin at once take turns. Raise `StoreFailed` for a
    database of a later release. Waits for the database."""
    # Nearly always: one question, and no lock.
    if await _version(connection) == len(MIGRATIONS):
        return
    # Also where the database's own default is another: who waited must see what the other has made.
    async with connection.transaction(isolation="read_committed"):
        # A lock of this transaction: what it guards is the making of tables, and nothing that a lease is about.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('dragoman schema'))")
        version = await _version(connection)
        if version > len(MIGRATIONS):
            raise StoreFailed("the database was made by a later release of Dragoman; update this one")
        # The schema and its first row are made with the first migration, in the same transaction.
        if version == 0:
            await connection.execute(
                "CREATE SCHEMA IF NOT EXISTS dragoman;"
                "CREATE TABLE dragoman.about (one boolean PRIMARY KEY CHECK (one), version integer NOT NULL,"
                " generation text NOT NULL, changes bigint NOT NULL, newest bigint NOT NULL);"
                "INSERT INTO dragoman.about VALUES (true, 0, replace(gen_random_uuid()::text, '-', ''), 0, 0)"
            )
        for statements in MIGRATIONS[version:]:
            await connection.execute(statements)
        await connection.execute("UPDATE dragoman.about SET version = $1", len(MIGRATIONS))


async def _version(connection: "Connection[Record]") -> int:
    # From the catalog, and not by `to_regclass`: that answers from a cache, which does not know what another process
    # has made while we waited for its lock.
    made = "SELECT true FROM pg_catalog.pg_tables WHERE schemaname = 'dragoman' AND tablename = 'about'"
    if not await connection.fetchval(made):
        return 0
    return int(await connection.fetchval("SELECT version FROM dragoman.about"))

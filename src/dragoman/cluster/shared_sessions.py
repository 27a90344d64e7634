"""Of one agent, in the database of a cluster: whose its sessions are, which prompts were accepted, which questions are
open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from dragoman.errors import INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.gateway.agent_restart import GONE
from dragoman.gateway.prompt_ledger import PromptLedger, PromptOperation
from dragoman.gateway.session_directory import SessionDirectory
from dragoman.gateway.shared_state import WaitingQuestion
from dragoman.store.contract import StoreFailed
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.node_lease import NodeLease
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.events import Failure, Idle
from dragoman.vocabulary.requests import PromptAccepted, PromptRequest, Steered, SteerTurn

_log = logging.getLogger(__name__)

# How a turn has ended that its node did not survive.
INTERRUPTED: Final = Idle("error", Failure(INTERNAL_ERROR, "The turn was interrupted: its node was lost"))
_AWAY: Final = "The database is away; try again"
# The end of a process waits so long for what it has noted and not written yet.
_CLOSE_SECONDS: Final = 2.0
# Open questions that one answer of ours has: more than a person can look at.
_QUESTIONS: Final = 1_000
# Of one agent, at nodes that are still those which ask.
_OPEN_QUESTIONS: Final = """
    SELECT question.id, question.session, question.kind, extract(epoch FROM question.began)::float8
    FROM dragoman.question
    JOIN dragoman.node ON node.id = question.node AND node.incarnation = question.incarnation
    LEFT JOIN dragoman.claim ON claim.agent = question.agent AND claim.session = question.session
    WHERE question.agent = $1 AND question.state = 'open'
"""


class PostgresDirectory:
    """The sessions of one agent at all nodes; a `SharedDirectory`. `agent` is its name, empty for our own; `node` the
    name of this node, at which sessions are made."""

    def __init__(self, database: Database, agent: str, node: str) -> None:
        self._database: Final = database
        self._agent: Final = agent
        self._node: Final = node
        # What is known here: a session's first claim counts for ever, so nothing of it becomes wrong.
        self._view: Final = SessionDirectory()
        self.owner: Final = self._view.owner
        self.agent_id: Final = self._view.agent_id
        self.cwd: Final = self._view.cwd
        self.sessions_named: Final = self._view.sessions_named
        self.is_ambiguous: Final = self._view.is_ambiguous
        self.claim: Final = self._view.claim

    def __repr__(self) -> str:
        return f"<PostgresDirectory agent={self._agent!r} view={self._view!r}>"

    async def load(self, session_ids: Iterable[str] = (), *, agent_ids: Iterable[str] = ()) -> None:
        """Bring the view up to date about these sessions, and those that the agent calls so. Raise `RequestFailed`
        while the database is away."""
        unknown = [session_id for session_id in session_ids if self._view.owner(session_id) is None]
        named = list(agent_ids)
        if not unknown and not named:
            return
        query = """
            SELECT session, principal, agent_id, cwd FROM dragoman.claim
            WHERE agent = $1 AND (session = ANY ($2) OR agent_id = ANY ($3) OR session = ANY ($3)) ORDER BY number
        """
        try:
            async with self._database.transaction(read_only=True) as connection:
                for row in await connection.fetch(query, self._agent, unknown, named):
                    self._view.claim(row["session"], row["principal"], row["agent_id"], row["cwd"])
        except StoreFailed:
            raise RequestFailed(INTERNAL_ERROR, _AWAY, {"retry": True}) from None

    async def persist(self, session_id: str) -> bool:
        """Make a claim hold at every node; return False if another principal has the session. Raise `OSError` while
        the database is away."""
        principal = self._view.owner(session_id)
        row = (principal, self._view.agent_id(session_id), self._view.cwd(session_id), self._node)
        insert = """
            INSERT INTO dragoman.claim (agent, session, principal, agent_id, cwd, node) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT DO NOTHING
        """
        query = "SELECT principal FROM dragoman.claim WHERE agent = $1 AND session = $2"
        try:
            async with self._database.transaction() as connection:
                await connection.execute(insert, self._agent, session_id, *row)
                return bool(await connection.fetchval(query, self._agent, session_id) == principal)
        except StoreFailed as error:
            raise OSError(f"whose session it is cannot be written: {error}") from error


class PostgresOperations:
    """The prompts with an operation id at all nodes, for a day; a `SharedOperations`.

    A row is written before its prompt is given to the agent: `begun`, then with the reply, then with the end of the
    turn. A repeat that finds a row which another process has begun, and no reply in it, is refused: it may have been
    accepted.
    """

    def __init__(self, database: Database, background: "OrderedWork") -> None:
        self._database: Final = database
        self._background: Final = background
        self._here: Final = PromptLedger(asyncio.get_running_loop().time)

    def __repr__(self) -> str:
        return f"<PostgresOperations here={self._here!r}>"

    async def begin(self, principal: str, request: PromptRequest | SteerTurn) -> tuple[PromptOperation | None, bool]:
        """Return the operation that a prompt belongs to (None: it has no id), and whether it is the first of it. Raise
        `RequestFailed` for an id that cannot be one, or that another prompt had, and while the database is away."""
        operation, is_first = await self._here.begin(principal, request)
        if operation is None or not is_first:
            return operation, is_first
        insert = """
            INSERT INTO dragoman.operation (principal, session, id, digest, began)
            VALUES ($1, $2, $3, $4, clock_timestamp()) ON CONFLICT DO NOTHING RETURNING true
        """
        query = """
            SELECT digest, reply, ending FROM dragoman.operation
            WHERE principal = $1 AND session = $2 AND id = $3 FOR UPDATE
        """
        try:
            async with self._database.transaction() as connection:
                if await connection.fetchval(insert, *operation.key, operation.digest):
                    operation.on_end = self._save_end
                    return operation, True
                row = await connection.fetchrow(query, *operation.key)
        except BaseException as error:
            await self._refuse(operation, RequestFailed(INTERNAL_ERROR, _AWAY, {"retry": True}))
            if isinstance(error, StoreFailed):
                raise RequestFailed(INTERNAL_ERROR, _AWAY, {"retry": True}) from None
            raise
        if row is None:  # forgotten in this moment: it was not accepted, and may be sent again
            await self._refuse(operation, failure := RequestFailed(INTERNAL_ERROR, _AWAY, {"retry": True}))
            raise failure
        if row["digest"] != operation.digest:
            words = "Another prompt was sent under this operationId"
            await self._refuse(
                operation, failure := RequestFailed(INVALID_REQUEST, words, {"reason": "operation_conflict"})
            )
            raise failure
        if row["reply"] is None:
            operation.fail(RequestFailed(INTERNAL_ERROR, GONE))
        else:
            operation.accept(_decode_reply(row["reply"]))
            # Asked at the node that owns the session: a turn without an end in its row is one that its node did not
            # survive. Without an end a client of version 1 would wait for its answer for ever.
            ending = row["ending"]
            operation.finish(INTERRUPTED if ending is None else msgspec.json.decode(ending, type=Idle))
        return operation, False

    async def save(self, operation: PromptOperation) -> None:
        """Make the reply known to every node, before the client gets it."""
        reply = operation.accepted
        statement = "UPDATE dragoman.operation SET reply = $4 WHERE principal = $1 AND session = $2 AND id = $3"
        try:
            async with self._database.transaction() as connection:
                await connection.execute(statement, *operation.key, _encode_reply(reply or Done()))
        except StoreFailed as error:
            # The turn runs: the client is told. A repeat at another node finds no reply, and is refused.
            _log.warning("a reply to a prompt could not be noted: %s", error)

    async def forget(self, operation: PromptOperation) -> None:
        """Remove an operation that was not accepted: it may be sent again."""
        await self._here.forget(operation)
        statement = "DELETE FROM dragoman.operation WHERE principal = $1 AND session = $2 AND id = $3 AND reply IS NULL"
        try:
            async with self._database.transaction() as connection:
                await connection.execute(statement, *operation.key)
        except StoreFailed as error:
            _log.warning("a prompt that was not accepted stays noted, and its repeat is refused: %s", error)

    async def _refuse(self, operation: PromptOperation, failure: RequestFailed) -> None:
        operation.fail(failure)
        await self._here.forget(operation)

    def _save_end(self, operation: PromptOperation) -> None:
        async def work() -> None:
            statement = "UPDATE dragoman.operation SET ending = $4 WHERE principal = $1 AND session = $2 AND id = $3"
            async with self._database.transaction() as connection:
                await connection.execute(statement, *operation.key, _encode_end(operation.end))

        self._background.run(work)


class PostgresQuestions:
    """The open questions of one agent's sessions, at all nodes; a `SharedQuestions`.

    A row is `open`, then `answered` or `ended`, and never anything else again. An answer counts if the node that asks
    is still the one it was: the row of the node is looked at in the statement that notes the answer, as with an append.
    """

    def __init__(
        self, database: Database, agent: str, lease: Callable[[], NodeLease | None], background: "OrderedWork"
    ) -> None:
        self._database: Final = database
        self._agent: Final = agent
        self._lease: Final = lease
        self._background: Final = background

    def __repr__(self) -> str:
        return f"<PostgresQuestions agent={self._agent!r}>"

    def open(self, question: WaitingQuestion) -> None:
        """Note that a question is put to the clients. Other nodes hear of it soon."""
        lease = self._lease()
        if lease is None:
            return
        node, incarnation = lease.name, lease.incarnation
        insert = """
            INSERT INTO dragoman.question (id, agent, session, kind, node, incarnation, state, began)
            VALUES ($1, $2, $3, $4, $5, $6, 'open', clock_timestamp()) ON CONFLICT DO NOTHING
        """

        async def work() -> None:
            async with self._database.transaction() as connection:
                row = (question.id, self._agent, question.session_id, question.kind, node, incarnation)
                await connection.execute(insert, *row)

        self._background.run(work)

    async def answer(self, question: WaitingQuestion) -> bool:
        """End a question because it was answered; return whether the answer counts. It does not while the database is
        away."""
        # In its place behind the others: it may not have been noted yet that the question is open.
        counts = """
            WITH current AS (
                SELECT 1 FROM dragoman.node JOIN dragoman.question ON question.node = node.id
                AND question.incarnation = node.incarnation WHERE question.id = $1 FOR SHARE OF node
            )
            UPDATE dragoman.question SET state = 'answered'
            WHERE id = $1 AND state = 'open' AND EXISTS (SELECT 1 FROM current) RETURNING true
        """

        async def work() -> bool:
            async with self._database.transaction() as connection:
                return bool(await connection.fetchval(counts, question.id))

        try:
            return await self._background.ask(work)
        except StoreFailed as error:
            _log.warning("an answer does not count: %s", error)
            return False

    def cancel(self, question: WaitingQuestion) -> None:
        """Note that a question has ended without an answer; nothing happens if it has ended already."""
        ended = "UPDATE dragoman.question SET state = 'ended' WHERE id = $1 AND state = 'open'"

        async def work() -> None:
            async with self._database.transaction() as connection:
                await connection.execute(ended, question.id)

        self._background.run(work)

    async def waiting(self, session_ids: Collection[str]) -> Sequence[WaitingQuestion]:
        """Return the open questions of these sessions, the oldest first. Those of a node that is gone have ended with
        it."""
        return await self._fetch(f"{_OPEN_QUESTIONS} AND question.session = ANY ($2)", list(session_ids))

    async def waiting_for(self, principal: str, *, with_unclaimed: bool = False) -> Sequence[WaitingQuestion]:
        """Return the open questions of sessions that the principal has claimed, and with `with_unclaimed` of those
        that none has, the oldest first, at most `_QUESTIONS`."""
        whose = "claim.principal = $2 OR (claim.principal IS NULL AND $3)"
        return await self._fetch(f"{_OPEN_QUESTIONS} AND ({whose})", principal, with_unclaimed)

    async def _fetch(self, query: str, *arguments: object) -> Sequence[WaitingQuestion]:
        try:
            async with self._database.transaction(read_only=True) as connection:
                oldest = f"{query} ORDER BY question.number LIMIT {_QUESTIONS}"
                rows = await connection.fetch(oldest, self._agent, *arguments)
        except StoreFailed:
            raise RequestFailed(INTERNAL_ERROR, _AWAY, {"retry": True}) from None
        return [WaitingQuestion(*row) for row in rows]


class OrderedWork:
    """What is told to the database without a wait, one after the other, in the order in which it has happened."""

    def __init__(self) -> None:
        self._last: asyncio.Future[object] | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    def __repr__(self) -> str:
        return f"<OrderedWork waiting={len(self._tasks)}>"

    def run(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something behind what was begun before; a failure is logged."""
        self._begin(work).add_done_callback(_log_failure)

    async def ask(self, work: Callable[[], Awaitable[bool]]) -> bool:
        """Do something behind what was begun before, and return its outcome."""
        return bool(await asyncio.shield(self._begin(work)))

    async def close(self) -> None:
        """Wait for what was begun; bounded."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=_CLOSE_SECONDS)
        for task in list(self._tasks):
            task.cancel()

    def _begin(self, work: Callable[[], Awaitable[object]]) -> "asyncio.Task[object]":
        before = self._last

        async def in_order() -> object:
            if before is not None:
                await asyncio.wait([before])
            return await work()

        task = asyncio.ensure_future(in_order())
        self._last = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _log_failure(task: "asyncio.Future[object]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("what other nodes should know could not be written: %s", error)


_REPLIES: Final[dict[str, type[Reply]]] = {one.__name__: one for one in (Done, PromptAccepted, Steered)}


def _encode_reply(reply: Reply) -> bytes:
    """Return a reply to a prompt as it is stored; one of a kind that is not known as nothing but success."""
    known = reply if type(reply).__name__ in _REPLIES else Done()
    return msgspec.json.encode([type(known).__name__, msgspec.to_builtins(known)])


def _decode_reply(body: bytes) -> Reply:
    name, value = msgspec.json.decode(body, type=tuple[str, object])
    return msgspec.convert(value, _REPLIES.get(name, Done))


def _encode_end(end: Idle | None) -> bytes:
    # What runs in the background is told by the session itself.
    return msgspec.json.encode(Idle("error") if end is None else msgspec.structs.replace(end, background=msgspec.UNSET))

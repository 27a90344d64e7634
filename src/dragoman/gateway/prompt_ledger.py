"""Prompts that their clients may send twice: accepted once, and answered each time with the same.

A client that does not know whether its prompt has arrived sends it again with the same `_meta["dragoman/operationId"]`,
over the same connection or another one. The first to come is given to the agent. A repeat by the same principal for the
same session gets the reply of the first, and is told how its turn ended, once that is known.

| the first | a repeat gets |
|---|---|
| is not accepted yet | its reply, when that comes |
| was accepted, its turn runs | the same reply; it is subscribed to the turn |
| was accepted, its turn is over | the same reply, and the end of that turn |
| was refused by the gateway or the agent | nothing of it: a prompt that was not accepted may be sent again |
| was given to an agent that died, or whose client gave up, before its reply | the error: it may have been accepted |

Kept in memory, for `RETENTION_SECONDS` after the end, and at most so many; what runs is the last to be evicted. That is
all of it for one server alone; one that shares its state has the operations that it has begun here.
"""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.errors import INVALID_REQUEST, RequestFailed
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.events import Idle
from dragoman.vocabulary.requests import PromptRequest, SteerTurn, operation_id

RETENTION_SECONDS: Final = 3600.0
# Of one principal, and of all; an entry has some 700 bytes.
EACH: Final = 1000
ALL: Final = 20_000
_ID_LENGTH: Final = 128


class OperationKey(NamedTuple):
    """Whose operation it is: the same id of another principal, or for another session, is another one."""

    principal: str
    session_id: str
    id: str


class PromptOperation:
    """A prompt with an id: the reply to it, and the end of its turn when that is known."""

    def __init__(self, key: OperationKey, digest: bytes) -> None:
        self.key: Final = key
        self.digest: Final = digest
        self.end: Idle | None = None
        self.ended_at = 0.0  # 0: it is not over
        self.on_end: Callable[[PromptOperation], None] | None = None  # called once, when its turn is over
        self._reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        # Most prompts are never repeated, and an error that no repeat waits for is none of the loop's business.
        self._reply.add_done_callback(_retrieve)

    def __repr__(self) -> str:
        state = "ended" if self.ended_at else "accepted" if self._reply.done() else "sent"
        return f"<PromptOperation {state}>"

    def accept(self, reply: Reply) -> bool:
        """Note the agent's reply; return False if there was one already."""
        if self._reply.done():
            return False
        self._reply.set_result(reply)
        return True

    def fail(self, error: Exception) -> None:
        """Note that there is no reply, and why. Without effect after a reply."""
        if not self._reply.done():
            self._reply.set_exception(error)
            self.ended_at = asyncio.get_running_loop().time()

    def finish(self, end: Idle) -> None:
        """Note how its turn has ended."""
        if not self.ended_at:
            self.end = end
            self.ended_at = asyncio.get_running_loop().time()
            if self.on_end is not None:
                self.on_end(self)

    @property
    def accepted(self) -> Reply | None:
        """Return the agent's reply, if there is one."""
        is_there = self._reply.done() and not self._reply.cancelled() and self._reply.exception() is None
        return self._reply.result() if is_there else None

    async def reply(self) -> Reply:
        """Wait for the reply to the first, and return it; raise the error that it got."""
        # Shielded: a repeat that is cancelled must not take the reply from the others.
        return await asyncio.shield(self._reply)


class PromptLedger:
    """The operations of one agent's sessions, as the embedded `SharedOperations`. `clock` is that of the loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The oldest first. By principal, so that many prompts of one do not evict those of another.
        self._operations: dict[str, dict[OperationKey, PromptOperation]] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"<PromptLedger operations={self._count} principals={len(self._operations)}>"

    async def begin(self, principal: str, request: PromptRequest | SteerTurn) -> tuple[PromptOperation | None, bool]:
        """Return the operation that a prompt belongs to (None: it has no id), and whether it is the first of it. Does
        not wait. Raise `RequestFailed` for an id that cannot be one, or that another prompt had."""
        id = operation_id(request)
        if id is None:
            return None, True
        if not isinstance(id, str) or not 0 < len(id) <= _ID_LENGTH:
            words = f"An operationId is a string of 1 to {_ID_LENGTH} characters"
            raise RequestFailed(INVALID_REQUEST, words, {"reason": "operation_id"})
        key = OperationKey(principal, request.session_id, id)
        self._forget_old(self._operations.get(principal, {}))
        own = self._operations.setdefault(principal, {})
        # The whole prompt, and how it was sent: the same words as a steering are another operation.
        digest = hashlib.sha256(repr((type(request).__name__, request.prompt)).encode("utf-8", "replace")).digest()
        found = own.get(key)
        if found is None:
            found = own[key] = PromptOperation(key, digest)
            self._count += 1
            self._evict(own)
            return found, True
        if found.digest != digest:
            words = "Another prompt was sent under this operationId"
            raise RequestFailed(INVALID_REQUEST, words, {"reason": "operation_conflict"})
        return found, False

    async def save(self, operation: PromptOperation) -> None:
        """Do nothing: there is no other server, and the operation is known here."""

    async def forget(self, operation: PromptOperation) -> None:
        """Remove an operation that was not accepted: it may be sent again."""
        own = self._operations.get(operation.key.principal, {})
        if own.get(operation.key) is operation:
            self._remove(own, operation.key)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _forget_old(self, own: dict[OperationKey, PromptOperation]) -> None:
        now = self._clock()
        # In the order in which they began, which is about that in which they end: the first that is too young ends it.
        for key, one in list(own.items())[:EACH]:
            if one.ended_at and now - one.ended_at < RETENTION_SECONDS:
                break
            if one.ended_at:
                self._remove(own, key)

    def _evict(self, own: dict[OperationKey, PromptOperation]) -> None:
        if len(own) > EACH:
            self._remove_one(own)
        if self._count > ALL:
            # Of the principal that has most: one that floods the table loses its own.
            self._remove_one(max(self._operations.values(), key=len))

    def _remove_one(self, own: dict[OperationKey, PromptOperation]) -> None:
        ended = (key for key, one in own.items() if one.ended_at)
        self._remove(own, next(ended, next(iter(own))))

    def _remove(self, own: dict[OperationKey, PromptOperation], key: OperationKey) -> None:
        del own[key]
        self._count -= 1
        if not own:
            self._operations.pop(key.principal, None)


def _retrieve(reply: "asyncio.Future[Reply]") -> None:
    if not reply.cancelled():
        reply.exception()

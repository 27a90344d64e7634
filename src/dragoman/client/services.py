"""What an agent asks of us, answered by the `ClientHandlers`, for sessions that are open here.

Promise: nothing is done or asked for a session that we never opened. A question to a person ends with its turn, and a
callback that fails has not said yes.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.client.ask_user import asks_user, unanswered
from dragoman.client.handlers import ClientHandlers
from dragoman.client.lent_servers import LentMcpServers
from dragoman.client.questions import Questions
from dragoman.client.tool_calls import ToolCalls
from dragoman.client.turn import TurnState
from dragoman.errors import NOT_FOUND, RequestFailed, echo
from dragoman.link.pending_events import PendingEvents
from dragoman.vocabulary.asking import Extension, Reply, Request
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.mcp_messages import MCP_MESSAGE
from dragoman.vocabulary.services import (
    Elicit,
    PermissionAnswer,
    RequestPermission,
    Selected,
    SessionScope,
    ToolCallSubject,
    default_answer,
    rejection,
)
from dragoman.vocabulary.session_ids import session_of

if TYPE_CHECKING:
    from dragoman.client.conversation import ConversationState

# How often a question is asked again because its call has grown while it was answered.
_SHOWN_AGAIN: Final = 3


class Services:
    """Answers the requests of one agent."""

    def __init__(
        self,
        handlers: ClientHandlers,
        conversations: "Mapping[str, ConversationState]",
        pending_events: PendingEvents,
        on_noise: Callable[[str], None],
        on_bug: Callable[[Exception], None],
        lent: LentMcpServers,
    ) -> None:
        self.questions = Questions()
        self.opening = 0  # sessions that are being opened: their names are not known yet
        self._handlers = handlers
        self._conversations = conversations
        self._pending_events = pending_events
        self._on_noise = on_noise
        self._on_bug = on_bug
        self._lent = lent
        self._working = 0

    @property
    def busy(self) -> bool:
        """Return whether the agent waits for us, or for the user."""
        return self._working > 0 or self.questions.open

    def answer(self, request: Request) -> Awaitable[Reply]:
        """Return the reply to a request, to be awaited; raise `RequestFailed` for a session that was never opened."""
        session = _session_of(request)
        if session is not None and session not in self._conversations and not self.opening:
            self._on_noise("a request for a session that was never opened")
            raise RequestFailed(NOT_FOUND, "Resource not found: no such session", {"sessionId": echo(session)})
        match request:
            case RequestPermission(session_id=asker):
                return self._ask_person(asker, self._permission(request), default_answer(request))
            case Elicit(scope=SessionScope(session_id=asker)):
                return self._ask_person(asker, self._handlers.answer(request), default_answer(request))
            case Extension(method=method) if method == MCP_MESSAGE:
                # Not counted as work: a subscription to a server's changes is a call without an end.
                return self._lent.answer(request)
            case Extension() if session is not None and asks_user(request):
                return self._ask_person(session, self._handlers.answer(request), unanswered(request))
            case _:
                return self._work(request)

    async def _work(self, request: Request) -> Reply:
        self._working += 1
        try:
            return await self._handlers.answer(request)
        finally:
            self._working -= 1

    def _ask_person(self, session_id: str, work: Coroutine[Any, Any, Reply], dismissed: Reply) -> Awaitable[Reply]:
        conversation = self._conversations.get(session_id)
        turn = None if conversation is None else conversation.receiver
        if turn is not None and turn.state is TurnState.CANCELLING:
            work.close()  # the agent sent it before it received our cancel
            return _at_once(dismissed)
        return self.questions.ask(session_id, work, dismissed)

    async def _permission(self, request: RequestPermission) -> Reply:
        """Ask with everything that is known of the call. A yes is for that: if the call grows meanwhile, ask again."""
        try:
            for _ in range(_SHOWN_AGAIN):
                shown = self._whole(request)
                reply = await self._handlers.answer(shown)
                if not _allows(shown, reply) or not _has_grown(request, shown, self._whole(request)):
                    return reply
        except Exception as error:
            self._on_bug(error)
        return PermissionAnswer(rejection(request))

    def _whole(self, request: RequestPermission) -> RequestPermission:
        conversation = self._conversations.get(request.session_id)
        if conversation is not None:
            return conversation.calls.whole(request)
        calls = ToolCalls(lost=self._pending_events.has_dropped)
        for event in self._pending_events.peek(request.session_id):
            if isinstance(event, (ToolCallUpdate, ToolCallContentChunk)):
                calls.apply(event)
        return calls.whole(request)


def _allows(request: RequestPermission, reply: Reply) -> bool:
    """Return whether an answer chooses an option that may be a yes."""
    if not isinstance(reply, PermissionAnswer) or not isinstance(reply.outcome, Selected):
        return False
    chosen = reply.outcome.option_id
    return any(option.option_id == chosen and not option.rejects for option in request.options)


def _has_grown(request: RequestPermission, shown: RequestPermission, now: RequestPermission) -> bool:
    """Return whether more is known of a call than was shown. Of one that has ended nothing is known any more."""
    if now is request or not isinstance(shown.subject, ToolCallSubject) or not isinstance(now.subject, ToolCallSubject):
        return False
    before, after = shown.subject.tool_call, now.subject.tool_call
    return any(getattr(before, name) != getattr(after, name) for name in ("kind", "content", "locations", "raw_input"))


def _session_of(request: Request) -> str | None:
    """Return the session that a request names; None if it names none."""
    # Another extension may call something of its own `sessionId`.
    return None if isinstance(request, Extension) and not asks_user(request) else session_of(request)


async def _at_once(reply: Reply) -> Reply:
    return reply

"""What an agent asks of us, and who answers it: the face, in the name of a session that we know.

Promise: nothing is done or asked for a session that we never opened. A question to a person ends with its turn, and a
callback that fails has not said yes.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.client.ask_user import ASK_USER, answered
from dragoman.client.face import Face
from dragoman.client.questions import Questions
from dragoman.errors import NOT_FOUND, RequestFailed
from dragoman.vocabulary.asking import Extension, ExtensionResult, Reply, Request
from dragoman.vocabulary.services import (
    Dismissed,
    Elicit,
    ElicitationAnswer,
    PermissionAnswer,
    RequestPermission,
    SessionScope,
    rejection,
)

if TYPE_CHECKING:
    from dragoman.client.conversation import Conversation


class Services:
    """Answers the requests of one agent."""

    def __init__(
        self,
        face: Face,
        conversations: "Mapping[str, Conversation]",
        on_noise: Callable[[str], None],
        on_bug: Callable[[Exception], None],
    ) -> None:
        self.questions = Questions()
        self.opening = 0  # sessions that are being opened: their names are not known yet
        self._face = face
        self._conversations = conversations
        self._on_noise = on_noise
        self._on_bug = on_bug
        self._working = 0

    @property
    def busy(self) -> bool:
        """Whether the agent waits for us, or for a person."""
        return self._working > 0 or self.questions.open

    def answer(self, request: Request) -> Awaitable[Reply]:
        """Do what is asked, or refuse."""
        session = _session_of(request)
        if session is not None and session not in self._conversations and not self.opening:
            self._on_noise("a request for a session that was never opened")
            raise RequestFailed(NOT_FOUND, "Resource not found: no such session", {"sessionId": session})
        match request:
            case RequestPermission(session_id=asker):
                return self._ask_person(asker, self._permission(request), PermissionAnswer(Dismissed()))
            case Elicit(scope=SessionScope(session_id=asker)):
                return self._ask_person(asker, self._face.answer(request), ElicitationAnswer("cancel"))
            case Extension(method=method) if method == ASK_USER and session is not None:
                return self._ask_person(session, self._face.answer(request), ExtensionResult(answered(None)))
            case _:
                return self._work(request)

    async def _work(self, request: Request) -> Reply:
        self._working += 1
        try:
            return await self._face.answer(request)
        finally:
            self._working -= 1

    def _ask_person(self, session_id: str, work: Coroutine[Any, Any, Reply], dismissed: Reply) -> Awaitable[Reply]:
        conversation = self._conversations.get(session_id)
        if conversation is not None and conversation.listener is not None and conversation.listener.cancelled:
            work.close()  # the agent has not heard of the cancel yet
            return _at_once(dismissed)
        return self.questions.ask(session_id, work, dismissed)

    async def _permission(self, request: RequestPermission) -> Reply:
        conversation = self._conversations.get(request.session_id)
        try:
            return await self._face.answer(request if conversation is None else conversation.calls.whole(request))
        except Exception as error:
            self._on_bug(error)
            return PermissionAnswer(rejection(request))


def _session_of(request: Request) -> str | None:
    """The session a request says it belongs to, if it does."""
    if isinstance(request, Elicit):
        return request.scope.session_id if isinstance(request.scope, SessionScope) else None
    if isinstance(request, Extension):
        named = request.params.get("sessionId") if isinstance(request.params, dict) else None
        return named if request.method == ASK_USER and isinstance(named, str) else None
    found = getattr(request, "session_id", None)
    return found if isinstance(found, str) else None


async def _at_once(reply: Reply) -> Reply:
    return reply

"""The agent's side of a bridge: its turns all end, and its questions name requests as the editor knows them."""

from msgspec.structs import replace

from dragoman.bridge.failures import GONE
from dragoman.bridge.forwarded_request import ForwardedRequest
from dragoman.bridge.open_work import OpenWork
from dragoman.bridge.side import BridgeSide, Noise
from dragoman.errors import INTERNAL_ERROR, LinkClosed, RequestFailed
from dragoman.link import Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.events import AnyEvent, Failure, Idle, RequiresAction, Running
from dragoman.vocabulary.requests import PromptRequest
from dragoman.vocabulary.services import (
    Dismissed,
    Elicit,
    ElicitationAnswer,
    PermissionAnswer,
    RequestPermission,
    RequestScope,
    SessionScope,
    UnknownMode,
)


class BridgeAgentSide(BridgeSide):
    """The side on which we are the client."""

    def __init__(self, transport: Transport, trace: Trace | None, on_noise: Noise | None, unfinished: OpenWork) -> None:
        super().__init__(transport, "client", trace, on_noise)
        self._unfinished = unfinished

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        match event:
            case Running() | RequiresAction():
                self._unfinished.begin_turn(session_id)
            case Idle():
                if isinstance(event.stop_reason, str) or self._unfinished.is_running(session_id):
                    self._unfinished.end_turns(session_id)
            case _:
                pass
        super().on_event(session_id, event)

    def on_closed(self, error: LinkClosed) -> None:
        if not self.lost.done():
            # After the answers to what was asked, so that a prompt which was refused now has no turn to end.
            self.way.put(self._end_turns)
        super().on_closed(error)
        self.give_up()  # no reply can reach the agent any more: cancel its requests at the editor

    async def _end_turns(self) -> None:
        for session_id in sorted(self._unfinished.sessions()):
            await self.other.link.send_event(session_id, Idle("error", Failure(INTERNAL_ERROR, GONE)))

    # -- a crossing that began here calls these ----------------------------------------------------------------------

    async def carry(self, crossing: ForwardedRequest) -> Reply:
        """Ask the editor; a question about a request of its own, under the name it gave that."""
        request = crossing.request
        if not isinstance(request, Elicit) or not isinstance(request.scope, RequestScope):
            return await super().carry(crossing)
        scope = self._scope_there(request.scope)
        if scope is None:
            return ElicitationAnswer("cancel")
        return await self.other.link.ask(_rescoped(request, scope), crossing)

    def abandoned(self, request: Request) -> Reply | RequestFailed:
        match request:
            case RequestPermission():
                return PermissionAnswer(Dismissed())
            case Elicit():
                return ElicitationAnswer("cancel")
            case _:
                return super().abandoned(request)

    def _scope_there(self, scope: RequestScope) -> RequestScope | SessionScope | None:
        """The request as the editor knows it; its session, where the editor has its answer; None where it is over."""
        number = scope.request_id
        crossing = self._unfinished.find(number) if isinstance(number, int) else None
        if crossing is None:
            return None
        request, link = crossing.request, self.other.link
        if isinstance(request, PromptRequest) and crossing.is_answered and not link.replies_to_prompt_at_turn_end:
            return SessionScope(request.session_id)
        return RequestScope(crossing.id)


def _rescoped(question: Elicit, scope: RequestScope | SessionScope) -> Elicit:
    """Return the question with another scope. An unknown mode carries the scope's id in its own fields too."""
    if not isinstance(question.mode, UnknownMode):
        return replace(question, scope=scope)
    fields = {name: value for name, value in question.mode.fields.items() if name != "requestId"}
    if isinstance(scope, SessionScope):
        fields["sessionId"] = scope.session_id
    else:
        fields["requestId"] = scope.request_id
    return replace(question, scope=scope, mode=UnknownMode(question.mode.kind, fields))

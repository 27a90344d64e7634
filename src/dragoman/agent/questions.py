"""Permission questions and forms for the user at the client. While one is open, the session is in `requires_action`.

A user may take an hour, so there is no timeout here: a question ends with its turn, and is not answered then.
"""

from typing import TYPE_CHECKING

from dragoman.agent.checks import check_schema, check_text
from dragoman.agent.current_turn import check_turn
from dragoman.agent.event_sink import EventSink
from dragoman.agent.permission import Permission, PermissionQuestion, chosen
from dragoman.agent.plain_values import plain_text
from dragoman.agent.remembered_permissions import NOTE
from dragoman.errors import PeerError, UsageError
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.events import RequiresAction, Running
from dragoman.vocabulary.identity import LOCAL, Identity, Needs, identity_in, with_needs
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, Form, RequestPermission, SessionScope

if TYPE_CHECKING:
    from dragoman.agent.session import Session


class UserQuestions:
    """Asks the user of one session; the session is in `requires_action` meanwhile."""

    def __init__(self, session: "Session", speech: EventSink) -> None:
        self._session = session
        self._speech = speech

    async def permission(self, question: PermissionQuestion, needs: Needs | None) -> Permission:
        """Return the answer to a question, which may be one that was given to it before in this session."""
        check_turn()
        session = self._session
        known = session.answers.find(question.key, question.request.options)
        if known is not None:
            return Permission(known, remembered=True)
        permission = await self._permission(question.request, needs)
        if question.key is not None and permission.option is not None and permission.always:
            await session.record_note(NOTE, session.answers.add(question.key, permission.option))
        return permission

    async def _permission(self, request: RequestPermission, needs: Needs | None) -> Permission:
        shared = self._session.trusts_identities
        if needs is not None and shared:
            request = with_needs(request, needs)
        try:
            reply = await self._ask(request)
        except PeerError:
            # Refused, or answered with what cannot be read: that is no yes, and says of no client that it answered.
            return Permission(None, Identity() if shared else LOCAL)
        return Permission(chosen(reply, request), identity_in(reply) if shared else LOCAL)

    async def form(self, message: str, schema: dict[str, object]) -> dict[str, object] | None:
        """Return the form as it was filled in; None: the person declined, or is gone."""
        if not self._speech.client.elicitation_form:
            raise UsageError("the client cannot show forms; look at session.client.elicitation_form first")
        check_text(message, "a question", 'session.ask_user("Which one?", schema)')
        form = Form(check_schema(schema))
        reply = await self._ask(Elicit(plain_text(message), form, SessionScope(self._session.id)))
        if isinstance(reply, ElicitationAnswer) and reply.action == "accept" and isinstance(reply.content, dict):
            return reply.content
        return None

    async def _ask(self, request: RequestPermission | Elicit) -> Reply:
        check_turn()
        await self._state(RequiresAction())
        try:
            return await self._speech.ask(request)
        finally:
            await self._state(Running())

    async def _state(self, state: RequiresAction | Running) -> None:
        turn = self._session.turn
        if turn is not None and not turn.ended:
            await self._session.record(state)

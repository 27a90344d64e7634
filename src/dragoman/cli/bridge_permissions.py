"""Permissions of an agent behind `dragoman bridge`: the user's rules decide first, the editor is asked about the rest.

The rules are those of `run` and `chat`, judged by the same engine. A file or a command that a rule denies is not asked
of the editor either, which would only see a request of the protocol and might serve it.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.bridge import BridgeServices
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.errors import INVALID_REQUEST, RequestFailed
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Running
from dragoman.vocabulary.requests import CancelTurn, ResumeSession, SessionOpened
from dragoman.vocabulary.services import (
    CreateTerminal,
    Dismissed,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    Selected,
    WriteTextFile,
)

if TYPE_CHECKING:
    from dragoman.bridge.services import AskOther, Opening, SessionEvents, StepAside
    from dragoman.bridge.sides import BridgeSide
    from dragoman.client.decision import OnDecision

# Sessions whose folders are known at once.
_SESSIONS: Final = 1_000


class BridgedPermissions(BridgeServices):
    """Answers the permission requests of an agent by a policy, and asks the editor where the policy says so."""

    def __init__(self, agent: str, policy: PermissionPolicy) -> None:
        self._agent_name = agent
        self._policy = policy
        self._handlers: dict[str, PermissionHandler] = {}
        self._client: BridgeSide

    def __repr__(self) -> str:
        return f"<BridgedPermissions allow={self._policy.allow!r} sessions={len(self._handlers)}>"

    def attach(self, client: "BridgeSide", agent: "BridgeSide") -> None:
        self._client = client

    def on_opened(self, request: "Opening", reply: SessionOpened) -> SessionOpened:
        session_id = request.session_id if isinstance(request, ResumeSession) else reply.session_id
        roots = [request.cwd, *(request.additional_directories or ())]
        self._handlers[session_id] = self._handler(roots)
        limits.evict_oldest(self._handlers, _SESSIONS)
        return reply

    def serve_agent(self, request: Request, ask: "AskOther", aside: "StepAside") -> Awaitable[Reply]:
        match request:
            case RequestPermission():
                return self._decide(request, aside)
            case ReadTextFile() | WriteTextFile() | CreateTerminal():
                handler = self._handlers.get(request.session_id)
                reason = None if handler is None else handler.denied_by_rule(request)
                if reason is not None:
                    raise RequestFailed(INVALID_REQUEST, f"Denied by a rule of the user: {reason}")
        return ask(request)

    async def _decide(self, request: RequestPermission, aside: "StepAside") -> Reply:
        handler = self._handlers.get(request.session_id)
        if handler is None:  # of a session whose folder is not known here: no rule about files could be judged
            aside()
            return await self._client.link.ask(request)
        aside()
        chosen = await handler(request)
        if isinstance(chosen, PermissionAnswer):
            return chosen
        return PermissionAnswer(Dismissed() if chosen is None else Selected(chosen.option_id))

    async def _ask_editor(self, request: RequestPermission) -> PermissionOption | PermissionAnswer | str | None:
        return await self._client.link.ask(request)

    def from_client(self, note: Note) -> Note:
        if isinstance(note, CancelTurn) and (handler := self._handlers.get(note.session_id)) is not None:
            handler.dismiss()
        return note

    def from_agent(self, session_id: str, event: AnyEvent) -> "SessionEvents":
        if isinstance(event, Running) and (handler := self._handlers.get(session_id)) is not None:
            handler.new_turn()
        return ((session_id, event),)

    def _handler(self, roots: list[str]) -> PermissionHandler:
        from dragoman.cli.home import own_folders, started_files

        return PermissionHandler(
            self._policy,
            roots,
            self._ask_editor,
            protected_paths=started_files(),
            private_folders=own_folders(),
            on_decision=self._recorder(),
        )

    def _recorder(self) -> "OnDecision | None":
        if not self._agent_name:
            return None
        from dragoman.cli.decisions import DecisionRecorder
        from dragoman.cli.settings import read_settings

        return DecisionRecorder(self._agent_name, content=read_settings().flag("audit_content")).record

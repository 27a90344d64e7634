"""Sessions of an agent behind `dragoman bridge`, for an agent that cannot list them or open them again.

Every session that passes is recorded, as `run`, `chat` and `serve` record those of other agents. From that:

    list      of an agent that cannot list: its recorded sessions, by the agent's own ids
    open      of an agent that can neither load nor resume: the recorded history is shown to the editor, and a new
              session is opened at the agent, whose first prompt takes a record of the old one along
    delete    our recording goes with the session, also where the agent itself deletes nothing

A session that was opened so has two ids: the editor's, under which it is still recorded, and the agent's.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.history import History
from dragoman.bridge import BridgeServices
from dragoman.cli.text_width import harmless_line
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, RequestFailed, echo
from dragoman.store.contract import BadCursor, SessionMeta, SessionMissing, Store, StoreFailed
from dragoman.store.entries import NoteEntry
from dragoman.store.log_places import counting
from dragoman.store.recording import ORIGIN, Recordings, SessionRecorder, recorded_agent, recorded_id
from dragoman.vocabulary.asking import Done, Note, Reply, Request
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent, Idle, Notice, UserMessage
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello
from dragoman.vocabulary.requests import (
    CloseSession,
    DeleteSession,
    ForkSession,
    ListSessions,
    NewSession,
    PromptRequest,
    ResumeSession,
    SessionInfo,
    SessionList,
    SessionOpened,
    UnknownReplay,
)
from dragoman.vocabulary.session_ids import session_of, with_session

if TYPE_CHECKING:
    from dragoman.bridge.services import AskOther, Opening, SessionEvents, StepAside
    from dragoman.bridge.sides import BridgeSide
    from dragoman.cli.handoff import SessionRecord

# Pages of the store that one answer is made of: other agents may have more recordings than this one.
_PAGES: Final = 20
_SESSIONS: Final = 1_000
# What is recorded waits for the disk for at most so long before it is listed.
_FLUSH_SECONDS: Final = 2.0


class _OpenSession(NamedTuple):
    """A session as it is open here. `agent_id` is what the agent calls it."""

    agent_id: str
    recorder: SessionRecorder
    reply: SessionOpened


class BridgedSessions(BridgeServices):
    """Records the sessions of the agent called `agent` in `store`, and supplies what it cannot do with them."""

    watches_text = True
    watches_updates = True

    def __init__(self, store: Store, agent: str, *, days: int) -> None:
        self.trouble = ""  # a sentence, if the disk has not taken a recording
        self._store = store
        self._name = agent
        self._recordings = Recordings(store, agent, days=days, on_failure=self._on_failure)
        self._can = AgentCapabilities()
        self._open: dict[str, _OpenSession] = {}  # by the editor's ids
        self._editor_ids: dict[str, str] = {}  # by the agent's, where they differ
        self._replaying: dict[str, int] = {}  # sessions that the agent opens again, and how much it has shown of each
        self._handoffs: dict[str, SessionRecord] = {}  # what goes along with the first prompt
        self._handed: dict[str, list[Content]] = {}  # what the editor is not shown of its own prompt
        self._client: BridgeSide

    def __repr__(self) -> str:
        return f"<BridgedSessions {self._name} open={len(self._open)} renamed={len(self._editor_ids)}>"

    def attach(self, client: "BridgeSide", agent: "BridgeSide") -> None:
        self._client = client

    def hello(self, agent: AgentHello) -> AgentHello:
        self._can = can = agent.capabilities
        supplied: dict[str, Any] = {"list": True, "delete": True}
        if not self._reopens:
            supplied |= {"load": True, "resume": True}
        return replace(agent, capabilities=replace(can, **supplied))

    @property
    def _reopens(self) -> bool:
        return self._can.load or self._can.resume

    # -- the client --------------------------------------------------------------------------------------------------

    def serve_client(self, request: Request, ask: "AskOther", aside: "StepAside") -> Awaitable[Reply]:
        match request:
            case ListSessions() if not self._can.list:
                return self._list(request)
            case ResumeSession():
                if self._reopens:
                    return self._reopen(request, ask, aside)
                aside()
                return self._open_recorded(request, ask)
            case DeleteSession():
                return self._delete(request, ask)
            case CloseSession():
                return self._close(request, ask)
            case NewSession() | ForkSession():
                return self._open_new(request, ask)
            case PromptRequest():
                request = self._with_record(request)
        return ask(self._for_agent(request))

    def from_client(self, note: Note) -> Note:
        named = self._open.get(session_of(note) or "")
        return note if named is None else with_session(note, named.agent_id)

    def _for_agent(self, request: Request) -> Request:
        named = self._open.get(session_of(request) or "")
        return request if named is None else with_session(request, named.agent_id)

    def on_opened(self, request: "Opening", reply: SessionOpened) -> SessionOpened:
        session_id = reply.session_id
        if isinstance(request, ResumeSession):
            session_id = request.session_id
        elif not self._reopens:
            # Each process of such an agent may count its sessions from one: a later one must not go on with this.
            session_id = f"{reply.session_id}-{secrets.token_hex(4)}"
        if reply.session_id not in ("", session_id):
            self._editor_ids[reply.session_id] = session_id
        if session_id in self._open:
            self._open[session_id] = self._open[session_id]._replace(reply=reply)
            return reply
        recorder = self._recordings.of(session_id, request.cwd)
        self._open[session_id] = _OpenSession(reply.session_id or session_id, recorder, reply)
        if len(self._open) > _SESSIONS:
            self._forget(next(iter(self._open)))
        return replace(reply, session_id=session_id)

    async def _open_new(self, request: NewSession | ForkSession, ask: "AskOther") -> Reply:
        opened = await ask(self._for_agent(request))
        assert isinstance(opened, SessionOpened)
        return replace(opened, session_id=self._editor_ids.get(opened.session_id, opened.session_id))

    async def _reopen(self, request: ResumeSession, ask: "AskOther", aside: "StepAside") -> Reply:
        """Have the agent open it; record what it replays, if that is not recorded yet.

        An agent may say that it can and not find its own session: then it goes on from our recording, if there is one.
        """
        session_id = request.session_id
        if session_id not in self._open:
            recorder = self._recordings.of(session_id, request.cwd)
            self._open[session_id] = _OpenSession(session_id, recorder, SessionOpened())
        self._replaying[session_id] = 0
        try:
            return await ask(request)
        except RequestFailed as failed:
            is_shown = self._replaying[session_id] > 0
            self._forget(session_id)
            if is_shown or failed.code == AUTH_REQUIRED or not await self._is_recorded(session_id):
                raise
            lost = failed
        except BaseException:
            self._forget(session_id)
            raise
        finally:
            self._replaying.pop(session_id, None)
        aside()
        title = f"The agent could not open this session: {harmless_line(lost.message)}"
        notice = Notice("warning", title, "It is a new one for the agent, which is given a record of the old one.")
        return await self._open_recorded(request, ask, notice)

    async def _is_recorded(self, session_id: str) -> bool:
        with suppress(StoreFailed):
            await self._store.read_meta(recorded_id(self._name, session_id))
            return True
        return False

    async def _close(self, request: CloseSession, ask: "AskOther") -> Reply:
        reply = await ask(self._for_agent(request))
        self._forget(request.session_id)
        return reply

    async def _delete(self, request: DeleteSession, ask: "AskOther") -> Reply:
        named = self._open.get(request.session_id)
        was_there = await self._delete_recording(request.session_id)
        if self._can.delete:
            return await ask(request if named is None else with_session(request, named.agent_id))
        if not was_there:
            raise _missing(request.session_id)
        return Done()

    async def _delete_recording(self, session_id: str) -> bool:
        named = self._open.get(session_id)
        if named is not None:
            await named.recorder.close()
            self._forget(session_id)
        with suppress(StoreFailed):
            return await self._store.delete(recorded_id(self._name, session_id))
        return False

    def _forget(self, session_id: str) -> None:
        named = self._open.pop(session_id, None)
        self._handoffs.pop(session_id, None)
        self._handed.pop(session_id, None)
        if named is not None:
            named.recorder.end()
            self._editor_ids.pop(named.agent_id, None)

    # -- what is recorded --------------------------------------------------------------------------------------------

    async def _list(self, request: ListSessions) -> Reply:
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                for named in list(self._open.values()):
                    await named.recorder.flush()
        own = recorded_agent(recorded_id(self._name, ""))
        found: list[SessionInfo] = []
        cursor = request.cursor or None
        try:
            for _ in range(_PAGES):
                page = await self._store.list(cwd=request.cwd or None, cursor=cursor)
                found += [await self._info(meta) for meta in page.sessions if recorded_agent(meta.id) == own]
                cursor = page.cursor
                if found or cursor is None:
                    break
        except BadCursor:
            raise RequestFailed(INVALID_PARAMS, "This cursor is not one of ours, or too old") from None
        except StoreFailed as failure:
            raise RequestFailed(INTERNAL_ERROR, f"The recorded sessions cannot be read: {failure}") from None
        return SessionList([one for one in found if one.session_id], cursor or UNSET)

    async def _info(self, meta: SessionMeta) -> SessionInfo:
        """Return a recorded session as the agent would list it; without an id if its recording is damaged."""
        session_id = ""
        with suppress(StoreFailed):
            async for records in self._store.read(meta.id):
                entry = records[0].entry
                if isinstance(entry, NoteEntry) and entry.kind == ORIGIN and isinstance(entry.value, dict):
                    session_id = str(entry.value.get("session", ""))
                break
        used = datetime.fromtimestamp(meta.activity / 1_000_000, UTC)
        directories = list(meta.directories) or UNSET
        return SessionInfo(session_id, meta.cwd, directories, meta.title or UNSET, used.isoformat(timespec="seconds"))

    async def _open_recorded(self, request: ResumeSession, ask: "AskOther", notice: Notice | None = None) -> Reply:
        """Show the recorded history, then the notice, and open a new session at the agent in its place."""
        if isinstance(request.replay_from, UnknownReplay):
            raise RequestFailed(INVALID_PARAMS, "Sessions of this agent are replayed from the start")
        named = self._open.get(request.session_id)
        if named is not None:
            await named.recorder.flush()
        history = await self._history(request.session_id)
        if request.replay_from:
            for event in history.replay_events():
                await self._client.link.send_event(request.session_id, event)
        if notice is not None:
            await self._client.link.send_event(request.session_id, notice)
        await self._client.link.send_event(request.session_id, Idle())
        if named is not None:  # it is open already, and the agent remembers it
            return replace(named.reply, session_id="")
        from dragoman.cli.handoff import record_of

        name = recorded_id(self._name, request.session_id)
        read = partial(self._store.read, name)
        self._handoffs[request.session_id] = await record_of(counting(read), await self._store.read_meta(name))
        opened = await ask(
            NewSession(request.cwd, request.additional_directories, request.mcp_servers or [], request.system_prompt)
        )
        assert isinstance(opened, SessionOpened)
        return replace(opened, session_id="")

    async def _history(self, session_id: str) -> History:
        history = History()
        try:
            async for entries in self._entries(recorded_id(self._name, session_id)):
                history.apply(entries)
        except SessionMissing:
            raise _missing(session_id) from None
        except StoreFailed as failure:
            raise RequestFailed(INTERNAL_ERROR, f"The recorded session cannot be read: {failure}") from None
        history.apply(history.repairs())
        return history

    async def _entries(self, name: str) -> AsyncIterator[list[Any]]:
        async for records in counting(partial(self._store.read, name)):
            yield [record.entry for record in records]

    def _with_record(self, request: PromptRequest) -> PromptRequest:
        record = self._handoffs.pop(request.session_id, None)
        if record is None:
            return request
        blocks = record.blocks(self._can)
        self._handed[request.session_id] = blocks
        return replace(request, prompt=[*request.prompt, *blocks])

    # -- the agent ---------------------------------------------------------------------------------------------------

    def serve_agent(self, request: Request, ask: "AskOther", aside: "StepAside") -> Awaitable[Reply]:
        editor_id = self._editor_ids.get(session_of(request) or "")
        return ask(request if editor_id is None else with_session(request, editor_id))

    def note_from_agent(self, note: Note) -> Note:
        editor_id = self._editor_ids.get(session_of(note) or "")
        return note if editor_id is None else with_session(note, editor_id)

    def from_agent(self, session_id: str, event: AnyEvent) -> "SessionEvents":
        session_id = self._editor_ids.get(session_id, session_id)
        handed = self._handed.get(session_id)
        if handed is not None and isinstance(event, UserMessage) and event.content:
            event = replace(event, content=[block for block in event.content if block not in handed])
        if session_id in self._replaying:
            self._replaying[session_id] += 1
        named = self._open.get(session_id)
        if named is not None:
            named.recorder.record(event, is_replay=session_id in self._replaying)
        return ((session_id, event),)

    async def close(self) -> None:
        await self._recordings.close()

    def _on_failure(self, sentence: str) -> None:
        self.trouble = self.trouble or sentence


def _missing(session_id: str) -> RequestFailed:
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})

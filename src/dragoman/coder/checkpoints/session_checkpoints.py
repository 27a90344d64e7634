"""The checkpoints of one open session of the coding agent: what its calls change is kept, and can be rewound.

Made with the first turn; nothing is looked at, git is not started and the rest of this package is not imported before
a call that may change files.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from dragoman.agent.journal import Journal
from dragoman.agent.session import Session, new_id, session_core
from dragoman.errors import RequestFailed
from dragoman.permissions.facts import Action
from dragoman.store.contract import Record
from dragoman.store.entries import Entry, NoteEntry

if TYPE_CHECKING:
    from dragoman.coder.checkpoints.areas import Areas
    from dragoman.coder.checkpoints.checkpoints import Checkpoints
    from dragoman.coder.checkpoints.plan import FileTarget, Trouble
    from dragoman.coder.checkpoints.rewinding import Rewinder

# What may change a file. A read-only command is known to do nothing.
_CHANGES: Final = frozenset({"edit", "execute", "other", "foreign"})


class JournalLog:
    """The log of a session that is open."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def read(self) -> list[Record]:
        await self._journal.log.flush()
        return [record async for records in self._journal.log.read() for record in records]

    async def write(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            assert isinstance(entry, NoteEntry)
            await self._journal.record_note(entry.kind, entry.value)
        await self._journal.log.flush()


class SessionCheckpoints:
    """Keeps what the turns of one session change. Without a store or a data folder it does nothing."""

    def __init__(
        self,
        session: Session,
        home: str,
        roots: Callable[[], Sequence[str]],
        environment: Mapping[str, str],
        leave_out: Sequence[str],
        warn: Callable[[str], Awaitable[None]],
    ) -> None:
        """`roots`: their real paths. `leave_out`: real paths of our own, which are not looked at."""
        self._session = session
        self._home = home
        self._roots = roots
        self._environment = environment
        self._leave_out = leave_out
        self._warn = warn
        self._turn = ""
        self._made: Checkpoints | None = None

    def __repr__(self) -> str:
        return f"<SessionCheckpoints {self._made!r}>"

    def begin_turn(self, message_id: str) -> None:
        """Begin the turn of a prompt."""
        self._turn = message_id

    async def before_call(self, acts: Sequence[Action]) -> None:
        """Keep what is there before an approved call changes it. Waits for the disk."""
        if any(map(_may_change, acts)) and (checkpoints := self._checkpoints()) is not None:
            paths = [act.subject for act in acts if act.kind == "edit"]
            # What is written in a view is no file of the editor's.
            of_editor = [act.subject for act in acts if act.kind == "edit" and not act.kind_in_view]
            texts = {path: await self.unsaved_text(path) for path in of_editor}
            unsaved = {path: text.encode("utf-8", "replace") for path, text in texts.items() if text is not None}
            await checkpoints.before_change(self._turn, paths, unsaved)

    async def end_turn(self) -> None:
        """Keep what the turn has left. A second call does nothing."""
        if self._made is not None:
            await self._made.end_turn()

    def rewinder(self, is_refused: Callable[[str], bool], running: Callable[[], Sequence[str]]) -> "Rewinder":
        """Return what rewinds the session; `is_refused` says which files may not be changed, `running` what goes on.

        Raises `RequestFailed` for a session that is not stored.
        """
        from dragoman.coder.checkpoints.rewinding import Rewinder, not_stored

        checkpoints, log = self._checkpoints(), self._log()
        if checkpoints is None or log is None:
            raise not_stored()

        async def refusal(target: "FileTarget") -> "Trouble | None":
            if await asyncio.to_thread(is_refused, target.path):
                return "protected"
            return None if await self.unsaved_text(target.path) is None else "unsaved in the editor"

        return Rewinder(log, checkpoints, self._roots(), refusal, lambda: new_id("rw"), running)

    def _log(self) -> JournalLog | None:
        journal = session_core(self._session).journal
        return None if journal is None else JournalLog(journal)

    def _checkpoints(self) -> "Checkpoints | None":
        if self._made is None and self._home and (log := self._log()) is not None:
            from dragoman.coder.checkpoints.checkpoints import Checkpoints

            self._made = Checkpoints(log, self._find_areas, self._warn)
        return self._made

    def _find_areas(self) -> "Areas":
        from dragoman.coder.checkpoints.areas import Areas
        from dragoman.coder.checkpoints.cleaning import clean_sometimes

        clean_sometimes(self._home)
        return Areas.find(self._home, self._session.id, self._roots(), self._environment, self._leave_out)

    async def unsaved_text(self, path: str) -> str | None:
        """Return the text that the client shows of a file where the disk has another: it is not saved; else None."""
        client = self._session.client
        if not client.read_text_file or session_core(self._session).is_elsewhere:
            return None
        saved = await asyncio.to_thread(_saved_text, path)
        if saved is None:
            return None
        try:
            shown = await self._session.read_text_file(path)
        except RequestFailed:
            return None  # it has no such file open
        # Editors show neither the mark that some files begin with nor how lines end.
        if _as_shown(shown) == _as_shown(saved):
            return None
        return shown.replace("\n", "\r\n") if "\r\n" in saved and "\r" not in shown else shown


def _saved_text(path: str) -> str | None:
    """Return the text of a file; None: there is none, or it is no UTF-8, or too large. Blocks."""
    from dragoman.coder.checkpoints.areas import content_at

    try:
        data = None if os.path.islink(path) or not os.path.isfile(path) else content_at(path)[1]
        return None if data is None else data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _as_shown(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _may_change(act: Action) -> bool:
    kind = act.kind_in_view or act.kind
    return kind in _CHANGES and not act.harmless

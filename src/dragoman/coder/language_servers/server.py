"""One language server of a session: started when it is used, restarted a few times, stopped when it idles.

One task owns the process, from its start to its end; `problems_of` is what others wait for. Promise: whatever the
server does, a wait ends at its deadline, and after `close` nothing of it is left.

State       | meaning
stopped     | there is no process: not used yet, idle for long, or lost; the next use starts one
starting    | the process is there and has not answered `initialize`
ready       | it is asked for problems
given up    | it was lost more often than it is started again: nothing is asked or waited for any more
closed      | the session has ended
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET, MsgspecError, Raw, UnsetType

from dragoman.background import call_in_background
from dragoman.coder.language_servers.known import FoundServer
from dragoman.coder.language_servers.launch import ServerPlace, ServerStart, prepare
from dragoman.coder.language_servers.problems import Problem
from dragoman.errors import DragomanError
from dragoman.host.guardian import Guardian
from dragoman.host.process import Child
from dragoman.host.resources import UsageWatch

if TYPE_CHECKING:
    from dragoman.coder.language_servers.connection import ServerConnection
    from dragoman.coder.language_servers.messages import Published, ServerAbilities


_log = logging.getLogger(__name__)


class ServerTimeouts(NamedTuple):
    """How long anything may take, in seconds, and how often a server is started again."""

    # An edit waits so long for new errors, and less for a server that was late before, down to `least`.
    edit: float = 3.0
    least: float = 0.3
    # The model has asked for it: so it waits longer.
    tool: float = 20.0
    # What is not known by then is given up; before, it is told late.
    late: float = 90.0
    start: float = 60.0
    stop: float = 1.0
    # A server that says nothing more for so long has said all; those that name the version of a text say it at once.
    quiet: float = 0.5
    quiet_of_version: float = 0.1
    idle: float = 600.0
    look: float = 2.0
    restarts: int = 3
    # A server that lived for so long may be lost as often as a new one.
    steady: float = 300.0


class ServerState(Enum):
    """See the table above."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    GIVEN_UP = "given up"
    CLOSED = "closed"


class _Document:
    """A file that a server has open: its text there, and what the server has said of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edition = 1
        self.published: Published | None = None
        # What the file on the disk looked like when the server was sent its text.
        self.stamp = ""
        # Set by each publication of this text.
        self.news: Final = asyncio.Event()
        # One question at a time: each sends a text and waits for what is said of that text.
        self.asking: Final = asyncio.Lock()


# Before a server that refused to say what it sees is asked again.
_PULL_PAUSES: Final = (0.2, 0.5, 2.0)
# What a server has open; the file that was used longest ago is closed for one more.
MOST_DOCUMENTS: Final = 64


class LanguageServer:
    """One server, and the task that owns its process."""

    def __init__(
        self,
        found: FoundServer,
        place: ServerPlace,
        guardian: Callable[[], Guardian],
        timeouts: ServerTimeouts,
    ) -> None:
        self.found: Final = found
        self.state = ServerState.STOPPED
        self.patience = timeouts.edit
        # Whether the process that runs is confined; None: none runs.
        self.is_confined: bool | None = None
        self.place: Final = place
        self._guardian = guardian
        self._timeouts = timeouts
        self._crashes = 0
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # no longer starting
        self._connection: ServerConnection | None = None
        self._abilities: ServerAbilities | None = None
        self._pulls = False
        self._documents: dict[str, _Document] = {}
        self._used_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self.found.spec.name

    @property
    def can_answer(self) -> bool:
        """Whether it is worth asking: it was neither given up nor closed."""
        return self.state not in (ServerState.GIVEN_UP, ServerState.CLOSED)

    def __repr__(self) -> str:
        lost = f", lost {self._crashes} times" if self._crashes else ""
        return f"<LanguageServer {self.name} {self.state.value}, {len(self._documents)} files open{lost}>"

    # -- problems -----------------------------------------------------------------------------------------------------

    async def problems_of(self, path: str, text: str, *, saved: bool = False) -> list[Problem] | None:
        """Return the problems of a file with this text; None: the server cannot say. Waits for the server.

        `saved`: the file has just been written with this text. The caller bounds the wait.
        """
        self._used_at = self._loop.time()
        connection = await self._ready_connection()
        if connection is None:
            return None
        self._close_changed(connection, path)
        document = self._documents.get(path)
        is_new = document is None
        if document is None:
            document = self._open(connection, path, text)
        async with document.asking:
            # Closed while it waited: deleted, or written by something else.
            if connection.lost.is_set() or self._documents.get(path) is not document:
                return None
            has_changed = not is_new and document.text != text
            if has_changed:
                self._change(connection, path, document, text)
            if saved:
                self._save(connection, path, text)
            items = await self._items(connection, path, document)
            if items is None:
                return None
            from dragoman.coder.language_servers import messages

            assert self._abilities is not None
            return messages.problems(path, items, document.text, self._abilities.encoding)

    async def _items(self, connection: "ServerConnection", path: str, document: _Document) -> list[object] | None:
        """Return the diagnostics of a file as the server has it: those it is asked for, and those it has sent."""
        if not self._pulls and document.published is None:
            await self._wait_for_publication(connection, document)
        sent = None if document.published is None else document.published.items
        if not self._pulls:
            return None if sent is None else [*sent]
        asked = await self._pull(connection, path)
        return None if asked is None else [*asked, *(sent or ())]

    async def _pull(self, connection: "ServerConnection", path: str) -> Sequence[object] | None:
        from dragoman.coder.language_servers import messages
        from dragoman.coder.language_servers.connection import RequestRefused, ServerLost

        for pause in _PULL_PAUSES:
            try:
                answer = await connection.request("textDocument/diagnostic", messages.pull(path), self._timeouts.late)
                return messages.pulled(answer)
            except RequestRefused:
                # It is still reading the project, or has other news of it meanwhile.
                await asyncio.sleep(pause)
            except (ServerLost, TimeoutError):
                break
        return None

    async def _wait_for_publication(self, connection: "ServerConnection", document: _Document) -> None:
        """Wait until the server has said something of this text, and then nothing more for a moment; or is lost."""
        lost = asyncio.ensure_future(connection.lost.wait())
        try:
            seconds: float | None = None
            while True:
                news = asyncio.ensure_future(document.news.wait())
                try:
                    await asyncio.wait([news, lost], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if lost.done() or not document.news.is_set() or self._pulls:
                    return
                document.news.clear()
                has_version = document.published is not None and document.published.version is not None
                seconds = self._timeouts.quiet_of_version if has_version else self._timeouts.quiet
        finally:
            lost.cancel()

    # -- what it is told ----------------------------------------------------------------------------------------------

    def _open(self, connection: "ServerConnection", path: str, text: str) -> _Document:
        from dragoman.coder.language_servers import messages

        while len(self._documents) >= MOST_DOCUMENTS:
            oldest = next((name for name, one in self._documents.items() if not one.asking.locked()), "")
            if not oldest:
                break
            self._documents.pop(oldest)
            connection.notify("textDocument/didClose", messages.did_close(oldest))
        document = self._documents[path] = _Document(text)
        language = self.found.spec.language_of(path)
        document.stamp = _stamp(path)
        connection.notify("textDocument/didOpen", messages.did_open(path, language, 1, text))
        return document

    def _close_changed(self, connection: "ServerConnection", path: str) -> None:
        """Close files other than `path` that something has written since, such as a command.

        The server would go on with their old text, and see errors in others that use them.
        """
        from dragoman.coder.language_servers import messages

        changed = [
            name
            for name, one in self._documents.items()
            if name != path and not one.asking.locked() and one.stamp != _stamp(name)
        ]
        for name in changed:
            del self._documents[name]
            connection.notify("textDocument/didClose", messages.did_close(name))
        if changed:
            told = {name: "changed" if os.path.lexists(name) else "deleted" for name in changed}
            connection.notify("workspace/didChangeWatchedFiles", messages.files_changed(told))

    def _change(self, connection: "ServerConnection", path: str, document: _Document, text: str) -> None:
        from dragoman.coder.language_servers import messages

        self._documents[path] = self._documents.pop(path)  # used last
        document.text, document.stamp = text, _stamp(path)
        document.edition += 1
        document.published = None
        document.news.clear()
        connection.notify("textDocument/didChange", messages.did_change(path, document.edition, text))

    def _save(self, connection: "ServerConnection", path: str, text: str) -> None:
        from dragoman.coder.language_servers import messages

        assert self._abilities is not None
        if self._abilities.on_save:
            with_text = text if self._abilities.text_on_save else None
            connection.notify("textDocument/didSave", messages.did_save(path, with_text))

    def tell_of_files(self, changes: Mapping[str, str]) -> None:
        """Tell a server that runs which files were `created`, `changed` or `deleted`; deleted ones are closed."""
        if self.state is not ServerState.READY or self._connection is None:
            return
        from dragoman.coder.language_servers import messages

        for path, kind in changes.items():
            if kind == "deleted" and self._documents.pop(path, None) is not None:
                self._connection.notify("textDocument/didClose", messages.did_close(path))
        self._connection.notify("workspace/didChangeWatchedFiles", messages.files_changed(changes))

    # -- what it sends ------------------------------------------------------------------------------------------------

    def _receive(self, method: str, params: Raw | UnsetType) -> None:
        from dragoman.coder.language_servers import messages

        if method != "textDocument/publishDiagnostics" or params is UNSET:
            return
        said = messages.published(params)
        document = self._documents.get(said.path) if said is not None else None
        # Of a file that is not open here, or of an earlier text of it, nothing is kept.
        if said is None or document is None or said.version not in (None, document.edition):
            return
        document.published = said._replace(items=said.items[: messages.MOST_PROBLEMS])
        document.news.set()

    def _answer(self, method: str, params: Raw | UnsetType) -> object:
        from dragoman.coder.language_servers import messages

        if method == "client/registerCapability" and params is not UNSET and messages.registers_pull(params):
            self._pulls = True
            for document in self._documents.values():
                document.news.set()  # those that wait for what it sends are to ask it
        return messages.answer(method, params, self.place.roots)

    # -- its life -----------------------------------------------------------------------------------------------------

    async def _ready_connection(self) -> "ServerConnection | None":
        """Return the connection, started if need be; None: there is none to be had."""
        if self.state is ServerState.STOPPED:
            self.state = ServerState.STARTING
            self._settled.clear()
            self._owner = self._loop.create_task(self._own(), name=f"language server {self.name}")
        await self._settled.wait()
        return self._connection if self.state is ServerState.READY else None

    async def close(self) -> None:
        """Stop the server with everything it has started, within the bounds of a child."""
        is_running = self._owner is not None and not self._owner.done()
        self.state = ServerState.CLOSED
        self._settled.set()
        if is_running and self._owner is not None:
            self._owner.cancel()
            await asyncio.wait([self._owner])

    async def _own(self) -> None:
        """Run one process of the server to its end."""
        began = self._loop.time()
        is_lost = True
        try:
            is_lost = await self._run()
        except asyncio.CancelledError:
            is_lost = False
            raise
        except (DragomanError, TimeoutError, MsgspecError, OSError, ImportError) as error:
            _log.info("language server %s failed: %s", self.name, type(error).__name__)
        except Exception as error:
            # A server that is refused or lost while it starts; whatever it is, the session goes on.
            _log.info("language server %s was lost while it started: %s", self.name, type(error).__name__)
        finally:
            self._connection, self.is_confined = None, None
            self._documents.clear()
            self._count_end(is_lost, self._loop.time() - began)

    def _count_end(self, is_lost: bool, lived: float) -> None:
        if self.state is ServerState.CLOSED:
            return
        if lived >= self._timeouts.steady:
            self._crashes = 0
        self._crashes += is_lost
        self.state = ServerState.GIVEN_UP if self._crashes > self._timeouts.restarts else ServerState.STOPPED
        _log.info("language server %s is %s", self.name, self.state.value)
        self._settled.set()

    async def _run(self) -> bool:
        """Start the process, and hold it until it is lost or idle; return whether it was lost."""
        preparing = asyncio.ensure_future(asyncio.to_thread(prepare, self.found, self.place))
        try:
            launch = await asyncio.shield(preparing)
        except asyncio.CancelledError:
            # A thread cannot be stopped: what it makes is to be taken away.
            with suppress(DragomanError):
                await asyncio.to_thread((await preparing).close)
            raise
        try:
            child = self._guardian().start(launch.argv, cwd=self.place.roots[0], env=launch.environment)
            try:
                await call_in_background(_load)  # meanwhile it starts
                return await self._live(child, launch)
            finally:
                await child.stop()
                self._guardian().leave(child.pid)
        finally:
            await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(launch.close)))

    async def _live(self, child: Child, launch: ServerStart) -> bool:
        from dragoman.coder.language_servers import messages
        from dragoman.coder.language_servers.connection import ServerConnection

        connection = ServerConnection(child, self._receive, self._answer)
        try:
            answer = await connection.request(
                "initialize", messages.initialize(self.place.roots, self.found.spec.options), self._timeouts.start
            )
            self._abilities = messages.abilities(answer)
            self._pulls = self._abilities.pulls
            connection.notify("initialized", Raw(b"{}"))
            self._connection, self.is_confined = connection, launch.is_confined
            self.state = ServerState.READY
            self._used_at = self._loop.time()
            self._settled.set()
            _log.info("language server %s is ready", self.name)
            is_lost = await self._hold(connection, child, launch)
            if not is_lost:
                await self._shut_down(connection)
            return is_lost
        except asyncio.CancelledError:
            await self._shut_down(connection)
            raise
        finally:
            connection.close("it was stopped")

    async def _hold(self, connection: "ServerConnection", child: Child, launch: ServerStart) -> bool:
        """Wait until the server is lost, has outgrown its memory (True), or has been idle for long (False)."""
        watch = UsageWatch(launch.limits, child.members)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeouts.look):
                    await connection.lost.wait()
                _log.info("language server %s was lost: %s", self.name, connection.reason)
                return True
            if await asyncio.to_thread(watch.excess):
                _log.info("language server %s has outgrown its memory or its processes", self.name)
                return True
            is_busy = any(document.asking.locked() for document in self._documents.values())
            if not is_busy and self._loop.time() - self._used_at > self._timeouts.idle:
                return False

    async def _shut_down(self, connection: "ServerConnection") -> None:
        """Ask the server to end, as the protocol has it; one that does not is ended by its owner."""
        with suppress(Exception):
            await connection.request("shutdown", None, self._timeouts.stop)
            connection.notify("exit", Raw(b"null"))


def _stamp(path: str) -> str:
    """Return what tells one state of a file on the disk from the next; a file that is not there has one, too."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_mtime_ns} {found.st_size} {found.st_ino}"


def _load() -> None:
    """Import what speaks the protocol, and make its converter: up to a second. Raises `ImportError` without it."""
    from dragoman.coder.language_servers import connection, messages

    _ = connection.ServerConnection, messages.did_close("/")

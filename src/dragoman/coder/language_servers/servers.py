"""The language servers of one session: which of them look at a file, and what an edit has brought.

Servers work in the folders of the session that the user trusts, asked for anew with every turn; in no others, and for
no file outside of them. With the trust, or where the mode no longer lets a server run that is not confined, its process
goes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dragoman.coder.language_servers.checks import FileCheck
from dragoman.coder.language_servers.known import FoundServer, ServerSpec
from dragoman.coder.language_servers.launch import ServerPlace
from dragoman.coder.language_servers.problems import FileEdit, Problem, Seen
from dragoman.coder.language_servers.server import LanguageServer, ServerTimeouts
from dragoman.host.guardian import Guardian
from dragoman.host.paths import is_inside

# A longer file is data, or made by a program.
TEXT_CHARACTERS: Final = 1_000_000
# Files that are looked after; a change of more is the work of a program.
MOST_CHECKS: Final = 200


_log = logging.getLogger(__name__)


class LanguageServers:
    """All servers of a session. Its methods belong to the loop; `find` blocks and is called before them."""

    def __init__(
        self,
        specs: Sequence[ServerSpec],
        place: Callable[[Sequence[str]], ServerPlace],
        guardian: Callable[[], Guardian],
        trusted: Callable[[], Sequence[str]],
        programs: Callable[[], Sequence[FoundServer]],
        timeouts: ServerTimeouts | None = None,
    ) -> None:
        """`trusted` returns the real paths of the session's folders that the user trusts now, `programs` those of
        `specs` whose programs are there; both block. `place` makes of folders where servers run, as the mode is now."""
        self._specs = specs
        self._place = place
        self._programs = programs
        # Whether the model is offered the tool that asks them: as it was with the first prompt.
        self.is_offered = False
        self._guardian = guardian
        self._trusted = trusted
        self._timeouts = timeouts or ServerTimeouts()
        self._found: Sequence[FoundServer] = ()
        # Trusted folders; None: to be asked for.
        self._roots: Sequence[str] | None = None
        self._servers: dict[str, LanguageServer] = {}
        self._checks: dict[tuple[str, str], FileCheck] = {}
        self._edited: dict[str, None] = {}
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<LanguageServers {', '.join(map(repr, self._servers.values())) or 'none started'}>"

    def find(self) -> None:
        """Look for the programs and the trust, once for all that is offered. Blocks."""
        self._look()
        self.is_offered = bool(self._found and self._roots)

    @property
    def edited_paths(self) -> list[str]:
        """The files that were edited in this session and that a server looks at, in the order of their first edit."""
        return list(self._edited)

    def begin_turn(self) -> None:
        """Begin a turn: whether the folders are trusted is asked again with the first use."""
        self._roots = None

    def is_for(self, path: str) -> bool:
        """Return whether a server may be for a file, by its name: what is not costs an edit nothing more."""
        return any(spec.is_for(path) for spec in self._specs)

    async def check_edits(self, edits: Sequence[FileEdit]) -> list[Problem]:
        """Return the errors that edits have brought to their files. Waits, but no longer than `ServerTimeouts.edit`.

        What is found later has `take_late`.
        """
        checks: dict[FileCheck, asyncio.Task[None]] = {}
        for edit in edits:
            for server in await self._servers_for(edit.path):
                kind = "deleted" if edit.new is None else "created" if edit.old is None else "changed"
                server.tell_of_files({edit.path: kind})
                if edit.new is None or max(len(edit.new), len(edit.old or "")) > TEXT_CHARACTERS:
                    self._edited.pop(edit.path, None)
                    self._checks.pop((server.name, edit.path), None)
                    continue
                self._edited[edit.path] = None
                check = self._check(server, edit.path)
                checks[check] = check.begin(edit.old, edit.new)
        await asyncio.gather(*(self._wait(check.server, begun) for check, begun in checks.items()))
        return _taken(checks)

    async def _wait(self, server: LanguageServer, begun: "asyncio.Task[None]") -> None:
        """Wait for a round as long as its server deserves: one that was late before holds the next edit up less."""
        await asyncio.wait([begun], timeout=server.patience)
        in_time = begun.done()
        server.patience = self._timeouts.edit if in_time else max(server.patience / 2, self._timeouts.least)

    def take_late(self) -> list[Problem]:
        """Return, once, the new errors that were found when nothing waited for them any more."""
        return _taken(self._checks.values())

    async def look_at(self, path: str, text: str) -> Seen:
        """Return what all servers see in a file with this text. Waits as long as `ServerTimeouts.tool`."""
        servers = await self._servers_for(path) if len(text) <= TEXT_CHARACTERS else []
        if not servers:
            return Seen()
        looks = {asyncio.ensure_future(server.problems_of(path, text)): server.name for server in servers}
        try:
            await asyncio.wait(looks, timeout=self._timeouts.tool)
            answers = [look.result() if look.done() else None for look in looks]
        finally:
            for look in looks:
                look.cancel()
        late = [name for name, answer in zip(looks.values(), answers, strict=True) if answer is None]
        return Seen([one for answer in answers for one in answer or ()], list(looks.values()), late)

    async def close(self) -> None:
        """Stop all servers, at the same time, with everything they have started."""
        checks, self._checks = self._checks, {}
        await asyncio.gather(*(check.cancel() for check in checks.values()))
        servers, self._servers = self._servers, {}
        await asyncio.gather(*(server.close() for server in servers.values()))

    # -- which servers ------------------------------------------------------------------------------------------------

    def _check(self, server: LanguageServer, path: str) -> FileCheck:
        key = (server.name, path)
        check = self._checks.get(key)
        if check is None or check.server is not server:
            while len(self._checks) >= MOST_CHECKS:
                self._checks.pop(next(iter(self._checks)))
            check = self._checks[key] = FileCheck(server, path, self._timeouts.late)
        return check

    async def _servers_for(self, path: str) -> list[LanguageServer]:
        """Return the servers that look at a file, each that may run now and was not given up. Starts none."""
        if not self.is_for(path):
            return []
        async with self._changing:
            roots = self._roots if self._roots is not None else await self._ask_for_trust()
            if not any(is_inside(path, root) for root in roots):
                return []
            place = self._place(roots)
            await self._stop_unconfined(place)
            servers = [self._server(found, place) for found in self._found if found.spec.is_for(path)]
        return [server for server in servers if server.can_answer]

    async def _ask_for_trust(self) -> Sequence[str]:
        """Ask which folders are trusted. Servers that were told of others go."""
        await asyncio.to_thread(self._look)
        roots = self._roots or ()
        if any(server.place.roots != roots for server in self._servers.values()):
            await self.close()
        return roots

    def _look(self) -> None:
        self._found, self._roots = self._programs(), tuple(self._trusted())

    async def _stop_unconfined(self, place: ServerPlace) -> None:
        """Stop servers that run, or could start, unconfined where the mode does not let them by now."""
        for name, server in [*self._servers.items()]:
            if server.place.is_free and not place.is_free and not server.is_confined:
                _log.info("language server %s is not confined, and the mode wants it to be", name)
                del self._servers[name]
                await server.close()

    def _server(self, found: FoundServer, place: ServerPlace) -> LanguageServer:
        name = found.spec.name
        if name not in self._servers:
            self._servers[name] = LanguageServer(found, place, self._guardian, self._timeouts)
        return self._servers[name]


def _taken(checks: Iterable[FileCheck]) -> list[Problem]:
    """Return the new errors of checks. A list, as a check may be dropped meanwhile."""
    return [problem for check in [*checks] for problem in check.take()]

"""Whose session it is, what its agent calls it, and in which folder it was made; over restarts too.

A session belongs to the principal that made it. An agent whose every process counts its own ids may give one id to
sessions of several principals. A process that did not make those cannot tell them apart (`is_ambiguous`), so they are
not listed, and are opened in no other process.

One line a session, appended; a line that was cut off by a crash is skipped, and so are those of other agents. Without
a file it is kept in memory.
"""

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

# What is read back at a start: a million sessions have less.
# What is behind it is not read: those sessions, the newest, would belong to no principal and so to every admin.
_FILE_BYTES: Final = 256 * 1024 * 1024


class _Owned(NamedTuple):
    principal: str
    agent_id: str
    cwd: str


class SessionDirectory:
    """The sessions of one agent, as the embedded `SharedDirectory`: `agent` is its name, empty for our own."""

    def __init__(self, file: Path | None = None, agent: str = "") -> None:
        self._file = file
        self._agent = agent
        self._owned: dict[str, _Owned] = {}
        self._named: dict[str, list[str]] = {}  # by the agent's id for it
        if file is not None:
            self._read(file)

    def __repr__(self) -> str:
        return f"<SessionDirectory sessions={len(self._owned)} agent={self._agent!r}>"

    def owner(self, session_id: str) -> str | None:
        """Return the session's principal; None if the session was not made through this gateway."""
        owned = self._owned.get(session_id)
        return None if owned is None else owned.principal

    def agent_id(self, session_id: str) -> str:
        """Return its agent's id for it."""
        owned = self._owned.get(session_id)
        return session_id if owned is None else owned.agent_id

    def cwd(self, session_id: str) -> str:
        """Return the folder it was made in; empty where that is not known."""
        owned = self._owned.get(session_id)
        return "" if owned is None else owned.cwd

    def sessions_named(self, agent_id: str) -> list[str]:
        """Return the sessions to which the agent has given this id, the newest last."""
        return self._named.get(agent_id, [])

    def is_ambiguous(self, session_id: str) -> bool:
        """Return whether the agent has given this session's id to a session of another principal too."""
        principal = self.owner(session_id)
        return any(self.owner(other) != principal for other in self.sessions_named(self.agent_id(session_id)))

    def claim(self, session_id: str, principal: str, agent_id: str = "", cwd: str = "") -> bool:
        """Make this principal the owner of a session, in memory; return False if another one is, and stays so."""
        # The first claim counts, for ever: also against the same id in the file that another process has written.
        owned = self._owned.setdefault(session_id, _Owned(principal, agent_id or session_id, cwd))
        known = self._named.setdefault(owned.agent_id, [])
        if session_id not in known:
            known.append(session_id)
        return owned.principal == principal

    async def load(self, session_ids: Iterable[str] = (), *, agent_ids: Iterable[str] = ()) -> None:
        """Do nothing: there is no other server, and the file was read at the start."""

    async def persist(self, session_id: str) -> bool:
        """Append a claimed session to the file and sync it, so that it has the same owner after a restart.

        Waits for the disk, in a thread; raises `OSError`. Does nothing without a file.
        """
        if self._file is not None:
            await asyncio.to_thread(self._append, self._file, session_id)
        return True

    def _append(self, path: Path, session_id: str) -> None:
        principal, agent_id, cwd = self._owned[session_id]
        # A line of its own, even where the last one was cut off.
        line = b"\n" + msgspec.json.encode([session_id, principal, self._agent, agent_id, cwd])
        # Only the user may read it: the names of principals, and where they work.
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "ab", opener=_private) as file:
            # One write at the end of the file: lines of two threads, or of two agents of the server, do not mix.
            file.write(line)
            file.flush()
            # Before the client gets the id: after a power cut the session must not belong to every admin.
            os.fsync(file.fileno())

    def _read(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                lines = opened.read(_FILE_BYTES).split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            # A line that was cut off by a crash is no reason to lose all others.
            with suppress(ValueError, TypeError):
                match msgspec.json.decode(line, type=list[str]):
                    case [session_id, principal]:  # before agents were named: the claim counts for every agent
                        self.claim(session_id, principal)
                    case [session_id, principal, agent, agent_id, cwd] if agent == self._agent:
                        self.claim(session_id, principal, agent_id, cwd)
                    case _:
                        pass


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)

"""The sessions of one folder, as the agent lists them: newest first, and each with a number to go to it by.

A number means what it meant in the list that the user has seen last.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.cli.agent_connection import find_own_session
from dragoman.cli.errors import CommandError
from dragoman.cli.target import Target
from dragoman.cli.terminal.event_text import title
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.client.connect import Client
from dragoman.vocabulary.requests import ListSessions, SessionInfo

# Sessions listed at once.
LISTED: Final = 20


class FolderSessions:
    """The sessions of one folder at one target. It outlives a connection, and remembers the list shown last."""

    def __init__(self, target: Target, folder: str) -> None:
        self._target = target
        self._folder = os.path.abspath(folder)
        self._sessions: Sequence[SessionInfo] = ()

    async def newest(self, client: Client) -> str:
        """Return the id of the newest; `CommandError` if there is none."""
        self._sessions = await self._list_sessions(client)
        if not self._sessions:
            raise CommandError("there is no session of this folder to go on with")
        return self._sessions[0].session_id

    async def choose(self, client: Client, say: Callable[[str], object]) -> str:
        """Ask at the terminal which one is meant, and return its id. One that stands alone needs no question.

        Raises `CommandError` if there is none, or none is chosen.
        """
        only = await self.newest(client)
        lines = [_line(number, info, "") for number, info in enumerate(self._sessions, 1)]
        if len(lines) == 1:
            return only
        for line in lines:
            say(line)
        from prompt_toolkit import PromptSession

        asking: PromptSession[str] = PromptSession()
        while True:
            try:
                typed = (await asking.prompt_async("Which one? A number; Enter is 1, Ctrl-C leaves: ")).strip() or "1"
            except (EOFError, KeyboardInterrupt):
                raise CommandError("no session was chosen") from None
            if typed.isdecimal() and 0 < int(typed[:4]) <= len(lines):
                return self._sessions[int(typed) - 1].session_id
            say(f"From 1 to {len(lines)}.")

    async def lines(self, client: Client, here: str) -> list[str]:
        """Return the list as it is shown; the session we are in is marked."""
        self._sessions = await self._list_sessions(client)
        lines = [_line(number, info, here) for number, info in enumerate(self._sessions, 1)]
        return [*lines, "/sessions NUMBER goes to one." if self._sessions else "No sessions of this folder."]

    async def named(self, wanted: str) -> str:
        """Return the id of the session that is meant by a number, by (the beginning of) its id or by its title."""
        if wanted.isdecimal() and len(wanted) < 4 and 0 < int(wanted) <= len(self._sessions):
            return self._sessions[int(wanted) - 1].session_id
        if self._target.ours:
            session_id, _ = await find_own_session(wanted, self._folder)
            return session_id
        return wanted

    async def _list_sessions(self, client: Client) -> list[SessionInfo]:
        if not client.agent.capabilities.list:
            raise CommandError("this agent does not list its sessions")
        page = await client.ask(ListSessions(self._folder))
        return page.sessions[:LISTED]


def _line(number: int, info: SessionInfo, here: str) -> str:
    mark = "*" if info.session_id == here else " "
    when = info.updated_at[:16].replace("T", " ") if isinstance(info.updated_at, str) else ""
    name = title(info.title if isinstance(info.title, str) and info.title else info.session_id)
    return f"{mark}{number:>3}  {sanitize_line(when)}  {name}"

"""What edits bring to one file, as one server sees it: the check of that file.

A check knows the problems of the file as it was before the first edit whose errors were not told yet (`base`), and
compares with them what the server says of the newest text. So an edit that comes before the server has spoken of the
last one is told of together with that, and an error that the second edit has mended is not told at all. A check goes on
when the edit does not wait for it any more; what it finds then is late.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dragoman.coder.language_servers.problems import Problem, new_problems
from dragoman.coder.language_servers.server import LanguageServer


class FileCheck:
    """The check of one file by one server."""

    def __init__(self, server: LanguageServer, path: str, seconds: float) -> None:
        """`seconds`: how long a round may take in all, whether or not anything waits for it."""
        self.server = server
        self.path = path
        self._seconds = seconds
        # The text that was told of last, and its problems; None: they are not known.
        self._base_text = ""
        self._base: Sequence[Problem] | None = None
        # The newest text, and its problems, once the server has said them.
        self._text = ""
        self._now: Sequence[Problem] | None = None
        self._round: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<FileCheck of {self.server.name}, {'running' if self._is_running else 'done'}>"

    @property
    def _is_running(self) -> bool:
        return self._round is not None and not self._round.done()

    def begin(self, old: str | None, new: str) -> "asyncio.Task[None]":
        """Begin a round, or have the one that runs look at the newest text. `old` None: the file is new."""
        if not self._is_running and (self._base is None or old != self._text):
            # Never looked at, or something else has changed it since.
            self._base_text, self._base = old or "", None if old is not None else ()
        self._text, self._now = new, None
        if self._round is None or self._round.done():
            self._round = asyncio.get_running_loop().create_task(self._run())
        return self._round

    def take(self) -> list[Problem]:
        """Return the errors that are new since the last call; none while a round runs."""
        if self._is_running or self._base is None or self._now is None:
            return []
        found = new_problems(self._base, self._now, self._base_text, self._text)
        self._base, self._base_text = self._now, self._text
        return [problem for problem in found if problem.severity == "error"]

    async def cancel(self) -> None:
        """End the round that runs, if there is one."""
        if self._round is not None and not self._round.done():
            self._round.cancel()
            with suppress(asyncio.CancelledError):
                await self._round

    async def _run(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                if self._base is None:
                    self._base = await self.server.problems_of(self.path, self._base_text)
                text = None
                while self._base is not None and text != self._text:
                    text = self._text
                    self._now = await self.server.problems_of(self.path, text, saved=True)
        if self._now is None:
            self._base = None  # begun anew with the next edit

"""What `run` and `chat` offer an agent: answers to its permission requests, files and terminals in its folder.

Made when the agent first wants something, and not before: most short turns want nothing, and the rules for judging
commands take longer to load than such a turn takes.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.client.decision import OnDecision
    from dragoman.client.permission_handler import Denial, PermissionHandler
    from dragoman.client.permission_policy import PermissionPolicy
    from dragoman.client.workspace import Workspace
    from dragoman.vocabulary.services import (
        CreateTerminal,
        GetTerminalOutput,
        KillTerminal,
        PermissionAnswer,
        PermissionOption,
        ReadTextFile,
        ReleaseTerminal,
        RequestPermission,
        TerminalExited,
        TerminalText,
        WaitForTerminalExit,
        WriteTextFile,
    )

    Ask = Callable[[RequestPermission], Awaitable[PermissionOption | PermissionAnswer | str | None]]

# How often a person wants to see something new.
_REFRESH_SECONDS: Final = 0.2


class Offer:
    """The callbacks for one agent, and what was denied. It is its own `terminals`."""

    def __init__(
        self,
        folder: str,
        policy: "Callable[[], PermissionPolicy]",
        ask: "Ask | None",
        on_output: "Callable[[str, str, bool], None] | None" = None,
        *,
        agent: str = "",
    ) -> None:
        """`on_output` is told what a terminal shows, all of it each time, and whether that is the end of it.

        `agent` is the name under which decisions are recorded; empty: the agent records them itself.
        """
        self._folder = folder
        self._policy = policy
        self._ask = ask
        self._on_output = on_output
        self._agent = agent
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._permissions: PermissionHandler | None = None
        self._workspace: Workspace | None = None

    def callbacks(self) -> dict[str, Any]:
        """Return the callbacks to pass to `connect`."""
        return {
            "permission": self.permission,
            "read_text_file": self.read_text_file,
            "write_text_file": self.write_text_file,
            "terminals": self,
        }

    @property
    def denied(self) -> int:
        """How many requests were refused without asking a person."""
        return 0 if self._permissions is None else self._permissions.denied

    @property
    def denials(self) -> "list[Denial]":
        """Which, and why."""
        return [] if self._permissions is None else self._permissions.denials

    @property
    def refused(self) -> int:
        """How many requests a person has refused."""
        return 0 if self._permissions is None else self._permissions.refused

    def new_turn(self) -> None:
        """Forget the refusals of the turn that is over."""
        if self._permissions is not None:
            self._permissions.new_turn()

    def dismiss(self) -> None:
        """Withdraw the open question of a cancelled turn, and ask no other."""
        self._judge().dismiss()

    async def close(self) -> None:
        """End every terminal."""
        for watching in self._watching.values():
            watching.cancel()
        if self._workspace is not None:
            await self._workspace.close()

    async def permission(self, request: "RequestPermission") -> "PermissionOption | PermissionAnswer | None":
        """May it?"""
        return await self._judge()(request)

    async def read_text_file(self, request: "ReadTextFile") -> str:
        """Return a file's text."""
        return await self._files().read_text_file(request)

    async def write_text_file(self, request: "WriteTextFile") -> None:
        """Write a text file in the working folder, if that is allowed."""
        await self._files().write_text_file(request)

    async def create(self, request: "CreateTerminal") -> str:
        """Start a command and return it."""
        terminal_id = await self._files().terminals.create(request)
        if self._on_output is not None:
            watch = self._watch(request.session_id, terminal_id)
            self._watching[terminal_id] = asyncio.get_running_loop().create_task(watch)
        return terminal_id

    async def output(self, request: "GetTerminalOutput") -> "TerminalText":
        """Return what the command has printed."""
        return await self._files().terminals.output(request)

    async def wait_for_exit(self, request: "WaitForTerminalExit") -> "TerminalExited":
        """Return how the command ended."""
        return await self._files().terminals.wait_for_exit(request)

    async def kill(self, request: "KillTerminal") -> None:
        """End it."""
        await self._files().terminals.kill(request)

    async def release(self, request: "ReleaseTerminal") -> None:
        """Forget it."""
        watching = self._watching.pop(request.terminal_id, None)
        if watching is not None:
            watching.cancel()
            await self._look(request.session_id, request.terminal_id, ended=True)
        await self._files().terminals.release(request)

    async def _watch(self, session_id: str, terminal_id: str) -> None:
        ended = False
        while not ended:
            await asyncio.sleep(_REFRESH_SECONDS)
            ended = await self._look(session_id, terminal_id)

    async def _look(self, session_id: str, terminal_id: str, *, ended: bool = False) -> bool:
        """Show what a terminal shows now; whether there will be no more."""
        from dragoman.errors import RequestFailed
        from dragoman.vocabulary.services import GetTerminalOutput

        try:
            shown = await self._files().terminals.output(GetTerminalOutput(session_id, terminal_id))
        except RequestFailed:
            return True  # another session's, or gone
        ended = ended or bool(shown.exit_status)
        if self._on_output is not None:
            self._on_output(terminal_id, shown.output, ended)
        return ended

    def _judge(self) -> "PermissionHandler":
        if self._permissions is None:
            from dragoman.cli.home import own_folders, started_files
            from dragoman.client.permission_handler import PermissionHandler

            self._permissions = PermissionHandler(
                self._policy(),
                [self._folder],
                self._ask,
                protected_paths=started_files(),
                private_folders=own_folders(),
                on_decision=self._recorder(),
            )
        return self._permissions

    def _recorder(self) -> "OnDecision | None":
        if not self._agent:
            return None
        from dragoman.cli.decisions import DecisionRecorder
        from dragoman.cli.settings import read_settings

        return DecisionRecorder(self._agent, content=read_settings().flag("audit_content")).record

    def _files(self) -> "Workspace":
        if self._workspace is None:
            from dragoman.client.workspace import Workspace

            self._workspace = Workspace([self._folder], environment=os.environ, permissions=self._judge())
        return self._workspace


def denial_summary(offer: Offer) -> str:
    """Return how many requests were denied, and which levels of `--allow` would have allowed them, if any does."""
    requests = "1 request was denied" if offer.denied == 1 else f"{offer.denied} requests were denied"
    parts = [*_levels_that_allow(offer)]
    if any(denial.is_outside for denial in offer.denials):
        parts.append("no --allow reaches files outside of the folder")
    return f"{requests}; {', '.join(parts)}" if parts else requests


def _levels_that_allow(offer: Offer) -> Iterator[str]:
    """Yield the levels that would have allowed more of what was denied, each with how much of it."""
    at_least = "at least " if offer.denied > len(offer.denials) else ""  # not all of them are kept
    covered = 0
    for level in ("read", "edit", "all"):
        more = sum(denial.level == level for denial in offer.denials)
        covered += more
        if more and covered == offer.denied:
            yield f"--allow {level} covers {'it' if covered == 1 else 'all of them'}"
        elif more:
            yield f"--allow {level} covers {at_least}{covered} of them"

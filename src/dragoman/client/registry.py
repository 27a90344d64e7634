"""The agents in the configuration files: found by name, started, watched, restarted within bounds.

fleet = AgentRegistry.read(home, environment=os.environ, folder=".")
async with fleet.connect("gemini", permission=permissions) as client:
    ...

`connect` gives a connection of the caller's own. `client` gives the one the fleet keeps: started when first wanted, and
started again if it died, so often as its entry allows. An error stays visible until a start has gone well.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dragoman.client.agent_entry import AgentEntry
from dragoman.client.connect import Client, State, connect
from dragoman.client.known_agents import KNOWN
from dragoman.client.project_entry import project_entries
from dragoman.client.registry_file import RegistryFile, Terms, changed_since, find_files, read_usable, untrusted
from dragoman.client.timeouts import Timeouts
from dragoman.errors import DragomanError, LinkClosed, StartFailed, UsageError, WorldError

# The first restart waits so long, each further one twice as long, up to a bound: what dies at once must not spin.
BACKOFF_SECONDS: Final = 0.5
LONGEST_BACKOFF_SECONDS: Final = 30.0


_sleep: Final = asyncio.sleep


class AgentFailed(WorldError):
    """An agent of the fleet cannot be used; the text says why, and what to do about it."""


@dataclass(frozen=True)
class AgentStatus:
    """An agent as it is now."""

    name: str
    state: State
    entry: AgentEntry
    installed: bool
    restarts: int = 0
    last_error: str = ""
    stderr_tail: str = ""
    # What it called itself when it last said hello.
    version: str = ""


class AgentRegistry:
    """Agents by name. Used with `async with`, or closed by hand, where `client` or `start` is used."""

    def __init__(
        self,
        file: RegistryFile,
        *,
        environment: Mapping[str, str],
        left_out: Callable[[], object | None] = lambda: None,
        changed: Callable[[], str] = lambda: "",
    ) -> None:
        """`left_out` says which file's agents are not among them, and why; None: none are missing.

        `changed` says why the agents of a project are not to be started any more; empty: they are as they were trusted.
        """
        self.default: Final = file.default
        # What is wrong with agents that cannot be used, by their names; the others can.
        self.mistakes: Final = file.mistakes
        # Why `default` is no agent, or nothing; and what in the files is perhaps not meant.
        self.default_mistake: Final = file.default_mistake
        self.remarks: Final = file.remarks
        self._left_out = left_out
        self._changed = changed
        self._environment = environment
        self._members = {name: _Member(entry, environment, self._check) for name, entry in file.entries.items()}

    @classmethod
    def read(
        cls,
        home: str | os.PathLike[str],
        *,
        environment: Mapping[str, str],
        folder: str | os.PathLike[str] | None = None,
    ) -> Self:
        """The built-in agents, then those of `acp.json` in `home`, then those of the nearest project, once trusted."""
        entries = dict(KNOWN)
        default, default_mistake, terms = "", "", Terms()
        mistakes: dict[str, str] = {}
        remarks: tuple[str, ...] = ()
        changed: Callable[[], str] = str
        for file in find_files(Path(home), None if folder is None else Path(folder)):
            read = read_usable(file)
            mistakes |= read.mistakes
            remarks += read.remarks
            if file.trust_state is None:
                entries |= read.entries
                terms = read.terms
            else:
                limits = project_entries(file.path, read, entries, terms, file.trust_state)
                entries |= {name: limit.entry for name, limit in limits.items()}
                changed = partial(changed_since, Path(home), file)
            if read.default:
                default, default_mistake = read.default, read.default_mistake
        # Not even a built-in one in its place, nor a project's: what the user says of it cannot be known.
        entries = {name: entry for name, entry in entries.items() if name not in mistakes}
        return cls(
            RegistryFile(entries, default, mistakes=mistakes, default_mistake=default_mistake, remarks=remarks),
            environment=environment,
            left_out=lambda: None if folder is None else untrusted(Path(home), Path(folder)),
            changed=changed,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def names(self) -> list[str]:
        """Every agent there is."""
        return sorted(self._members)

    def complaints(self) -> list[str]:
        """Return a sentence for each agent that cannot be used, and for a default that is none."""
        found = [f"{sentence}; this agent cannot be used" for sentence in self.mistakes.values()]
        return [*found, self.default_mistake] if self.default_mistake else found

    def entry(self, name: str) -> AgentEntry:
        """How an agent is configured."""
        return self._member(name).entry

    def check_trust(self, name: str) -> None:
        """Look again whether an agent of a project is as it was trusted, before it is started; else `StartFailed`."""
        self._check(self.entry(name))

    def status(self, name: str) -> AgentStatus:
        """How an agent is."""
        return self._member(name).status()

    def connect(self, name: str, **settings: Any) -> Client:
        """A connection to an agent by its name; takes what `dragoman.connect` takes. Use it with `async with`."""
        return self._member(name).connect(settings)

    async def client(self, name: str, **settings: Any) -> Client:
        """The fleet's own connection to an agent: started, or started again, when that is needed."""
        return await self._member(name).client(settings)

    async def check(self, name: str, *, seconds: float) -> None:
        """Start an agent, say hello and stop it again; what came of that is in its status."""
        await self._member(name).check(seconds)

    async def start(self, **settings: Any) -> dict[str, DragomanError]:
        """Start every agent that wants to be; those that could not, and why. The others are not held up."""
        wanted = [name for name, member in self._members.items() if member.entry.auto_start]
        ended = await asyncio.gather(*(self.client(name, **settings) for name in wanted), return_exceptions=True)
        failed: dict[str, DragomanError] = {}
        for name, end in zip(wanted, ended, strict=True):
            if isinstance(end, DragomanError):
                failed[name] = end
            elif isinstance(end, BaseException):
                raise end
        return failed

    async def stop(self, name: str) -> None:
        """End the fleet's own connection to an agent, and forget its failures."""
        await self._member(name).stop()

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(member.stop() for member in self._members.values()))

    def _check(self, entry: AgentEntry) -> None:
        reason = self._changed() if entry.project else ""
        if reason:
            raise StartFailed(f"{entry.name} is not started: {reason}")

    def _member(self, name: str) -> "_Member":
        member = self._members.get(name)
        if name in self.mistakes:
            raise UsageError(self.mistakes[name])
        if member is None:
            left_out = self._left_out()
            why = "".join(f". {reason}" for reason in (*self.remarks, left_out) if reason is not None)
            raise UsageError(f"there is no agent {name!r}; there are {', '.join(self.names())}{why}")
        return member


class _Member:
    """One agent and how it fares."""

    def __init__(self, entry: AgentEntry, environment: Mapping[str, str], check: Callable[[AgentEntry], None]) -> None:
        self.entry: Final = entry
        self._environment = environment
        self._check = check
        self._latest: Client | None = None  # the last connection, of `connect`, `check` or `client`
        self._own: Client | None = None
        self._lock = asyncio.Lock()
        self._restarts = 0
        self._error = ""
        self._stderr = ""
        self._version = ""
        self._healthy = False

    async def check(self, seconds: float) -> None:
        try:
            async with self.connect({"timeouts": Timeouts(startup=seconds)}) as client:
                self._greeted(client)
                self._healthy = True
        except DragomanError as error:
            self._note(error)
            raise

    def _greeted(self, client: Client) -> None:
        self._error = ""
        info = client.agent.info
        self._version = "" if info is None else f"{info.name} {info.version}"

    def connect(self, settings: Mapping[str, Any]) -> Client:
        try:
            self._check(self.entry)
            self._latest = self._connect(self.entry.expanded(self._environment), settings)
        except DragomanError as error:
            self._note(error)
            raise
        return self._latest

    def _connect(self, entry: AgentEntry, settings: Mapping[str, Any]) -> Client:
        given = {"timeouts": entry.timeouts()} | entry.lent.of(settings)
        given["dialect"] = given.get("dialect") or entry.dialect or None
        if entry.url:
            return connect(entry.url, token=entry.token or None, token_file=entry.token_file or None, **given)
        if find_program(entry.command, self._environment) is None:
            raise StartFailed(f"{entry.command} is not installed. {entry.install}".strip())
        given["cwd"] = entry.cwd or given.get("cwd")
        given["env"] = dict(entry.env) | dict(given.get("env") or {})
        return connect(entry.command_line(), **given)

    async def client(self, settings: Mapping[str, Any]) -> Client:
        async with self._lock:
            if self._own is not None and self._own.state not in ("failed", "stopped"):
                return self._own
            if self._own is not None:
                await self._before_restart()
            while True:
                self._own = self.connect(settings)
                try:
                    await self._own.__aenter__()
                except (LinkClosed, StartFailed) as error:
                    self._note(error)
                    await self._before_restart()
                else:
                    self._greeted(self._own)
                    return self._own

    async def stop(self) -> None:
        own, self._own = self._own, None
        self._restarts = 0
        if own is not None:
            await own.close()

    async def _before_restart(self) -> None:
        """Wait a while, longer each time; not for ever."""
        if self._own is not None and self._own.failure is not None:
            self._note(self._own.failure)
        if self._restarts >= self.entry.max_recoverable_restarts:
            raise AgentFailed(
                f"{self.entry.name} has failed {self._restarts + 1} times and is not started again: {self._error}"
            )
        await _sleep(min(BACKOFF_SECONDS * 2**self._restarts, LONGEST_BACKOFF_SECONDS))
        self._restarts += 1

    def _note(self, error: Exception) -> None:
        self._error = str(error)
        self._stderr = getattr(error, "stderr_tail", "") or self._stderr

    def status(self) -> AgentStatus:
        latest = self._own or self._latest
        if latest is not None and latest.failure is not None:
            self._note(latest.failure)
        state: State = "configured" if latest is None else latest.state
        if state in ("configured", "stopped"):
            state = "failed" if self._error else "ready" if self._healthy else state
        return AgentStatus(
            self.entry.name,
            state,
            self.entry,
            bool(self.entry.url) or find_program(self.entry.command, self._environment) is not None,
            self._restarts,
            self._error,
            (latest.stderr_tail() if latest is not None else "") or self._stderr,
            self._version,
        )


def find_program(command: str, environment: Mapping[str, str]) -> str | None:
    """Where a command is; None if it is not installed."""
    return shutil.which(command, path=environment.get("PATH", os.defpath))

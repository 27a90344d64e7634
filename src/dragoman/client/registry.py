"""The agents of the configuration files: found by name, started, watched, restarted within bounds.

registry = AgentRegistry.read(home, environment=os.environ, folder=".")
async with registry.connect("gemini", permission=permissions) as client:
    ...

`connect` returns a connection of the caller's own. `client` returns the one that the registry holds: started at the
first call, and started again if it has failed, as often as its entry allows. An error stays visible in `status` until a
start has succeeded.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self, Unpack

from dragoman import limits
from dragoman.client.agent_entry import AgentEntry
from dragoman.client.connect import Client, State, connect
from dragoman.client.known_agents import KNOWN
from dragoman.client.project_entry import project_entries
from dragoman.client.registry_file import (
    TRUST_NAME,
    RegistryFile,
    Terms,
    changed_since,
    find_files,
    read_usable,
    untrusted,
)
from dragoman.client.settings import ConnectSettings
from dragoman.client.timeouts import Timeouts
from dragoman.errors import AgentFailed, ChildExited, DragomanError, LinkClosed, StartFailed, UsageError

_sleep: Final = asyncio.sleep
_log: Final = logging.getLogger(__name__)


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
    # Its name and version, as it gave them in its last answer to `initialize`.
    version: str = ""


class AgentRegistry:
    """Agents by name, made by `read`. Use it with `async with`, or `close` it, where `client` or `start` is used."""

    def __init__(
        self,
        file: RegistryFile,
        *,
        environment: Mapping[str, str],
        left_out: Callable[[], object | None] = lambda: None,
        changed: Callable[[], str] = lambda: "",
    ) -> None:
        """Hold the agents of `file`; variables in their entries come from `environment`.

        `left_out` returns which file's agents are not among them, and why; None: none are missing. `changed` returns
        why the agents of a project are not to be started any more; empty: they are as they were trusted.
        """
        # The name of the agent to use where none is named; empty if the files name none.
        self.default: Final = file.default
        # What is wrong with agents that cannot be used, by their names; the others can.
        self.mistakes: Final = file.mistakes
        # Why `default` is no agent, or nothing; and what in the files is perhaps not meant.
        self.default_mistake: Final = file.default_mistake
        self.remarks: Final = file.remarks
        self._missing_file = left_out
        self._changed = changed
        self._environment = environment
        self._agents = {name: _RegisteredAgent(one, environment, self._check) for name, one in file.entries.items()}

    def __repr__(self) -> str:
        live = sum(agent.is_live for agent in self._agents.values())
        return f"<AgentRegistry agents={len(self._agents)} live={live} mistakes={len(self.mistakes)}>"

    @classmethod
    def read(
        cls,
        home: str | os.PathLike[str],
        *,
        environment: Mapping[str, str],
        folder: str | os.PathLike[str] | None = None,
        trust: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return the built-in agents, then those of `acp.json` in `home`, then those of the nearest trusted project.

        The project is looked for from `folder` upwards; without it none is. `environment` has the variables that
        entries name. `trust` is the file that says which projects are trusted; None: `trust.json` in `home`. Reads
        files, so it blocks. Mistakes in a file are not raised: `complaints` has them.
        """
        entries = dict(KNOWN)
        default, default_mistake, terms = "", "", Terms()
        mistakes: dict[str, str] = {}
        remarks: tuple[str, ...] = ()
        changed: Callable[[], str] = str
        trusts = Path(home, TRUST_NAME) if trust is None else Path(trust)
        for file in find_files(Path(home), None if folder is None else Path(folder), trust=trusts):
            read = read_usable(file)
            mistakes |= read.mistakes
            remarks += read.remarks
            if file.trust_state is None:
                entries |= read.entries
                terms = read.terms
            else:
                found = project_entries(file.path, read, entries, terms, file.trust_state)
                entries |= {name: one.entry for name, one in found.items()}
                changed = partial(changed_since, trusts, file)
            if read.default:
                default, default_mistake = read.default, read.default_mistake
        # Not even a built-in one in its place, nor a project's: what the user says of it cannot be known.
        entries = {name: entry for name, entry in entries.items() if name not in mistakes}
        return cls(
            RegistryFile(entries, default, mistakes=mistakes, default_mistake=default_mistake, remarks=remarks),
            environment=environment,
            left_out=lambda: None if folder is None else untrusted(Path(home), Path(folder), trust=trusts),
            changed=changed,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def names(self) -> list[str]:
        """Return the names of all agents that can be used, sorted."""
        return sorted(self._agents)

    def complaints(self) -> list[str]:
        """Return a sentence for each agent that cannot be used, and for a default that is none."""
        found = [f"{sentence}; this agent cannot be used" for sentence in self.mistakes.values()]
        return [*found, self.default_mistake] if self.default_mistake else found

    def entry(self, name: str) -> AgentEntry:
        """Return how an agent is configured. Raise `UsageError` for a name that is not among `names`."""
        return self._agent(name).entry

    def check_trust(self, name: str) -> None:
        """Check again that an agent of a project is as the user trusted it.

        Raise `StartFailed` if it has changed, `UsageError` for a name that is not among `names`.
        """
        self._check(self.entry(name))

    def status(self, name: str) -> AgentStatus:
        """Return how an agent is now. Raise `UsageError` for a name that is not among `names`."""
        return self._agent(name).status()

    def connect(self, name: str, **settings: Unpack[ConnectSettings]) -> Client:
        """Return a client for an agent; `async with` connects it. `settings` are those of `dragoman.connect`.

        What the agent's entry says comes first. Raise `UsageError` for a name that is not among `names` or a variable
        that is not set, `StartFailed` if the agent is not installed or not trusted any more.
        """
        return self._agent(name).connect(settings)

    async def client(self, name: str, **settings: Unpack[ConnectSettings]) -> Client:
        """Return the registry's own connection to an agent; wait for its start, or its restart, if it needs one.

        `settings` are those of `dragoman.connect`. Raise `AgentFailed` if it has failed as often as its entry allows,
        `UsageError` for a name that is not among `names`, else what `connect` and `async with` raise.
        """
        return await self._agent(name).client(settings)

    async def check(self, name: str, *, seconds: float) -> None:
        """Start an agent, wait at most `seconds` for its answer to `initialize`, and stop it again.

        Raise `UsageError` for a name that is not among `names`, else what `connect` and `async with` raise; `status`
        has the outcome.
        """
        await self._agent(name).check(seconds)

    async def start(self, **settings: Unpack[ConnectSettings]) -> dict[str, DragomanError]:
        """Start every agent whose entry has `auto_start`, and wait for all. Return why those failed that did.

        `settings` are those of `dragoman.connect`. Raise only what is no `DragomanError`.
        """
        wanted = [name for name, agent in self._agents.items() if agent.entry.auto_start]
        ended = await asyncio.gather(*(self.client(name, **settings) for name in wanted), return_exceptions=True)
        failed: dict[str, DragomanError] = {}
        for name, end in zip(wanted, ended, strict=True):
            if isinstance(end, DragomanError):
                failed[name] = end
            elif isinstance(end, BaseException):
                raise end
        return failed

    async def stop(self, name: str) -> None:
        """Close the registry's own connection to an agent, wait for that, and count its failures from zero again.

        Raise `UsageError` for a name that is not among `names`.
        """
        await self._agent(name).stop()

    async def close(self) -> None:
        """Close all connections of the registry's own, and wait for that."""
        await asyncio.gather(*(agent.stop() for agent in self._agents.values()))

    def _check(self, entry: AgentEntry) -> None:
        reason = self._changed() if entry.project else ""
        if reason:
            raise StartFailed(f"{entry.name} is not started: {reason}")

    def _agent(self, name: str) -> "_RegisteredAgent":
        agent = self._agents.get(name)
        if name in self.mistakes:
            raise UsageError(self.mistakes[name])
        if agent is None:
            left_out = self._missing_file()
            why = "".join(f". {reason}" for reason in (*self.remarks, left_out) if reason is not None)
            raise UsageError(f"there is no agent {name!r}; there are {', '.join(self.names())}{why}")
        return agent


class _RegisteredAgent:
    """One agent: its entry, its connections, and its failures."""

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

    @property
    def is_live(self) -> bool:
        """Return whether the registry holds a connection that works."""
        return self._own is not None and self._own.state not in ("failed", "stopped")

    async def check(self, seconds: float) -> None:
        try:
            async with self.connect({"timeouts": Timeouts(startup=seconds)}) as client:
                self._on_started(client)
                self._healthy = True
        except DragomanError as error:
            self._record(error)
            raise

    def _on_started(self, client: Client) -> None:
        self._error = ""
        info = client.agent.info
        self._version = "" if info is None else f"{info.name} {info.version}"

    def connect(self, settings: ConnectSettings) -> Client:
        try:
            self._check(self.entry)
            self._latest = self._connect(self.entry.expanded(self._environment), settings)
        except DragomanError as error:
            self._record(error)
            raise
        return self._latest

    def _connect(self, entry: AgentEntry, settings: ConnectSettings) -> Client:
        given = {"timeouts": entry.timeouts()} | entry.offered.select(settings)
        given["dialect"] = given.get("dialect") or entry.dialect or None
        if entry.url:
            given["ca_file"] = given.get("ca_file") or entry.ca_file or None
            return connect(entry.url, token=entry.token or None, token_file=entry.token_file or None, **given)
        if find_program(entry.command, self._environment) is None:
            raise StartFailed(f"{entry.command} is not installed. {entry.install}".strip())
        given["cwd"] = entry.cwd or given.get("cwd")
        given["env"] = dict(entry.env) | dict(given.get("env") or {})
        return connect(entry.command_line(), **given)

    async def client(self, settings: ConnectSettings) -> Client:
        async with self._lock:
            if self._own is not None and self.is_live:
                return self._own
            if self._own is not None:
                await self._before_restart()
            while True:
                self._own = self.connect(settings)
                try:
                    await self._own.__aenter__()
                except (LinkClosed, StartFailed) as error:
                    self._record(error)
                    await self._before_restart()
                else:
                    self._on_started(self._own)
                    return self._own

    async def stop(self) -> None:
        own, self._own = self._own, None
        self._restarts = 0
        if own is not None:
            await own.close()

    async def _before_restart(self) -> None:
        """Wait before the next start, twice as long each time. Raise `AgentFailed` after the last one allowed."""
        if self._own is not None and self._own.failure is not None:
            self._record(self._own.failure)
        if self._restarts >= self.entry.max_recoverable_restarts:
            raise AgentFailed(
                f"{self.entry.name} has failed {self._restarts + 1} times and is not started again: {self._error}"
            )
        _log.warning("agent %s failed; restart %d", self.entry.name, self._restarts + 1)
        await _sleep(min(limits.RESTART_SECONDS * 2**self._restarts, limits.LONGEST_RESTART_SECONDS))
        self._restarts += 1

    def _record(self, error: Exception) -> None:
        self._error = str(error)
        if isinstance(error, ChildExited) and error.stderr_tail:
            self._stderr = error.stderr_tail

    def status(self) -> AgentStatus:
        latest = self._own or self._latest
        if latest is not None and latest.failure is not None:
            self._record(latest.failure)
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
    """Return the path of a command's program; None if it is not installed."""
    return shutil.which(command, path=environment.get("PATH", os.defpath))

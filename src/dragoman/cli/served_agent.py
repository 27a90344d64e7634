"""The agent that `dragoman serve` serves: our own, in a process for each principal, or one of the registry, and what is
known of its stored sessions. Raises `UsageError` for what can be seen to be wrong before a client comes."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dragoman.agent.agent import agent_core
from dragoman.cli.home import open_store, read_registry
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.errors import UsageError
from dragoman.gateway.agent_source import PROCESSES, AgentSource, OpenAgent, in_process, spawn_source, spoken_in
from dragoman.gateway.ceilings import AgentModes
from dragoman.gateway.logbook import Logbook
from dragoman.gateway.principal_limits import NO_LIMIT_TABLE, LimitTable
from dragoman.gateway.session_access import FolderOf
from dragoman.store.contract import Store, StoreFailed
from dragoman.transports.contract import Transport

if TYPE_CHECKING:
    from dragoman.cli.principal_agent import AgentOptions
    from dragoman.gateway.principal_processes import PrincipalProcesses


class ServedAgent(NamedTuple):
    """An agent to serve, and what is known of its stored sessions; `modes` None: its modes are not ours to judge.

    `path` is its name in an address, where the server has several; `recorded_as` the name under which its sessions and
    decisions are recorded (empty: our own, which stores them itself).
    """

    agents: AgentSource
    folder_of: FolderOf | None = None
    modes: AgentModes | None = None
    # The model that a new session of our own agent begins with; empty for an agent of the registry.
    model: str = ""
    path: str = ""
    recorded_as: str = ""


def our_agent(
    arguments: argparse.Namespace,
    private: Sequence[str],
    report: Callable[[Exception], None],
    open_database: Callable[[], Store] | None = None,
    limits: LimitTable = NO_LIMIT_TABLE,
    log: Logbook | None = None,
) -> ServedAgent:
    """Return our own agent: its sessions are files, and each principal has a process of its own, or they are in the
    store that `open_database` returns. `private`: paths that none of its tools reaches. Tries out what can be confined
    here."""
    from dragoman.cli.principal_agent import AgentOptions
    from dragoman.coder.agent import coding_agent

    options = AgentOptions(
        model=arguments.model,
        mode=arguments.mode,
        thinking=arguments.thinking,
        protocol=arguments.protocol,
        elephant=arguments.elephant,
        audit_content=arguments.audit_content,
        private=list(private),
    )
    setup = options.setup()
    agent = coding_agent(setup, store=open_database or open_store, protocol=arguments.protocol)

    core = agent_core(agent)

    async def folder_of(session_id: str) -> str:
        store = core.open_store()
        assert store is not None
        try:
            return (await store.read_meta(session_id)).cwd
        except StoreFailed:
            return ""

    if open_database is None:
        processes = _processes(options, limits, log)
        source = AgentSource(processes.open, core.versions, each_principal=True, close=processes.close)
    else:  # the lease of a node belongs to one process, and so do its sessions
        source = AgentSource(in_process(partial(agent.serve, trusted=True), report), core.versions)
    return ServedAgent(source, folder_of, _our_modes(setup.managed), setup.models.current())


def _processes(options: "AgentOptions", limits: LimitTable, log: Logbook | None) -> "PrincipalProcesses":
    """Return the processes of our own agent, one for each principal."""
    from dragoman.gateway.principal_processes import PrincipalProcesses, ProcessSetup

    # -P: a module in the folder we work in is not ours to load, whatever it is called.
    command = [sys.executable, "-P", "-m", "dragoman.cli.principal_agent"]
    setup = ProcessSetup(command, msgspec.json.encode(options))
    return PrincipalProcesses(setup, limits.of, _pass_on_stderr, log)


def _connect(connect: Callable[[], Transport], principal: str) -> Transport:
    """Open a connection to an agent at an address, which learns no principal by it."""
    return connect()


def _pass_on_stderr(data: bytes) -> None:
    """Write what a process of our own agent has written to our stderr: its warnings, and its log."""
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()


def registry_agent(name: str) -> ServedAgent:
    """Return an agent of the registry, which is started, or called at its address, when a client needs it."""
    from dragoman.client.registry import find_program
    from dragoman.transports.remote import remote_opener
    from dragoman.transports.token import TokenFile

    registry = read_registry(".")
    entry = registry.entry(name).expanded(os.environ)
    opened: OpenAgent
    if entry.url:
        token = entry.token or (TokenFile(Path(entry.token_file).expanduser()) if entry.token_file else None)
        connect = remote_opener(entry.url, token, ca_file=os.path.expanduser(entry.ca_file))

        opened = partial(_connect, connect)
    elif find_program(entry.command, os.environ) is None:
        raise UsageError(f"{entry.command} is not installed. {entry.install}".strip())
    else:
        # It is started again and again, and a project's files may change meanwhile.
        check = partial(registry.check_trust, name)
        opened = spawn_source(entry.command_line(), cwd=entry.cwd or None, env=entry.env, before=check)
    versions, dialect = spoken_in(entry.dialect)
    agents = AgentSource(
        opened,
        versions,
        dialect=dialect,
        each_session=entry.process == "session",
        idle_seconds=entry.idle_ms / 1000,
        restarts=entry.max_recoverable_restarts,
        most=PROCESSES,
        start_seconds=entry.startup_ms / 1000,
        renames=True,
    )
    return ServedAgent(agents, recorded_as=name)


def _our_modes(managed: ManagedSettings) -> AgentModes:
    from dragoman.coder.identity_limits import allowed_modes, may_answer, nearest_mode
    from dragoman.host.sandbox import probe

    probe()  # what the machine can confine is tried out here, where no client waits
    return AgentModes(partial(allowed_modes, managed=managed), partial(nearest_mode, managed=managed), may_answer)

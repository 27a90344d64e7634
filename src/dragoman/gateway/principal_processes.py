"""Our own agent in processes of its own: one for each principal, for all of its connections.

A principal shares no memory with another one, and an agent that is busy, hangs or is killed delays neither the relay
nor the agents of others. The process is started with the first connection of a principal and stopped `LINGER_SECONDS`
after its last one. Each connection is a socket pair; the agent's end is passed to the process over its control socket,
whose first message says which agent it is to be:

    gateway ── control ──► process      setup, then a descriptor for each connection; its end is the end of the process
            ◄── socket ──►              one connection: the messages of one `AgentSide`

The end of a connection is waited for: the process closes its socket when the sessions on it are released, so that
another connection can open them.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.errors import LinkClosed, StartFailed
from dragoman.gateway.logbook import Logbook, principal_name
from dragoman.gateway.principal_limits import (
    NO_LIMITS,
    LimitEndedAgent,
    LimitName,
    PrincipalLimits,
    limit_reached,
)
from dragoman.host.process import Child
from dragoman.host.resources import ResourceLimits, UsageWatch
from dragoman.host.shared_group import SharedGroup
from dragoman.transports.contract import Receiver
from dragoman.transports.unix_socket import UnixSocketTransport

_log: Final = logging.getLogger(__name__)

# A client that comes back in a moment finds its process warm.
LINGER_SECONDS: Final = 30.0
# After its last message a connection is waited for so long; an agent ends its turns within two seconds.
_END_SECONDS: Final = 4.0
# Between two looks at the memory of a principal where no control group limits it. Looking costs 20 µs a process.
_WATCH_SECONDS: Final = 2.0
# Of the limit, from which on nothing more is begun.
_FULL_SHARE: Final = 0.95


class ProcessSetup(NamedTuple):
    """How such a process is started: a command that gets the number of its control socket as its last argument, and
    what is sent to it there first."""

    command: Sequence[str]
    message: bytes


class PrincipalProcesses:
    """The processes of our own agent. `limits_of` says what a principal may use, `on_stderr` gets what they write, the
    `log` says which process is whose."""

    def __init__(
        self,
        setup: ProcessSetup,
        limits_of: Callable[[str], PrincipalLimits] = lambda principal: NO_LIMITS,
        on_stderr: Callable[[bytes], None] | None = None,
        log: Logbook | None = None,
    ) -> None:
        self._setup = setup
        self._log = log or Logbook()
        self._limits_of = limits_of
        self._on_stderr = on_stderr
        self._processes: dict[str, AgentProcess] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<PrincipalProcesses running={len(self._processes)} stopping={len(self._stopping)}>"

    def find(self, principal: str) -> "AgentProcess | None":
        """Return the process of a principal; None: there is none now."""
        return self._processes.get(principal)

    def open(self, principal: str) -> "ProcessLink":
        """Return a transport to the agent of a principal, whose process is started where it does not run. Raise
        `StartFailed`, and `RequestFailed` where that principal has used up its memory."""
        # Only what is new is refused: the connections that a full process has go on, since its end would end their
        # turns.
        process = self._processes.get(principal)
        if process is not None and process.is_full:
            raise limit_reached("memory", process.limits)
        # Twice: a process that has just died takes no connection, and its end may not have been noticed yet.
        for _ in range(2):
            process = self._processes.get(principal) or self._start(principal)
            link = process.connect()
            if link is not None:
                return link
            self._retire(process)
        raise StartFailed("the agent's process does not take connections")

    def _start(self, principal: str) -> "AgentProcess":
        # Nothing waits between the look that found none and this: two connections at once share one process.
        process = AgentProcess(principal, self._setup, self._limits_of(principal), self._on_stderr, self._retire)
        self._processes[principal] = process
        self._log.info("process_started", principal=principal_name(principal), pid=process.child.pid)
        return process

    def _retire(self, process: "AgentProcess") -> None:
        """Stop a process, and have the next connection start another one."""
        # By identity, and before the stop: while the old process ends, the principal may have a new one already.
        if self._processes.get(process.principal) is process:
            del self._processes[process.principal]
            ended = {"principal": principal_name(process.principal), "pid": process.child.pid}
            self._log.info("process_stopped", **ended, exit_code=process.child.exit_code)
        task = asyncio.get_running_loop().create_task(process.stop())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def close(self) -> None:
        """Stop every process and wait for that; bounded."""
        for process in list(self._processes.values()):
            self._retire(process)
        await asyncio.gather(*self._stopping, return_exceptions=True)


class AgentProcess:
    """The process of one principal. `on_unused` is called when it has died, or had no connection for a while."""

    def __init__(
        self,
        principal: str,
        setup: ProcessSetup,
        limits: PrincipalLimits,
        on_stderr: Callable[[bytes], None] | None,
        on_unused: "Callable[[AgentProcess], None]",
    ) -> None:
        self.principal: Final = principal
        self.limits: Final = limits
        self._on_unused = on_unused
        self._links: set[ProcessLink] = set()
        self._loop = asyncio.get_running_loop()
        self._unused_timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self._excess: LimitName | None = None
        self._group = SharedGroup.make(limits.memory, limits.tasks) if limits.memory or limits.tasks else None
        try:
            # Each message arrives whole and alone: the setup needs no length, and each descriptor comes with its own
            # message.
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:
            self._close_group()
            raise StartFailed("there is no socket for the agent") from error
        # An agent that hangs takes nothing from it: `connect` gives up then, and the loop of all principals goes on.
        self._control.setblocking(False)
        try:
            entrance = [] if self._group is None else ["--group", self._group.entrance]
            self.child: Final = Child.start(
                [*setup.command, *entrance, str(theirs.fileno())],
                cwd=os.getcwd(),
                env=os.environ,  # it is ourselves, so it may have our keys
                on_stderr=on_stderr,
                passed=[theirs.fileno()],
            )
            self._control.send(setup.message)
        except BaseException:
            self._control.close()
            self._close_group()
            raise
        finally:
            theirs.close()
        # Called back from the loop and never from here, also where the child has died already: it is in the table of
        # `PrincipalProcesses` by then.
        self.child.on_exit(self._on_exit)
        is_limited = bool(limits.memory or limits.tasks)
        self._watch = self._loop.create_task(self._watching()) if is_limited and self._group is None else None

    def __repr__(self) -> str:
        return f"<AgentProcess {self.child.pid} connections={len(self._links)}{' over' if self._is_over else ''}>"

    @property
    def is_full(self) -> bool:
        """Return whether it is so near its memory limit that nothing more is begun in it."""
        # Without a control group a look takes a walk over the process table; there `_watching` ends it when it is too
        # late.
        if self._group is None or not self.limits.memory:
            return False
        return self._group.memory() > self.limits.memory * _FULL_SHARE

    def connect(self) -> "ProcessLink | None":
        """Return a new connection to it; None if it has died, or takes no more connections. Raise `StartFailed` where
        there can be none."""
        if self._is_over:
            return None
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:  # no descriptor is left
            raise StartFailed("there is no socket for the agent") from error
        try:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        except OSError:  # it is dead, or has not taken the last hundred
            ours.close()
            return None
        finally:
            theirs.close()
        if self._unused_timer is not None:
            self._unused_timer.cancel()
            self._unused_timer = None
        link = ProcessLink(self, ours)
        self._links.add(link)
        return link

    def release(self, link: "ProcessLink") -> None:
        """Note that a connection is over."""
        self._links.discard(link)
        if not self._links and not self._is_over and self._unused_timer is None:
            self._unused_timer = self._loop.call_later(LINGER_SECONDS, self._on_unused, self)

    def why_ended(self) -> LinkClosed | None:
        """Return why it was ended, if it met a limit."""
        # Kept once it is known: what the kernel has counted is gone with the group, and each connection asks by itself.
        if not self._excess and self._group is not None and self._group.has_run_out():
            self._excess = "memory"
        return LimitEndedAgent(self._excess, self.limits) if self._excess else None

    async def stop(self) -> None:
        """Stop it with all it has started, and wait for that; a second call waits too."""
        # First: from here on `connect` refuses, and the exit of the child is no death that retires it again.
        self._is_over = True
        if self._unused_timer is not None:
            self._unused_timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        self._control.close()
        await self.child.stop()
        # Of connections that are closed later, or by nothing any more: their agent is gone.
        for link in tuple(self._links):
            await link.close_socket()
        self._close_group()

    def _on_exit(self) -> None:
        if not self._is_over:
            _log.debug("process %d of a principal has died: exit code %s", self.child.pid, self.child.exit_code)
            self._is_over = True
            self._on_unused(self)

    def _close_group(self) -> None:
        if self._group is not None:
            self._group.close()

    async def _watching(self) -> None:
        """End the process when it and all it has started use more than they may."""
        wanted: tuple[tuple[LimitName, ResourceLimits], ...] = (
            ("memory", ResourceLimits(self.limits.memory, 0)),
            ("tasks", ResourceLimits(0, self.limits.tasks)),
        )
        watches = [(name, UsageWatch(most, self.child.members)) for name, most in wanted if any(most)]
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            # A look that fails, as for want of a thread or a descriptor, is not the last one: without a control group
            # nothing else keeps this limit.
            try:
                for name, watch in watches:
                    if await asyncio.to_thread(watch.excess) is not None:
                        # Before the kill: the connections ask why as soon as their sockets are closed.
                        self._excess = name
                        await asyncio.to_thread(self.child.kill_now)
                        return
            except Exception:
                _log.warning("the use of process %d could not be looked at", self.child.pid, exc_info=True)


class ProcessLink:
    """One connection to the process of a principal; a `Transport`. `close` waits until the agent is done with it."""

    def __init__(self, process: AgentProcess, connected: socket.socket) -> None:
        self._process = process
        self._socket = UnixSocketTransport(connected)
        self._receiver: Receiver | None = None
        self._lost = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<ProcessLink {self._process!r} {self._socket!r}>"

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._socket.start(self)

    def write(self, data: bytes | memoryview) -> int:
        return self._socket.write(data)

    def pause_reading(self) -> None:
        # A link that closes reads on, whatever the receiver wants: see `_close`.
        if self._closing is None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._socket.resume_reading()

    def close_writing(self) -> None:
        self._socket.close_writing()

    async def close(self) -> None:
        """Close our direction and wait until the agent closes the other, for at most `_END_SECONDS`."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        # Shielded: a caller that gives up must not cut off the end which others wait for.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        # The receiver first: what the agent still sends is of a connection that is over for its client.
        receiver, self._receiver = self._receiver, None
        try:
            if receiver is not None and not self._lost.is_set():
                receiver.connection_lost(None)
                self._socket.close_writing()
                self._socket.resume_reading()  # and dropped: the agent must not wait for a reader
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._lost.wait(), _END_SECONDS)
        finally:
            # Also when the loop is about to end and cancels this: nothing else closes the socket.
            await self._socket.close()
            self._process.release(self)

    async def close_socket(self) -> None:
        """Close the socket at once: the process is gone."""
        await self._socket.close()

    # -- the socket calls these --------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.data_received(data)

    def writable(self) -> None:
        if self._receiver is not None:
            self._receiver.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            # The reason before the error of the socket: a process that is killed with unread messages resets it, and
            # the client would only be told that its agent is gone.
            receiver.connection_lost(self._process.why_ended() or error)

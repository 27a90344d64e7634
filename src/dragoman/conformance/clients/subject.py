"""The client that is judged: started with our agent's command or address, or driven by a person."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from dragoman.conformance.clients import relay
from dragoman.conformance.clients.relay_end import RelayTransport
from dragoman.conformance.clients.scenarios import Scenario
from dragoman.errors import StartFailed
from dragoman.transports.contract import Transport

# Tells whether the program at the other end of a connection still lives.
Lives = Callable[[], Awaitable[bool]]
Accept = Callable[[Transport, Lives], None]
AGENT_WORD: Final = "{agent}"
AGENT_WORDS: Final = "{argv}"
ADDRESS: Final = "{url}"
_OUTPUT_BYTES: Final = 1024 * 1024


class RunningClient(Protocol):
    """One run of a client."""

    @property
    def ends_by_itself(self) -> bool:
        """Return whether it ends after its turn, so that its end can be judged."""

    async def wait(self, seconds: float) -> int | None:
        """Wait for its end; return its exit code, or None if it runs on."""

    def interrupt(self) -> bool:
        """Stop its turn as its user would; return whether that can be done."""

    def output(self) -> str:
        """Return what it printed."""

    async def close(self) -> None:
        """End it, and everything that it has started."""


class ClientSubject(Protocol):
    """Starts the client as often as it is asked."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    async def start(self, scenario: Scenario, accept: Accept, folder: str) -> RunningClient:
        """Start it in a folder; `accept` gets each connection to our agent. Raise a `DragomanError`."""


def agent_command(socket: str) -> list[str]:
    """Return the command of our agent: a small program that passes everything to this process."""
    return [sys.executable, "-I", str(Path(relay.__file__).resolve()), socket]


def filled(command: Sequence[str], agent: Sequence[str], url: str) -> list[str]:
    """Return a command with our agent in it: `{agent}` as one quoted word, `{argv}` as separate words."""
    words: list[str] = []
    for word in command:
        if word == AGENT_WORDS:
            words += agent
        else:
            words.append(word.replace(AGENT_WORD, shlex.join(agent)).replace(ADDRESS, url))
    return words


class CommandClient:
    """A client that is started for each run, with our agent's command or address in its command line."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        stop_signal: int | None = signal.SIGINT,
        stdin: str = "",
    ) -> None:
        self.name: Final = shlex.join(command)
        self._command: Final = list(command)
        self._env: Final = dict(env)
        self._stop_signal: Final = stop_signal
        self._stdin: Final = stdin

    async def start(self, scenario: Scenario, accept: Accept, folder: str) -> RunningClient:
        """Start it. Raise `StartFailed`."""
        run = _CommandRun(self._stop_signal)
        await run.start(self._command, self._env, folder, self._stdin, accept, scenario)
        return run


class _CommandRun:
    ends_by_itself = True

    def __init__(self, stop_signal: int | None) -> None:
        self._stop_signal: Final = stop_signal
        self._output = bytearray()
        self._places: Final = contextlib.AsyncExitStack()
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: str,
        stdin: str,
        accept: Accept,
        scenario: Scenario,
    ) -> None:
        """Listen, and start the command."""
        place = self._places.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-check-"))
        socket = os.path.join(place, "agent")
        url = ""
        try:
            await self._places.enter_async_context(_listen(socket, accept, is_stubborn=scenario.script.is_stubborn))
            if any(ADDRESS in word for word in command):
                from dragoman.conformance.clients.listening import listen_for_sockets

                url = await self._places.enter_async_context(listen_for_sockets(accept))
            self._process = await asyncio.create_subprocess_exec(
                *filled(command, agent_command(socket), url),
                cwd=folder,
                env={**os.environ, **env},
                stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            await self._places.aclose()
            raise StartFailed(f"The client cannot be started: {error}") from None
        if stdin and self._process.stdin is not None:
            self._process.stdin.write(stdin.encode())
            self._process.stdin.close()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        while data := await self._process.stdout.read(65536):
            self._output += data[: max(_OUTPUT_BYTES - len(self._output), 0)]

    async def wait(self, seconds: float) -> int | None:
        assert self._process is not None
        try:
            return await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return None

    def interrupt(self) -> bool:
        assert self._process is not None
        if self._stop_signal is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(self._stop_signal)
        return True

    def output(self) -> str:
        return self._output.decode(errors="replace")

    async def close(self) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if self._reading is not None:
            # What the client has started may hold its output open.
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._places.aclose()


@contextlib.asynccontextmanager
async def _listen(socket: str, accept: Accept, *, is_stubborn: bool) -> AsyncGenerator[None]:
    """Listen for relays."""
    server = await asyncio.start_unix_server(_connected(lambda: accept, lambda: is_stubborn), socket)
    try:
        yield
    finally:
        server.close()


def _connected(
    accept: Callable[[], Accept], is_stubborn: Callable[[], bool]
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
    """Return what is called with each relay."""

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(relay.STUBBORN if is_stubborn() else relay.ORDINARY)
        transport = RelayTransport(reader, writer, stays=is_stubborn())
        accept()(transport, transport.lives)

    return connected


class ManualClient:
    """A client that a person drives: they are told what to do, and our agent waits for the connection."""

    def __init__(self, tell: Callable[[str], None], seconds: float) -> None:
        self.name: Final = "a client that a person drives"
        self._tell: Final = tell
        self._seconds: Final = seconds
        self._accept: Accept = _hang_up
        self._is_stubborn = False
        self._socket = ""
        self._step = 0
        self._places: Final = contextlib.AsyncExitStack()

    async def start(self, scenario: Scenario, accept: Accept, folder: str) -> RunningClient:
        """Say what is to be done, and wait until the client has connected and its turn is over."""
        if not self._socket:
            await self._begin()
        self._step += 1
        self._accept, self._is_stubborn = accept, scenario.script.is_stubborn
        self._tell(f"Step {self._step} ({scenario.name}). Folder: {folder}")
        self._tell(f"  {scenario.manual}")
        return _ManualRun(self._seconds)

    async def _begin(self) -> None:
        place = self._places.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-check-"))
        self._socket = os.path.join(place, "agent")
        connected = _connected(lambda: self._accept, lambda: self._is_stubborn)
        server = await asyncio.start_unix_server(connected, self._socket)
        self._places.callback(server.close)
        self._tell("Add an agent with this command to the client, and open a new session with it for each step:")
        self._tell(f"  {shlex.join(agent_command(self._socket))}")

    async def close(self) -> None:
        """Stop listening."""
        await self._places.aclose()


class _ManualRun:
    ends_by_itself = False

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds

    async def wait(self, seconds: float) -> int | None:
        await asyncio.sleep(min(seconds, self._seconds))
        return None

    def interrupt(self) -> bool:
        return True  # the person was told to

    def output(self) -> str:
        return ""

    async def close(self) -> None:
        return


def _hang_up(transport: Transport, lives: Lives) -> None:
    """Take no connection yet: nothing is played."""

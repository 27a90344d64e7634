"""Two kinds of terminals: one the agent shows (display), one the client runs for it (client)."""

import base64
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from msgspec import UNSET

from dragoman.agent.event_sink import EventSink
from dragoman.agent.tool import CANCELLABLE, Stoppable
from dragoman.errors import UsageError
from dragoman.vocabulary.events import AnyEvent, TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.services import (
    GetTerminalOutput,
    KillTerminal,
    ReleaseTerminal,
    TerminalExited,
    TerminalText,
    WaitForTerminalExit,
)
from dragoman.vocabulary.tools import ClientTerminalItem, ExitStatus, TerminalItem


class DisplayTerminal:
    """Output of a command that the agent runs itself. Made by `session.terminal(...)`."""

    def __init__(
        self,
        emit: Callable[[AnyEvent], Awaitable[None]],
        opening: TerminalUpdate,
        stoppable: Stoppable | None = None,
    ) -> None:
        self.id = opening.terminal_id
        self.item = TerminalItem(self.id)
        self._emit = emit
        self._opening = opening
        self._stoppable = {} if stoppable is None else stoppable
        self._opened = False
        self._ended = False

    async def __aenter__(self) -> Self:
        self._opened = True
        await self._emit(self._opening)
        return self

    def _check_open(self) -> None:
        if not self._opened:
            raise UsageError("a terminal begins with its block: write `async with session.terminal(...) as terminal:`")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            await self.exit(0 if kind is None else 1)

    async def allow_stopping(self, stop: Callable[[], object]) -> None:
        """The client may stop the command, as long as it runs."""
        self._check_open()
        if not callable(stop):
            raise UsageError(f"stop is a function, not {stop!r}: write `allow_stopping(process.terminate)`")
        self._stoppable[self.id] = stop
        await self._emit(TerminalUpdate(self.id, capabilities=CANCELLABLE))

    async def write(self, output: bytes | str) -> None:
        """Append output; bytes may end inside a character."""
        self._check_open()
        if not isinstance(output, (str, bytes, bytearray, memoryview)):
            raise UsageError(f"output is bytes or text, not {type(output).__name__}: write `terminal.write(b'…')`")
        data = output.encode("utf-8", "replace") if isinstance(output, str) else output
        await self._emit(TerminalOutputChunk(self.id, base64.b64encode(data).decode("ascii")))

    async def exit(self, code: int | None = 0, signal: str | None = None) -> None:
        """The command is done."""
        self._check_open()
        self._ended = True
        status = ExitStatus(exit_code=code) if signal is None else ExitStatus(exit_code=code, signal=signal)
        ended = None if self._stoppable.pop(self.id, None) is not None else UNSET
        await self._emit(TerminalUpdate(self.id, exit_status=status, capabilities=ended))


class ClientTerminal:
    """A command that runs in the client's terminal. Released, and so killed, when the block is left."""

    def __init__(self, speech: EventSink, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self.item = ClientTerminalItem(terminal_id)
        self._speech = speech
        self._session_id = session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()

    async def output(self) -> TerminalText:
        """What was printed so far."""
        reply = await self._speech.ask(GetTerminalOutput(self._session_id, self.id))
        assert isinstance(reply, TerminalText)
        return reply

    async def wait(self) -> TerminalExited:
        """Wait until the command is done."""
        reply = await self._speech.ask(WaitForTerminalExit(self._session_id, self.id))
        assert isinstance(reply, TerminalExited)
        return reply

    async def kill(self) -> None:
        """Kill the command; the output stays readable."""
        await self._speech.ask(KillTerminal(self._session_id, self.id))

    async def release(self) -> None:
        """Kill the command and forget the terminal."""
        await self._speech.ask(ReleaseTerminal(self._session_id, self.id))

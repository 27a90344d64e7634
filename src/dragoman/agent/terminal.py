"""Two kinds of terminals: one the agent shows (display), one the client runs for it (client).

`ClientServices` is the client as far as it lends its files and its terminals to a session. What it has not said it can
do is never asked for: that is the author's mistake, and is named as one. Nothing is borrowed for a turn that has ended.
"""

import base64
from collections.abc import Awaitable, Callable, Iterable
from typing import Self

from msgspec import UNSET

from dragoman.agent.checks import absolute, check_list, check_text, exact_text
from dragoman.agent.event_sink import EventSink, check_turn
from dragoman.agent.tool import CANCELLABLE, Stoppable
from dragoman.errors import UsageError
from dragoman.vocabulary.events import AnyEvent, TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.services import (
    CreateTerminal,
    GetTerminalOutput,
    KillTerminal,
    ReadTextFile,
    ReleaseTerminal,
    TerminalExited,
    TerminalText,
    WaitForTerminalExit,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ClientTerminalItem, ExitStatus, TerminalItem


class DisplayTerminal:
    """Output of a command that the agent runs itself. Made by `session.terminal(...)`, open inside of its block.

    Put `item` into the content of a tool call to show it there. Methods raise `UsageError` before the block, and what
    `session.emit` raises; they wait only while the client or the disk is too slow.
    """

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
        # States: made, open (inside of the block), exited. Only the first two are checked: output after the exit is
        # shown.
        self._opened = False
        self._ended = False

    async def __aenter__(self) -> Self:
        self._opened = True
        await self._emit(self._opening)
        return self

    def _check_open(self) -> None:
        if not self._opened:
            raise UsageError("a terminal begins with its block: write `async with session.terminal(...) as terminal:`")

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._ended:
            # An author that has called `exit` itself knows the real code; this is for blocks that are simply left.
            await self.exit(0 if kind is None else 1)

    async def allow_stopping(self, stop: Callable[[], object]) -> None:
        """Let the client stop the command while it runs: it calls `stop`, a function without parameters."""
        self._check_open()
        if not callable(stop):
            raise UsageError(f"stop is a function, not {stop!r}: write `allow_stopping(process.terminate)`")
        # Before the client is told that it may: its request could be read in the step after that.
        self._stoppable[self.id] = stop
        await self._emit(TerminalUpdate(self.id, capabilities=CANCELLABLE))

    async def write(self, output: bytes | str) -> None:
        """Append output: text, or bytes, which may end inside of a character. `UsageError` for anything else."""
        self._check_open()
        if not isinstance(output, (str, bytes, bytearray, memoryview)):
            raise UsageError(f"output is bytes or text, not {type(output).__name__}: write `terminal.write(b'…')`")
        # Lone surrogates become question marks: output is for people, and half of a pair has no bytes.
        data = output.encode("utf-8", "replace") if isinstance(output, str) else output
        await self._emit(TerminalOutputChunk(self.id, base64.b64encode(data).decode("ascii")))

    async def exit(self, code: int | None = 0, signal: str | None = None) -> None:
        """Show that the command has ended, with its exit code or the name of the signal that ended it."""
        self._check_open()
        # Before the event is emitted: leaving the block while this waits must not exit a second time.
        self._ended = True
        status = ExitStatus(exit_code=code) if signal is None else ExitStatus(exit_code=code, signal=signal)
        # None takes the capability back; absent would leave it, and a client would go on showing a button.
        ended = None if self._stoppable.pop(self.id, None) is not None else UNSET
        await self._emit(TerminalUpdate(self.id, exit_status=status, capabilities=ended))


class ClientTerminal:
    """A command that runs in the client's terminal. Released, and so killed, when its block is left.

    Made by `session.client_terminal(...)`. Every method sends a request and waits for its reply: `RequestFailed` if the
    client refuses it, `LinkClosed` when the client is gone.
    """

    def __init__(self, sink: EventSink, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self.item = ClientTerminalItem(terminal_id)
        self._sink = sink
        self._session_id = session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Also after an exception, and after a cancel: the command runs in the client and would go on there.
        await self.release()

    async def output(self) -> TerminalText:
        """Return what was printed so far, and the exit status if the command is done."""
        return await self._sink.ask(GetTerminalOutput(self._session_id, self.id))

    async def wait(self) -> TerminalExited:
        """Wait until the command is done, without a timeout, and return its exit status."""
        return await self._sink.ask(WaitForTerminalExit(self._session_id, self.id))

    async def kill(self) -> None:
        """Kill the command; the output stays readable."""
        await self._sink.ask(KillTerminal(self._session_id, self.id))

    async def release(self) -> None:
        """Kill the command and forget the terminal; it cannot be used after that."""
        await self._sink.ask(ReleaseTerminal(self._session_id, self.id))


class ClientServices:
    """The files and terminals that a client lends to one session."""

    def __init__(self, session_id: str, cwd: str, sink: EventSink) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._sink = sink

    async def read_text_file(self, path: str, line: int | None, limit: int | None) -> str:
        """Return the text of a file as the editor has it."""
        if not self._sink.client.read_text_file:
            raise UsageError("the client lends no files; look at session.client.read_text_file first")
        # The protocol has absolute paths only; a client would resolve a relative one by a folder of its own.
        place = absolute(path, "path")
        first, most = UNSET if line is None else line, UNSET if limit is None else limit
        # Behind the checks of arguments, so that a mistake is named even in code that outlived its turn.
        check_turn()
        reply = await self._sink.ask(ReadTextFile(self._session_id, place, first, most))
        return reply.content

    async def write_text_file(self, path: str, content: str) -> None:
        """Write the text of a file through the editor."""
        if not self._sink.client.write_text_file:
            raise UsageError("the client takes no files; look at session.client.write_text_file first")
        place = absolute(path, "path")
        check_text(content, "the content of a file", "session.write_text_file(path, 'text')")
        check_turn()
        await self._sink.ask(WriteTextFile(self._session_id, place, exact_text(content)))

    async def terminal(
        self, command: str, args: Iterable[str], cwd: str | None, output_byte_limit: int | None
    ) -> ClientTerminal:
        """Start a command in a terminal of the client."""
        if not self._sink.client.terminal:
            raise UsageError("the client lends no terminals; look at session.client.terminal first")
        check_text(command, "a command", 'session.client_terminal("make", ["test"])')
        words = check_list(args, "args", 'session.client_terminal("make", ["test"])')
        for word in words:
            check_text(word, "an argument of a command", 'session.client_terminal("make", ["test"])')
        request = CreateTerminal(
            self._session_id,
            exact_text(command),
            [exact_text(word) for word in words],
            # Always sent: without it a client may use the folder it was started in.
            cwd=self._cwd if cwd is None else absolute(cwd, "cwd"),
            output_byte_limit=UNSET if output_byte_limit is None else output_byte_limit,
        )
        check_turn()
        reply = await self._sink.ask(request)
        return ClientTerminal(self._sink, self._session_id, reply.terminal_id)

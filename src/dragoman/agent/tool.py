"""A tool call, and a terminal that shows a command, as the author of an agent sees them: opened, fed, closed once."""

import base64
from collections.abc import Awaitable, Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Final, NoReturn, Self

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.agent.checks import (
    STATUSES,
    absolute,
    check_known,
    check_shown,
    check_text,
    contents,
    places,
    plain,
    tool_content,
)
from dragoman.errors import UsageError
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import (
    AnyEvent,
    TerminalOutputChunk,
    TerminalUpdate,
    ToolCallContentChunk,
    ToolCallUpdate,
)
from dragoman.vocabulary.tools import (
    FINAL_STATUSES,
    Cancellable,
    CancelMarker,
    Diff,
    ExitStatus,
    Location,
    TerminalItem,
    ToolContent,
    ToolStatus,
)

Emit = Callable[[AnyEvent], Awaitable[None]]
# What a client may stop, by its id.
Stoppable = dict[str, Callable[[], object]]
CANCELLABLE: Final = Cancellable(CancelMarker())
_OPEN_FIRST: Final = "a tool call begins with its block: write `async with session.tool(...) as call:`"


class ToolCall:
    """A tool call that is shown to the user. Made by `session.tool(...)`, open inside of its `async with` block.

    Leaving the block completes the call; an exception fails it, a cancel cancels it. Its methods raise `UsageError`
    before the block and for arguments that cannot be sent, and what `session.emit` raises; they wait only while the
    client or the disk is too slow. After the end they do nothing. `id` and `title` are those that the client knows;
    `opening` is the call as it is shown now; `showed` tells whether it has content.
    """

    def __init__(self, emit: Emit, opening: ToolCallUpdate, stoppable: Stoppable | None = None) -> None:
        self.id = opening.tool_call_id
        self.title = opening.title if isinstance(opening.title, str) else self.id
        # The call as it is shown now.
        self.opening = opening
        # Whether it has something to show by now.
        self.showed = bool(opening.content)
        self._emit = emit
        # Shared with the session: its connection finds there what a client wants to stop.
        self._stoppable = {} if stoppable is None else stoppable
        # A digest of what was appended to the content of `opening`: what the user sees, without keeping it.
        self.added = ""
        # States: made, open (inside of the block), ended. An update after the end is ignored, because a tool that was
        # cancelled may still report; one before the block is a mistake of the author's.
        self._opened = False
        self._ended = False

    async def __aenter__(self) -> Self:
        self._opened = True
        await self._emit(self.opening)
        return self

    if not TYPE_CHECKING:  # a type checker knows that neither can be done

        def __await__(self) -> NoReturn:
            raise UsageError(_OPEN_FIRST)

        def __enter__(self) -> NoReturn:
            raise UsageError(_OPEN_FIRST)

        def __exit__(self, *error: object) -> None:
            """Never reached."""

    def check_open(self) -> None:
        """Raise `UsageError` before the block is entered: the client does not know the call yet."""
        if not self._opened:
            raise UsageError(_OPEN_FIRST)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ended:
            return
        if kind is None:
            await self.end("completed")
        elif issubclass(kind, Exception):
            await self.end("failed")
        else:
            # Cancelled: this very task is being stopped, so the last word must not wait for anything.
            await self.end("cancelled")

    async def start(self, stop: Callable[[], object] | None = None) -> None:
        """Show that the call is past its permission and does its work now.

        With `stop`, a function without parameters, the client may stop this call alone.
        """
        self.check_open()
        if stop is not None and not callable(stop):
            raise UsageError(f"stop is a function, not {stop!r}: write `await call.start(task.cancel)`")
        # A call that has ended cannot be stopped any more; `update` ignores it.
        if stop is None or self._ended:
            await self.update(status="in_progress")
            return
        self._stoppable[self.id] = stop
        await self._emit(ToolCallUpdate(self.id, status="in_progress", capabilities=CANCELLABLE))

    async def update(
        self,
        *,
        title: str | UnsetType = UNSET,
        status: ToolStatus | str | UnsetType = UNSET,
        content: Iterable[ToolContent] | UnsetType = UNSET,
        locations: Iterable[str | PathLike[str] | Location] | UnsetType = UNSET,
        raw_input: object = UNSET,
        raw_output: object = UNSET,
    ) -> None:
        """Replace parts of what is shown; what is not given stays. `content` replaces what `add` has appended."""
        self.check_open()
        if title is not UNSET and title is not None:  # None takes the title away
            check_shown(title, "the title of a tool call", 'call.update(title="Read config")')
        if status is not UNSET:
            check_known(status, "the status of a tool call", STATUSES)
        items = UNSET if isinstance(content, UnsetType) else contents(content)
        touched = UNSET if isinstance(locations, UnsetType) else places(locations)
        if self._ended:
            return
        change = ToolCallUpdate(
            self.id,
            title=title,
            status=status,
            content=items,
            locations=touched,
            raw_input=raw_input,
            raw_output=raw_output,
        )
        change = plain(change, "the tool call")
        # Known before the event is emitted: a question about the call may be asked while the client is slow.
        self.showed = self.showed or bool(items)
        if items is not UNSET:
            self.added = ""  # it replaces what was appended
        self._keep(title=change.title, content=change.content, locations=change.locations, raw_input=change.raw_input)
        await self._emit(change)

    def _keep(self, **shown: object) -> None:
        """Keep what is shown now, so that a question about this call shows that and not what was shown first."""
        self.opening = replace(self.opening, **{name: value for name, value in shown.items() if value is not UNSET})
        self.title = self.opening.title if isinstance(self.opening.title, str) else self.id

    async def add(self, content: "str | Content | ToolContent") -> None:
        """Append text, a content block, a diff or a terminal to what is shown."""
        self.check_open()
        item = plain(tool_content(content), "the content of a tool call")
        if not self._ended:
            self.showed = True
            self.added = _digest(self.added, item)
            await self._emit(ToolCallContentChunk(self.id, item))

    async def diff(self, path: str | PathLike[str], old: str | None, new: str) -> None:
        """Show a change of one file, by its absolute path: its text before and after.

        `old` is None for a new file, and `""` for a file that was there and empty.
        """
        if old is not None:
            check_text(old, "the text before a change", "await call.diff(path, old, new)")
        check_text(new, "the text after a change", "await call.diff(path, old, new)")
        await self.add(Diff.of(absolute(path, "the path of a diff"), old, new))

    async def end(self, status: ToolStatus | str, *, raw_output: object = UNSET) -> None:
        """Close the call: completed, failed or cancelled. Once; a second `end` is ignored.

        `raw_output` is what the tool returned: anything that has JSON. `UsageError` for another status.
        """
        self.check_open()
        if status not in FINAL_STATUSES:
            raise UsageError(f"a call ends as one of completed, failed, cancelled; not {status!r}")
        if not self._ended:
            # Before the event is emitted: a second `end` while this one waits for the client must do nothing.
            self._ended = True
            # The client may no longer stop it; the capability is taken back in the same update that ends it.
            was_stoppable = self._stoppable.pop(self.id, None) is not None
            ended = None if was_stoppable else UNSET
            await self._emit(ToolCallUpdate(self.id, status=status, raw_output=raw_output, capabilities=ended))


def _digest(before: str, item: ToolContent) -> str:
    """Return a digest of all the items so far, by that of those before."""
    # OpenSSL takes a while to load, and most turns append nothing that is asked about.
    import hashlib

    return hashlib.sha256(before.encode() + msgspec.json.encode(item, enc_hook=repr)).hexdigest()


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

"""A tool call as the author of an agent sees it: opened, fed, and closed exactly once."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import AnyEvent, ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.tools import Cancellable, CancelMarker, ContentItem, Diff, Location, TerminalItem, ToolContent

Emit = Callable[[AnyEvent], Awaitable[None]]
# What a client may stop, by its id.
Stoppable = dict[str, Callable[[], object]]
CANCELLABLE: Final = Cancellable(CancelMarker())


class ToolCall:
    """Made by `session.tool(...)`. Leaving the block completes the call; an exception fails it, a cancel cancels it."""

    def __init__(self, emit: Emit, opening: ToolCallUpdate, stoppable: Stoppable | None = None) -> None:
        self.id = opening.tool_call_id
        self.title = opening.title if isinstance(opening.title, str) else self.id
        # The call as it is shown now.
        self.opening = opening
        # Whether it has something to show by now.
        self.showed = bool(opening.content)
        self._emit = emit
        self._stoppable = {} if stoppable is None else stoppable
        self._ended = False

    async def __aenter__(self) -> Self:
        await self._emit(self.opening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """The call is past its permission and does its work now; `stop` stops it alone, if the client wants that."""
        if stop is None or self._ended:
            await self.update(status="in_progress")
            return
        self._stoppable[self.id] = stop
        await self._emit(ToolCallUpdate(self.id, status="in_progress", capabilities=CANCELLABLE))

    async def update(
        self,
        *,
        title: str | UnsetType = UNSET,
        status: str | UnsetType = UNSET,
        content: list[ToolContent] | UnsetType = UNSET,
        locations: list[Location] | UnsetType = UNSET,
        raw_input: object = UNSET,
        raw_output: object = UNSET,
    ) -> None:
        """Replace parts of what is shown."""
        if self._ended:
            return
        self.showed = self.showed or bool(content)
        self._keep(title=title, content=content, locations=locations, raw_input=raw_input)
        await self._emit(
            ToolCallUpdate(
                self.id,
                title=title,
                status=status,
                content=content,
                locations=locations,
                raw_input=raw_input,
                raw_output=raw_output,
            )
        )

    def _keep(self, **shown: object) -> None:
        """A question about this call shows what is shown now, and not what was shown first."""
        self.opening = replace(self.opening, **{name: value for name, value in shown.items() if value is not UNSET})
        self.title = self.opening.title if isinstance(self.opening.title, str) else self.id

    async def add(self, content: "str | Content | ToolContent") -> None:
        """Append text, a content block, a diff or a terminal to what is shown."""
        if not self._ended:
            self.showed = True
            await self._emit(ToolCallContentChunk(self.id, _item(content)))

    async def diff(self, path: str, old: str | None, new: str) -> None:
        """Show a change of one file; `old` None means it did not exist."""
        await self.add(Diff.of(path, old, new))

    async def end(self, status: str, *, raw_output: object = UNSET) -> None:
        """Close the call: completed, failed or cancelled. Once; later words about it are ignored."""
        if not self._ended:
            self._ended = True
            was_stoppable = self._stoppable.pop(self.id, None) is not None
            ended = None if was_stoppable else UNSET
            await self._emit(ToolCallUpdate(self.id, status=status, raw_output=raw_output, capabilities=ended))


def _item(content: "str | Content | ToolContent") -> ToolContent:
    if isinstance(content, str):
        return ContentItem(Text(content))
    if isinstance(content, (Diff, TerminalItem, ContentItem)):
        return content
    return ContentItem(content)  # type: ignore[arg-type]  # the rest of ToolContent are content blocks

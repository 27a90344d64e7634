"""Own the parts of tool calls and display terminals: content items, diffs, locations, output, exit status.

The calls and terminals themselves are events (`events`), folded by id (`state`).
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from dragoman.vocabulary.content import Content
from dragoman.vocabulary.word import Unknown, Word

# Open sets: other values pass through. These are the ones with a meaning.
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolStatus = Literal["pending", "in_progress", "paused", "completed", "failed", "cancelled"]
FINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})


class Location(Word, frozen=True, gc=False):
    """A file, and perhaps a line (1-based), that a tool call touches."""

    path: str
    line: int | None | UnsetType = UNSET


class ContentItem(Word, frozen=True, gc=False, tag_field="type", tag="content"):
    """An ordinary content block inside a tool call."""

    content: Content


class FileChange(Word, frozen=True, gc=False, tag_field="form", tag="change"):
    """What happened to one file. `old_text` and `new_text` are set where the sender knew them.

    `old_text` None: there was no file. Move and copy carry `old_path`.
    """

    operation: str
    path: str
    old_path: str | UnsetType = UNSET
    file_type: str | None | UnsetType = UNSET
    mime_type: str | None | UnsetType = UNSET
    old_text: str | None | UnsetType = UNSET
    new_text: str | UnsetType = UNSET


class UnknownChange(Unknown, frozen=True, gc=False, tag_field="form", tag="?"):
    """A file operation this release does not know."""


class Patch(Word, frozen=True, gc=False):
    """The changes of a `Diff` as a patch text, usually `git_patch`."""

    format: str
    text: str


class Diff(Word, frozen=True, gc=False, tag_field="type", tag="diff"):
    """File changes. `changes` is authoritative; the patch is for display."""

    changes: list[FileChange | UnknownChange]
    patch: Patch | None | UnsetType = UNSET

    @classmethod
    def of(cls, path: str, old: str | None, new: str) -> "Diff":
        """Return the change of one file; `old` None means that it did not exist."""
        operation = "add" if old is None else "modify"
        return cls([FileChange(operation, path, old_text=old, new_text=new)])


class TerminalItem(Word, frozen=True, gc=False, tag_field="type", tag="terminal"):
    """Shows a display terminal of the agent."""

    terminal_id: str


class ClientTerminalItem(Word, frozen=True, gc=False, tag_field="type", tag="client_terminal"):
    """Shows a terminal that the client runs for the agent. Its id is no id of a display terminal."""

    terminal_id: str


class UnknownItem(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """Tool call content of a kind this release does not know."""


ToolContent = ContentItem | Diff | TerminalItem | ClientTerminalItem | UnknownItem


class CancelMarker(Word, frozen=True, gc=False):
    """Present: this one thing can be cancelled by itself."""


class Cancellable(Word, frozen=True, gc=False):
    """What may be done to a running tool call or terminal."""

    cancel: CancelMarker | None | UnsetType = UNSET


class TerminalOutput(Word, frozen=True, gc=False):
    """All the bytes of a display terminal, as base64."""

    data: str


class ExitStatus(Word, frozen=True, gc=False):
    """How a process ended."""

    exit_code: int | None | UnsetType = UNSET
    signal: str | None | UnsetType = UNSET


class TerminalSize(Word, frozen=True, gc=False):
    """The size a display terminal was written for."""

    cols: int
    rows: int

"""Tool calls as JetBrains AIR wants them: each fact in one field (`handshake/air`).

- a changed file is a git patch in `_meta` of its diff, where the client declares `diffPatch`; the texts beside it are
  placeholders, because the schema requires them. Where no exact patch can be made, the diff stays as it is;
- the text of a file that a diff shows is not in `rawInput` as well;
- a text that is in `rawInput` word for word is not content as well, where the client declares `rawInputRendering`.

What an agent behind a bridge has made a patch of already is left alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.codec.git_patches import git_patch
from dragoman.dialects.handshake.air import DIFF_PATCH, RAW_INPUT_RENDERING, payload_of, with_air
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, ToolContent

# The largest patch that the adapters send; an editor draws it while the user waits with an answer.
PATCH_CHARACTERS: Final = 1024 * 1024
# git takes a file with a NUL in its beginning for a binary one.
_BINARY_WITHIN: Final = 8_000
# The names under which agents are given the text of a file, or a change of it.
_FILE_TEXT: Final = frozenset(
    {
        *("content", "file_text", "file_content", "new_source", "edits", "patch", "changes"),
        *("old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "oldText", "newText"),
    }
)
# A whole text that is shown as code.
_FENCED: Final = re.compile(r"\A(`{3,})[^\n`]*\n(.*?)\n?\1\Z", re.S)


class LeanCalls:
    """How the tool calls of one client are made lean; `names` are what it has declared."""

    def __init__(self, names: frozenset[str]) -> None:
        self._patches: Final = DIFF_PATCH in names
        self.renders_input: Final = RAW_INPUT_RENDERING in names

    def __repr__(self) -> str:
        return f"<LeanCalls patches={self._patches} renders_input={self.renders_input}>"

    def lean(
        self, event: events.ToolCallUpdate | events.ToolCallContentChunk, shown: Sequence[ToolContent] = ()
    ) -> events.ToolCallUpdate | events.ToolCallContentChunk:
        """Return an event of a call as this client is sent it; `shown` is the content that the client has of the call.

        A chunk whose diff is one of several files becomes an update with all of its content.
        """
        if isinstance(event, events.ToolCallUpdate):
            return self.lean_update(event, shown)
        items = list(self._lean_items([event.content], ()))
        # This wire replaces content: what was shown before has to stand in front of several new items.
        if len(items) == 1:
            return replace(event, content=items[0])
        return events.ToolCallUpdate(event.tool_call_id, content=[*shown, *items], meta=event.meta, extras=event.extras)

    def lean_update(self, call: events.ToolCallUpdate, shown: Sequence[ToolContent] = ()) -> events.ToolCallUpdate:
        """Return an update, or the call that a question is about, as this client is sent it."""
        content, raw = call.content, call.raw_input
        # Before the texts are replaced by patches: an input of a call that shows no diff is all there is of it.
        if any(isinstance(item, Diff) for item in (*(content or ()), *shown)):
            raw = _without_file_text(raw)
        if isinstance(content, list):
            content = list(self._lean_items(content, set(_texts(raw)) if self.renders_input else ()))
        return (
            call if content is call.content and raw is call.raw_input else replace(call, content=content, raw_input=raw)
        )

    def _lean_items(self, items: Iterable[ToolContent], known: "set[str] | tuple[()]") -> Iterator[ToolContent]:
        for item in items:
            if isinstance(item, Diff) and self._patches and payload_of(item.meta or None, DIFF_PATCH) is None:
                yield from _with_patches(item)
            elif not (known and isinstance(item, ContentItem) and _plain(item) in known):
                yield item


def _with_patches(diff: Diff) -> Iterator[Diff]:
    """Yield a diff for each file that has a patch, and one behind them for all that have none."""
    others = []
    for change in diff.changes:
        patch = _exact_patch(change) if isinstance(change, FileChange) else None
        if patch is None or not isinstance(change, FileChange):
            others.append(change)
            continue
        meta = with_air(diff.meta or None, DIFF_PATCH, {"version": 1, "format": "git_patch", "text": patch})
        # No file and an empty text: what a reader shows that does not know the patch is at least no change of a file.
        yield replace(diff, changes=[replace(change, old_text=None, new_text="")], patch=UNSET, meta=meta)
    if others:
        yield replace(diff, changes=others)


def _exact_patch(change: FileChange) -> str | None:
    """Return the patch of a file; None for one that has no hunk, is not plain text, or would be too large to read."""
    texts = [text for text in (change.old_text, change.new_text) if isinstance(text, str)]
    # The contract has no place for a carriage return: its readers split lines at it, and the patch would not apply.
    if any("\r" in text or "\0" in text[:_BINARY_WITHIN] for text in texts):
        return None
    # Two texts of which one is much larger than a patch may be make a larger patch, or take long to compare.
    if sum(map(len, texts)) > 4 * PATCH_CHARACTERS:
        return None
    patch = git_patch(change, prefixed=True)
    # Headers alone, as of a file that was only moved, are no patch to a reader that counts lines.
    return patch if patch is not None and "\n@@ " in patch and len(patch) <= PATCH_CHARACTERS else None


def _without_file_text(raw: Any) -> Any:
    if not isinstance(raw, dict) or _FILE_TEXT.isdisjoint(raw):
        return raw
    return {name: value for name, value in raw.items() if name not in _FILE_TEXT}


def _texts(raw: object) -> Iterator[str]:
    """Yield the texts of an input, those in its lists and objects as well."""
    # Agents and models differ in the white space around a text, and a line end alone makes no other text of it.
    if isinstance(raw, str) and raw.strip():
        yield raw.strip()
    elif isinstance(raw, dict | list):
        for value in raw.values() if isinstance(raw, dict) else raw:
            yield from _texts(value)


def _plain(item: ContentItem) -> str:
    if not isinstance(item.content, Text):
        return ""
    text = item.content.text.strip()
    fenced = _FENCED.match(text)
    return fenced[2].strip() if fenced else text

"""One compaction as its events have told it so far. Pure: events in, one `CompactionUpdate` out.

The first event with an id creates the compaction, whatever its kind is: a summary chunk creates one that is in
progress. `summary`, `error` and `_meta` are patched as `patches` says, and a chunk appends one block to the summary.
The `_meta` of a chunk belongs to the chunk and not to the state.
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import CompactionSummaryChunk, CompactionUpdate
from dragoman.vocabulary.patches import apply_patch

IN_PROGRESS: Final = "in_progress"


class CompactionState:
    """The state of one compaction: `apply` its events in order, and read `value`."""

    def __init__(self, compaction_id: str) -> None:
        self._update = CompactionUpdate(compaction_id, IN_PROGRESS)
        self._summary: list[Content] = []

    def __repr__(self) -> str:
        blocks = len(self._summary)
        return f"<CompactionState {self._update.compaction_id!r} {self._update.status} blocks={blocks}>"

    def apply(self, event: CompactionUpdate | CompactionSummaryChunk) -> None:
        """Fold one event of this compaction into the state."""
        if isinstance(event, CompactionSummaryChunk):
            self._summary.append(event.content)
            return
        if event.summary is not UNSET:
            self._summary = list(event.summary or ())
        self._update = apply_patch(self._update, replace(event, summary=UNSET))

    @property
    def is_open(self) -> bool:
        """Whether the compaction has not ended yet."""
        return self._update.status == IN_PROGRESS

    @property
    def value(self) -> CompactionUpdate:
        """The compaction as one update; what no event has told, or what was cleared, is UNSET."""
        return replace(self._update, summary=list(self._summary)) if self._summary else self._update

"""Own the output of `dragoman run --json`: one object when the turn has ended, with the answer and what was done."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from dragoman.cli.changed_files import changed_files
from dragoman.cli.terminal.json_lines import plain_usage
from dragoman.cli.text_width import harmless_json
from dragoman.vocabulary.events import (
    AgentMessage,
    AgentMessageChunk,
    AnyEvent,
    Cost,
    ToolCallContentChunk,
    ToolCallUpdate,
    Usage,
)
from dragoman.vocabulary.state import SessionState

# What the object tells about. The rest of a turn, above all what commands put out, need not be kept for it.
_TOLD: Final = (AgentMessage, AgentMessageChunk, ToolCallUpdate, ToolCallContentChunk)


class JsonResult:
    """Keeps what a turn has said and changed, and writes it as one object."""

    def __init__(self, write: Callable[[str], object], *, output_alone: bool = False) -> None:
        """`output_alone`: write no object but the output, if there is one."""
        self._write = write
        self._output_alone = output_alone
        self._state = SessionState()

    def event(self, event: AnyEvent) -> None:
        """Keep what the object tells of an event."""
        if isinstance(event, _TOLD):
            self._state.apply(event)

    def result(
        self,
        session_id: str | None,
        stop_reason: str,
        usage: Usage | None,
        error: object,
        denied: Sequence[Mapping[str, str]] = (),
        cost: Cost | None = None,
        *,
        output: object = UNSET,
    ) -> None:
        """Write the object. `files` has each file that was changed, and what it came to; `error` is absent if none;
        `output` is the answer as the value that a schema asked for."""
        if self._output_alone:
            if output is not UNSET:
                self._write(harmless_json(msgspec.json.encode(output)) + "\n")
            return
        body: dict[str, object] = {
            "text": self._state.text(AgentMessage),
            "stopReason": stop_reason,
            "sessionId": session_id,
            "usage": None if usage is None else plain_usage(usage),
            "cost": None if cost is None else {"amount": cost.amount, "currency": cost.currency},
            "denied": list(denied),
            "files": [
                {"path": path, "operation": operation}
                for path, operation in changed_files(self._state.snapshot()).items()
            ],
        }
        if output is not UNSET:
            body["output"] = output
        if error is not None:
            body["error"] = error
        self._write(harmless_json(msgspec.json.encode(body)) + "\n")

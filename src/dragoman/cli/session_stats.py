"""Sums over stored sessions: how many there are, what was said and done in them, and what they have used."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.cli.used_totals import UsedTotals
from dragoman.store.contract import SessionMeta, Store, StoreFailed
from dragoman.store.entries import EventEntry
from dragoman.vocabulary.events import ToolCallUpdate, UserMessage

if TYPE_CHECKING:
    from dragoman.cli.session_actions import SessionTask


# In microseconds.
_DAY: Final = 86_400_000_000


class SessionSums(msgspec.Struct, rename="camel"):
    """What `sessions stats` prints. Costs are in dollars, as far as they are known; other agents tell no tokens."""

    sessions: int = 0
    unreadable: int = 0
    folders: int = 0
    prompts: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    first_used: int = 0
    last_used: int = 0


async def stats(task: "SessionTask", sessions: Sequence[tuple[Store, SessionMeta]]) -> int:
    """Print the sums; return the exit code."""
    days = task.arguments.days
    since = 0 if days is None else time.time_ns() // 1000 - days * _DAY
    wanted = [(store, meta) for store, meta in sessions if meta.activity >= since]
    sums = SessionSums(sessions=len(wanted), folders=len({meta.cwd for _, meta in wanted}))
    for number, (store, meta) in enumerate(wanted):
        task.progress.at("Reading the sessions", number, len(wanted))
        try:
            await _add(sums, store, meta, is_recorded=store is task.recordings)
        except StoreFailed:
            sums.unreadable += 1
    times = [meta.activity for _, meta in wanted] or [0]
    sums.first_used, sums.last_used = min(times), max(times)
    if task.arguments.json:
        task.output.line(msgspec.json.encode(sums))
        return 0
    for line in _lines(sums):
        task.output.write(f"{line}\n")
    return 0


async def _add(sums: SessionSums, store: Store, meta: SessionMeta, *, is_recorded: bool) -> None:
    used = UsedTotals(is_recorded=is_recorded)
    calls: set[str] = set()
    async for records in used.read(store.read(meta.id)):
        for record in records:
            event = record.entry.event if isinstance(record.entry, EventEntry) else None
            if isinstance(event, UserMessage):
                sums.prompts += 1
            elif isinstance(event, ToolCallUpdate):
                calls.add(event.tool_call_id)
    sums.tool_calls += len(calls)
    total = used.total
    sums.input_tokens += total.input
    sums.output_tokens += total.output
    sums.cost += total.cost or 0.0


def _lines(sums: SessionSums) -> list[str]:
    lines = [f"sessions    {sums.sessions:,} in {sums.folders:,} folders"]
    if sums.unreadable:
        lines.append(f"            {sums.unreadable:,} of them cannot be read")
    if sums.sessions:
        lines += [
            f"last used   {_day(sums.first_used)} to {_day(sums.last_used)}",
            f"prompts     {sums.prompts:,}",
            f"tool calls  {sums.tool_calls:,}",
            f"tokens      {sums.input_tokens:,} in, {sums.output_tokens:,} out",
            f"cost        ${sums.cost:,.2f}",
        ]
    return lines


def _day(microseconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(microseconds / 1_000_000))

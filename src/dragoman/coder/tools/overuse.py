"""Ends a confined command that outgrows its limits, and says so in its result."""

import asyncio

from dragoman.coder.execution import Start
from dragoman.coder.tools.contract import ToolOutcome
from dragoman.host.process import Child
from dragoman.host.resources import WATCH_SECONDS, UsageWatch


class OveruseWatch:
    """Looks at a running command now and then. `close` when it has ended."""

    def __init__(self, child: Child, start: Start) -> None:
        self._child = child
        self._start = start
        self._sentence: str | None = None
        watch = None if start.watched is None else UsageWatch(start.watched, child.members)
        self._looking = None if watch is None else asyncio.ensure_future(self._look(watch))

    def excess(self, text: str, *, failed: bool) -> str | None:
        """Return the limit that was met, in a sentence; None: none known. `text`: what the command printed.

        Call before `Start.close`.
        """
        return self._sentence or self._start.excess(text, failed)

    def with_excess(self, outcome: ToolOutcome) -> ToolOutcome:
        """Add the limit that was met, if one was, to an outcome. Call before `Start.close`."""
        sentence = self.excess(outcome.text, failed=outcome.failed)
        return outcome if sentence is None else outcome._replace(text=f"{outcome.text}\n[{sentence}]", failed=True)

    def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self, watch: UsageWatch) -> None:
        while self._sentence is None:
            await asyncio.sleep(WATCH_SECONDS)
            self._sentence = await asyncio.to_thread(watch.excess)
        self._child.kill_now()

"""What an operator sees of the gateway: counters, measurements, the log, and unexpected errors.

`Monitor` is handed to every part that has something to count or to report. Nothing here knows sessions or clients;
nothing that is counted or logged has content in it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from dragoman.gateway.live_traces import LiveTraces
from dragoman.gateway.logbook import Logbook
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.shared_state import WaitingQuestion
from dragoman.gateway.tracing import Traces

# Paths that the log names; a client could write any other one, so those are all called "other".
_PATHS: Final = frozenset(
    {"/login", "/me", "/api/activity", "/", "/acp", "/acp/rpc", "/acp/sse", "/health", "/ready", "/metrics"}
)


class SessionListener(Protocol):
    """What is called when a session has something for a person. Nothing here waits or raises."""

    def on_question(self, question: WaitingQuestion, owner: str | None, title: str) -> None:
        """Note that a question is put to the clients of a session of this principal; `title` is what it is about."""

    def on_question_end(self, question: WaitingQuestion) -> None:
        """Note that a question has ended, with an answer or without."""

    def on_turn_end(self, session_id: str, owner: str | None, stop_reason: str, seconds: float) -> None:
        """Note that a turn has ended, which took so many seconds."""


class Monitor:
    """The counters, measurements and log of one server. `report` is called with exceptions that are bugs of ours."""

    def __init__(self, log: Logbook | None = None, report: Callable[[Exception], None] | None = None) -> None:
        self.log: Final = log or Logbook()
        self.metrics: Final = Metrics()
        self.counts: Final[Counter[str]] = Counter()
        self.traces: Traces | None = None
        # Set by the server before it listens, where there are webhooks.
        self.listener: SessionListener | None = None
        self.live: Final = LiveTraces()
        self._report = report

    def __repr__(self) -> str:
        return f"<Monitor bugs={self.counts['bugs']} noise={self.counts['noise']} turns={self.counts['turns']}>"

    def on_refusal(self, status: int, method: str, path: str, address: str) -> None:
        """Count and log an HTTP request that was refused."""
        self.metrics.refused.labels(status).inc()
        known = path if path in _PATHS else "other"
        self.log.refusal(status=status, method=method, path=known, address=address)

    def report(self, error: Exception) -> None:
        """Count an unexpected exception and pass it to the `report` callback of the server; never to a client."""
        self.counts["bugs"] += 1
        if self._report is not None:
            self._report(error)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report an exception of the block and go on behind it: one broken connection must not end the sweep of all."""
        try:
            yield
        # Not `BaseException`: a cancel is no bug, and has to end the task.
        except Exception as error:
            self.report(error)


class BackgroundTasks:
    """Tasks that close something while a synchronous caller goes on. The server waits for them when it stops."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        # The loop refers to tasks weakly: one that stands nowhere else may be collected before it is done.
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task; its exception is reported."""
        task = asyncio.get_running_loop().create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        """Wait until every task that was started so far is done."""
        # An exception was reported by `_run`; here it must not keep the server from ending.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        with self._monitor.reporting():
            await work

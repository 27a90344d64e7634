"""One thread that does everything with the disk, in order, so that no two threads ever share a connection.

Two kinds of work: jobs (a call with a result) and logs that have entries waiting. Everything that waits in a log is
committed at once: a lone entry immediately, a flood in large groups.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
Job = Callable[[], None]


class Writer:
    """The thread. Started at the first use, ended by `stop`."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting: Final = threading.Lock()

    def put(self, job: Job) -> None:
        """Do this after everything put before. It must not raise."""
        if self._thread is None:
            self._start()
        self._jobs.put(job)

    async def run(self, work: Callable[[], T]) -> T:
        """Do this there, and give its result here."""
        done: Future[T] = Future()

        def job() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001  # it is raised again where it is waited for
                done.set_exception(error)

        self.put(job)
        # A caller that goes away does not stop the work: half a change would be worse than a whole one.
        return await asyncio.shield(asyncio.wrap_future(done))

    async def stop(self) -> None:
        """Finish what was put, then end."""
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dragoman-store", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: Any) -> None:
    """Call back into the loop, unless it is gone."""
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        pass  # the loop is closed: nobody waits for this any more

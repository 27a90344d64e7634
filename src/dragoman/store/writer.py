"""One thread that does everything with the disk, in order, so that no two threads ever share a connection.

Everything that waits in a log is committed by one job: a lone entry immediately, a flood in large groups. Callbacks are
delivered to the loop when no job waits, or after a moment: a loop that is woken for each of fifty commits does little
else, and keeps us from the next.

The thread is not started, running, or stopped. It is stopped by `stop`, after every job that was put before; `put`
returns False from then on. A kill loses the jobs that wait; what they would have promised was not promised yet.
"""

import asyncio
import atexit
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from dragoman.store.contract import StoreFailed

T = TypeVar("T")
Job = Callable[[], None]

# So long may what is done wait to be told while there is more to do. A chunk's way to a client may take ten times that.
_DELIVER_SECONDS: Final = 0.002
# A program that ends without closing its store waits this long for what it has appended.
_EXIT_SECONDS: Final = 2.0


class Writer:
    """The thread. Started at the first use, ended by `stop`."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        # Held for starting, ending, and putting: nothing is put behind the end.
        self._lock: Final = threading.Lock()
        self._stopped = False
        # The thread's own: what is to be told, and since when.
        self._callbacks: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
        self._since = 0.0

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "not started" if self._thread is None else "running"
        return f"<Writer {state} jobs={self._jobs.qsize()}>"

    def put(self, job: Job) -> bool:
        """Do this after everything put before. It must not raise. False: the writer has done its last job."""
        with self._lock:
            if self._stopped:
                return False
            if self._thread is None:
                # A daemon, so that a store that was never closed does not keep a program from ending.
                self._thread = threading.Thread(target=self._work, name="dragoman-store", daemon=True)
                self._thread.start()
                atexit.register(self._exit)
            self._jobs.put(job)
            return True

    async def run(self, work: Callable[[], T]) -> T:
        """Do this there, and give its result here."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:  # it is raised again where it is waited for
                self.call_in_loop(loop, partial(_fail, done, error))
            else:
                self.call_in_loop(loop, partial(_give, done, result))

        if not self.put(job):
            raise StoreFailed("the session store is closed")
        # Cancelling the caller does not stop the work: half a change would be worse than a whole one. `_seen` marks
        # the exception as retrieved, so that a failure after such a cancellation logs no traceback.
        done.add_done_callback(_seen)
        return await asyncio.shield(done)

    def call_in_loop(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        """Call back into a loop, soon and in order. In the thread; the call must not raise."""
        if not self._callbacks:
            self._since = time.monotonic()
        self._callbacks.setdefault(loop, []).append(call)

    async def stop(self) -> None:
        """Finish what was put, then end."""
        with self._lock:
            # Without a thread there is nothing to wait for; with one, it sets `_stopped` itself when it has done the
            # last job.
            thread = self._thread
            self._stopped = self._stopped or thread is None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
            atexit.unregister(self._exit)

    def _exit(self) -> None:
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(_EXIT_SECONDS)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()
            if self._callbacks and time.monotonic() - self._since > _DELIVER_SECONDS:
                self._deliver()
        # Under the lock: who is told that we have stopped is told after everything we had to tell.
        with self._lock:
            self._stopped = True
            while not self._jobs.empty():
                job = self._jobs.get()
                if job is not None:
                    job()
            self._deliver()

    def _next(self) -> Job | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._deliver()
            return self._jobs.get()

    def _deliver(self) -> None:
        callbacks, self._callbacks = self._callbacks, {}
        for loop, calls in callbacks.items():
            try:
                loop.call_soon_threadsafe(_call_all, calls)
            except RuntimeError:
                pass  # the loop is closed, and every task that waited for this with it


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _seen(done: "asyncio.Future[T]") -> None:
    if not done.cancelled():
        done.exception()


def _give(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[T]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)

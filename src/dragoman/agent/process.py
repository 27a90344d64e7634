"""An agent as a process: it serves on stdin and stdout, ends at EOF and at signals, and is gone two seconds later.

The end is one `Deadline`: it begins when the guard notices the end of the input or a signal, or when the link ends for
another reason, and every step of the end has its share of it. What does not end by then is ended by the guard.

`ExitGuard` is a thread that ends this process in time, also if a handler blocks the event loop. The loop cannot notice
the end of its input or a signal while a handler keeps it busy. So this thread watches both: the input by polling it for
a hang-up, which needs no reading, and signals by the wake-up descriptor, which the interpreter writes to inside the
signal handler. That descriptor gets every signal that Python handles, and an author may have handlers for others;
and `loop.add_signal_handler` takes it away from us, so our own handler wakes the thread as well. From the end of the
input or the first of our signals on there is one `Deadline`. When it is used up the process is ended by `os._exit`.
Nothing that the client saw is lost: it was committed before it was sent. Child processes are killed by the guardian
that watches them (`host/guardian`).

A task that swallows every exception is not ended: it is kept (`ExitGuard.keep`). Collecting it would throw
`GeneratorExit` into its coroutine, which swallows that as well, finds no running loop to wait in, and never returns; in
the interpreter's shutdown no other thread runs that could end it.

Limits. The thread needs the interpreter's lock (GIL). A handler that holds it in native code is ended
- after a signal, if that code looks for signals, as regular expressions do: by a timer, whose handler runs there;
- not at the end of the input, and not in native code that does not look for signals, such as `sum(range(10**12))`,
  before it returns. Only SIGKILL ends such a process earlier.
Nor is anything bounded that the interpreter runs after the functions of `atexit`, such as a `__del__` that blocks.
"""

import asyncio
import os
import select
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from dragoman.background import EventLoop
from dragoman.dialects.handshake.first_bytes import InitializeAnswer
from dragoman.link.deadline import EXIT, GENERATORS, SWEEP, Deadline, cancel_all
from dragoman.transports.contract import Transport
from dragoman.transports.opening import SIGNALS, Opening
from dragoman.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from dragoman.agent.connection import ClientConnection

Serving = Callable[[Transport], "ClientConnection"]

# What the shutdown of the interpreter may take when the deadline has passed before it began.
_SHUTDOWN_SECONDS: Final = 0.5
# For a timer whose moment has passed: 0 would stop it.
_SOON_SECONDS: Final = 0.001
_WAKE: Final = b"\0"
# Added to the number of a signal by our own handler: the descriptor may have reported the same one.
_FROM_HANDLER: Final = 0x80
_LATE: Final = b"dragoman: something did not end in time; the process ends without it\n"


class ExitGuard:
    """The thread and what it watches. Make it before anything closes `stdin`: it keeps a duplicate of that."""

    def __init__(self, stdin: int) -> None:
        # What the process exits with if it has to be ended.
        self.exit_code = 0
        self.received = 0  # the number of the signal that came, or 0
        # A duplicate: the transport closes its own, and polling a descriptor that was closed and used again would
        # watch another file.
        self._stdin = os.dup(stdin)
        self._wake = os.pipe()
        for fd in self._wake:
            os.set_blocking(fd, False)
        # None until the end begins. Written in the loop, in the thread and in a signal handler: the first one counts.
        self._deadline: Deadline | None = None
        self._returned = False
        self._kept: Iterable[object] = ()
        self._has_timer = False
        self._shutdown_began: Final = threading.Event()
        self._on_signal: Callable[[int], None] = lambda number: None
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return f"<ExitGuard {self._deadline or 'not armed'} signal={self.received}>"

    def start(self, on_signal: Callable[[int], None]) -> None:
        """Watch from now on. `on_signal` is called in the running loop, with the first signal that comes."""
        loop = asyncio.get_running_loop()
        self._on_signal = lambda number: _call_in(loop, on_signal, number)
        threading.Thread(target=self._watch, name="dragoman-exit-guard", daemon=True).start()

    def catch_signals(self) -> None:
        """Have signals wake the thread. Does nothing outside the main thread: Python allows no signal handlers."""
        with suppress(ValueError):
            signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
            for number in SIGNALS:
                signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        """Wake the thread, and give signals their default action back: a second one ends the process at once."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        with suppress(OSError):
            os.write(self._wake[1], bytes((number | _FROM_HANDLER,)))
        self._start_timer(number)

    def _start_timer(self, number: int) -> None:
        """Have SIGALRM end the process if the thread cannot; unless the author has a use for SIGALRM.

        Called in a signal handler, which may have interrupted `arm`: so this must not take its lock.
        """
        if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            return
        if not self.received:
            self.exit_code = 128 + number
        deadline = self._deadline or Deadline()
        self._has_timer = True
        signal.signal(signal.SIGALRM, lambda *_: self._exit())
        signal.setitimer(signal.ITIMER_REAL, max(deadline.left(EXIT), _SOON_SECONDS))

    def arm(self) -> Deadline:
        """Begin the deadline, if it has not begun, and return it."""
        with self._lock:
            if self._deadline is None:
                self._deadline = Deadline()
                with suppress(OSError):
                    os.write(self._wake[1], _WAKE)
            return self._deadline

    def keep(self, tasks: Iterable[object]) -> None:
        """Keep tasks that have not ended from ever being collected, also by the shutdown of the interpreter.

        The thread refers to this object from a frame that it never leaves, and a daemon's frames are not cleared.
        """
        self._kept = tasks

    def finish(self) -> None:
        """Stop watching, because serving is over: from now on only the shutdown of the interpreter is bounded."""
        with suppress(ValueError):
            signal.set_wakeup_fd(-1)
            for number in SIGNALS:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            if self._has_timer:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _call_at_shutdown(self._shutdown_began.set)
        self._returned = True
        self.arm()
        with suppress(OSError):
            os.write(self._wake[1], _WAKE)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        waiting = select.poll()
        waiting.register(self._wake[0], select.POLLIN)
        # Only for the hang-up: input that waits must not wake this thread, the loop reads it. `POLLHUP` is reported
        # without being asked for.
        waiting.register(self._stdin, getattr(select, "POLLRDHUP", 0))
        while not self._returned:
            left = None if self._deadline is None else self._deadline.left(EXIT)
            if left == 0:
                self._exit()
            for fd, _ in waiting.poll(None if left is None else left * 1000 + 1):
                if fd == self._stdin:
                    waiting.unregister(fd)
                    self.arm()
                else:
                    self._on_wake()
        os.close(self._stdin)
        self._watch_shutdown()

    def _on_wake(self) -> None:
        with suppress(BlockingIOError):
            for byte in os.read(self._wake[0], 64):
                number = byte & ~_FROM_HANDLER
                if number not in SIGNALS:
                    continue
                if not self.received:
                    self.received = number
                    self.exit_code = 128 + number
                    self.arm()
                    self._on_signal(number)
                # The descriptor and our handler both report the first signal; only one from the descriptor can be a
                # second signal.
                elif number == byte:
                    os._exit(128 + number)  # a second one ends us at once

    def _watch_shutdown(self) -> None:
        """Wait until the shutdown begins, then until the deadline; end the process if it is still there."""
        self._shutdown_began.wait()
        deadline = self.arm()
        # The share of this step; else what is left in all; else half a second: an exit at once would cut off `atexit`.
        left = deadline.left(EXIT) or deadline.left() or _SHUTDOWN_SECONDS
        select.poll().poll(left * 1000)
        self._exit()

    def _exit(self) -> None:
        ready = select.poll()
        with suppress(OSError):
            ready.register(2, select.POLLOUT)
            if any(event & select.POLLOUT for _, event in ready.poll(0)):
                os.write(2, _LATE)
        os._exit(self.exit_code)


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[int], None], number: int) -> None:
    with suppress(RuntimeError):  # the loop is closed: the end has begun without it
        loop.call_soon_threadsafe(call, number)


def _call_at_shutdown(call: Callable[[], None]) -> None:
    """Have `call` called when the main thread has ended, before Python waits for the threads of pools and others.

    The only hook that early is CPython's own for `concurrent.futures`. The main thread counts as ended behind it, and
    functions of `atexit` come behind everything that may hang.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(call)
        return

    def wait_for_main_thread() -> None:
        threading.main_thread().join()
        call()

    threading.Thread(target=wait_for_main_thread, name="dragoman-exit", daemon=True).start()


def serve_process(opening: Opening[InitializeAnswer], serving: Serving) -> int:
    """Serve on the stdin and stdout of this process until the client is gone or a signal comes; the exit code.

    Threads that handlers have left behind are not waited for here: pools keep theirs until the interpreter shuts down.
    The guard ends the process where they do not end then.
    """
    guard = ExitGuard(opening.stdin)
    transport = StdioTransport(opening.stdin, opening.stdout, unread=opening.unread)
    loop = EventLoop()
    try:
        code = guard.exit_code = loop.run_until_complete(_serve(serving, transport, opening, guard))
    finally:
        # asyncio.run would wait for every task without a bound: a handler that ignores its end must not keep us.
        # Also after an exception: tasks and generators must be closed before the loop is.
        loop.run_until_complete(_sweep(guard.arm()))
        guard.keep(asyncio.all_tasks(loop))
        loop.close()
    guard.finish()
    return code


async def _serve(
    serving: "Callable[[Transport], ClientConnection]",
    transport: Transport,
    opening: Opening[InitializeAnswer],
    guard: ExitGuard,
) -> int:
    connection = serving(transport)
    connection.link.begin_deadline = guard.arm
    stopping: list[asyncio.Future[None]] = []

    def stop(number: int) -> None:
        stopping.append(asyncio.ensure_future(connection.stop()))

    # Before the handlers of `Opening` are replaced: at every moment one of the two catches a signal.
    guard.start(stop)
    opening.hand_over()
    if not opening.received:
        guard.catch_signals()
    if opening.received:  # before the guard caught signals
        guard.received = opening.received[0]
        guard.exit_code = 128 + guard.received
        guard.arm()
        stop(guard.received)
    await connection.run()
    return 128 + guard.received if guard.received else connection.exit_code


async def _sweep(deadline: Deadline) -> None:
    await cancel_all(asyncio.all_tasks() - {asyncio.current_task()}, deadline.left(SWEEP))
    # Not `wait_for`, which waits without a bound for a generator that ignores being cancelled.
    closing = asyncio.ensure_future(asyncio.get_running_loop().shutdown_asyncgens())
    await asyncio.wait([closing], timeout=deadline.left(GENERATORS))

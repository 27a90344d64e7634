"""Run calls in threads that the end of the process does not wait for, and the event loop that looks up names so.

For calls that change nothing and cannot be interrupted: importing a large package (seconds on a cold disk) and looking
up the address of a host (half a minute where no name server answers). In a thread of asyncio's own pool either would
hold up the end of the process, because `asyncio.run` and the interpreter's shutdown join that pool.

A program that imports in the background ends by `end_process`: the interpreter's shutdown stops daemon threads wherever
they are, and native extensions, which such an import runs, do not survive that.
"""

import asyncio
import atexit
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

# What our modules log is for programs that ask for it. Without a handler Python prints warnings on stderr, where our
# commands write to a person. Here because everything that logs runs in a loop, and asyncio has imported `logging`.
logging.getLogger("dragoman").addHandler(logging.NullHandler())

_running: Final[set[threading.Thread]] = set()


async def call_in_background(function: Callable[..., T], *arguments: Any) -> T:
    """Call `function` in a daemon thread of its own and wait for it; raises what it raises.

    Cancelling stops the waiting and not the call, whose result is then thrown away.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def deliver(setter: Callable[[Any], None], value: object) -> None:
        if not outcome.done():
            setter(value)

    def work() -> None:
        setter: Callable[[Any], None] = outcome.set_result
        value: object
        try:
            value = function(*arguments)
        except BaseException as error:
            setter, value = outcome.set_exception, error
        _running.discard(thread)
        with suppress(RuntimeError):  # the loop is closed, so nothing waits any more
            loop.call_soon_threadsafe(deliver, setter, value)

    thread = threading.Thread(target=work, name="dragoman-background", daemon=True)
    _running.add(thread)
    thread.start()
    return await outcome


def start_in_background(function: Callable[[], object]) -> None:
    """Call `function` in a daemon thread of its own and do not wait for it; what it raises is dropped."""

    def work() -> None:
        with suppress(Exception):
            function()
        _running.discard(thread)

    thread = threading.Thread(target=work, name="dragoman-background", daemon=True)
    _running.add(thread)
    thread.start()


def end_process(exit_code: int) -> None:
    """End the process now if a call is still running in the background; else return, and Python ends it.

    Exit handlers are called and what was printed leaves first, as when Python ends a process.
    """
    if not _running:
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, broken, or never there
            stream.flush()
    os._exit(exit_code)


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop for Unix, except that names are looked up in the background."""

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Look up a host without holding up the end of the process; raises `OSError` as `socket.getaddrinfo` does."""
        return await call_in_background(socket.getaddrinfo, host, port, family, type, proto, flags)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's main coroutine as `asyncio.run` does, in an `EventLoop`."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(main)

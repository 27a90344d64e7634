"""Run a process to its end: write its input, read its output piece by piece, and leave nothing of it.

Promise: however this ends (done, enough, too late, cancelled), nothing of the process is left.
"""

import asyncio
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from dragoman.errors import UsageError
from dragoman.host.guardian import Guardian
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process import Child

# What a pipe takes at once, so that the input needs no writer of its own.
INPUT_BYTES = 64 * 1024


class RunResult(NamedTuple):
    """The result of a process: the exit code if it ended by itself, and the last of its stderr."""

    exit_code: int | None
    stderr_tail: str
    timed_out: bool


async def run_to_end(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    input: bytes,
    on_output: Callable[[bytes], bool],
    seconds: float,
    memory: int,
    guardian: Guardian | None = None,
) -> RunResult:
    """Run `argv` until it ends, `on_output` has enough (returns False), or the time is over.

    `memory` is how many bytes each process of it may write to (on Linux); what needs more ends by itself.
    """
    if len(input) > INPUT_BYTES:
        raise UsageError(f"The input of a process that is run to its end has at most {INPUT_BYTES} bytes of input.")
    start = Child.start if guardian is None else guardian.start
    child = start(argv, cwd=cwd, env=env)
    over = asyncio.Event()
    has_enough = False

    def on_data(data: bytes) -> None:
        nonlocal has_enough
        if not has_enough and not on_output(data):
            has_enough = True
            over.set()

    output = PolledReadEnd(child.stdout, on_data, lambda error: over.set())
    output.resume()
    child.on_exit(output.finish)  # what it started itself may hold the pipe open for ever
    try:
        # From outside, after the start: a hook between fork and exec would make every start slow. Where it is refused,
        # the process is dead already, or has a stricter limit.
        if sys.platform == "linux":
            with suppress(OSError):
                resource.prlimit(child.pid, resource.RLIMIT_DATA, (memory, memory))
        with suppress(BrokenPipeError):
            os.write(child.stdin, input)
        child.close_stdin()
        async with asyncio.timeout(seconds):
            await over.wait()
            if not has_enough:
                await child.wait()
        return RunResult(child.exit_code, child.stderr_tail(), timed_out=False)
    except TimeoutError:
        return RunResult(None, child.stderr_tail(), timed_out=True)
    finally:
        output.close()
        child.kill_now()
        await child.stop()
        if guardian is not None:
            guardian.leave(child.pid)

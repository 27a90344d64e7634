"""One run of one hook: its input on stdin, its output bounded, its time limited, and nothing of it left behind.

A hook is a command of the person whose hook it is, and runs as that person does: confined by nothing, in a process
group of its own, with the environment that commands have, which holds no keys. A cancelled turn ends it.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from dragoman.coder.hook_files import Hook, hook_launch
from dragoman.coder.hook_output import HookRun
from dragoman.errors import StartFailed
from dragoman.host.guardian import Guardian
from dragoman.host.pipes import PolledReadEnd, WriteEnd
from dragoman.host.process import Child

# More than a person writes into a hook's output, and more than a model should read.
OUTPUT_BYTES: Final = 256 * 1024
PROJECT: Final = "CLAUDE_PROJECT_DIR"


async def run_hook(
    hook: Hook, message: bytes, *, folder: str, environment: Mapping[str, str], guardian: Guardian
) -> HookRun:
    """Run a hook to its end, for at most its own time. `folder` is the session's; a project's hook has its own."""
    launch = hook_launch(hook._replace(folder=hook.folder or folder))
    argv = [launch.command, *launch.args] if hook.args is not None else [_shell(), "-c", hook.command]
    env = {**environment, PROJECT: hook.folder or folder}
    try:
        child = guardian.start(argv, cwd=hook.folder or folder, env=env)
    except StartFailed as error:
        return HookRun(None, failure=f"it could not be started: {error}")
    try:
        return await _talk(child, message, hook.seconds)
    finally:
        child.kill_now()
        await child.stop()
        guardian.leave(child.pid)


def _shell() -> str:
    """Return the shell that lines of hooks are written for, or what there is in its place."""
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


async def _talk(child: Child, message: bytes, seconds: float) -> HookRun:
    """Write the input, and wait for the end or for the end of its time."""
    out = bytearray()
    over = asyncio.Event()
    left = memoryview(message)

    def on_data(data: bytes) -> None:
        out.extend(data)
        if len(out) > OUTPUT_BYTES:
            over.set()

    def feed() -> None:
        nonlocal left
        left = left[writer.write(left) :]
        if not left and not child.has_exited:
            writer.close()
            child.close_stdin()

    writer = WriteEnd(child.stdin, feed, lambda error: None)
    reader = PolledReadEnd(child.stdout, on_data, lambda error: None)
    reader.resume()
    # What it started itself may hold the pipe open for ever; it ends with the hook.
    child.on_exit(reader.finish)
    child.on_exit(over.set)
    began = time.monotonic()
    try:
        feed()
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), seconds)
    finally:
        writer.close()
        reader.close()
    if len(out) > OUTPUT_BYTES:
        return HookRun(None, failure=f"it printed more than {OUTPUT_BYTES // 1024} KiB")
    if not child.has_exited:
        took = f"{min(time.monotonic() - began, seconds):g}" if seconds < 1 else f"{seconds:g}"
        return HookRun(None, failure=f"it was ended after {took} s, its time limit")
    return HookRun(child.exit_code, out.decode(errors="replace"), child.stderr_tail())

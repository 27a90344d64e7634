"""Try to escape from the confinement, once: what runs without a question has to be known to be confined.

`sandbox.probe` has seen that a confined command starts. Here one is made like those of a session, and it tries in small
what must not work: to write beside its root, to read what is hidden, to reach a port of this machine. What it has to be
able to do is tried as well: to write in its root, and to use a loopback of its own. Anything else is no success.
"""

import functools
import logging
import os
import shutil
import socket
import subprocess
import tempfile
from typing import Final

from dragoman.host.sandbox import SandboxRefused, confine, probe

_SECONDS: Final = 10.0
_CANARY: Final = "canary-of-the-trial"
# Each attempt in a process of its own: where one fails, the next is made all the same.
_ATTEMPTS: Final = """
echo inside > inside
(echo outside > "$1/outside") 2>/dev/null
(cat "$2/canary") 2>/dev/null
(exec 3<>"/dev/tcp/127.0.0.1/$3" && echo reached) 2>&1
echo ended
"""
# What connecting to a port says where there is a loopback and nothing listens.
_OWN_LOOPBACK: Final = "Connection refused"

_log = logging.getLogger(__name__)


@functools.cache
def escape_found(parent: str) -> str:
    """Return why a command cannot be relied on to be confined; empty: the trial was passed. Blocks; tried out once.

    The trial works in a new folder in `parent`, which is made if it is not there.
    """
    if probe().level != "bubblewrap":
        return "There is no bubblewrap, and under Landlock alone a command can do more than in its confinement."
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="trial-", dir=os.path.realpath(parent))
    except OSError as error:
        return f"The confinement could not be tried out: {(error.strerror or 'unknown').lower()}."
    try:
        found = _try_out(folder)
    except (OSError, SandboxRefused, subprocess.SubprocessError) as error:
        found = f"The confinement could not be tried out: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _log.info("the trial of the confinement was %s", "not passed" if found else "passed")
    return found


def _try_out(folder: str) -> str:
    root, outside, secret = (os.path.join(folder, name) for name in ("root", "outside", "secret"))
    for path in (root, outside, secret):
        os.mkdir(path, 0o700)
    with open(os.path.join(secret, "canary"), "w", encoding="utf-8") as file:
        file.write(_CANARY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = str(listener.getsockname()[1])
        output = _run(root, [outside, secret, port], secret)
        if _was_reached(listener) or "reached" in output:
            return "A confined command has reached a port of this machine."
    if os.path.lexists(os.path.join(outside, "outside")):
        return "A confined command has written beside its root."
    if _CANARY in output:
        return "A confined command has read what is hidden."
    if not os.path.exists(os.path.join(root, "inside")) or not output.endswith("ended\n"):
        return "A confined command could not do its work."
    return "" if _OWN_LOOPBACK in output else "A confined command has no loopback of its own."


def _run(root: str, arguments: list[str], secret: str) -> str:
    line = ["/bin/bash", "--noprofile", "--norc", "-c", _ATTEMPTS, "bash", *arguments]
    with confine(line, cwd=root, writable=[root], hidden=[secret]) as box:
        done = subprocess.run(
            box.argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **box.environment},
        )
    return done.stdout.decode(errors="replace")


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True

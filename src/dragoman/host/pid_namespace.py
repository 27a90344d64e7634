"""Whether all processes of a confined command are dead: after that it can change nothing any more.

Bubblewrap ends when the command does, and the namespace of its processes a moment later. Its first process is
bubblewrap's own; when that has ended, the kernel has ended all others.
"""

import json
import os
import select
import signal
from contextlib import suppress
from typing import Final

# How long the last processes of a command may take to end.
_END_SECONDS: Final = 10.0


def end_namespace(info: str) -> bool:
    """Kill what is left of the namespace that bubblewrap named in the file `info`, and wait until it is dead.

    Blocks, at most `_END_SECONDS`; False if it still lives then. A file that tells of nothing is a command that never
    began.
    """
    try:
        with open(info, "rb") as file:
            child_info = json.loads(file.read(4096) or b"{}")
        pid, namespace = int(child_info["child-pid"]), int(child_info.get("pid-namespace", 0))
        fd = os.pidfd_open(pid)
    except (OSError, ValueError, KeyError):
        return True  # it never began, or is gone
    try:
        with suppress(PermissionError):  # then it is only waited for: it dies with who started it
            if namespace and os.stat(f"/proc/{pid}/ns/pid").st_ino != namespace:
                return True  # another process, which has its number by now
            if _is_alone(pid):
                return True
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        return bool(waiting.poll(_END_SECONDS * 1000))
    except OSError:
        return True
    finally:
        os.close(fd)


def _is_alone(pid: int) -> bool:
    """Return whether the first process of a namespace has no children, which all orphans are: then there are no others.

    Until it is gone itself the kernel takes some 20 ms more.
    """
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return not file.read(1)
    except OSError:
        return False

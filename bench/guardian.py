"""Kills every process group it was told about once the bench is gone, however the bench went.

Told over stdin: `+pgid` when a group starts, `-pgid` when it has been reaped. End of file means that the bench has
ended, been killed or crashed. It runs in a session of its own, so Ctrl-C in the terminal does not reach it.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()

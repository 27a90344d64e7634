"""A small process that outlives us by a moment: when we are killed, it kills what we had started.

A parent-death signal reaches only the child itself, and of that only the thread's; a tool is a shell with children of
its own. So the guardian holds one end of a pipe and is told of every tree. The pipe ends with us, however we end.
"""

import os
import signal
import subprocess
import sys
from typing import IO, Final

from dragoman.host.tree import Tree, living

_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Guardian:
    """Our end. Started with the first tree it is told of."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        """Be there before something is started: between its start and `watch` nobody guards it."""
        self._tell("\n")

    def watch(self, leader: int, mark: str) -> None:
        """If we die, this tree dies."""
        self._tell(f"+ {leader} {mark}\n")

    def leave(self, leader: int) -> None:
        """This tree has ended by itself."""
        self._tell(f"- {leader}\n")

    def close(self) -> None:
        """Nothing is left to watch."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:
            self._process = None
            self._write(line)

    def _write(self, line: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dragoman.host.guardian"],
                stdin=subprocess.PIPE,
                # Nobody who waits for the end of our output waits for the guardian.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()


class _Orphans(Tree):
    """A tree whose leader was never our child."""

    def _leader_is_ours(self) -> bool:
        """Whether the group's number is still the group's: while a member lives it is not given away."""
        return any(one.group == self.leader and one.started >= self._started for one in living())


def main(lines: IO[bytes]) -> None:
    """Remember who is named until the pipe ends; then end them."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    trees: dict[int, _Orphans] = {}
    for line in lines:
        match line.split():
            case [b"+", leader, mark]:
                trees[int(leader)] = _Orphans(int(leader), mark.decode())
            case [b"-", leader]:
                trees.pop(int(leader), None)
            case _:
                pass
    for tree in trees.values():
        tree.end(grace=0)


if __name__ == "__main__":
    os.chdir("/")
    main(sys.stdin.buffer)

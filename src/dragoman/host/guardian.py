"""A small process that outlives us by a moment: when we are killed, it kills what we had started.

A parent-death signal reaches only the child itself, and of that only the thread's; a tool is a shell with children of
its own. So the guardian holds one end of a pipe and is told of every tree. The pipe ends with us, however we end.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Final

from dragoman.host.process_tree import Tree, living, new_mark

if TYPE_CHECKING:
    import subprocess

    from dragoman.host.process import Child

# How long to look for a child that was announced and not seen, and how often.
_EXPECT_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 0.02
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Guardian:
    """Our end of the guardian process, which is started with the first tree."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> "Child":
        """Start a child that is guarded from before its beginning: its mark is sent to the guardian first."""
        from dragoman.host.process import Child

        mark = new_mark()
        self._send(f"? {mark}\n")
        try:
            child = Child.start(argv, cwd=cwd, env=env, mark=mark)
        except BaseException:
            self._send(f"! {mark}\n")
            raise
        self.watch(child.pid, mark)
        return child

    def watch(self, leader: int, mark: str) -> None:
        """Kill this process tree when our process dies."""
        self._send(f"+ {leader} {mark}\n")

    def leave(self, leader: int) -> None:
        """Forget a process tree that has ended."""
        self._send(f"- {leader}\n")

    def close(self) -> None:
        """Stop the guardian process, and wait for its end."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _send(self, line: str) -> None:
        try:
            self._write_line(line)
        except BrokenPipeError:
            self._process = None
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        if self._process is None:
            import subprocess  # the guardian itself does without: it is started often

            from dragoman.host.environment import child_environment

            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dragoman.host.guardian"],
                stdin=subprocess.PIPE,
                # With our stdout the guardian would hold that open: a reader of our output would wait for its end, too.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=child_environment(os.environ),
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()


class _Orphans(Tree):
    """A tree whose leader was never our child."""

    def _leader_is_ours(self) -> bool:
        """Return whether the group's number is still the group's: while a member lives it is not given away."""
        return any(one.group == self.leader and one.started >= self._started for one in living())


def main(lines: IO[bytes]) -> None:
    """Remember the trees that are named until the pipe ends; then kill them."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    trees: dict[int, _Orphans] = {}
    expected: set[str] = set()
    for line in lines:
        match line.split():
            case [b"?", mark]:
                expected.add(mark.decode())
            case [b"!", mark]:
                expected.discard(mark.decode())
            case [b"+", leader, mark]:
                expected.discard(mark.decode())
                trees[int(leader)] = _Orphans(int(leader), mark.decode())
            case [b"-", leader]:
                trees.pop(int(leader), None)
            case _:
                pass
    for tree in trees.values():
        tree.end(grace=0)
    _end_expected(expected)


def _end_expected(marks: set[str]) -> None:
    """Killed between telling and starting: the child shows its mark only when it has become its program."""
    deadline = time.monotonic() + _EXPECT_SECONDS
    while marks and time.monotonic() < deadline:
        for process in living():
            try:
                with open(f"/proc/{process.pid}/environ", "rb") as file:
                    known = file.read()
            except OSError:  # gone, or another user's
                continue
            for mark in [mark for mark in marks if mark.encode() in known]:
                _Orphans(process.pid, mark).end(grace=0)
        time.sleep(_CHECK_SECONDS)


if __name__ == "__main__":
    os.chdir("/")
    main(sys.stdin.buffer)

"""A real terminal to drive a program in: one pane of a tmux server of its own."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.needs import need

# A busy machine is not a bug: a test waits this long for what must appear.
PATIENCE_SECONDS = 30.0
# tmux refuses to run inside another one; and the size of the pane is not that of wherever the tests run.
_OF_THE_OUTER_TERMINAL = {"TMUX", "COLUMNS", "LINES"}


class Pane:
    """`with Pane(...) as pane: pane.type("hi"); pane.wait_for("hello")`. Every byte of the program is in `raw`."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 40,
        term: str = "",
    ) -> None:
        self._tmux = [need("tmux"), "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._log = folder / "raw"
        self._code = folder / "code"
        settings = {**env, "PS1": "$ "}
        wanted = f"TERM={term} " if term else ""
        program = f"{wanted}{shlex.join(command)}; echo $? > {shlex.quote(str(self._code))}; exec sleep 1000"
        self._start = ["new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder)]
        self._start += [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
        self._gate = folder / "go"
        # The program starts when its output is being recorded.
        self._start.append(f"until [ -e {shlex.quote(str(self._gate))} ]; do sleep 0.05; done; clear; {program}")

    def __enter__(self) -> Self:
        self.tmux(*self._start)
        self.tmux("set-option", "-g", "set-clipboard", "on")
        self.tmux("pipe-pane", "-o", f"cat >> {shlex.quote(str(self._log))}")
        self._gate.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tmux("kill-server", check=False)

    def tmux(self, *arguments: str, check: bool = True) -> str:
        environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_OUTER_TERMINAL}
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, env=environment, check=False, timeout=20
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def type(self, *keys: str) -> None:
        """Words as they are."""
        for key in keys:
            self.tmux("send-keys", "-l", key)

    def press(self, *keys: str) -> None:
        """Keys by name: Enter, C-c, Tab, M-Enter."""
        self.tmux("send-keys", *keys)

    def say(self, line: str) -> None:
        self.type(line)
        self.press("Enter")

    def screen(self) -> str:
        """Everything shown so far, what has scrolled away included."""
        return self.tmux("capture-pane", "-p", "-S", "-2000")

    def raw(self) -> str:
        return self._log.read_bytes().decode("utf-8", "replace") if self._log.exists() else ""

    def wait_for(self, *wanted: str, times: int = 1) -> str:
        """The screen, once all of these (regular expressions) are on it, the first of them so often."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            has_left = self._code.exists()  # before the look: what it has shown at its end counts
            shown = self.screen()
            needed = [times, *[1] * len(wanted)]
            found = [len(re.findall(each, shown, re.MULTILINE)) for each in wanted]
            missing = [each for each, count, least in zip(wanted, found, needed, strict=False) if count < least]
            if not missing:
                return shown
            assert time.monotonic() < deadline, f"{missing} not on the screen:\n{shown}"
            assert not has_left, f"it has left, without {missing}:\n{shown}"
            time.sleep(0.05)

    def left(self) -> int:
        """The exit code, once the program has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._code.exists() or not self._code.read_text().strip():
            assert time.monotonic() < deadline, self.screen()
            time.sleep(0.05)
        return int(self._code.read_text())

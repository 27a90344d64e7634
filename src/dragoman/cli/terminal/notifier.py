"""Call the user back to the terminal: a turn has ended, or a question waits for an answer, after some time.

Three ways, chosen by the setting `notify`: the bell of the terminal, a notification of the terminal (OSC 9), and one of
the desktop (`notify-send`). Where the terminal is known to show its own, the desktop's is not sent as well.

Promise: what is written is a sentence of ours with the folder's name, never words of an agent; nothing is written to
what is no terminal; and no program outlives `close`.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TextIO

from dragoman.cli.settings import Settings, SettingsError
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.cli.text_width import fit
from dragoman.host.environment import child_environment
from dragoman.host.programs import path_outside

WAYS: Final = ("bell", "terminal", "desktop")
_DESKTOP_PROGRAM: Final = "notify-send"
_DESKTOP_SECONDS: Final = 2.0
_DESKTOP_BYTES: Final = 512 * 1024 * 1024
_FOLDER_COLUMNS: Final = 60
# Terminals that show OSC 9, as they call themselves in TERM_PROGRAM or TERM.
_SHOWING: Final = ("iterm", "wezterm", "ghostty", "kitty", "warp")


class Notifier:
    """Calls the user back where more than `notify_after` seconds have passed since they last acted."""

    def __init__(
        self,
        stream: TextIO | None,
        folder: str,
        settings: Settings,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raise `SettingsError` for a way in the settings that does not exist."""
        self._ways = _chosen_ways(settings)
        self._seconds = settings.number("notify_after")
        self._stream = stream if stream is not None and stream.isatty() else None
        self._folder = folder
        self._environment = environment
        self._clock = clock
        self._acted_at = clock()
        self._sending: set[asyncio.Task[None]] = set()

    def user_acted(self) -> None:
        """Begin to count anew: the user has sent a prompt or answered a question, so they are here."""
        self._acted_at = self._clock()

    def turn_ended(self) -> None:
        """Say that the turn has ended, if the user may have gone away meanwhile."""
        self._notify("The turn has ended")

    def question_shown(self) -> None:
        """Say that a question waits, if the user may have gone away meanwhile."""
        self._notify("A question waits for your answer")

    async def close(self) -> None:
        """Wait until the desktop was told, for two seconds at most."""
        if self._sending:
            await asyncio.wait(self._sending)

    def _notify(self, what: str) -> None:
        if self._stream is None or self._clock() - self._acted_at < self._seconds:
            return
        folder = fit(sanitize_line(os.path.basename(self._folder.rstrip("/")) or self._folder), _FOLDER_COLUMNS)
        sentence = f"{what} in {folder}"
        with suppress(OSError):  # the window was closed
            self._stream.write(self._signs(sentence))
            self._stream.flush()
        if "desktop" in self._ways and not ("terminal" in self._ways and self._shows_its_own()):
            self._send_to_desktop(sentence)

    def _signs(self, sentence: str) -> str:
        """Return what makes the terminal notify and ring. A dumb one would show both as characters."""
        kind = self._environment.get("TERM", "dumb")
        if kind == "dumb":
            return ""
        bell = "\a" if "bell" in self._ways else ""
        if "terminal" not in self._ways or kind == "linux":  # the console prints what it does not know
            return bell
        notification = f"\x1b]9;Dragoman: {sentence}\x1b\\"
        if self._environment.get("TMUX"):
            doubled = notification.replace("\x1b", "\x1b\x1b")
            notification = f"\x1bPtmux;{doubled}\x1b\\"
        return notification + bell

    def _shows_its_own(self) -> bool:
        names = f"{self._environment.get('TERM_PROGRAM', '')} {self._environment.get('TERM', '')}".lower()
        return not self._environment.get("TMUX") and any(name in names for name in _SHOWING)

    def _send_to_desktop(self, sentence: str) -> None:
        environment = self._environment
        if environment.get("SSH_CONNECTION") or not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
            return
        program = shutil.which(_DESKTOP_PROGRAM, path=path_outside(environment.get("PATH", ""), [self._folder]))
        if program is not None:
            task = asyncio.get_running_loop().create_task(_run(program, sentence, environment))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)


async def _run(program: str, sentence: str, environment: Mapping[str, str]) -> None:
    from dragoman.host.run_to_end import run_to_end

    with suppress(OSError):  # what cannot be started: the bell has rung
        await run_to_end(
            [program, "--app-name=Dragoman", "--", "Dragoman", sentence],
            cwd="/",
            env=child_environment(environment),
            input=b"",
            on_output=lambda data: True,
            seconds=_DESKTOP_SECONDS,
            memory=_DESKTOP_BYTES,
        )


def _chosen_ways(settings: Settings) -> frozenset[str]:
    value, source = settings.keys["notify"]
    return read_ways(str(value), source)


def read_ways(value: str, source: str) -> frozenset[str]:
    """Return the ways that the words of a setting name. Raise `SettingsError`, which names `source`, for another."""
    words = value.replace(",", " ").split()
    if words == ["off"]:
        return frozenset()
    if wrong := [word for word in words if word not in WAYS]:
        known = f"there are {', '.join(WAYS)}, and off alone"
        raise SettingsError(f"{source}: notify has the unknown word {wrong[0]!r}; {known}")
    return frozenset(words)

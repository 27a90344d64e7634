"""The terminal in README: a real `dragoman chat` in a real terminal, as an SVG that moves. `python -m tools.picture`

It plays the demo's tour, which is a recording, answers what is asked, and draws the screen at each step: every letter
is the program's own. Who wants no motion sees the last screen. It needs tmux and the extra `[chat]`, and no network.
The browser is in `tools.browser_picture`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "docs" / "pictures" / "terminal.svg"
COLUMNS: Final = 84
ROWS: Final = 28
# A busy machine takes its time; more than this is a failure.
PATIENCE_SECONDS: Final = 60.0
SAID: Final = "tour"
# Two files are written; the tests may be run again and again, the edit once.
ANSWERS: Final = ("y", "y", "2", "y")
ENDS: Final = "end of the recording"
QUESTION: Final = "y or n:"

# A letter's size, in units of the drawing.
WIDTH: Final = 8.4
HEIGHT: Final = 18.0
MARGIN: Final = 16.0
FONTS: Final = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PAPER: Final = "#10171a"
INK: Final = "#d8dee2"
FAINT: Final = "#8d989e"
PALETTE: Final = (
    *("#5c6970", "#e06c75", "#8cc379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee2"),
    *("#7f8b92", "#ff7b86", "#a5e08f", "#ffd78f", "#7cc4ff", "#dd92f2", "#6fd3de", "#ffffff"),
)


CONSOLE: Final = Console()


class Failed(Exception):
    """The picture could not be taken; the text says why."""


def main() -> int:
    try:
        screens = watched()
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(drawn(screens), encoding="utf-8")
    print(f"Wrote {TARGET.relative_to(ROOT)}")
    return 0


# --- watching -------------------------------------------------------------------------------------------------------


class Screen(NamedTuple):
    """What stands in the terminal, with its colours, and for how many seconds it is shown."""

    text: str
    seconds: float


def watched() -> list[Screen]:
    """The terminal at each step of the tour."""
    with (
        empty_folder() as project,
        tempfile.TemporaryDirectory(prefix="dragoman-picture-", ignore_cleanup_errors=True) as folder,
    ):
        return Pane(Path(folder), project).play()


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder to play the tour in. It has a short name that means something: it is in the picture."""
    project = Path(tempfile.gettempdir(), "first-hour")
    try:
        project.mkdir()
    except FileExistsError:
        raise Failed(f"{project} is there already; the picture needs that name") from None
    try:
        yield project
    finally:
        shutil.rmtree(project)


class Pane:
    """One terminal, in a tmux server of its own."""

    def __init__(self, folder: Path, project: Path) -> None:
        self._tmux = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        settings = [f"PATH={path}", f"DRAGOMAN_HOME={folder / 'home'}", "TERM=tmux-256color"]
        command = shlex.join(["env", "-u", "NO_COLOR", *settings, "dragoman", "chat", "--model", "demo"])
        self._start = ["new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(project), command]

    def play(self) -> list[Screen]:
        """From the first line to the last."""
        self._call(*self._start)
        try:
            self._wait_for("/help shows what there is")
            screens = [self._screen(1.5)]
            self._call("send-keys", "-l", SAID)
            self._wait_for(f"> {SAID}")
            screens.append(self._screen(1.0))
            self._call("send-keys", "Enter")
            for number, answer in enumerate(ANSWERS, 1):
                self._wait_for(QUESTION, times=number)
                screens.append(self._screen(3.0))
                self._say(answer)
            self._wait_for(ENDS)
            return [*screens, self._screen(6.0)]
        finally:
            self._call("kill-server")

    def _screen(self, seconds: float) -> Screen:
        return Screen(self._call("capture-pane", "-p", "-e"), seconds)

    def _say(self, text: str) -> None:
        self._call("send-keys", "-l", text)
        self._call("send-keys", "Enter")

    def _wait_for(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (shown := self._call("capture-pane", "-p", "-S", "-")).count(text) < times:
            if time.monotonic() > deadline:
                raise Failed(f"{text!r} did not appear:\n{shown}")
            time.sleep(0.05)

    def _call(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        command = [*self._tmux, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=20).stdout


# --- drawing --------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Letters of one line that look alike."""

    column: int
    text: str
    colour: str
    bold: bool


def drawn(screens: Sequence[Screen]) -> str:
    """The screens as an SVG that needs nothing from elsewhere: the reader's own fixed-width font, on a grid."""
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        "<!-- Generated by python -m tools.picture; do not edit. -->",
        "<title>dragoman chat</title>",
        f"<style>{animated([screen.seconds for screen in screens])}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        f'<g font-family="{FONTS}" font-size="14" xml:space="preserve">',
    ]
    for number, screen in enumerate(screens):
        parts += [f'<g class="s s{number}">', *letters_of(screen.text), "</g>"]
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def animated(seconds: Sequence[float]) -> str:
    """The style that shows one screen after the other, for so long each, again and again; or the last one alone."""
    whole, begun = sum(seconds), 0.0
    rules = [f".s{{visibility:hidden;animation:{whole:g}s step-end infinite}}"]
    for number, shown in enumerate(seconds):
        begins, ends = 100 * begun / whole, 100 * (begun + shown) / whole
        steps = "" if number == 0 else "0%{visibility:hidden}"
        steps += f"{begins:.2f}%{{visibility:visible}}"
        steps += "" if number == len(seconds) - 1 else f"{ends:.2f}%{{visibility:hidden}}"
        rules.append(f"@keyframes k{number}{{{steps}}}.s{number}{{animation-name:k{number}}}")
        begun += shown
    last = f".s{{animation:none}}.s{len(seconds) - 1}{{visibility:visible}}"
    return "".join([*rules, f"@media(prefers-reduced-motion:reduce){{{last}}}"])


def letters_of(screen: str) -> Iterator[str]:
    """The elements of one screen."""
    decoder = AnsiDecoder()  # a colour goes on in the next line
    for row, line in enumerate(screen.rstrip().splitlines()):
        below = MARGIN + (row + 0.75) * HEIGHT
        for run in runs(decoder.decode_line(line)):
            weight = ' font-weight="bold"' if run.bold else ""
            yield (
                f'<text x="{MARGIN + run.column * WIDTH:g}" y="{below:g}" textLength="{len(run.text) * WIDTH:g}" '
                f'fill="{run.colour}"{weight}>{escape(run.text)}</text>'
            )


def runs(line: Text) -> Iterator[Run]:
    letters = [(letter, look(line, at)) for at, letter in enumerate(line.plain)]
    at = 0
    while at < len(letters):
        end = at
        while end < len(letters) and letters[end][1] == letters[at][1]:
            end += 1
        words = "".join(letter for letter, _ in letters[at:end])
        for found in re.finditer(r"\S+(?: \S+)*", words):  # blanks are not drawn
            yield Run(at + found.start(), found[0], *letters[at][1])
        at = end


def look(line: Text, at: int) -> tuple[str, bool]:
    """The colour and weight of one letter."""
    style = line.get_style_at_offset(CONSOLE, at)
    colour = FAINT if style.dim else INK
    if style.color is not None and style.color.number is not None and style.color.number < len(PALETTE):
        colour = PALETTE[style.color.number]
    return colour, bool(style.bold)


if __name__ == "__main__":
    sys.exit(main())

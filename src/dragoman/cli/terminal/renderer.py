"""A conversation on a terminal: Markdown as it streams, tool calls, diffs, and a line at the bottom that moves.

Whatever is laid out here goes through `Inertly` last, segment by segment: Markdown has ways to write a character that
did not stand in the text (`&#x202e;`). Colours are ours alone; where there are none, everything is still said in words.
"""

import atexit
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleDimensions, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from dragoman.cli.terminal.blocks import Block, Blocks
from dragoman.cli.terminal.event_text import StyledText
from dragoman.cli.terminal.sanitize import sanitize, spell_out_line
from dragoman.cli.terminal.theme import Theme
from dragoman.cli.terminal.turn_screen import LEADS, SPINNER, columns, prepare
from dragoman.cli.text_width import fit

# What is laid out again and again while it grows; of more only the end is shown until the block is whole.
_TAIL_LENGTH: Final = 4 * 1024
_TAIL_LINES: Final = 12
# Nothing is drawn over on a dumb terminal, so this bounds nothing; rich wants both numbers or takes neither.
_DUMB_ROWS: Final = 25
_CURSOR: Final = "\N{LEFT ONE EIGHTH BLOCK}"


class Inertly:
    """A renderable whose words cannot act."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            if segment.control:
                continue
            style = segment.style
            yield Segment(sanitize(segment.text), style.update_link(None) if style and style.link else style)


class _Laid:
    """A block of Markdown without the empty lines around it: how far blocks stand apart is not the block's to say."""

    def __init__(self, text: str, code_theme: str) -> None:
        self._text = text
        self._code_theme = code_theme

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        try:
            lines = console.render_lines(Inertly(_markdown(self._text, self._code_theme)), options, pad=False)
            rows = _filled_rows(lines)
        except Exception:  # whatever a stranger's text does to the one who lays it out, it is shown
            rows = []
        if not rows:
            lines = console.render_lines(Inertly(Text(self._text)), options, pad=False)
            rows = _filled_rows(lines)
        for line in lines[rows[0] : rows[-1] + 1] if rows else ():
            yield from line
            yield Segment.line()


def _filled_rows(lines: list[list[Segment]]) -> list[int]:
    """Return the lines with something on them."""
    return [at for at, line in enumerate(lines) if "".join(segment.text for segment in line).strip()]


class _Tail:
    """The last lines of something that still grows."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._renderable, options.update(height=None), pad=False)
        room = max(min(_TAIL_LINES, console.height - 4), 1)
        for line in lines[-room:]:
            yield from line
            yield Segment.line()


class Renderer:
    """Where a conversation is shown."""

    def __init__(self, theme: Theme, *, plain: bool = False) -> None:
        """`plain`: each line is written once and nothing is drawn over, as a screen reader wants it."""
        prepare(sys.stdout)
        no_color = True if theme.is_colourless else None
        self.console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=no_color)
        self._theme = theme
        self._moves = self.console.is_terminal and not self.console.is_dumb_terminal and not plain
        if self.console.is_dumb_terminal:
            self.console.size = ConsoleDimensions(columns(), _DUMB_ROWS)  # rich takes such a terminal for one of 80
        self._blocks = Blocks()
        self._thought = ""
        self._form = ""
        self._live: Live | None = None
        self._started = 0.0
        self._step = 0
        self._quiet = False
        self._spaced = True
        atexit.register(self.still)  # what moves has hidden the cursor

    @property
    def moves(self) -> bool:
        """Return whether something is drawn at the bottom, over what stood there."""
        return self._moves

    # -- a turn ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a turn."""
        self._started = time.monotonic()
        self._quiet = False
        self._form = ""
        self._spaced = True

    def show(self, pieces: Iterable[StyledText]) -> None:
        """Show them, in order."""
        for piece in pieces:
            if piece.form != self._form:
                self._settle()
                if "answer" in (self._form, piece.form):
                    self._space()
                self._form = piece.form
            if piece.form == "answer":
                self._print_blocks(self._blocks.feed(piece.text))
            elif piece.form == "thought":
                self._think(piece.text)
            else:
                self._line(piece)

    def finish(self) -> None:
        """End the turn."""
        self._settle()
        self.still()
        self._space()

    def tick(self, running: list[str], waiting: Sequence[str] = (), typed: str = "") -> None:
        """Draw what moves: what runs, the lines that wait for the end of the turn, and the one that is typed."""
        if not self._moves or self._quiet:
            return
        if self._live is None:
            self._live = Live(
                console=self.console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
        self._live.update(self._bottom(running, waiting, typed), refresh=True)

    def still(self) -> None:
        """Take away what moves."""
        live, self._live = self._live, None
        if live is not None:
            live.update("")
            live.stop()

    def hold(self, quiet: bool) -> None:
        """While a question stands there nothing moves."""
        self._quiet = quiet
        if quiet:
            self._settle()
            self.still()

    def ask(self, text: str) -> None:
        """Show a question of ours, as it is."""
        self.still()
        self._spaced = False
        self.console.file.write(text)
        self.console.file.flush()

    # -- beside the turns --------------------------------------------------------------------------------------------

    def say(self, sentence: str, style: str = "") -> None:
        """Something of our own; without a style it is faint."""
        self._settle()
        self._form = ""
        self.console.print(Text(sentence, style=style or self._theme.faint))
        self._spaced = False

    def output(self, lines: Iterable[str]) -> None:
        """Show lines that a command of the user's own has written."""
        for line in lines:
            self.console.print(Text(line), soft_wrap=True)
        self._spaced = False

    def markdown(self, text: str) -> None:
        """Show a text that is complete."""
        blocks = Blocks()
        self._print_blocks([*blocks.feed(text), *blocks.finish()])

    # -- how -----------------------------------------------------------------------------------------------------------

    def _print_blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._space()
            self.console.print(laid_out(block, self._theme.code), end="")
            self._spaced = False

    def _space(self) -> None:
        """Write an empty line before a block, unless it is the first."""
        if not self._spaced:
            self.console.print()
        self._spaced = True

    def _think(self, text: str) -> None:
        *whole, self._thought = (self._thought + text).split("\n")
        if len(self._thought) > _TAIL_LENGTH:
            whole, self._thought = [*whole, self._thought], ""
        for line in whole:
            if line.strip():
                self.console.print(Text(line, style=self._theme.style("thought")))
                self._spaced = False

    def _line(self, piece: StyledText) -> None:
        style = self._theme.style(piece.form, piece.text)
        self.console.print(Text(LEADS.get(piece.form, "") + piece.text, style=style))
        self._spaced = False

    def _settle(self) -> None:
        """Show what has come so far for good: it is not drawn again."""
        self._print_blocks(self._blocks.finish())
        thought, self._thought = self._thought, ""
        if thought.strip():
            self.console.print(Text(thought, style=self._theme.style("thought")))
            self._spaced = False

    def _bottom(self, running: list[str], waiting: Sequence[str], typed: str) -> RenderableType:
        self._step += 1
        spinner = SPINNER[self._step % len(SPINNER)]
        doing = running[-1] if running else "working"
        line = f"{spinner} {time.monotonic() - self._started:.0f} s  {doing}  (Ctrl-C stops)"
        room = max(self.console.width - 1, 10)
        lines = [Text(fit(each, room), style=self._theme.faint, no_wrap=True) for each in (line, *waiting)]
        if typed:
            shown = fit(spell_out_line(typed), room - 3, keep_end=True)
            lines.append(Text(f"> {shown}{_CURSOR}", no_wrap=True))
        status = Group(*lines)
        tail = self._thought if self._form == "thought" else self._blocks.tail
        if not tail.strip():
            return status
        if self._form == "thought" or len(tail) > _TAIL_LENGTH:
            return Group(_Tail(Text(tail[-_TAIL_LENGTH:], style=self._theme.style(self._form))), status)
        return Group(_Tail(laid_out(Block(tail), self._theme.code)), status)


def laid_out(block: Block, code_theme: str = "ansi_dark") -> RenderableType:
    """Return a block, ready to print."""
    return _Laid(block.text, code_theme) if block.markdown else Inertly(Text(block.text + "\n"))


def _markdown(text: str, code_theme: str) -> Markdown:
    markdown = Markdown(text, code_theme=code_theme, hyperlinks=False)
    for token in markdown.parsed:
        _show_html(token)
    return markdown


def _show_html(token: Any) -> None:
    """Turn HTML tokens into text: rich would leave them out."""
    if token.type == "html_block":
        token.type = "code_block"
    for child in token.children or ():
        if child.type == "html_inline":
            child.type = "text"

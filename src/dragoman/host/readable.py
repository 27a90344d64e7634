"""A web page as text that can be read: title, headings, lists, links, code, tables; no scripts, no styles.

lxml reads the markup and calls `_Page` for each tag and each piece of text, in order. No tree is built, so a page of
4 MiB costs little more than its text; a tree of it takes hundreds of megabytes, and below 256 levels it drops the page.
Nothing is loaded and no entity of the page's own is expanded.
"""

import codecs
import re
from collections.abc import Mapping
from io import StringIO
from typing import Any, Final
from urllib.parse import urljoin

from lxml.etree import HTMLParser

# Browsers stop at 512 as well. An end tag that fits nothing is compared with every open tag, so this bounds the time.
DEPTH: Final = 512
# Addresses of links make the text of a hostile page thousands of times as long as its markup.
TEXT_CHARACTERS: Final = 4 * 1024 * 1024

_NO_TEXT: Final = frozenset(
    {"script", "style", "template", "svg", "iframe", "object", "noscript", "textarea", "select"}
)
_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "div", "dl", "dt", "dd", "fieldset", "figure", "footer"),
        *("form", "head", "header", "hr", "html", "main", "menu", "nav", "ol", "p", "section", "table", "tr"),
        *("ul", "caption", "td", "th", "li", "pre"),
    }
)
_LINES: Final = ("tr", "dt", "dd")  # begin a line, and no paragraph
_LISTS: Final = ("ul", "ol", "menu")
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_BAR: Final = " | "
_EMPTY_CELLS: Final = 100
_INDENTS: Final = 8
_TITLE_CHARACTERS: Final = 1000

_META_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w-]{1,40})""", re.IGNORECASE)
# What the web uses. Python knows codecs that are no character sets, and some that are traps.
_CHARSETS: Final = re.compile(
    r"utf-?8|utf-?16(le|be)?|(us-)?ascii|iso-?8859-?\d+|windows-?125\d|cp125\d|gb(2312|k|18030)|big5(-hkscs)?|euc-(jp|kr)"
    r"|shift[_-]jis|sjis|iso-2022-jp|koi8-[ru]|macintosh|latin-?1"
)


def decode(data: bytes, charset: str, *, is_html: bool) -> str:
    """Text out of bytes: by the mark at their start, by what the server says, by what the page says; else UTF-8."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    said = charset.strip().lower()
    if not said and is_html and (meta := _META_CHARSET.search(data, 0, 4096)):
        said = meta[1].decode().lower()
    if not _CHARSETS.fullmatch(said):
        said = "utf-8"
    if said in ("iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"):
        said = "windows-1252"  # what browsers take these for
    try:
        return data.decode(said, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def html_text(markup: str, url: str) -> str:
    """Return the page's text. Links are shown as `text (address)`, seen from the page's own `url`."""
    page = _Page(url)
    target: Any = page  # without `comment` and `pi`, which the stubs want: comments are not asked for
    parser = HTMLParser(target=target, encoding="utf-8", no_network=True)
    try:
        parser.feed(markup.encode("utf-8", "replace"))
        parser.close()
    except _CannotGoOn as reason:
        return f"{page.result()}\n\n[the rest of the page {reason}]"
    return page.result()


class _CannotGoOn(Exception):
    """The page is read up to here. The text ends a sentence about the rest of it."""


class _Text:
    """Words, and the gap before the next ones, which is only written when they come."""

    def __init__(self) -> None:
        self._written = StringIO()  # a list of millions of small strings would take a hundred times as much
        self._last = "\n"
        self._gap = ""  # newlines, or the bars between cells
        self._is_fresh = False  # behind a bullet, a bar or the mark of a heading, where no paragraph begins a line

    def position(self) -> int:
        return self._written.tell()

    def since(self, position: int) -> str:
        self._written.seek(position)
        return self._written.read().strip()

    def put(self, text: str, *, is_mark: bool = False) -> None:
        """Write the gap and `text`, letter by letter."""
        self.attach(self._gap + text)
        self._gap = ""
        self._is_fresh = is_mark

    def attach(self, text: str) -> None:
        """Write `text` behind the last words, before the gap."""
        if not text:
            return
        if self._written.tell() + len(text) > TEXT_CHARACTERS:
            raise _CannotGoOn("is left out, because it is too long")
        self._written.write(text)
        self._last = text[-1]

    def words(self, text: str) -> None:
        """Write text in which one space is as good as many."""
        text = re.sub(r"\s+", " ", text)
        if self._gap or self._last in " \n":
            text = text.lstrip(" ")
        if text:
            self.put(text)

    def newline(self, count: int) -> None:
        """Have at least so many newlines before what comes."""
        if self._is_fresh:
            return
        if not self._gap.isspace():
            self._gap = ""
        self._gap = max(self._gap, "\n" * count)

    def end_line(self) -> None:
        if self._last != "\n":
            self.attach("\n")

    def line_break(self) -> None:
        self.newline(min(len(self._gap) + 1, 2))

    def item(self, mark: str) -> None:
        self._is_fresh = False
        self.newline(1)
        self.put(f"{mark} ", is_mark=True)

    def start_cell(self, *, is_first: bool) -> None:
        if not is_first and len(self._gap) < _EMPTY_CELLS * len(_BAR):
            self._gap = self._gap + _BAR if _BAR in self._gap else _BAR
        self._is_fresh = True

    def end_cell(self) -> None:
        self._is_fresh = False
        if self._gap.isspace():
            self._gap = ""


class _Page:
    """The text so far. lxml calls `start`, `end` and `data`; every start has an end, written or not."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._title = ""
        self._out = _Text()
        self._open = 0
        self._hidden: str | None = None  # the tag that hides what is inside of it
        self._hidden_open = 0
        self._in_pre = 0
        self._in_title = False
        self._lists: list[int | None] = []  # the last number of each open list; None: it has none
        self._cells = 0  # in this row
        self._link: str | None = None
        self._link_start = 0

    def result(self) -> str:
        text = "\n".join(line.rstrip() for line in self._out.since(0).split("\n"))
        return f"{' '.join(self._title.split())}\n\n{text}".strip()

    def data(self, text: str) -> None:
        if self._hidden is not None:
            return
        if self._in_title:
            self._title += text[: _TITLE_CHARACTERS - len(self._title)]
        elif self._in_pre:
            self._out.put(text)
        else:
            self._out.words(text)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open += 1
        if self._open > DEPTH:
            raise _CannotGoOn("is nested too deeply to be read")
        if self._hidden is not None:
            self._hidden_open += tag == self._hidden
        elif tag in _NO_TEXT:
            self._hidden, self._hidden_open = tag, 1
        elif tag in _BLOCKS:
            self._start_block(tag)
        elif tag in _HEADINGS:
            self._out.newline(2)
            self._out.put(f"{_HEADINGS[tag]} ", is_mark=True)
        else:
            self._start_inline(tag, attributes)

    def end(self, tag: str) -> None:
        self._open -= 1
        if self._hidden is not None:
            self._hidden_open -= tag == self._hidden
            if self._hidden_open == 0:
                self._hidden = None
        elif tag == "title":
            self._in_title = False
        elif tag == "a":
            self._end_link()
        elif tag == "code" and not self._in_pre:
            self._out.put("`")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._end_block(tag)

    def close(self) -> None:
        """Take note of the end of the page, where there is nothing to do."""

    def _start_block(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._out.start_cell(is_first=self._cells == 0)
            self._cells += 1
        elif tag == "li":
            self._out.item(self._bullet())
        elif tag == "pre":
            self._out.newline(2)
            self._out.put("```\n")
            self._in_pre += 1
        else:
            self._out.newline(1 if tag in _LINES or (tag in _LISTS and self._lists) else 2)
            if tag in _LISTS:
                self._lists.append(0 if tag == "ol" else None)
            if tag == "tr":
                self._cells = 0

    def _start_inline(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "title":
            self._in_title = not self._title
        elif tag == "base":
            self._url = self._absolute(attributes.get("href", "")) or self._url
        elif tag == "br" and self._in_pre:
            self._out.put("\n")
        elif tag == "br":
            self._out.line_break()
        elif tag == "a":
            self._link, self._link_start = attributes.get("href"), self._out.position()
        elif tag == "img" and (alt := attributes.get("alt", "").strip()):
            self.data(f"[{alt}]")
        elif tag == "code" and not self._in_pre:
            self._out.put("`")

    def _end_block(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._out.end_cell()
            return
        if tag == "pre":
            self._in_pre -= 1
            self._out.end_line()
            self._out.put("```")
        elif tag in _LISTS:
            self._lists.pop()
        self._out.newline(1 if tag in _LINES or tag == "li" or self._lists else 2)

    def _bullet(self) -> str:
        indent = "  " * min(len(self._lists) - 1, _INDENTS)
        if not self._lists or (number := self._lists[-1]) is None:
            return f"{indent}-"
        self._lists[-1] = number + 1
        return f"{indent}{number + 1}."

    def _end_link(self) -> None:
        link, self._link = self._link, None
        words = self._out.since(self._link_start)
        if not link or link.startswith("#") or not words:
            return
        address = self._absolute(link)
        if address and address != words:
            self._out.attach(f" ({address})")

    def _absolute(self, link: str) -> str:
        """Return where a link leads, seen from the page; empty if that is no page of the web."""
        try:
            address = urljoin(self._url, link.strip())
        except ValueError:
            return ""
        return address if address.startswith(("http://", "https://")) else ""

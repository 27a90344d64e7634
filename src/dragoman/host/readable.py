"""A web page as text that can be read: title, headings, lists, links, code; no scripts, no styles.

Not `html.parser`: on hostile markup it takes the square of the page's length. Here every step moves on, and the text
is never longer than a few times the markup. Pure.
"""

import codecs
import re
from html import unescape
from typing import Final
from urllib.parse import urljoin

_NO_TEXT: Final = frozenset(
    {"script", "style", "template", "svg", "iframe", "object", "noscript", "textarea", "select"}
)
_RAW: Final = frozenset({"script", "style", "textarea", "title", "iframe"})  # tags inside are no tags
_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "div", "dl", "dt", "dd", "fieldset", "figure", "footer"),
        *("form", "head", "header", "hr", "html", "main", "nav", "ol", "p", "section", "table", "tr", "ul", "caption"),
    }
)
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
# Where attributes are looked for; longer tags have a drawing in one of them.
_TAG_CHARACTERS: Final = 16 * 1024
# Tags with a quote that never ends. Each costs a look at all the rest, so a page gets only some.
_BROKEN_TAGS: Final = 20

_TAG_NAME: Final = re.compile(r"/?([a-zA-Z][^\s/>]{0,40})")
_TAG_REST: Final = re.compile(r"""(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE: Final = re.compile(r"""\s(href|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
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
    """The page's text. Links are shown as `text (address)`, seen from the page's own `url`."""
    page = _Page(url)
    at = 0
    while (start := markup.find("<", at)) >= 0:
        page.text(markup[at:start])
        at = page.markup(markup, start)
    page.text(markup[at:])
    return page.result()


class _Page:
    def __init__(self, url: str) -> None:
        self._url = url
        self._title = ""
        self._out: list[str] = []
        self._hidden: str | None = None  # the tag that hides what is inside of it
        self._depth = 0
        self._in_pre = 0
        self._link: str | None = None
        self._link_start = 0
        self._broken_tags = 0

    def result(self) -> str:
        text = "\n".join(line.rstrip() for line in "".join(self._out).split("\n"))
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        return f"{self._title}\n\n{text}".strip()

    def text(self, markup: str) -> None:
        if not markup or self._hidden is not None:
            return
        text = _unescaped(markup)
        if self._in_pre:
            self._out.append(text)
            return
        words = re.sub(r"\s+", " ", text)
        if words == " " and (not self._out or self._out[-1].endswith((" ", "\n"))):
            return
        if self._out and self._out[-1].endswith((" ", "\n")):
            words = words.lstrip(" ")
        self._out.append(words)

    def markup(self, markup: str, start: int) -> int:
        """What begins with `<` at `start`; where it ends."""
        if markup.startswith("<!--", start):
            end = markup.find("-->", start + 4)
            return len(markup) if end < 0 else end + 3
        if markup.startswith(("<!", "<?"), start):
            end = markup.find(">", start)
            return len(markup) if end < 0 else end + 1
        name = _TAG_NAME.match(markup, start + 1)
        if name is None:
            self.text("<")
            return start + 1
        end = self._tag_end(markup, name.end())
        tag = name[1].lower()
        if name[0].startswith("/"):
            self._close(tag)
            return end
        attributes = markup[name.end() : min(end, name.end() + _TAG_CHARACTERS)]
        if attributes.endswith("/>") and tag in ("svg", "iframe", "object"):
            return end
        return self._raw(tag, markup, end) if tag in _RAW else self._open(tag, attributes, end)

    def _tag_end(self, markup: str, start: int) -> int:
        rest = _TAG_REST.match(markup, start)
        if rest is not None:
            return rest.end()
        self._broken_tags += 1
        return markup.find(">", start) + 1 or len(markup) if self._broken_tags <= _BROKEN_TAGS else len(markup)

    def _raw(self, tag: str, markup: str, start: int) -> int:
        """A tag whose inside is text to the letter; a page that never closes it has nothing else to say."""
        found = re.compile(f"</{tag}", re.IGNORECASE).search(markup, start)
        end = found.start() if found is not None else len(markup)
        if tag == "title" and not self._title and self._hidden is None:
            self._title = re.sub(r"\s+", " ", _unescaped(markup[start:end][:1000])).strip()
        return end

    def _open(self, tag: str, attributes: str, end: int) -> int:
        if self._hidden is not None:
            self._depth += tag == self._hidden
        elif tag in _NO_TEXT:
            self._hidden = tag
            self._depth = 1
        elif tag == "br":
            self._out.append("\n")
        elif tag == "a":
            self._link = _attribute("href", attributes)
            self._link_start = len(self._out)
        elif tag == "img":
            alt = _attribute("alt", attributes)
            if alt:
                self.text(f"[{alt}]")
        elif tag == "pre":
            self._out.append("\n\n```\n")
            self._in_pre += 1
        elif tag == "code" and not self._in_pre:
            self._out.append("`")
        elif tag in ("td", "th"):
            self._out.append(" | " if self._out and not self._out[-1].endswith("\n") else "")
        elif tag == "li":
            self._out.append("\n- ")
        elif tag in _HEADINGS:
            self._out.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag in _BLOCKS:
            self._out.append("\n" if tag in ("tr", "dt", "dd") else "\n\n")
        return end

    def _close(self, tag: str) -> None:
        if self._hidden is not None:
            self._depth -= tag == self._hidden
            if self._depth == 0:
                self._hidden = None
        elif tag == "a":
            self._end_link()
        elif tag == "pre" and self._in_pre:
            self._in_pre -= 1
            self._out.append("\n```\n\n")
        elif tag == "code" and not self._in_pre:
            self._out.append("`")
        elif tag in _HEADINGS or (tag in _BLOCKS and tag != "tr"):
            self._out.append("\n\n")

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if not link or link.startswith("#"):
            return
        words = "".join(self._out[self._link_start :]).strip()
        if not words:
            return
        try:
            address = urljoin(self._url, link.strip())
        except ValueError:
            return
        if address.startswith(("http://", "https://")) and address != words:
            self._out.append(f" ({address})")


def _attribute(name: str, attributes: str) -> str | None:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name:
            return _unescaped(found[2] or found[3] or found[4] or "").strip()
    return None


def _unescaped(text: str) -> str:
    try:
        return unescape(text) if "&" in text else text
    except ValueError:  # a number of thousands of digits
        return text

"""Pages as text, and no page that takes the square of its length."""

import time
import tracemalloc

import pytest

from dragoman.host.readable import TEXT_CHARACTERS, decode, html_text

URL = "https://example.com/docs/"


def test_a_page_becomes_text() -> None:
    page = """<!DOCTYPE html><html><head><title>The &amp; Title</title>
    <style>p > a { color: red }</style><script>if (a < b) alert("<p>no</p>")</script></head>
    <body><!-- <p>hidden</p> --><h1>Head  <b>line</b></h1>
    <p>One <a href="../x?a=1&amp;b=2">link</a>, <a href="#top">local</a>, <a href='javascript:x()'>bad</a>.<br>Next.</p>
    <ul><li>first<li>second <code>code()</code></ul>
    <pre>  keep
    this &lt;b&gt;</pre>
    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
    <svg><text>no</text><svg></svg></svg><noscript>no</noscript><img alt="A picture" src="x">
    <p>1 < 2 &copy; <unknown attr="a > b">end</unknown></p></body></html>"""
    assert html_text(page, URL) == (
        "The & Title\n\n# Head line\n\n"
        "One link (https://example.com/x?a=1&b=2), local, bad.\nNext.\n\n"
        "- first\n- second `code()`\n\n"
        "```\n  keep\n    this <b>\n```\n\n"
        "a | b\n1 | 2\n\n[A picture]\n\n1 < 2 © end"
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<", "<"),
        ("a<b", "a"),
        ("a <b", "a"),
        ("x <!-- y", "x"),
        ("x <script>y", "x"),
        ("x <SCRIPT>y</ScRiPt >z", "x z"),
        ("<title>t</title>", "t"),
        ("<p>a</p></p></b></pre></a>b", "a\n\nb"),
        ("<a href='https://e.com/'>https://e.com/</a>", "https://e.com/"),
        ("<a href='http://[bad'>x</a>", "x"),
        ("&#" + "9" * 5000 + ";", "\ufffd"),
        ('<p title="a>b">c', "c"),
        ('a<p title="never closed>c', "a"),
        ("<div hidden/>a", "a"),
        ("<h2>a</h2><h3>b</h3>", "## a\n\n### b"),
        ("a\0b", "a\ufffdb"),
        ('<meta charset="windows-1252">ä€', "ä€"),
        ("<iframe><p>no</p></iframe><object>no</object><template><p>no</p></template>a", "a"),
    ],
    ids=range(20),
)
def test_broken_markup_still_gives_text(markup: str, text: str) -> None:
    assert html_text(markup, URL) == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<ol><li><p>a</p><li>b<ul><li>c<li>d</ul><li>e</ol>f", "1. a\n2. b\n  - c\n  - d\n3. e\n\nf"),
        ("<ul><li><a href='/x'><div>a</div></a></ul>", "- a (https://example.com/x)"),
        ("<table><tr><td><p>a</p><td><p>b</p><tr><td><p>c</p><td><p>d</p></table>", "a | b\nc | d"),
        ("<table><tr><td>a<td><td>c<tr><td>d<td></table>e", "a |  | c\nd\n\ne"),
        ("<h1><a href='#x'>#</a> <b>a</b></h1><p>b", "# # a\n\nb"),
        ("<pre><code>a\n  b\n</code></pre>c", "```\na\n  b\n```\n\nc"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("a<br>b<br><br><br>c", "a\nb\n\nc"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
        ("<base href='/base/'><a href='x'>a</a>", "a (https://example.com/base/x)"),
        ("<base href='javascript:x'><a href='x'>a</a>", "a (https://example.com/docs/x)"),
    ],
    ids=range(11),
)
def test_lists_tables_and_code_keep_their_shape(markup: str, text: str) -> None:
    assert html_text(markup, URL) == text


@pytest.mark.requirement("D11")
@pytest.mark.parametrize("tag", ["b", "div", "blockquote", "ul><li", "table><tr><td", "x"])
def test_a_page_that_is_nested_too_deeply_is_read_up_to_there(tag: str) -> None:
    text = html_text(f"before<{tag}>" + f"<{tag}>" * 100_000 + "deep", URL)
    assert text.startswith("before")
    assert text.endswith("[the rest of the page is nested too deeply to be read]")


@pytest.mark.requirement("D11")
@pytest.mark.parametrize(
    ("markup", "url"),
    [
        ("<a href=x>y</a>" * 100_000, f"http://example.com/{'a/' * 4000}"),
        (f"<base href='http://example.com/{'a/' * 100_000}'>" + "<a href=x>y</a>" * 100_000, URL),
        ("<ul><li>" * 250 + "<li>x" * 200_000, URL),
        ("<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>" + "&b;" * 100_000, URL),
        ("<table><tr>" + "<td></td>" * 100_000 + "<td>x", URL),
        ("<title>" + "x&amp;" * 100_000, URL),
        ("&lt;" * 250_000, URL),
    ],
    ids=["long address", "long base", "nested lists", "entities", "empty cells", "title", "references"],
)
def test_no_markup_becomes_many_times_as_much_text(markup: str, url: str) -> None:
    tracemalloc.start()
    try:
        text = html_text(markup, url)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(text) <= TEXT_CHARACTERS + 100
    assert peak < 64 * 1024 * 1024


@pytest.mark.requirement("D11")
@pytest.mark.parametrize(
    "markup",
    [
        "<b>" * 500 + "</x>" * 100_000,
        "<div>" * 500 + "</p>" * 100_000,
        "<table>" * 500 + "</td>" * 100_000,
        "<a " + " ".join(f"b{number}=1" for number in range(50_000)) + ">",
        "".join(f"<x{number}></x{number}>" for number in range(20_000)),
    ],
    ids=["ends that fit nothing", "paragraphs", "cells", "attributes", "names"],
)
def test_what_is_compared_with_every_open_tag_is_bounded(markup: str) -> None:
    start = time.process_time()
    html_text(markup, URL)
    assert time.process_time() - start < 5.0


@pytest.mark.requirement("D11")
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<",
            "<a",
            "<!--",
            "<!",
            "</",
            '<a "',
            "<a '",
            '<a ">"',
            "<a '\"",
            "<a href=x>",
            "</a>",
            "<a>x</a>",
            "&",
            "&#",
        ),
        *("<script>", "</script", "<title>", "<pre> ", " ", "\n", "<svg>", "<p>", "<a href=", "<a alt = ", "<![CDATA["),
        *("<a\n", "<pre>", "&amp", "<li>", "<a href='x'>y", "&#x41"),
    ],
)
def test_no_markup_takes_the_square_of_its_length(piece: str) -> None:
    """Usually a few hundredths of a second; the square of this length would be a minute."""
    start = time.process_time()
    html_text(piece * (40_000 // len(piece)), URL)
    html_text("<pre>" + piece * (40_000 // len(piece)), URL)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("data", "charset", "is_html", "text"),
    [
        ("ä€".encode(), "", False, "ä€"),
        ("ä€".encode(), "utf-8", False, "ä€"),
        ("ä€".encode("windows-1252"), "windows-1252", False, "ä€"),
        ("ä€".encode("windows-1252"), "ISO-8859-1", False, "ä€"),
        ("漢字".encode("shift_jis"), "Shift_JIS", False, "漢字"),
        (b"\xef\xbb\xbfx", "latin1", False, "x"),
        (b"\xff\xfex\0", "", False, "x"),
        (b'<meta charset="windows-1252">\xe4', "", True, '<meta charset="windows-1252">ä'),
        (b'<meta charset="windows-1252">\xe4', "", False, '<meta charset="windows-1252">�'),
        (b"\xff", "utf-8", False, "�"),
        (b"+ADw-", "utf-7", False, "+ADw-"),
        (b"\\x41", "unicode_escape", False, "\\x41"),
        (b"eJw", "zlib", False, "eJw"),
        (b"x", "no-such", False, "x"),
    ],
)
def test_bytes_become_text_by_their_charset(data: bytes, charset: str, is_html: bool, text: str) -> None:
    assert decode(data, charset, is_html=is_html) == text

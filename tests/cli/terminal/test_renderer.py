"""Markdown of a stranger, laid out: colours are ours, and nothing else in it acts."""

import io
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cli.terminal.blocks import Block
from dragoman.cli.terminal.renderer import laid_out
from dragoman.cli.terminal.sanitize import FRAME

PARTS = st.sampled_from(
    [
        *(
            "# ",
            "- ",
            "1. ",
            "> ",
            "```",
            "```py\n",
            "`",
            "**",
            "_",
            "~~",
            "|",
            "|-|-|\n",
            "\n",
            "\n\n",
            "    ",
            "---\n",
        ),
        *("[a](b)", "![a](http://b)", "[a]: b\n", "<b>", "<!--", "-->", "<div>\n", "\\", "[", "](", "http://x.y"),
        *("&lt;", "&#x202e;", "&#27;", "&#x9b;", "&#0;", "&boxDR;", "&#x2551;", "&ZeroWidthSpace;"),
        *("\x1b[2J", "\u202e", "║", "é🧑‍🚀"),
    ]
)


def shown(text: str, columns: int = 40) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=columns, markup=False, emoji=False)
    console.print(laid_out(Block(text)), end="")
    return out.getvalue()


@given(st.lists(PARTS | st.text(max_size=5), max_size=12).map("".join))
def test_nothing_in_it_acts(text: str) -> None:
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown(text))
    kinds = {unicodedata.category(character) for character in plain if character not in "\n\u200c\u200d"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(plain) & {*FRAME, *"\u202e\u200b\ufeff"}


@pytest.mark.parametrize("text", ["<b>bold</b>", "<div>\nwords\n</div>", "a <!-- hidden --> b", "<script>x</script>"])
def test_html_is_shown_as_it_is_written(text: str) -> None:
    assert "".join(shown(text, 80).split()).endswith("".join(text.split())[-6:])
    for word in re.findall(r"\w+", text):
        assert word in shown(text, 80)


def test_links_are_shown_with_where_they_lead() -> None:
    out = shown("[safe](http://evil.test)", 80)
    assert "safe" in out
    assert "http://evil.test" in out
    assert "\x1b]8" not in out


SLOW = {"quotes": "> " * 4000, "brackets": "[" * 8000, "stars": "*a " * 5000, "lists": "- " * 4000}


@pytest.mark.parametrize("name", SLOW)
def test_what_is_made_to_be_slow_is_not(name: str) -> None:
    assert shown(SLOW[name])  # the time of a test is bounded


def test_a_table_of_thousands_of_columns_is_shown_somehow() -> None:
    assert shown("|a" * 2000 + "\n" + "|-" * 2000 + "\n" + "|b" * 2000)

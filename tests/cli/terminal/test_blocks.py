"""Markdown in pieces: the same blocks however it is cut, and no block without an end."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.terminal.blocks import BLOCK_LENGTH, Block, Blocks
from dragoman.cli.terminal.sanitize import LINE_LENGTH

LINES = st.sampled_from(
    ["", "words", "# title", "- item", "  more of it", "1. first", "```python", "```", "~~~", "> quote", "| a | b |"]
)


def cut(pieces: list[str]) -> list[Block]:
    blocks = Blocks()
    return [block for piece in pieces for block in blocks.feed(piece)] + blocks.finish()


@given(st.lists(LINES, max_size=20), st.data())
def test_how_it_is_cut_does_not_matter_and_nothing_is_lost(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    whole = cut([text])
    assert cut(pieces) == whole == cut(list(text))
    shown = [line for block in whole for line in block.text.split("\n") if line.strip()]
    assert shown == [line for line in lines if line.strip()]


def test_a_paragraph_a_list_and_a_fence_are_blocks() -> None:
    text = "One\ntwo\n\n- a\n\n- b\n\n  more\n\nThree\n```py\nx\n\ny\n```\nFour"
    assert [block.text for block in cut([text])] == [
        "One\ntwo",
        "- a\n\n- b\n\n  more",
        "Three",
        "```py\nx\n\ny\n```",
        "Four",
    ]


def test_a_block_is_shown_as_soon_as_it_is_whole() -> None:
    blocks = Blocks()
    assert blocks.feed("One\n\nTw") == []  # it could be a list that goes on
    assert blocks.feed("o\n") == [Block("One")]
    assert blocks.tail == "Two\n"


def test_what_never_ends_is_ended() -> None:
    found = cut(["```\n", *["x" * 99 + "\n"] * 1000])
    assert len(found) > 1
    assert all(block.text.startswith("```\n") and len(block.text) < BLOCK_LENGTH + 200 for block in found)
    assert all(block.text.endswith("\n```") for block in found[:-1])
    endless = cut(["y" * (3 * LINE_LENGTH)] * 2)
    assert "".join(block.text for block in endless) == "y" * (6 * LINE_LENGTH)
    assert not any(block.markdown for block in endless if len(block.text) > LINE_LENGTH)

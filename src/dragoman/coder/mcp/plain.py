"""Text of MCP servers, made plain: nothing in it moves a cursor, turns a line around or hides from the reader."""

from dragoman.host.text import harmless


def plain(text: str) -> str:
    """Return the text with such characters written out: an escape becomes the four characters `\\x1b`."""
    return harmless(text)


def one_line(text: str, limit: int) -> str:
    """Return the text for a title or a sentence."""
    # Cut twice: first so that a huge text is not gone through, then because writing out makes it longer.
    line = " ".join(plain(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"

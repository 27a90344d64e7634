"""Cut the text of an MCP server to one harmless line: a title, a name, a reason."""

from dragoman.host.text import harmless


def one_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters; what acts on a terminal is written out."""
    # Cut twice: first so that a huge text is not gone through, then because writing out makes it longer.
    line = " ".join(harmless(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"

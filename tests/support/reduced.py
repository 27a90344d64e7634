"""Shorten a text as far as something stays true of it."""

from collections.abc import Callable


def reduced(text: str, holds: Callable[[str], bool]) -> str:
    """Return a text from which no piece can be cut without losing what `holds` finds in it."""
    size = len(text) // 2
    while size:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if holds(shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text

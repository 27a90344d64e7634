"""Bound and spell out the text of a call: titles for the user, results for the model."""

import re
from typing import Final

from dragoman.host.text import visible

# What the model is given of one result. Head and tail are kept, and the cut is stated.
RESULT_CHARACTERS: Final = 100_000
# A longer title is not read, and makes a menu unusable.
TITLE_CHARACTERS: Final = 2_000
# So many blanks push what follows out of sight.
_BLANKS: Final = re.compile(r"[ \t\n]{40,}")


def shown_text(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Return a text as a user may be asked about it.

    What would not show, or would show as something else, is spelled out.
    """
    whole = _BLANKS.sub(lambda blanks: f"[{len(blanks[0])} blanks]", text)
    plain = visible(whole[:limit])
    return plain if len(whole) <= limit else f"{plain}… ({len(text)} characters in all)"


def title_text(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Return `shown_text` on one line: newlines and tabs are escaped, as a file name may hold both."""
    return shown_text(text, limit).replace("\n", "\\n").replace("\t", "\\t")


def cut(text: str, limit: int = RESULT_CHARACTERS) -> str:
    """Return a long text without its middle."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"

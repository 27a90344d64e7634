"""Text of files for the model, in a box that the text cannot end.

A box is `<name>`, the text, `</name>`. Whatever in the text reads like the name in angle brackets, in any case or
width, with blanks or hidden characters in it, loses its bracket: `&lt;/name>`. The rest stays as it is.
"""

import functools
import re
from typing import Final

# What may be taken for `<`.
_BRACKETS: Final = "<\uff1c\ufe64\u2039\u3008\u27e8"
# Fullwidth letters stand so far behind those of ASCII.
_FULLWIDTH: Final = 0xFEE0


def wrap_in_tag(name: str, text: str, attributes: str = "") -> str:
    """Put a text into the box of this name."""
    return f"<{name}{attributes}>\n{_tags_of(name).sub('&lt;', text)}\n</{name}>\n"


@functools.cache
def _tags_of(name: str) -> "re.Pattern[str]":
    """Return the pattern of a bracket before what may be taken for the name."""
    letters = [f"[{one}{one.upper()}{chr(ord(one) + _FULLWIDTH)}{chr(ord(one.upper()) + _FULLWIDTH)}]" for one in name]
    # Between the bracket and the name there may be anything but words; between its letters what may not show.
    spelled = "[^\\x20-\\x7e]{0,4}".join(letters)
    return re.compile(f"[{_BRACKETS}](?=[^A-Za-z0-9{_BRACKETS}]{{0,40}}{spelled})")

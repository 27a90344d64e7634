"""The numbers of the product, with the comment above each: that is their reason."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.reference.markdown import table
from tools.reference.source import SOURCE


def limits_page() -> str:
    """The numbers of `limits.py` and of the gateway's, with the comment above each."""
    parts = [
        "# Limits",
        (
            "Everything is bounded. These are the numbers that the protocol's users can meet, with their reasons; "
            "others stand in the modules they belong to."
        ),
        table(("name", "value", "why"), limits_of(SOURCE / "limits.py")),
        "## Of the gateway",
        table(
            ("name", "value", "why"),
            [*limits_of(SOURCE / "gateway" / "guard.py"), *limits_of(SOURCE / "gateway" / "app.py")],
        ),
    ]
    return "\n\n".join(parts) + "\n"


_LIMIT: Final = re.compile(r"^((?:# .*\n)+)((?:[A-Z][A-Z0-9_]*: Final = .*[0-9].*\n)+)", re.MULTILINE)


def limits_of(file: Path) -> Iterator[tuple[str, str, str]]:
    for comment, lines in _LIMIT.findall(file.read_text(encoding="utf-8")):
        reason = re.sub(r"^# ", "", comment, flags=re.MULTILINE)
        for line in lines.splitlines():
            name, _, value = line.partition(": Final = ")
            yield f"`{name}`", f"`{value.partition('  #')[0]}`", reason

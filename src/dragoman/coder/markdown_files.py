"""The user's own Markdown files in our config folder: slash commands, kinds of helpers; each with front matter."""

import os
import re
from collections.abc import Iterator
from typing import Final

from dragoman.host.regular_file import read_regular

# More of them are not a menu any more; a longer one is a book.
MOST_FILES: Final = 200
FILE_BYTES: Final = 64 * 1024
NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)


def read_folder(folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each `NAME.md` of a folder. What cannot be read is left out. Blocks: for a thread."""
    try:
        files = sorted(name for name in os.listdir(folder) if name.endswith(".md"))[:MOST_FILES]
    except OSError:
        return
    for file in files:
        name = file.removesuffix(".md")
        if not NAME.fullmatch(name):
            continue
        try:
            yield name, read_regular(os.path.join(folder, file), FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            continue


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields between the first two lines of `---`, and what follows; a list is its items with commas."""
    text = text.replace("\r\n", "\n")
    if not text.startswith("---\n") or "\n---\n" not in text[4:]:
        return {}, text
    head, _, body = text[4:].partition("\n---\n")
    fields: dict[str, str] = {}
    key = ""
    for line in head.splitlines():
        if line.lstrip().startswith("- "):
            fields[key] = ", ".join(filter(None, (fields.get(key, ""), line.strip()[2:].strip())))
            continue
        key, _, value = line.partition(":")
        fields[key] = value.strip().strip("\"'")
    return fields, body

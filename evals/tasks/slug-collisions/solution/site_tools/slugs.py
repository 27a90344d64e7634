"""Addresses of pages. The rules are in README.md."""

import re
import unicodedata

_WORDS = {"+": " plus ", "#": " sharp ", "&": " and ", "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}


def slugify(title: str) -> str:
    text = "".join(_WORDS.get(one, one) for one in unicodedata.normalize("NFC", title.lower()))
    plain = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


class SlugBook:
    """Hands out slugs."""

    def __init__(self):
        self._slugs = {}

    def add(self, title: str) -> str:
        if title not in self._slugs:
            slug, number = slugify(title), 2
            chosen = slug
            while chosen in self._slugs.values():
                chosen, number = f"{slug}-{number}", number + 1
            self._slugs[title] = chosen
        return self._slugs[title]

"""Addresses of pages. The rules are in README.md."""

import re


def slugify(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class SlugBook:
    """Hands out slugs."""

    def __init__(self):
        self._slugs = {}

    def add(self, title: str) -> str:
        slug = slugify(title)
        self._slugs[title] = slug
        return slug

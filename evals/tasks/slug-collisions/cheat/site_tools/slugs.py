import re


def slugify(title: str) -> str:
    title = title.replace("C++", "c-plus-plus").replace("Über", "ueber")
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class SlugBook:
    def __init__(self):
        self._slugs = {}

    def add(self, title: str) -> str:
        slug = slugify(title)
        self._slugs[title] = slug
        return slug

import pathlib
import re

from site_tools.slugs import SlugBook, slugify

cases = {
    "Hello, World!": "hello-world",
    "C++ notes": "c-plus-plus-notes",
    "C# & F#": "c-sharp-and-f-sharp",
    "Über uns": "ueber-uns",
    "Straße": "strasse",
    "Crème brûlée": "creme-brulee",
    "ÄÖÜ": "aeoeue",
    "  -- 42 --  ": "42",
}
for title, slug in cases.items():
    assert slugify(title) == slug, (title, slugify(title))
book = SlugBook()
assert [book.add(title) for title in ("a b", "A-B", "a b", "a_b")] == ["a-b", "a-b-2", "a-b", "a-b-3"]
taken = SlugBook()
assert len({taken.add(title) for title in ("x 2", "x", "X")}) == 3
tests = "".join(path.read_text() for path in pathlib.Path("tests").rglob("*.py"))
assert re.search(r"plus|ueber|\+\+|Über", tests), "no test was added"
print("PASS")

"""How much a browser fetches before the console is of use, as the files would be compressed by a server in front."""

import gzip
import re
from collections.abc import Iterator

from tools import console

BUDGET = 150 * 1024  # bytes, gzip
STATIC = re.compile(r'(?:\bfrom|\bimport)\s*"\./([\w.-]+\.js)"')
NAMED = re.compile(r'(?:src|href)="/console/([\w.-]+)"')


def first_view() -> set[str]:
    """What index.html names, and what those files import at once; what is fetched later is in functions."""
    page = (console.BUILT / "index.html").read_text()
    names = set(NAMED.findall(page))
    todo = list(names)
    while todo:
        name = todo.pop()
        found = set(STATIC.findall((console.BUILT / name).read_text())) if name.endswith(".js") else set()
        todo += found - names
        names |= found
    return {"index.html", *names}


def compressed(names: set[str]) -> Iterator[int]:
    return (len(gzip.compress((console.BUILT / name).read_bytes(), 9)) for name in sorted(names))


def test_all_that_the_first_view_loads_is_under_150_kib_compressed() -> None:
    names = first_view()
    sizes = dict(zip(sorted(names), compressed(names), strict=True))
    print(sizes)
    assert any(name.endswith(".css") for name in names)
    assert any(size > 30_000 for name, size in sizes.items() if name.endswith(".js"))  # the application is among them
    assert sum(sizes.values()) < BUDGET


def test_grammars_and_the_other_screens_are_fetched_when_they_are_needed() -> None:
    later = {file.name for file in console.BUILT.glob("*.js")} - first_view()
    for wanted in ("python-", "typescript-", "library-", "AdminScreen-", "InboxScreen-", "SessionsScreen-"):
        assert any(name.startswith(wanted) for name in later), wanted


def test_no_part_of_the_console_is_larger_than_its_kind_should_be() -> None:
    """A library that comes whole by mistake is seen here: once it was every grammar there is, 900 kB."""
    large = {file.name: file.stat().st_size for file in console.BUILT.glob("*.js") if file.stat().st_size > 60_000}
    assert set(large) <= first_view()

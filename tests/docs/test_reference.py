"""The pages of the reference are those that the code makes now."""

import re
import sys

import pytest

from tests.support.needs import ROOT
from tools.reference.pages import pages

MADE = pages()


@pytest.mark.parametrize("path", sorted(MADE))
def test_a_page_is_the_one_that_the_code_makes(path: str) -> None:
    written = (ROOT / "docs" / path).read_text(encoding="utf-8")
    if sys.version_info[:2] == (3, 11):
        assert written == MADE[path], "it is out of date: run ./dev docs"
    # Later releases of argparse write an option's value once: the same words, in other places.
    assert set(re.findall(r"\w+", written)) == set(re.findall(r"\w+", MADE[path]))


def test_every_page_of_the_reference_is_made() -> None:
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs" / "reference").glob("*.md")}
    assert there == set(MADE)

"""Every requirement has a test, and every test that names a requirement names one that exists."""

import tomllib
from pathlib import Path

import pytest

from tools.requirements import Marked, Requirement, markers, mistakes, requirements, written

ENTRY = Requirement("X1", "Something holds.", "our threat model", ("tests/test_x.py::test_it_holds",))
MARK = Marked("X1", "tests/test_x.py::test_it_holds")


def test_every_requirement_is_proved_by_the_tests_that_it_lists_and_every_marker_names_one() -> None:
    assert mistakes(requirements(), markers()) == []


def test_every_requirement_has_a_sentence_and_a_source() -> None:
    assert [entry.id for entry in requirements() if not entry.sentence or not entry.source] == []


@pytest.mark.parametrize(
    ("entries", "marked", "mistake"),
    [
        ([ENTRY, ENTRY], [MARK], "X1 stands in the files twice"),
        ([ENTRY], [MARK, Marked("X2", "tests/test_x.py::test_b")], "tests/test_x.py::test_b names X2, which is no"),
        ([ENTRY._replace(tests=())], [], "X1 has no test"),
        (
            [ENTRY],
            [MARK._replace(test="tests/test_x.py::test_renamed")],
            "X1 lists other tests than those that name it",
        ),
        ([ENTRY._replace(tests=())], [MARK], "X1 lists other tests"),
    ],
    ids=["twice", "no such requirement", "no test", "a renamed test", "a test that is not listed"],
)
def test_a_mistake_is_found(entries: list[Requirement], marked: list[Marked], mistake: str) -> None:
    (found,) = mistakes(entries, marked)
    assert found.startswith(mistake)


def test_a_marker_is_found_on_functions_of_either_kind_and_for_each_of_its_ids(tmp_path: Path) -> None:
    (tmp_path / "tests" / "part").mkdir(parents=True)
    (tmp_path / "tests" / "part" / "test_x.py").write_text(
        'import pytest\n\n@pytest.mark.requirement("X1", "X2")\n@pytest.mark.slow\ndef test_a() -> None: ...\n\n'
        '@pytest.mark.requirement("X3")\nasync def test_b() -> None: ...\n'
    )
    a, b = ("tests/part/test_x.py::test_a", "tests/part/test_x.py::test_b")
    assert markers(tmp_path) == [Marked("X1", a), Marked("X2", a), Marked("X3", b)]


def test_a_marker_that_would_not_be_counted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text('import pytest\n\npytestmark = pytest.mark.requirement("X1")\n')
    with pytest.raises(ValueError, match="1 requirement markers stand elsewhere"):
        markers(tmp_path)


def test_the_lists_are_written_and_nothing_else() -> None:
    before = '# About x.\n\n[[row]]\nid = "X1"\nsentence = "A."\nsource = "us"\ntests = ["old"]\n'
    before += '\n[[row]]\nid = "X2"\nsentence = "B."\nsource = "us"\ntests = [\n    "old",\n]\n'
    after = written(before, {"X1": ["tests/test_x.py::test_a", "tests/test_x.py::test_b"]})
    assert after.startswith("# About x.\n")
    assert tomllib.loads(after)["row"] == [
        {"id": "X1", "sentence": "A.", "source": "us", "tests": ["tests/test_x.py::test_a", "tests/test_x.py::test_b"]},
        {"id": "X2", "sentence": "B.", "source": "us", "tests": []},
    ]
    assert written(after, {"X1": ["tests/test_x.py::test_a", "tests/test_x.py::test_b"]}) == after

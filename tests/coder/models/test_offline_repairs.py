"""Repairs of the offline model: what a run of tests says, which change is likeliest, and that nothing is run for it."""

import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.coder.models.offline.edits import edit
from dragoman.coder.models.offline.repairs.candidates import Candidate, candidates
from dragoman.coder.models.offline.repairs.cases import Case, File
from dragoman.coder.models.offline.repairs.failures import FailedTest, Frame, failures, nothing_ran, summary
from dragoman.coder.models.offline.repairs.suites import Suite


def best(source: str, tests: str, *, error: str = "", frames: tuple[str, ...] = ()) -> Candidate:
    found = changes(source, tests, error=error, frames=frames)
    assert found
    return found[0]


def changes(source: str, tests: str, *, error: str = "", frames: tuple[str, ...] = ()) -> tuple[Candidate, ...]:
    file = File("calc.py", textwrap.dedent(source).lstrip())
    return candidates(Case("test_it", textwrap.dedent(tests).lstrip(), (file,), error, frames))


def asserting(*claims: str) -> str:
    return "from calc import *\nfrom calc import f\n\n\ndef test_it():\n" + "".join(f"    assert {c}\n" for c in claims)


@pytest.mark.parametrize(
    ("body", "claim", "line"),
    [
        ("return a - b", "f(2, 3) == 5", "return a + b"),
        ("return a + b", "f(2, 3) == 6", "return a * b"),
        ("return b - a", "f(5, 3) == 2", "return a - b"),
        ("return a // b", "f(1, 2) == 0.5", "return a / b"),
        ("return a > b", "f(3, 3) is True", "return a >= b"),
        ("return a and b", "f(0, 3) == 3", "return a or b"),
        ("return max(a, b)", "f(1, 2) == 1", "return min(a, b)"),
        ("return a[0]", "f([1, 2, 3], 0) == 3", "return a[-1]"),
        ("return a[:b + 1]", "f('hello', 2) == 'he'", "return a[:b]"),
        ("return list(range(a, b))", "f(1, 3) == [1, 2, 3]", "return list(range(a, b + 1))"),
        ("return not a", "f(True, 0) is True", "return a"),
        ("return a.lower()", "f('x', 0) == 'X'", "return a.upper()"),
        ("return 'Helo, ' + a", "f('Bo', 0) == 'Hello, Bo'", "return 'Hello, ' + a"),
        ("return a * 2", "f(3, 0) == 21", "return a * 7"),
        ("return b", "f(3, 4) == 3", "return a"),
        ("a + b", "f(3, 4) == 7", "return a + b"),
        ("return sum(a) / (len(a) - 1)", "f([1, 2, 3], 0) == 2", "return sum(a) / len(a)"),
    ],
)
def test_the_usual_mistakes_are_found_at_once(body: str, claim: str, line: str) -> None:
    found = best(f"def f(a, b):\n    {body}\n", asserting(claim))
    assert (found.new, found.proved, found.line) == (line, True, 2)


def test_a_mistake_behind_another_function_is_found() -> None:
    source = """
        RATE = 0.2

        def tax(price):
            return price * RATE

        def f(price):
            return price + tax(price)
    """
    found = best(source, asserting("f(100) == 125"))
    assert (found.old, found.new) == ("RATE = 0.2", "RATE = 0.25")


def test_a_mistake_in_a_class_is_found() -> None:
    source = """
        class Cart:
            def __init__(self):
                self.items = []

            def add(self, name, price):
                self.items.append((name, price))

            @property
            def total(self):
                total = 0
                for _, price in self.items:
                    total += price
                    return total
    """
    tests = """
        import unittest
        import calc

        class TestCart(unittest.TestCase):
            def setUp(self):
                self.cart = calc.Cart()

            def test_it(self):
                self.cart.add("tea", 2)
                self.cart.add("cup", 3)
                self.assertEqual(self.cart.total, 5)
    """
    found = best(source, tests)
    assert (found.what, found.function, found.proved) == ("a return inside the loop", "total", True)


def test_other_tests_of_the_file_are_not_broken() -> None:
    tests = asserting("f(2, 2) == 4") + "\n\ndef test_other():\n    assert f(3, 0) == 3\n"
    assert [each.new for each in changes("def f(a, b):\n    return a - b\n", tests)] == ["return a + b"]


def test_rows_of_a_parametrized_test_all_count() -> None:
    tests = """
        import pytest
        from calc import f

        @pytest.mark.parametrize("age, adult", [(17, False), (18, True), (19, True)])
        def test_it(age, adult):
            assert f(age) is adult
    """
    assert best("def f(age):\n    return age > 18\n", tests).new == "return age >= 18"


def test_a_fixture_of_the_file_is_followed() -> None:
    tests = """
        import pytest
        from calc import f

        @pytest.fixture
        def prices():
            return [1, 2, 3]

        def test_it(prices):
            assert f(prices) == 1
    """
    found = best("def f(prices):\n    return max(prices)\n", tests)
    assert (found.new, found.proved) == ("return min(prices)", True)


def test_what_the_failing_line_compares_is_suspected_first() -> None:
    source = "def g(a):\n    return {k: k - 1 for k in a}\n\n\ndef f(a):\n    return {k: k - 1 for k in a}\n"
    tests = "from calc import f, g\n\n\ndef test_it():\n    g([1])\n    assert f([1]) == {1: 2}\n"
    file = File("calc.py", source)
    assert [candidates(Case("test_it", tests, (file,), line=line))[0].function for line in (0, 6)] == ["g", "f"]


def test_a_name_that_does_not_exist_becomes_one_that_does() -> None:
    error = "NameError: name 'totl' is not defined"
    found = best("def f(total):\n    return totl\n", asserting("f(1) == 1"), error=error, frames=("test_it", "f"))
    assert found.new == "return total"


def test_what_cannot_be_worked_out_is_told_to_be_a_guess() -> None:
    found = changes("def f(a):\n    return {k: k - 1 for k in a}\n", asserting("f([1]) == {1: 2}"))
    assert found and not any(each.proved for each in found)
    assert all(each.calm for each in found)


def test_a_function_that_does_more_than_compute_is_not_calm() -> None:
    source = "import os\n\n\ndef f(a):\n    if not a:\n        os.remove('x')\n    return a\n"
    found = changes(source, asserting("f(1) == 2"))
    assert not any(each.calm for each in found if not each.proved)


def test_a_function_that_is_right_has_no_repair() -> None:
    assert changes("def f(a, b):\n    return 7\n", asserting("f(1, 2) == 7", "f(1, 2) == 8")) == ()


HOSTILE = {
    "a long text": "return 'a' * 10**12",
    "a long list": "return [0] * 10**12",
    "a long range": "return list(range(10**12))",
    "a large power": "return 9 ** 9 ** 9",
    "a large shift": "return 1 << 10**12",
    "a wide format": "return f'{a:1000000000}'",
    "a large join": "return 'x'.join(['y' * 9000] * 9000)",
    "a large replace": "return ('a' * 9999).replace('a', 'b' * 9999)",
    "endless recursion": "return f(a, b)",
    "an endless loop": "while True:\n        a = a + 1",
    "a deep list": "a = [a]\n    for _ in range(9000):\n        a = [a, a]\n    return a",
    "nested loops": "return [[[[0 for x in range(999)] for y in range(999)] for z in range(999)] for w in range(999)]",
    "many brackets": "return " + "(" * 90 + "a" + ")" * 90,
    "many signs": "return " + "-" * 3000 + "a",
    "a long sum": "return " + "+".join(["a"] * 9000),
    "a command": "return __import__('os').system('touch pwned')",
    "a file": "return open('pwned', 'w')",
    "a way out": "return a.__class__.__base__.__subclasses__()",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_source_costs_little_and_does_nothing(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    assert not any(each.proved for each in changes(f"def f(a, b):\n    {body}\n", asserting("f(1, 2) == [3]")))
    assert time.process_time() - began < 5
    assert list(tmp_path.iterdir()) == []


LONG = "\n".join(f"    x{n} = a + b * {n}" for n in range(100))


@pytest.mark.parametrize(
    "source",
    [
        "\n".join(f"C{n} = {n}" for n in range(3000)) + "\ndef f(a, b):\n    return a - b\n",
        pytest.param(f"def f(a, b):\n{LONG}\n    return x1\n", marks=pytest.mark.slow),  # many functions are more
        "def f(a, b):\n" + "    a = a + 1\n" * 5_000 + "    return a\n",
        "\n".join(f"def f{n}(a, b):\n{LONG}\n    return x1\n" for n in range(3))
        + f"def f(a, b):\n    return {' + '.join(f'f{n}(a, b)' for n in range(3))}\n",
    ],
    ids=["many constants", "a long function", "a huge function", "many functions"],
)
def test_a_large_source_costs_little(source: str) -> None:
    began = time.process_time()
    changes(
        source, asserting("f(2, 3) == 5") + "".join(f"\n\ndef test_{n}():\n    assert f({n}, 1)\n" for n in range(12))
    )
    assert time.process_time() - began < 5


PYTEST = """\
.F                                                                       [100%]
=================================== FAILURES ===================================
______________________________ TestCalc.test_add _______________________________
tests/test_calc.py:5: in test_add
    assert add(2, 3) == 5
calc.py:2: in add
    return a - b
E   assert -1 == 5
E    +  where -1 = add(2, 3)
=========================== short test summary info ============================
FAILED tests/test_calc.py::TestCalc::test_add - assert -1 == 5
1 failed, 1 passed in 0.02s
"""
LINE = "=" * 70
DASHES = "-" * 70
UNITTEST = f"""\
F.
{LINE}
FAIL: test_add (test_calc.TestCalc.test_add)
The sum.
{DASHES}
Traceback (most recent call last):
  File "/w/test_calc.py", line 6, in test_add
    self.assertEqual(add(2, 3), 5)
AssertionError: -1 != 5 : sums
  differ

{DASHES}
Ran 2 tests in 0.001s

FAILED (failures=1)
"""


def test_the_failures_of_pytest_are_read() -> None:
    frames = (Frame("tests/test_calc.py", 5, "test_add"), Frame("calc.py", 2, "add"))
    assert failures(PYTEST) == [FailedTest("TestCalc.test_add", frames, "assert -1 == 5\n +  where -1 = add(2, 3)")]
    assert (failures(PYTEST)[0].name, summary(PYTEST)) == ("test_add", "1 failed, 1 passed in 0.02s")


def test_the_failures_of_unittest_are_read() -> None:
    frames = (Frame("/w/test_calc.py", 6, "test_add"),)
    assert failures(UNITTEST) == [FailedTest("test_add", frames, "AssertionError: -1 != 5 : sums\n  differ")]
    assert summary(UNITTEST) == "Ran 2 tests in 0.001s"


@pytest.mark.parametrize(
    "output", ["no tests ran in 0.01s\n", "Ran 0 tests in 0.000s\n\nOK\n", "3 deselected in 0.02s\n"]
)
def test_a_run_of_no_tests_is_not_a_success(output: str) -> None:
    assert nothing_ran(output)
    assert not nothing_ran(PYTEST) and not nothing_ran(UNITTEST)


@pytest.mark.parametrize(
    ("suite", "line"),
    [
        (Suite("pytest"), "python3 -B -m pytest -q --tb=short"),
        (Suite("pytest", "tests/a b.py", keyword="x"), "python3 -B -m pytest -q --tb=short 'tests/a b.py' -k x"),
        (Suite("unittest"), "python3 -B -m unittest discover"),
        (Suite("unittest", "t/test_a.py"), "python3 -B -m unittest discover -s t -p test_a.py"),
        (Suite("unittest", folder="t", is_package=True), "python3 -B -m unittest discover -s t -t ."),
        (Suite("unittest", search="src"), "PYTHONPATH=src python3 -B -m unittest discover"),
        (Suite("other", command="make test"), "make test"),
    ],
)
def test_the_command_of_a_suite(suite: Suite, line: str) -> None:
    assert suite.line() == line


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c"]), max_size=8).map("".join)


@given(before=LINES.filter(bool), after=LINES)
def test_an_edit_is_clear_and_makes_the_other_text(before: str, after: str) -> None:
    change = edit(before, after)
    if before != after:
        assert before.count(change.old) == 1
        assert before.replace(change.old, change.new) == after

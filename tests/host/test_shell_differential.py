"""Lines by chance: what `shell.parse` says of a line is what bash does with it."""

import posixpath
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from dragoman.host.shell import Parsed, Simple, parse
from dragoman.host.shell_lexer import HOLE
from tests.support.reduced import reduced
from tests.support.shell_lines import Line, Run, Seen, random_line, seen_by_bash

# Lines that bash runs in one process of its own.
BATCH = 200
# `./dev fuzz` takes 500 batches: 100,000 lines.
BATCHES = 500 if settings().max_examples >= 5_000 else 3
# How often `./dev fuzz` says how many it has compared, so that also a run that its time has ended has said so.
LINES_A_REPORT = 10_000


def understood(seed: int) -> Iterator[Line]:
    """Yield lines that the parser claims to understand."""
    chance = random.Random(seed)
    while True:
        line = random_line(chance)
        if isinstance(parse(line.text), Parsed):
            yield line


def differences(seed: int, folder: Path) -> list[str]:
    """Return what bash does otherwise than the parser has said of the lines of a batch, and the shortest such line."""
    lines = list(islice(understood(seed), BATCH))
    found = {line.text: reasons for line, reasons in compared(lines, folder) if reasons}
    surprising = next((text for text in found if _surprises_by(text, folder)), None)
    shortest = [] if surprising is None else [reduced(surprising, lambda text: bool(_surprises_by(text, folder)))]
    return [*(f"shortest: {text!r}: {_surprises_by(text, folder)}" for text in shortest), *map(str, found.items())]


def compared(lines: Sequence[Line], folder: Path) -> Iterator[tuple[Line, list[str]]]:
    """Yield each line with what bash does otherwise than the parser says."""
    for line, seen in zip(lines, seen_by_bash([line.text for line in lines], folder), strict=True):
        parsed = parse(line.text)
        assert isinstance(parsed, Parsed)
        yield line, [*_surprises(parsed, seen), *(_omissions(parsed, seen) if line.is_certain else ())]


def _surprises_by(text: str, folder: Path) -> list[str]:
    if not isinstance(parse(text), Parsed) or "while" in text or "until" in text:
        return []  # a loop that has lost its `break` would not end
    return next(reasons for _, reasons in compared([Line(text, is_certain=False)], folder))


def _surprises(parsed: Parsed, seen: Seen) -> Iterator[str]:
    """Yield what has happened and was not announced."""
    for run in seen.runs:
        if not any(_is_announced(run, simple) for simple in parsed.commands):
            yield f"{run} was not announced"
    for kinds, opened in ((("read",), seen.read), (("write", "append"), seen.written)):
        if all(simple.has_literal_files and simple.folders for simple in parsed.commands):
            announced = {path for simple in parsed.commands for paths in _files(simple, kinds) for path in paths}
            yield from (f"{path} was opened" for path in opened - announced)


def _omissions(parsed: Parsed, seen: Seen) -> Iterator[str]:
    """Yield what was announced of a line without conditions, and has not happened."""
    # Those that the lines are made with: a keyword that stands where a command does (`A=1 if`) runs as well.
    announced = [simple for simple in parsed.commands if simple.argv[:1] and simple.argv[0].startswith("z")]
    literal = Counter(simple.argv for simple in announced if simple.literal)
    runs = Counter(run.argv for run in seen.runs if run.argv[0].startswith("z"))
    yield from (f"{argv} has not run" for argv in literal - runs)
    if len(announced) != runs.total():
        yield f"{len(announced)} commands were announced, and {runs.total()} have run"
    for kinds, opened in ((("read",), seen.read), (("write", "append"), seen.written)):
        known = (simple for simple in parsed.commands if simple.folders)
        for paths in (paths for simple in known for paths in _files(simple, kinds)):
            if paths.isdisjoint(opened):
                yield f"{sorted(paths)} was not opened"


def _files(simple: Simple, kinds: tuple[str, ...]) -> Iterator[set[str]]:
    """Yield where each file of a command may be, as far as it is in the folder of the line."""
    for kind, target, literal in simple.redirects:
        if kind in kinds and literal and not target.startswith("/"):
            yield {posixpath.normpath(posixpath.join(folder, target)) for folder in simple.folders}


def _is_announced(run: Run, simple: Simple) -> bool:
    folders = [posixpath.normpath(folder) for folder in simple.folders]
    return (run.folder in folders or not folders) and _fits(run, simple)


def _fits(run: Run, simple: Simple) -> bool:
    if simple.literal:
        return run.argv == simple.argv
    pieces = [_pattern(word, at in simple.expands) for at, word in enumerate(simple.argv)]
    return re.fullmatch("".join(pieces), "".join(f"{word}\0" for word in run.argv), re.DOTALL) is not None


def _pattern(word: str, expands: bool) -> str:
    if expands:
        return "(?:[^\0]*\0)*"
    return "[^\0]*".join(map(re.escape, word.split(HOLE))) + "\0"


@pytest.fixture
def count_batch(capfd: pytest.CaptureFixture[str]) -> Callable[[], None]:
    """Return what counts a batch without a difference, and prints the number of lines now and then."""
    numbers = count(BATCH, BATCH)

    def count_one() -> None:
        lines = next(numbers)
        if lines % LINES_A_REPORT == 0:
            with capfd.disabled():
                print(f"\n{lines:,} lines compared with bash, 0 differences", end="", flush=True)

    return count_one


@pytest.mark.requirement("H5")
@settings(
    max_examples=BATCHES,
    # A shorter seed is no shorter line.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**63))
@example(seed=310)  # a keyword behind an assignment
def test_what_is_understood_is_what_bash_runs_reads_and_writes(
    seed: int, tmp_path: Path, count_batch: Callable[[], None]
) -> None:
    assert differences(seed, tmp_path) == []
    count_batch()


@pytest.mark.slow
def test_twenty_thousand_lines_are_what_bash_makes_of_them(tmp_path: Path) -> None:
    assert [found for seed in range(100) for found in differences(seed, tmp_path)] == []


@pytest.mark.parametrize(
    ("line", "other", "reason"),
    [
        ("z1 'a b'", "z1 a b", "('z1', 'a b') has not run"),
        ("z1 'a b'", "z1 a b", "Run(folder='.', argv=('z1', 'a', 'b')) was not announced"),
        ("z1 <r1", "z1 <r2", "['r1'] was not opened"),
        ("z1 <r1", "z1 <r2", "r2 was opened"),
        ("z1 >w1", "z1 >>w2", "w2 was opened"),
        ("cd d1; z1", "cd d1/d2; z1", "Run(folder='d1/d2', argv=('z1',)) was not announced"),
        ("z1 $(z2)", "z1 $(z2; z3)", "Run(folder='.', argv=('z3',)) was not announced"),
        ("z1", "z1; z1", "1 commands were announced, and 2 have run"),
    ],
)
def test_the_comparison_sees_a_difference(line: str, other: str, reason: str, tmp_path: Path) -> None:
    (seen,) = seen_by_bash([other], tmp_path)
    parsed = parse(line)
    assert isinstance(parsed, Parsed)
    assert reason in [*_surprises(parsed, seen), *_omissions(parsed, seen)]


def test_a_text_is_reduced_to_what_matters() -> None:
    assert reduced("aaaa(bbbb)cccc", lambda text: "(" in text and ")" in text) == "()"

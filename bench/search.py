"""`python -m bench.search`: the agent's search beside a plain ripgrep in 100,000 small files, with a verdict.

Ours pays for sorting, for our own rules and for reading again what is shown. Exit status: 0 the promise is met, 1 it is
missed, 2 there is no ripgrep.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from dragoman.host.paths import Place, Roots
from dragoman.host.ripgrep import find_ripgrep
from dragoman.host.search import glob, grep

FILES: Final = 100_000
IN_A_FOLDER: Final = 20
LINES: Final = 20
REPETITIONS: Final = 5
RATIO: Final = 2.0
"""What a search of ours may take, in plain ripgreps."""
QUICK_SECONDS: Final = 0.1
"""A search within this is quick enough, whatever ripgrep takes."""

WORDS: Final = ("def", "class", "return", "import", "value", "result", "the", "quick", "brown", "fox", "self", "open")
QUESTIONS: Final = {
    "a word in one file of a thousand": "needle_in_haystack",
    "an expression with a word in it": r"needle_\w+\(\d+\)",
    "an expression without one": r"[nN]eedle_|[hH]aystack",
    "nothing at all": "nowhere",
    "a word in every file": "return",
}
GLOBS: Final = {"a file by its path": "**/module7/file7.p?", "every file": "**"}
RULES: Final = "*.pyc\n__pycache__/\n/build/\nnode_modules/\n*.log\n!keep.log\n.venv\n*.egg-info/\n/docs/_build/\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.search", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    count = FILES // 10 if parser.parse_args(arguments).quick else FILES
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), count)
        return asyncio.run(compare(Roots([folder]), count))


def make_tree(root: Path, count: int) -> None:
    chance = random.Random(1)
    (root / ".gitignore").write_text(RULES)
    for number in range(count // IN_A_FOLDER):
        folder = root / f"package{number % 50}" / f"part{number // 50 % 20}" / f"module{number}"
        folder.mkdir(parents=True)
        for index in range(IN_A_FOLDER):
            lines = [" ".join(chance.choices(WORDS, k=8)) for _ in range(LINES)]
            if (number * IN_A_FOLDER + index) % 1000 == 0:
                lines.append("needle_in_haystack(42)")
            (folder / f"file{index}.py").write_text("\n".join(lines))


async def compare(roots: Roots, count: int) -> int:
    place = roots.place(".")
    ripgrep = find_ripgrep(os.environ.get("PATH", os.defpath), roots)
    if ripgrep is None:
        print("There is no ripgrep to search with.")
        return 2
    print(f"search in {count} files, median of {REPETITIONS}; ripgrep is {ripgrep}")
    missed = False
    for what, pattern in QUESTIONS.items():
        plain = ["--line-number", f"--regexp={pattern}"]
        missed |= await _row(what, plain, partial(grep, pattern, place, ripgrep=ripgrep), ripgrep, place)
    for what, pattern in GLOBS.items():
        missed |= await _row(what, ["--files"], partial(glob, pattern, place, ripgrep=ripgrep), ripgrep, place)
    return int(missed)


async def _row(what: str, plain: list[str], ours: Callable[[], Awaitable[object]], ripgrep: str, place: Place) -> bool:
    """Measure both in turns, print the row, and return whether the promise is missed."""
    theirs_seconds, our_seconds = [], []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        await asyncio.to_thread(
            subprocess.run,
            [ripgrep, "--no-config", *plain, "."],
            cwd=place.path,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        between = time.perf_counter()
        await ours()
        theirs_seconds.append(between - start)
        our_seconds.append(time.perf_counter() - between)
    ratio = median(our_seconds) / median(theirs_seconds)
    is_missed = ratio > RATIO and median(our_seconds) > QUICK_SECONDS
    print(
        f"{what:<36}ripgrep {median(theirs_seconds):6.3f} s  ours {median(our_seconds):6.3f} s"
        f"  {ratio:4.1f}x, at most {RATIO:g} or {QUICK_SECONDS:g} s: {'MISSED' if is_missed else 'met'}",
        flush=True,
    )
    return is_missed


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.search`: our own search beside ripgrep in 100,000 small files, with a verdict for the promise.

Both are asked through `dragoman.host.search`, so both pay for a process, for sorting and for reading what they show.
Exit status: 0 the promise is met, 1 it is missed, 2 there is no ripgrep to compare with.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
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
RATIO: Final = 5.0
"""What our own search may take, in ripgreps."""

WORDS: Final = ("def", "class", "return", "import", "value", "result", "the", "quick", "brown", "fox", "self", "open")
QUESTIONS: Final = {
    "a word in one file of a thousand": "needle_in_haystack",
    "an expression with a word in it": r"needle_\w+\(\d+\)",
    "an expression without one": r"[nN]eedle_|[hH]aystack",
    "nothing at all": "nowhere",
}
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
    ripgrep = find_ripgrep("/usr/local/bin:/usr/bin:/bin", roots)
    if ripgrep is None:
        print("There is no ripgrep to compare with.")
        return 2
    print(f"{count} files, median of {REPETITIONS}; ripgrep is {ripgrep}")
    missed = False
    for what, pattern in QUESTIONS.items():
        theirs, ours = [], []
        for _ in range(REPETITIONS):
            theirs.append(await seconds(pattern, place, ripgrep))
            ours.append(await seconds(pattern, place, None))
        ratio = median(ours) / median(theirs)
        missed = missed or ratio > RATIO
        word = "MISSED" if ratio > RATIO else "met"
        print(
            f"{what:<36}ripgrep {median(theirs):6.3f} s  ours {median(ours):6.3f} s"
            f"  {ratio:4.1f}x, at most {RATIO:g}: {word}",
            flush=True,
        )
    start = time.perf_counter()
    await glob("**/module7/file7.p?", place)
    print(f"{'glob over all files':<36}ours {time.perf_counter() - start:6.3f} s")
    return int(missed)


async def seconds(pattern: str, place: Place, ripgrep: str | None) -> float:
    start = time.perf_counter()
    await grep(pattern, place, ripgrep=ripgrep)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())

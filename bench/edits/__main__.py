"""`python -m bench.edits`: the edit corpus, ours beside aider's and gemini-cli's edit functions in one run.

Exit status: 0 no wrong edit of ours and more successes than each of the others that could be run, 1 otherwise.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from bench.edits import peers
from bench.edits.corpus import Case, cases, digest, grade
from bench.install import InstallFailed
from dragoman.coder.edits.engine import Applied, find_edit

GRADES: Final = ("success", "refused", "rightly refused", "wrong")
OURS: Final = "dragoman"
SLOW: Final = "aider, search"
FUNCTIONS: Final[dict[str, Callable[[Sequence[Case]], list[str | None]]]] = {
    OURS: lambda corpus: [our_result(case) for case in corpus],
    "aider, blocks": lambda corpus: peers.aider_results(corpus, "block"),
    SLOW: lambda corpus: peers.aider_results(corpus, "search"),
    "gemini-cli": peers.gemini_results,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.edits", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="ours alone")
    parser.add_argument("--all", action="store_true", help="also aider's function for diffs, which takes minutes")
    parser.add_argument("--drifts", action="store_true", help="also a table with a row for each drift")
    parser.add_argument("--wrong", action="store_true", help="also name every wrong edit of ours")
    options = parser.parse_args(arguments)
    corpus = cases()
    applied = sum(case.expected is not None for case in corpus)
    print(f"edits: {len(corpus)} cases ({digest(corpus)}): {applied} to be made, {len(corpus) - applied} to be refused")
    grades = graded(corpus, [OURS] if options.quick else [name for name in FUNCTIONS if options.all or name != SLOW])
    for name, each in grades.items():
        counts = Counter(each)
        print(f"{name:<16}" + "".join(f"{grade:>18} {counts[grade]:>4}" for grade in GRADES), flush=True)
    if options.drifts:
        print_drifts(corpus, grades)
    if options.wrong:
        for case, mark in zip(corpus, grades[OURS], strict=True):
            if mark == "wrong":
                print(f"wrong: {case.drift}: {case.name}")
    return verdict(grades)


def graded(corpus: Sequence[Case], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the grades of each function that can be run, and say what cannot."""
    grades: dict[str, list[str]] = {}
    for name in names:
        begin = time.perf_counter()
        try:
            results = FUNCTIONS[name](corpus)
        except InstallFailed as error:
            print(f"{name} could not be run: {error}")
            continue
        grades[name] = [grade(case, result) for case, result in zip(corpus, results, strict=True)]
        print(f"{name}: {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return grades


def our_result(case: Case) -> str | None:
    text = case.file
    for old, new in case.edits:
        found = find_edit(text, old, new)
        if not isinstance(found, Applied):
            return None
        text = found.result
    return text


def print_drifts(corpus: Sequence[Case], grades: dict[str, list[str]]) -> None:
    drifts = list(dict.fromkeys(case.drift for case in corpus))
    print(f"\n{'drift: success/refused/rightly refused/wrong':<48}" + "".join(f"{name:>18}" for name in grades))
    for drift in drifts:
        row = f"{drift:<48}"
        for each in grades.values():
            counts = Counter(mark for mark, case in zip(each, corpus, strict=True) if case.drift == drift)
            row += f"{'/'.join(str(counts[mark]) for mark in GRADES):>18}"
        print(row)


def verdict(grades: dict[str, list[str]]) -> int:
    ours = Counter(grades[OURS])
    best = max((each.count("success") for name, each in grades.items() if name != OURS), default=-1)
    is_met = not ours["wrong"] and ours["success"] > best
    more = "" if best < 0 else f", {ours['success']} successes, the best of the others {best}"
    print(f"edits: {ours['wrong']} wrong edits{more}: {'met' if is_met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())

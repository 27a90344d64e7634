"""`./dev coverage`: how much of the parts that guard everything else is tried by their own tests, in branches.

A part is measured by the tests that are about it, not by everything that happens to pass through. Two runs go side by
side, since there are two cores at least; what tests start as processes of their own is not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# Of the branches and of the lines of each part.
PROMISED = 95.0


class Part(NamedTuple):
    """Sources, and the tests about them."""

    sources: str
    tests: Sequence[str]


PARTS: Mapping[str, Part] = {
    "wire": Part("src/dragoman/wire/", ["tests/wire"]),
    "vocabulary": Part("src/dragoman/vocabulary/", ["tests/vocabulary"]),
    "dialects": Part("src/dragoman/dialects/", ["tests/dialects"]),
    "store": Part("src/dragoman/store/", ["tests/store"]),
    "host/paths": Part("src/dragoman/host/paths.py", ["tests/host/test_paths.py"]),
    "permissions": Part(
        "src/dragoman/permissions/",
        ["tests/permissions", "tests/client/test_permission_policy.py", "tests/client/test_registry_file.py"],
    ),
    "coder/permissions": Part("src/dragoman/coder/permissions.py", ["tests/coder/test_permissions.py"]),
    "gateway/guard": Part(
        "src/dragoman/gateway/guard.py", ["tests/gateway/test_guard.py", "tests/gateway/test_token_store.py"]
    ),
    "gateway/host_check": Part("src/dragoman/gateway/host_check.py", ["tests/gateway/test_guard.py"]),
}
# Together they take about as long as each other.
RUNS = (
    ("store", "host/paths", "permissions", "coder/permissions", "gateway/guard", "gateway/host_check"),
    ("wire", "vocabulary", "dialects"),
)


class Count(NamedTuple):
    """What there is, and what was reached."""

    lines: int
    lines_hit: int
    branches: int
    branches_hit: int
    missing: Sequence[str]

    @property
    def line_percent(self) -> float:
        return percent(self.lines_hit, self.lines)

    @property
    def branch_percent(self) -> float:
        return percent(self.branches_hit, self.branches)

    @property
    def is_enough(self) -> bool:
        return min(self.line_percent, self.branch_percent) >= PROMISED


def percent(hit: int, all_: int) -> float:
    return 100.0 * hit / all_ if all_ else 100.0


def count(files: Mapping[str, Any], part: Part) -> Count:
    """Sum up the files of a part, out of coverage's own JSON."""
    found = {name: file for name, file in files.items() if name.startswith(part.sources)}
    totals = [file["summary"] for file in found.values()]
    missing = []
    for name, file in sorted(found.items()):
        lines = [str(line) for line in file["missing_lines"]]
        lines += [f"{one}->{other if other > 0 else 'exit'}" for one, other in file["missing_branches"]]
        if lines:
            missing.append(f"{name}: {', '.join(lines)}")
    return Count(
        sum(total["num_statements"] for total in totals),
        sum(total["covered_lines"] for total in totals),
        sum(total["num_branches"] for total in totals),
        sum(total["covered_branches"] for total in totals),
        missing,
    )


def table(counts: Mapping[str, Count], *, with_missing: bool) -> Iterator[str]:
    """What people read."""
    yield f"{'part':20} {'lines':>7} {'':>7} {'branches':>9} {'':>7}"
    for name, one in counts.items():
        verdict = "" if one.is_enough else f"  UNDER {PROMISED:.0f} %"
        yield (
            f"{name:20} {one.lines:7,} {one.line_percent:5.1f} % {one.branches:9,} {one.branch_percent:5.1f} %{verdict}"
        )
        if with_missing:
            yield from (f"    {line}" for line in one.missing)


def measure(names: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run the tests of the parts; coverage's JSON about every file."""
    runs = [chosen for run in RUNS if (chosen := [name for name in run if name in names])]
    children = []
    for number, chosen in enumerate(runs):
        tests = [test for name in chosen for test in PARTS[name].tests if (ROOT / test).exists()]
        command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "COVERAGE_FILE": str(folder / f"data.{number}")}
        children.append(subprocess.Popen(command, cwd=ROOT, env=environment))
    codes = [child.wait() for child in children]
    if any(codes):
        raise SystemExit("the tests failed; their coverage says nothing")
    data = ["--data-file", str(folder / "data")]
    _coverage("combine", "--quiet", *data, str(folder))
    _coverage("json", "--quiet", *data, "-o", str(folder / "report.json"))
    files: dict[str, Any] = json.loads((folder / "report.json").read_text())["files"]
    return files


def _coverage(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=True)


def main(arguments: Sequence[str]) -> int:
    """Measure, show, and say whether it is enough."""
    names = [name for name in arguments if name != "--missing"]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="dragoman-coverage-") as folder:
        files = measure(names or list(PARTS), Path(folder))
    counts = {name: count(files, PARTS[name]) for name in PARTS if not names or name in names}
    print()
    print("\n".join(table(counts, with_missing="--missing" in arguments)))
    return 0 if all(one.is_enough for one in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

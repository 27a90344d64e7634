"""Puts the output of the benchmark into docs/performance.md: `python -m tools.performance [arguments of the benchmark]`

What stands between the two marks of that page is replaced; the rest of it is written by hand. `./dev bench` alone
measures and writes nothing.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "performance.md"
_PLACE: Final = re.compile(r"(<!-- bench:.*?-->\n)(.*?)(<!-- /bench -->)", re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        print("The benchmark said nothing, so the page stays as it was.", file=sys.stderr)
        return 1
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), arguments, done.stdout), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")
    return done.returncode


def filled(page: str, arguments: Sequence[str], output: str) -> str:
    """The page with this output in its place."""
    asked = " ".join(["./dev bench", *arguments])
    text = f"\n`{asked}` said:\n\n```text\n{output.strip()}\n```\n\n"
    new, count = _PLACE.subn(lambda found: found[1] + text + found[3], page)
    if count != 1:
        raise ValueError("docs/performance.md has lost its marks for the benchmark")
    return new


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

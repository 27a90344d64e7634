"""How far `dragoman check` is: one line on a terminal."""

import sys
from typing import TYPE_CHECKING

from dragoman.cli.errors import print_notice

if TYPE_CHECKING:
    from dragoman.conformance.run import RowResult


class RowCounter:
    """One line on a terminal that counts the rows; what fails is shown above it at once."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._done = 0
        self._failed = 0

    def __enter__(self) -> "RowCounter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def on_result(self, result: "RowResult", total: int) -> None:
        from dragoman.conformance.verdicts import Verdict

        self._done += 1
        is_failure = result.verdict is Verdict.FAIL
        self._failed += is_failure
        if not self._is_shown:
            return
        print("\r\x1b[K", end="", file=sys.stderr)
        if is_failure:
            print_notice(f"failed: {result.row.id} in version {result.version}")
        text = f"{self._done} of {total} rows, {self._failed} failed"
        print(text, end="", file=sys.stderr, flush=True)

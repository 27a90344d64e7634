"""Run aider's edit functions over cases: JSON lines in, JSON lines out. Started by the Python that has aider.

`block` is the function of its SEARCH/REPLACE blocks, `search` the one of its unified diffs. Both are given plain line
ends, as aider reads files; those that most lines of the file have are put back, which aider itself does not do.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    if sys.argv[1] == "block":
        from aider.coders.editblock_coder import do_replace  # type: ignore[import-not-found, unused-ignore]

        def replace(text: str, old: str, new: str) -> str | None:
            return do_replace(Path("/no/file"), text, old, new, ("```", "```"))  # type: ignore[no-any-return, unused-ignore]

    else:
        from aider.coders.search_replace import (  # type: ignore[import-not-found, unused-ignore]
            editblock_strategies,
            flexible_search_and_replace,
        )

        def replace(text: str, old: str, new: str) -> str | None:
            return flexible_search_and_replace((old, new, text), editblock_strategies) or None  # type: ignore[no-any-return, unused-ignore]

    for line in sys.stdin:
        case = json.loads(line)
        text: str | None = case["file"].replace("\r\n", "\n")
        for old, new in case["edits"]:
            try:
                text = text and replace(text, old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
            except Exception:
                text = None
        if text and case["file"].count("\r\n") * 2 > case["file"].count("\n"):
            text = text.replace("\n", "\r\n")
        print(json.dumps(text or None), flush=True)


if __name__ == "__main__":
    main()

"""Whether a folder that is no repository is small enough to be kept as a whole.

Of a repository git says what belongs to the project, and most of it is kept already. Of any other folder all of it has
to be copied once, and it may be a home folder or a disk; so it is walked through up to a bound before.
"""

import os
from collections.abc import Collection
from typing import Final

# Of more than so many files or bytes nothing is kept.
PLAIN_FILES: Final = 10_000
PLAIN_BYTES: Final = 256 * 1024 * 1024
# Folders that programs fill and fill again, and which few lists of ignored files leave out. They are not kept.
FILLED_BY_PROGRAMS: Final = (
    *("node_modules", ".venv", "venv", "__pycache__"),
    *(".cache", ".gradle", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox"),
)


def too_much_in(top: str, leave_out: Collection[str] = ()) -> str:
    """Return why a plain folder cannot be kept as a whole, for the middle of a sentence; empty: it can. Blocks.

    `leave_out`: whole paths of folders that are not looked at. Repositories in the folder do not count: they are not
    kept either.
    """
    files, size, waiting = 0, 0, [top]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if not _is_left_out(entry, leave_out):
                            waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        files += 1
                        size += entry.stat(follow_symlinks=False).st_size
                    if files + len(waiting) > PLAIN_FILES:
                        return f"more than {PLAIN_FILES:,} files"
                    if size > PLAIN_BYTES:
                        return f"more than {PLAIN_BYTES >> 20} MiB"
        except OSError:
            continue  # git says what it cannot read
    return ""


def _is_left_out(entry: "os.DirEntry[str]", leave_out: Collection[str]) -> bool:
    is_filled = entry.name in FILLED_BY_PROGRAMS or entry.path in leave_out
    return is_filled or os.path.lexists(os.path.join(entry.path, ".git"))

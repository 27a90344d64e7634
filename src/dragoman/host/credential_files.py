"""Finds the files of a workspace that hold credentials, so that commands which run without a question cannot see them.

A bounded look: links are not followed, folders that hold other people's packages and git's own data are left out, and
after `MOST_ENTRIES` names it ends. What lies in a root itself under a well-known name is found however many names there
are. What a command that only looks could print beyond that is what any file is: inside the workspace. Nothing is read.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.host.protected_names import plain
from dragoman.host.secrets import WELL_KNOWN, credential_paths, is_credential_name

# Less than 200 ms; most projects have far fewer names outside of the folders that are left out.
MOST_ENTRIES: Final = 100_000
# Each is one mount more for the command.
MOST_FOUND: Final = 1_000
LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", "target"})


def credential_files(roots: Sequence[str], home: str) -> list[str]:
    """Find the files and folders below `roots` that hold credentials, at most `MOST_FOUND`. Blocks."""
    found = {path: None for root in roots for name in WELL_KNOWN if os.path.exists(path := os.path.join(root, name))}
    left = MOST_ENTRIES
    waiting = list(roots)
    places = frozenset(credential_paths(home))
    while waiting and left > 0 and len(found) < MOST_FOUND:
        folder = waiting.pop(0)
        folder_name = plain(os.path.basename(folder))
        for entry in _entries(folder):
            left -= 1
            if left <= 0 or len(found) >= MOST_FOUND:
                break
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_credential_name(folder_name, plain(entry.name), is_folder=is_folder) or entry.path in places:
                found[entry.path] = None
            elif is_folder and entry.name not in LEFT_OUT:
                waiting.append(entry.path)
    return [path for path in found if not os.path.islink(path)]


def _entries(folder: str) -> "Iterator[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:  # gone, or not ours to read: then it is not the command's either
        return

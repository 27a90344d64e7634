"""Programs of this machine: a PATH without what a workspace could have put there, and the shell for a line."""

import os
from collections.abc import Sequence
from typing import Final

from dragoman.host.paths import is_inside

# Where bash is, by its whole name: what a PATH has under that name may be another program.
_BASH: Final = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")


def line_shell() -> str:
    """Return the shell that runs a line of text: bash, which is what `host.shell` reads.

    `/bin/sh` where there is none.
    """
    return next((path for path in _BASH if os.access(path, os.X_OK)), "/bin/sh")


def path_outside(path: str, roots: Sequence[str]) -> str:
    """Return the folders of a PATH that are absolute and lie, as they really are, in none of the roots."""
    real = [os.path.realpath(root) for root in roots]
    outside = [
        folder
        for folder in path.split(os.pathsep)
        if os.path.isabs(folder) and not any(is_inside(os.path.realpath(folder), root) for root in real)
    ]
    return os.pathsep.join(outside)

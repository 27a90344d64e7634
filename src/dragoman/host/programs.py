"""The PATH without what a workspace could have put there: nothing in it may take the name of `ls`."""

import os
from collections.abc import Sequence

from dragoman.host.bubblewrap import is_inside


def path_outside(path: str, roots: Sequence[str]) -> str:
    """The folders of a PATH that are absolute and lie, as they really are, in none of the roots."""
    real = [os.path.realpath(root) for root in roots]
    kept = [
        folder
        for folder in path.split(os.pathsep)
        if os.path.isabs(folder) and not any(is_inside(os.path.realpath(folder), root) for root in real)
    ]
    return os.pathsep.join(kept)

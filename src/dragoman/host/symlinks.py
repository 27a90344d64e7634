"""Where a link leads that is not there yet: followed link by link, among what is there and what is going to be.

Promise: what `symlink_refusal` accepts ends in a root, now and after any other link that it accepts. Pure: what stands
where is asked of the caller.

A target may go up (`../..`) only at its beginning. `a/../b` is another place as soon as `a` is a link, and it may
become one later; so such a target is refused, whatever it means today. Names that do not exist count as folders.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.host.paths import is_inside

# As many as the kernel follows.
_MOST_LINKS: Final = 40


def symlink_refusal(link: str, target: str, roots: Sequence[str], look: Callable[[str], str | None]) -> str | None:
    """Return why a link at a path may not be made, or None if it may.

    `link` is a whole path whose folder is real, `roots` are real paths. `look` gives the target of a link that stands
    at a path, or None if none does.
    """
    subject = f"it is a link to {target}, which"
    here, left = os.path.dirname(link), target.split("/")
    if target.startswith("/"):
        here = "/"
    followed = 0
    while left:
        part = left.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            here = os.path.dirname(here)
            continue
        here = os.path.join(here, part)
        if any(is_inside(here, root) for root in roots):
            inner = look(here)
            if inner is not None:
                followed += 1
                here = "/" if inner.startswith("/") else os.path.dirname(here)
                left = [*inner.split("/"), *left]
            if followed > _MOST_LINKS:
                return f"{subject} leads round in a circle"
        elif not any(is_inside(root, here) for root in roots):
            break
    if not any(is_inside(here, root) for root in roots):
        return f"{subject} leads out of the workspace, to {here}"
    return f"{subject} goes up again after a name; give it a plain target" if _goes_back(target) else None


def _goes_back(target: str) -> bool:
    parts = [part for part in target.split("/") if part not in ("", ".")]
    named = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." in parts[named:]

"""What can be accepted by itself of the changes of a sandbox: a file, a link, a mode. Folders follow what is in them.

A folder that was made goes with the first thing in it that is accepted, and one that is gone goes when all that was in
it may go; only an empty one is a choice of its own. What became something of another kind is one choice, with all that
lay below it: one half without the other could not be applied.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.host.paths import is_inside
from dragoman.host.view import ViewChange


class ChangeUnit(NamedTuple):
    """Changes that are accepted together; `path` is the outermost of them."""

    path: str
    changes: tuple[ViewChange, ...]

    @property
    def is_protected(self) -> bool:
        """Whether one of them is at a name that makes other programs do something by themselves."""
        return any(change.is_protected for change in self.changes)

    @property
    def kind(self) -> str:
        """What happens to it, in a word."""
        kinds = [change.kind for change in self.changes if change.path == self.path]
        return "replaced" if len(kinds) > 1 else "with another mode" if kinds[0] == "mode" else kinds[0]


def units_of(changes: Sequence[ViewChange]) -> list[ChangeUnit]:
    """Return the choices, by path."""
    paths = [change.path for change in changes]
    replaced = {path for path, count in Counter(paths).items() if count > 1}
    following = {change.path for change in _following(changes)}
    units: dict[str, list[ViewChange]] = {}
    for change in changes:
        head = next((path for path in sorted(replaced) if is_inside(change.path, path)), change.path)
        if head != change.path or change.path in replaced or change.path not in following:
            units.setdefault(head, []).append(change)
    return [ChangeUnit(path, tuple(units[path])) for path in sorted(units)]


def with_folders(units: Iterable[ChangeUnit], changes: Sequence[ViewChange]) -> list[ViewChange]:
    """Return the changes of these choices, and those of folders that follow from them."""
    accepted = [change for unit in units for change in unit.changes]
    paths = {change.path for change in accepted}
    rest = {change.path for change in changes if change.what != "folder"} - paths
    for folder in _following(changes):
        if folder in accepted:
            continue
        # A new folder goes with anything in it; one that is gone goes once nothing in it is to stay.
        inner = paths if folder.kind == "created" else rest
        if any(is_inside(path, folder.path) for path in inner) == (folder.kind == "created"):
            accepted.append(folder)
    return accepted


def _following(changes: Sequence[ViewChange]) -> list[ViewChange]:
    """Return the folders that were made or are gone, with something in them."""
    return [
        folder
        for folder in changes
        if folder.what == "folder"
        and folder.kind in ("created", "deleted")
        and any(change.path != folder.path and is_inside(change.path, folder.path) for change in changes)
    ]

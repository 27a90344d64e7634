"""What a rewind does to each file, from the steps in a log. Pure.

A file goes back to what it was before the first step of the agent's that counts. It is left alone where other hands
have changed it after that: what they did would be lost. What the agent has written over their work is no reason to
leave it alone, if they worked before the first step that is taken back.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from dragoman.coder.checkpoints.records import PENDING, PlacedStep
from dragoman.host.git_images import FileImage

Trouble = Literal["changed since", "not kept", "unsaved in the editor", "protected", "out of reach", "in the way"]
CHANGED_SINCE: Final[Trouble] = "changed since"


class FileTarget(NamedTuple):
    """One file of a rewind: what it is, and what it is going to be. None: no file.

    `trouble`: why it is left alone; empty: it is not.
    """

    path: str
    # The folder of the area that has the contents.
    area: str
    now: FileImage | None
    target: FileImage | None
    trouble: Trouble | Literal[""] = ""

    @property
    def deed(self) -> Literal["restore", "delete", "change"]:
        """What is done to it, in a word."""
        if self.target is None:
            return "delete"
        return "restore" if self.now is None else "change"


def targets_since(steps: Iterable[PlacedStep], sequence: int) -> list[FileTarget]:
    """Return what becomes of files when every step behind this place in the log is taken back, by path."""
    return _targets(step for step in steps if step.sequence > sequence)


def targets_of(steps: Iterable[PlacedStep], owner: str) -> list[FileTarget]:
    """Return what becomes of files when what this owner has done, a turn or a rewind, is taken back."""
    steps = list(steps)
    own = [step for step in steps if step.step.owner == owner]
    begin = own[0].sequence if own else 0
    # Every later step is a change since, also one of the agent's.
    return _targets((step for step in steps if step.sequence >= begin), owner)


def _targets(steps: Iterable[PlacedStep], owner: str = "") -> list[FileTarget]:
    found: dict[str, FileTarget] = {}
    for _, step in steps:
        if step.kind == "first" or step.kind in PENDING:
            continue
        is_taken_back = step.kind in ("turn", "rewind") and (not owner or step.owner == owner)
        for path, change in step.images():
            known = found.get(path)
            if known is None:
                if is_taken_back:
                    found[path] = FileTarget(path, step.area, change.after, change.before)
            else:
                trouble = known.trouble if is_taken_back else CHANGED_SINCE
                found[path] = known._replace(now=change.after, trouble=trouble)
    changed = [target for target in found.values() if target.now != target.target]
    return sorted((_checked(target) for target in changed), key=lambda target: target.path)


def _checked(target: FileTarget) -> FileTarget:
    if target.target is not None and not target.target.is_kept:
        return target._replace(trouble="not kept")
    return target


def left_out_since(steps: Sequence[PlacedStep], sequence: int) -> list[str]:
    """Return what is not covered behind this place, in sentences."""
    said = [sentence for place, step in steps if place > sequence for sentence in step.left_out]
    return list(dict.fromkeys(said))

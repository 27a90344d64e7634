"""The edit corpus, made from `sources/` and `cases.toml`, the same at every run.

A source is a small file with edits that are exact. Each edit is given to each drift, which makes a case of it: the file
or the edit is changed in the way that models change them, and the file that should result is known because the exact
edit is. A drift that does not apply to an edit returns nothing; so does one after which the edit would be exact, or in
two places by accident. `cases.toml` has cases that are written by hand.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.edits import drifts

FOLDER: Final = Path(__file__).resolve().parent


class ExactEdit(NamedTuple):
    """An edit of a source that fits exactly."""

    source: str
    name: str
    file: str
    old: str
    new: str

    @property
    def result(self) -> str:
        return self.file.replace(self.old, self.new)


class Case(NamedTuple):
    """A file and the edits of one call. `expected` None: they must be refused.

    `accepted` are other files that are right as well. `blanks_at_ends`: blanks at the ends of lines do not count.
    """

    name: str
    drift: str
    file: str
    edits: list[tuple[str, str]]
    expected: str | None
    accepted: tuple[str, ...] = ()
    blanks_at_ends: bool = False


def cases() -> list[Case]:
    """Return the whole corpus."""
    made = [case for edit in exact_edits() for drift in drifts.DRIFTS for case in _drifted(edit, drift)]
    return [*made, *written_cases()]


def exact_edits() -> Iterator[ExactEdit]:
    """Yield the edits of all sources. Each fits its file exactly once, which is checked here."""
    for path in sorted((FOLDER / "sources").glob("*.edits.txt")):
        source = path.name.removesuffix(".edits.txt")
        file = (path.parent / f"{source}.txt").read_text(encoding="utf-8")
        for block in path.read_text(encoding="utf-8").split("<<<< ")[1:]:
            name, _, rest = block.partition("\n")
            old, _, rest = rest.partition("====\n")
            new = rest.partition(">>>>\n")[0]
            # As models write them in the arguments of a tool: without the end of the last line.
            old, new = old.removesuffix("\n"), new.removesuffix("\n")
            if file.count(old) != 1 or old == new:
                raise ValueError(f"{source}: {name!r} does not fit once")
            yield ExactEdit(source, name, file, old, new)


def written_cases() -> Iterator[Case]:
    """Yield the cases of `cases.toml`."""
    for given in tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))["case"]:
        pairs = [(edit["old"], edit["new"]) for edit in given["edits"]]
        accepted = tuple(given.get("accepted", ()))
        yield Case(given["name"], given["drift"], given["file"], pairs, given.get("expected"), accepted)


def digest(corpus: list[Case]) -> str:
    """Return a digest of a corpus, which names it in a report."""
    return hashlib.sha256(json.dumps(corpus).encode()).hexdigest()[:16]


def grade(case: Case, result: str | None) -> str:
    """Return `success`, `refused`, `rightly refused` or `wrong` for what an edit function made of a case."""
    if result is None or result == case.file:
        return "rightly refused" if case.expected is None else "refused"
    right = [text for text in (case.expected, *case.accepted) if text is not None]
    if case.blanks_at_ends:
        result, right = _without_blanks_at_ends(result), [_without_blanks_at_ends(text) for text in right]
    return "success" if result in right else "wrong"


def _without_blanks_at_ends(text: str) -> str:
    return "\n".join(line.rstrip(" \t") for line in text.split("\n"))


def _drifted(edit: ExactEdit, drift: Callable[[ExactEdit], drifts.Drifted | None]) -> Iterator[Case]:
    drifted = drift(edit)
    name = drift.__name__.replace("_", " ").strip()
    if drifted is None or (drifted.is_idle(edit.file, edit.old, edit.new) and drift is not drifts.exact):
        return
    yield Case(
        f"{edit.source}: {edit.name}",
        name,
        drifted.file,
        [(drifted.old, drifted.new)],
        drifted.expected,
        drifted.accepted,
        drifted.blanks_at_ends,
    )

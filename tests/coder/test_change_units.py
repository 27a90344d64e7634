"""Which changes of a sandbox can be accepted by themselves, and which folders go with them."""

import pytest

from dragoman.coder.change_units import units_of, with_folders
from dragoman.host.snapshot import SnapshotEntry, What
from dragoman.host.view import Kind, ViewChange


def change(kind: Kind, path: str, what: What = "file") -> ViewChange:
    entry = SnapshotEntry(what, 0o644, 1, f"{kind} {path}")
    return ViewChange(path, kind, what, after=None if kind == "deleted" else entry)


MADE = [change("created", "/w/new", "folder"), change("created", "/w/new/a"), change("created", "/w/new/b")]
GONE = [change("deleted", "/w/old", "folder"), change("deleted", "/w/old/a"), change("deleted", "/w/old/b")]
# A folder that is a file now, and a file that is a folder now.
REPLACED = [change("deleted", "/w/x", "folder"), change("deleted", "/w/x/a"), change("created", "/w/x")]
GROWN = [change("deleted", "/w/y"), change("created", "/w/y", "folder"), change("created", "/w/y/a")]
EMPTY = [change("created", "/w/empty", "folder"), change("mode", "/w/run.sh")]
ALL = [*MADE, *GONE, *REPLACED, *GROWN, *EMPTY]


def test_files_links_modes_and_empty_folders_are_choices_and_a_replaced_path_is_one() -> None:
    assert [(unit.path, unit.kind, len(unit.changes)) for unit in units_of(ALL)] == [
        ("/w/empty", "created", 1),
        ("/w/new/a", "created", 1),
        ("/w/new/b", "created", 1),
        ("/w/old/a", "deleted", 1),
        ("/w/old/b", "deleted", 1),
        ("/w/run.sh", "with another mode", 1),
        ("/w/x", "replaced", 3),
        ("/w/y", "replaced", 3),
    ]


@pytest.mark.parametrize(
    ("chosen", "paths"),
    [
        ([], []),
        (["/w/new/a"], ["/w/new", "/w/new/a"]),
        (["/w/old/a"], ["/w/old/a"]),
        (["/w/old/a", "/w/old/b"], ["/w/old", "/w/old/a", "/w/old/b"]),
        (["/w/x"], ["/w/x", "/w/x", "/w/x/a"]),
        (["/w/empty"], ["/w/empty"]),
    ],
    ids=["none", "in a new folder", "a part of what is gone", "all that is gone", "replaced", "empty"],
)
def test_folders_follow_what_is_in_them(chosen: list[str], paths: list[str]) -> None:
    units = [unit for unit in units_of(ALL) if unit.path in chosen]
    assert sorted(one.path for one in with_folders(units, ALL)) == paths


def test_all_choices_are_all_changes() -> None:
    assert sorted(with_folders(units_of(ALL), ALL)) == sorted(ALL)

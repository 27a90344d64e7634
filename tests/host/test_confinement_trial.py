"""The trial of the confinement: passed on this machine, and a hole that is made on purpose is found."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.host import confinement_trial
from dragoman.host.confined_command import ConfinedCommand
from dragoman.host.confinement_trial import escape_found
from dragoman.host.sandbox import Confinement, confine
from tests.support.needs import need


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder below no temporary one, where the repository may lie: those are new for every confined command."""
    repository = Path(__file__).resolve().parents[2]
    is_temporary = any(repository.is_relative_to(shared) for shared in ("/tmp", "/var/tmp", "/dev/shm"))
    folder = (Path.home() if is_temporary else repository) / f".trial-of-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def fresh() -> Iterator[None]:
    escape_found.cache_clear()
    yield
    escape_found.cache_clear()


def test_the_trial_is_passed_on_a_machine_with_bubblewrap_and_leaves_nothing(fresh: None, tmp_path: Path) -> None:
    need("bwrap")
    assert escape_found(str(tmp_path)) == ""
    assert list(tmp_path.iterdir()) == []


HOLES: dict[str, tuple[dict[str, Any], str]] = {
    "the network": ({"network": True}, "A confined command has reached a port of this machine."),
    "a hidden file": ({"hidden": []}, "A confined command has read what is hidden."),
}


@pytest.mark.parametrize("hole", HOLES)
def test_the_trial_finds_a_hole(fresh: None, place: Path, monkeypatch: pytest.MonkeyPatch, hole: str) -> None:
    need("bwrap")
    options, found = HOLES[hole]

    def leaky(*arguments: Any, **given: Any) -> ConfinedCommand:
        return confine(*arguments, **{**given, **options})

    monkeypatch.setattr(confinement_trial, "confine", leaky)
    assert escape_found(str(place)) == found


def test_the_trial_finds_that_what_is_beside_the_root_can_be_written(
    fresh: None, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("bwrap")

    def leaky(argv: list[str], **given: Any) -> ConfinedCommand:
        writable = [str(Path(str(given["cwd"])).parent / name) for name in ("root", "outside")]
        return confine(argv, **{**given, "writable": writable})

    monkeypatch.setattr(confinement_trial, "confine", leaky)
    assert escape_found(str(place)) == "A confined command has written beside its root."


def test_under_landlock_alone_the_trial_is_not_passed(
    fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement_trial, "probe", lambda: Confinement(None, 6, ()))
    assert "under Landlock alone" in escape_found(str(tmp_path))

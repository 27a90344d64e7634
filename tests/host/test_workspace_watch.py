"""What a command leaves is taken back, however it tries to hold on to it; as a user without privileges."""

import gc
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.host.openat import remove_tree
from dragoman.host.workspace_watch import CannotWatch, WorkspaceWatch
from tests.support.git_repository import repository


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can come to."""
    with tempfile.TemporaryDirectory(prefix="dragoman-test-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def forked() -> int:
    """Fork, without finalizers in the copy: those of other tests' objects may wait for threads that it has not."""
    pid = os.fork()
    if pid == 0:
        gc.disable()
    return pid


def as_a_plain_user(act: Callable[[], None]) -> None:
    """Do something in a process of its own that is not root's: to root no rights can be denied."""
    pid = forked()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def watch(place: Path) -> WorkspaceWatch:
    return WorkspaceWatch([str(place / "work")], binds=False, scratch="", quarantine=str(place / "quarantine"))


def test_what_is_in_folders_that_were_closed_is_taken_back(place: Path) -> None:
    def act() -> None:
        work = place / "work"
        (work / "pkg").mkdir(parents=True)
        (work / "pkg" / ".npmrc").write_text("mine")
        watching = watch(place)
        (work / "pkg" / ".npmrc").write_text("evil")
        for folder, mode in (("shut", 0o000), ("blind", 0o300), ("still", 0o555), ("pkg", 0o555)):
            (work / folder).mkdir(exist_ok=True)
            (work / folder / ".envrc").write_text("evil")
            (work / folder / ".vscode" / "x").mkdir(parents=True)
            (work / folder / ".vscode" / "x").chmod(0)
            (work / folder / ".vscode").chmod(0)
            (work / folder).chmod(mode)
        (note, restored) = watching.settle()
        for folder in ("shut", "blind", "still"):
            assert os.listdir(work / folder) == []
            assert f"{folder}/.envrc" in note
        assert os.listdir(work / "pkg") == [".npmrc"]
        assert (work / "pkg" / ".npmrc").read_text() == "mine"
        assert "pkg/.npmrc" in restored

    as_a_plain_user(act)


def test_what_is_deeper_than_any_path_can_name_is_taken_back(place: Path) -> None:
    (place / "work").mkdir()
    watching = watch(place)
    here = os.open(place / "work", os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open(".envrc", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here))
    os.close(here)
    (note,) = watching.settle()
    assert "Moved out of the workspace" in note
    found = [folder for folder, _, _ in os.walk(place / "work")]
    assert len(max(found, key=len)) < 1100


def test_more_names_than_a_workspace_may_have_hide_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "work" / "sub").mkdir(parents=True)
    watching = watch(place)
    monkeypatch.setattr(
        "dragoman.host.protected_scan.scan_protected.__kwdefaults__", {"sealed": None, "most_names": 10}
    )
    for number in range(50):
        (place / "work" / str(number)).write_text("")
    (place / "work" / "sub" / ".envrc").write_text("evil")
    assert "sub/.envrc" in watching.settle()[0]
    with pytest.raises(CannotWatch, match="too many files"):
        watch(place)


def test_what_cannot_be_moved_away_is_said_and_hinders_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "work").mkdir()
    watching = watch(place)
    rename = os.rename

    def failing(source: str, *more: object, **options: object) -> None:
        if source == ".envrc":
            raise OSError(16, "Device or resource busy")
        rename(source, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("dragoman.host.quarantine.os.rename", failing)
    for name in (".envrc", ".npmrc"):
        (place / "work" / name).write_text("evil")
    notes = watching.settle()
    assert os.listdir(place / "work") == [".envrc"]
    assert any("DANGER" in note and ".envrc" in note for note in notes)


def test_a_tree_deeper_than_python_can_follow_hinders_nothing(place: Path) -> None:
    (place / "work").mkdir()
    watching = watch(place)
    (place / "work" / ".vscode").mkdir()
    (place / "work" / ".vscode" / "tasks.json").write_text("evil")
    bury(place / "work" / ".vscode", 3000)
    (place / "work" / "pkg").mkdir()
    (place / "work" / "pkg" / ".envrc").write_text("evil")
    (note,) = watching.settle()
    assert os.listdir(place / "work") == ["pkg"]
    assert os.listdir(place / "work" / "pkg") == []
    assert "work/.vscode" in note
    remove_tree(str(place / "quarantine"))


def bury(folder: Path, depth: int) -> None:
    """Make folders in folders."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


def test_nothing_odd_in_a_git_folder_hinders_the_rest(place: Path) -> None:
    """As a user without privileges: folders that are closed, deep ones, and a new place for objects."""

    def act() -> None:
        work = repository(place / "work")
        (work / ".git" / "objects" / "info").rmdir()
        (place / "scratch").mkdir()
        watching = WorkspaceWatch(
            [str(work)], binds=True, scratch=str(place / "scratch"), quarantine=str(place / "quarantine")
        )
        bury(work / ".git" / "refs", 1500)
        bury(work / ".git" / "logs", 1500)
        for folder in ("objects/zz/in", "refs/shut"):
            (work / ".git" / folder).mkdir(parents=True)
        (work / ".git" / "refs" / "shut" / "link").symlink_to("/etc")
        (work / ".git" / "refs" / "blind").write_text("evil")
        (work / ".git" / "refs" / "blind").chmod(0)
        (work / ".git" / "objects" / "info").mkdir()
        (work / ".git" / "objects" / "info" / "alternates").write_text("/etc\n")
        for folder in ("objects/zz", "objects/info", "refs/shut"):
            (work / ".git" / folder).chmod(0)
        (work / "sub").mkdir()
        (work / "sub" / ".envrc").write_text("evil")
        watching.settle()
        assert os.listdir(work / "sub") == []
        assert os.listdir(work / ".git" / "refs" / "shut") == []
        assert os.listdir(work / ".git" / "objects" / "info") == []
        assert not (work / ".git" / "objects" / "zz").exists()
        assert not (work / ".git" / "refs" / "blind").exists()
        remove_tree(str(work))

    as_a_plain_user(act)


def test_what_one_command_has_made_is_not_what_was_there_before_another(place: Path) -> None:
    """Two commands beside each other: the second begins when the first has done its harm, and ends after it."""
    work = place / "work"
    (work / "pkg").mkdir(parents=True)
    (work / "pkg" / ".npmrc").write_text("mine")
    first = watch(place)
    (work / "pkg" / ".npmrc").write_text("evil")
    (work / "pkg" / ".envrc").write_text("evil")
    second = watch(place)
    first.settle()
    assert (sorted(os.listdir(work / "pkg")), (work / "pkg" / ".npmrc").read_text()) == ([".npmrc"], "mine")
    second.settle()
    assert (sorted(os.listdir(work / "pkg")), (work / "pkg" / ".npmrc").read_text()) == ([".npmrc"], "mine")
    # And the other way round.
    first = watch(place)
    (work / "pkg" / ".npmrc").write_text("evil")
    (work / "pkg" / ".envrc").write_text("evil")
    watch(place).settle()
    first.settle()
    assert (sorted(os.listdir(work / "pkg")), (work / "pkg" / ".npmrc").read_text()) == ([".npmrc"], "mine")


def test_two_commands_at_once_give_a_repository_no_other_place_for_objects(place: Path) -> None:
    work = repository(place / "work")
    alternates = work / ".git" / "objects" / "info" / "alternates"

    def begun(name: str) -> WorkspaceWatch:
        (place / name).mkdir()
        return WorkspaceWatch([str(work)], binds=True, scratch=str(place / name), quarantine=str(place / "quarantine"))

    first = begun("first")
    alternates.write_text("/etc\n")
    second = begun("second")
    first.settle()
    second.settle()
    assert not alternates.exists()


def test_what_another_process_has_taken_away_is_not_put_back(place: Path) -> None:
    """It was there when this command began, because a command of another agent had made it."""
    (place / "work" / "pkg").mkdir(parents=True)
    (began, says_begun), (made, says_made) = os.pipe(), os.pipe()
    pid = forked()
    if pid == 0:
        other = watch(place)
        (place / "work" / "pkg" / ".envrc").write_text("evil")
        os.write(says_made, b".")
        os.read(began, 1)
        other.settle()
        os._exit(0)
    os.read(made, 1)
    watching = watch(place)
    os.write(says_begun, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for end in (began, says_begun, made, says_made):
        os.close(end)
    (note,) = watching.settle()
    assert os.listdir(place / "work" / "pkg") == []
    assert "Not put back, because another agent" in note
    assert "pkg/.envrc" in note

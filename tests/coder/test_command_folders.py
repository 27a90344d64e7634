"""`cwd` of bash: a folder of the workspace, judged and asked about as `cd folder && command` would be."""

from pathlib import Path

import pytest

from tests.support.scripted_turns import RecordingModel, apart, bash
from tests.support.whole_agent import User, ends, events_of, whole

pytestmark = pytest.mark.anyio


@pytest.fixture
def sub(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("mode", ["full-access", "workspace-write"])
async def test_a_command_runs_in_the_folder_it_names(tmp_path: Path, sub: Path, mode: str) -> None:
    model = RecordingModel([bash("pwd; touch new", cwd="a folder")])
    async with whole(tmp_path, model.make, mode=mode, user=User("allow_once")) as (_, session):
        await events_of(session)
    assert (model.results, (sub / "new").exists()) == ([f"{sub}\n"], True)


async def test_a_sandboxed_command_runs_in_the_folder_it_names(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    step = {"call": "sandbox_bash", "input": {"command": "pwd; touch new", "cwd": "sub"}}
    model = RecordingModel([step])
    async with whole(work, model.make, mode="sandbox", user=User("allow_once"), home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert (model.results, (work / "sub" / "new").exists()) == ([f"{work / 'sub'}\n"], True)


@pytest.mark.parametrize("folder", ["..", "/", "out", "a folder/../..", ""])
async def test_a_folder_outside_is_refused_and_nothing_runs(tmp_path: Path, folder: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to("/usr")
    model = RecordingModel([bash(f"touch {work}/ran", cwd=folder)])
    async with whole(work, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert (ends(events), (work / "ran").exists()) == ([("bash", "failed")], False)


@pytest.mark.parametrize("command", ["touch ran", "touch ran; touch ran", "touch ran & touch ran; wait"])
async def test_nothing_of_a_line_runs_where_its_folder_is_missing(tmp_path: Path, command: str) -> None:
    model = RecordingModel([bash(command, cwd="gone")])
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        await events_of(session)
    assert "No such file or directory" in model.results[0]
    assert list(tmp_path.iterdir()) == []


async def test_the_question_shows_the_folder(tmp_path: Path, sub: Path) -> None:
    user = User("reject_once")
    model = RecordingModel([bash("touch new", cwd="a folder")])
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert [asked.title for asked in user.asked] == [f"cd '{sub}' && touch new"]


async def test_the_root_as_a_folder_is_the_command_alone(tmp_path: Path) -> None:
    user = User("reject_once")
    model = RecordingModel([bash("touch new", cwd=".")])
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert [asked.title for asked in user.asked] == ["touch new"]


@pytest.mark.parametrize(("first", "second"), [("", "sub"), ("sub", ""), ("sub", "other")])
async def test_always_in_one_folder_is_no_yes_in_another(tmp_path: Path, first: str, second: str) -> None:
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
    user = User("allow_always", "reject_once")
    steps = [bash("touch new", cwd=folder) if folder else bash("touch new") for folder in (first, first, second)]
    model = RecordingModel(apart(steps))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["completed", "completed", "failed"]
    assert len(user.asked) == 2


async def test_never_to_a_command_holds_in_every_folder(tmp_path: Path, sub: Path) -> None:
    user = User("reject_always", "allow_once")
    model = RecordingModel(apart([bash("touch new"), bash("touch new", cwd="a folder")]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        events = await events_of(session)
    assert ([status for _, status in ends(events)], len(user.asked)) == (["failed", "failed"], 1)


@pytest.mark.parametrize(("command", "questions"), [("cat a.txt", 0), ("git status", 1), ("cat ../../out.txt", 1)])
async def test_only_what_looks_inside_runs_unasked_in_another_folder(
    tmp_path: Path, command: str, questions: int
) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "a.txt").write_text("text\n")
    user = User("reject_once")
    model = RecordingModel([bash(command, cwd="sub")])
    async with whole(work, model.make, mode="ask", user=user) as (_, session):
        await events_of(session)
    assert len(user.asked) == questions

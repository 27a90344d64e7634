"""Long results: the model is shown their ends and where the whole is, and `read_file` of that session reads it."""

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.kept_results import FILE_BYTES, FOLDER_BYTES, RESULT_CHARACTERS, KeptResults, delete_results
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.services import ReadTextFile
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import User, events_of, whole

LINES = 20_000
PRINTS = bash(f"seq -f 'line %.0f' {LINES}")
SAYS = {"say": "ok"}


def path_in(result: str) -> str:
    found = re.search(r"read_file reads parts of the whole: (\S+) …\]", result)
    assert found, result[:200]
    return found[1]


async def printed(home: Path, folder: Path, model: RecordingModel, **more: Any) -> str:
    """The result of a long output, as the model is shown it."""
    async with whole(folder, model.make, home=home, mode="full-access", **more) as (_, session):
        await events_of(session)
    return model.results[0]


async def test_the_model_sees_both_ends_and_read_file_reads_the_middle(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    model = RecordingModel([PRINTS, SAYS], [SAYS])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
        result = model.results[0]
        model._script = RecordingModel(
            [SAYS], [call("read_file", path=path_in(result), start_line=10_000, end_line=10_001), SAYS]
        )._script
        await events_of(session)
    assert result.startswith("line 1\nline 2\n")
    assert result.endswith(f"line {LINES}\n")
    assert RESULT_CHARACTERS < len(result) < RESULT_CHARACTERS + 500
    assert "line 10000\n" not in result
    assert "line 10000\n" in model.results[1]
    assert "line 10001" in model.results[1]
    folder = os.path.dirname(path_in(result))
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (folder, path_in(result))] == [0o700, 0o600]


@pytest.mark.parametrize("mode", ["read-only", "ask", "workspace-write", "full-access"])
async def test_another_session_reads_nothing_of_it(tmp_path: Path, mode: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    path = path_in(await printed(home, work, RecordingModel([PRINTS, SAYS])))
    model = RecordingModel([call("read_file", path=path), SAYS])
    async with whole(work, model.make, home=home, mode=mode) as (_, session):
        await events_of(session)
    assert "outside of the workspace" in model.results[0]


async def test_a_link_in_the_folder_leads_nowhere_else(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (tmp_path / "canary").write_text("canary")
    model = RecordingModel([PRINTS, SAYS], [SAYS])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
        link = os.path.join(os.path.dirname(path_in(model.results[0])), "9.txt")
        os.symlink(tmp_path / "canary", link)
        model._script = RecordingModel([SAYS], [call("read_file", path=link), SAYS])._script
        await events_of(session)
    assert "outside of the workspace" in model.results[1]


async def test_it_is_not_read_through_the_client(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    asked: list[str] = []

    async def read(request: ReadTextFile) -> str:
        asked.append(request.path)
        return "the editor's"

    model = RecordingModel([call("grep", pattern="line", path="."), SAYS])
    async with whole(work, model.make, home=home, mode="full-access", read_text_file=read) as (_, session):
        results = KeptResults(str(home), session.id)
        shown = results.shorten("whole text\n" * 10_000)
        model._script = RecordingModel([call("read_file", path=path_in(shown), end_line=1), SAYS])._script
        await events_of(session)
    assert ("whole text" in model.results[0], asked) == (True, [])


async def test_a_confined_command_does_not_see_it(tmp_path: Path) -> None:
    need("bwrap")
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    path = path_in(await printed(home, work, RecordingModel([PRINTS, SAYS])))
    model = RecordingModel([bash(f"cat {path}"), SAYS])
    async with whole(work, model.make, home=home, mode="workspace-write", user=User("allow_once")) as (_, session):
        await events_of(session)
    assert "line 1\n" not in model.results[0]


async def test_it_goes_when_the_session_is_deleted(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    model = RecordingModel([PRINTS, SAYS])
    store = SqliteStore(home / "sessions", on_delete=lambda session_id: delete_results(str(home), session_id))
    async with whole(work, model.make, home=home, mode="full-access", store=store) as (_, session):
        await events_of(session)
        path = path_in(model.results[0])
        assert os.path.exists(path)
        await session.close()
        await store.delete(session.id)
    await store.close()
    assert not os.path.exists(os.path.dirname(path))


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path), "s")
    count = FOLDER_BYTES // FILE_BYTES + 3
    for _ in range(count):
        assert path_in(results.shorten("x" * (FILE_BYTES + 10)))
    sizes = {name: os.stat(os.path.join(results.path, name)).st_size for name in os.listdir(results.path)}
    assert sum(sizes.values()) <= FOLDER_BYTES
    assert sorted(sizes, key=lambda name: int(name[:-4])) == [f"{n}.txt" for n in range(4, count + 1)]


def test_results_of_calls_that_run_together_have_files_of_their_own(tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path), "s")
    texts = [f"{n:04}" * 20_000 for n in range(40)]
    with ThreadPoolExecutor(16) as pool:
        paths = [path_in(shown) for shown in pool.map(results.shorten, texts)]
    assert [Path(path).read_text() for path in paths] == texts


def test_a_file_of_another_name_is_passed_over(tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path), "s")
    os.makedirs(results.path)
    for name in ("12.tmp", "notes", ".7.txt.x.tmp"):
        (Path(results.path) / name).write_text("x")
    assert path_in(results.shorten("x" * 50_000)).endswith("/1.txt")


def test_where_nothing_can_be_kept_the_text_says_what_was_cut(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    shown = KeptResults(str(tmp_path), "s").shorten("x" * 50_000)
    assert "\n[… 10,000 characters cut here …]\n" in shown


def test_ids_that_are_no_file_names_have_folders_of_their_own(tmp_path: Path) -> None:
    paths = {KeptResults(str(tmp_path), name).path for name in ("../x", "x/../../y", "a", "b", "")}
    assert len(paths) == 5
    assert {os.path.dirname(path) for path in paths} == {str(tmp_path / "results")}

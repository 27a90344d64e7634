"""The examples of the page about hooks: each is run as it stands."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.hook_files import EVENTS, parse_hooks
from dragoman.host.trust import trust
from tests.coder.test_hooks import notices
from tests.docs.snippets import snippets
from tests.support.needs import ROOT
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio
PAGE = "docs/how-to/hooks.md"
_SKIPPED = "Hooks of yours do not run that start files of the workspace: "
FORMAT = '#!/bin/sh\nfile=$(sed -E \'s/.*"file_path": *"([^"]*)".*/\\1/\')\necho formatted >> "$file"\n'


def examples() -> list[str]:
    return [one.text for one in snippets("json", pages=(PAGE,))]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "tools").mkdir(parents=True)
    return tmp_path / "work"


async def results(
    work: Path, number: int, *steps: Any, user: User, mode: str = "ask", is_trusted: bool = True
) -> list[str]:
    home = work.parent / "home"
    home.mkdir()
    (home / "hooks.json").write_text(examples()[number].replace("/tmp/out", str(work.parent / "out")))
    if is_trusted:
        trust(home / "trust.json", work)
    model = RecordingModel([*steps], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode=mode) as (_, session):
        said = notices(await events_of(session))
    assert [one for one in said if "dragoman trust" in one] == (
        []
        if is_trusted
        else [f"{_SKIPPED}the project is not trusted (it has not been trusted here): dragoman trust {work}"]
    )
    return model.results


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_first_example_refuses_a_forced_push_and_formats_where_the_project_is_trusted(
    work: Path, is_trusted: bool
) -> None:
    (work / "tools" / "format-one").write_text(FORMAT)
    os.chmod(work / "tools" / "format-one", 0o755)
    steps = bash("git push origin main --force"), call("write_file", path="a.txt", content="x\n"), bash("echo fine")
    user = User("allow_once")
    pushed, _, fine = await results(work, 0, *steps, user=user, mode="full-access", is_trusted=is_trusted)
    assert pushed == "Permission denied. A hook of the user denies this: No forced pushes here; ask for a merge."
    assert ((work / "a.txt").read_text(), fine) == ("x\nformatted\n" if is_trusted else "x\n", "fine\n")


async def test_the_second_lets_tests_run_and_asks_about_what_removes(work: Path) -> None:
    (work / "Makefile").write_text("test:\n\t@echo tested\n")
    user = User("reject_once")
    tested, removed, other = await results(work, 1, bash("make test"), bash("rm x"), bash("touch y"), user=user)
    assert [asked.description for asked in user.asked[:1]] == [
        "a hook of the user wants a question about this: it removes files"
    ]
    assert [asked.title for asked in user.asked] == ["rm x", "touch y"]
    assert ("tested" in tested, removed, other) == (True, *["Permission denied. The user said no."] * 2)


async def test_the_third_does_not_let_a_turn_end_while_tests_of_a_trusted_project_fail(work: Path) -> None:
    (work / "Makefile").write_text("test:\n\t@test -e fixed || { echo 'Not fixed.'; exit 1; }\n")
    model_done = await results(work, 2, {"say": "Done."}, bash("touch fixed"), user=User("allow_once"))
    assert len(model_done) == 1 and (work / "fixed").exists()


async def test_of_a_project_that_is_not_trusted_the_third_runs_no_makefile(work: Path) -> None:
    (work / "Makefile").write_text("test:\n\t@touch sprung; exit 1\n")
    await results(work, 2, {"say": "Done."}, user=User("reject_once"), is_trusted=False)
    assert not (work / "sprung").exists()


def test_every_event_of_the_page_is_one_that_there_is_and_all_stand_there() -> None:
    page = (ROOT / PAGE).read_text()
    table = page.partition("## Events")[2].partition("Other events")[0]
    assert {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")} == set(EVENTS)
    for text in examples():
        assert parse_hooks(text.encode(), "hooks.json", "user").mistakes == ()
        assert json.loads(text)["hooks"].keys() <= set(EVENTS)

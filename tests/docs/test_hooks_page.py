"""The examples of the page about hooks: each is run as it stands."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.hook_files import EVENTS, parse_hooks
from tests.docs.snippets import snippets
from tests.support.needs import ROOT
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio
PAGE = "docs/how-to/hooks.md"
FORMAT = '#!/bin/sh\nfile=$(sed -E \'s/.*"file_path": *"([^"]*)".*/\\1/\')\necho formatted >> "$file"\n'


def examples() -> list[str]:
    return [one.text for one in snippets("json", pages=(PAGE,))]


async def results(tmp_path: Path, number: int, *steps: Any, user: User, mode: str = "ask") -> list[str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "hooks.json").write_text(examples()[number].replace("/tmp/out", str(tmp_path / "out")))
    model = RecordingModel([*steps], [{"say": "."}])
    async with whole(tmp_path, model.make, home=home, user=user, mode=mode) as (_, session):
        await events_of(session)
    return model.results


async def test_the_first_example_refuses_a_forced_push_and_formats_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "format-one").write_text(FORMAT)
    os.chmod(tmp_path / "tools" / "format-one", 0o755)
    steps = bash("git push origin main --force"), call("write_file", path="a.txt", content="x\n"), bash("echo fine")
    pushed, _, fine = await results(tmp_path, 0, *steps, user=User("allow_once"), mode="full-access")
    assert pushed == "Permission denied. A hook of the user denies this: No forced pushes here; ask for a merge."
    assert ((tmp_path / "a.txt").read_text(), fine) == ("x\nformatted\n", "fine\n")


async def test_the_second_lets_tests_run_and_asks_about_what_removes(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\t@echo tested\n")
    user = User("reject_once")
    tested, removed, other = await results(tmp_path, 1, bash("make test"), bash("rm x"), bash("touch y"), user=user)
    assert [asked.description for asked in user.asked[:1]] == [
        "a hook of the user wants a question about this: it removes files"
    ]
    assert [asked.title for asked in user.asked] == ["rm x", "touch y"]
    assert ("tested" in tested, removed, other) == (True, *["Permission denied. The user said no."] * 2)


async def test_the_third_does_not_let_a_turn_end_while_tests_fail(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\t@test -e fixed || { echo 'Not fixed.'; exit 1; }\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "hooks.json").write_text(examples()[2].replace("/tmp/out", str(tmp_path / "out")))
    model = RecordingModel([{"say": "Done."}, bash("touch fixed")], [{"say": "."}])
    async with whole(tmp_path, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert (tmp_path / "fixed").exists()


def test_every_event_of_the_page_is_one_that_there_is_and_all_stand_there() -> None:
    page = (ROOT / PAGE).read_text()
    table = page.partition("## Events")[2].partition("Other events")[0]
    assert {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")} == set(EVENTS)
    for text in examples():
        assert parse_hooks(text.encode(), "hooks.json", "user").mistakes == ()
        assert json.loads(text)["hooks"].keys() <= set(EVENTS)

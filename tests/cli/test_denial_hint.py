"""The last line of a `dragoman run` in which something was denied: it names what would have allowed that."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import rogue_agent
from tests.support.rogue_agent import permission, text
from tests.support.run_command import run

Step = dict[str, Any]


def read(folder: Path, name: str) -> Step:
    return {"ask": "fs/read_text_file", "params": {"path": str(folder / name)}}


def write(folder: Path, name: str) -> Step:
    return {"ask": "fs/write_text_file", "params": {"path": str(folder / name), "content": "x"}}


def edit(folder: Path, name: str) -> Step:
    return permission("Edit it", kind="edit", locations=[{"path": str(folder / name)}])


def command() -> Step:
    return permission("Run make", kind="execute", rawInput={"command": "make"})


def hint(folder: Path, level: str, *steps: Step) -> str:
    agent = rogue_agent.written(folder, *steps, text("ok"))
    done = run(folder, "hi", "--cwd", str(folder / "work"), "--allow", level, "--", *agent)
    assert done.code == 5, done
    return done.error.splitlines()[-1].removeprefix("dragoman: ")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "in.txt").write_text("inside")
    (made / ".env").write_text("KEY=secret")
    return made


@pytest.mark.parametrize("level", ["none", "read", "edit"])
def test_credentials_are_covered_by_all_alone(level: str, work: Path) -> None:
    assert hint(work.parent, level, read(work, ".env")) == "1 request was denied; --allow all covers it"
    assert (
        run(
            work.parent,
            "hi",
            "--cwd",
            str(work),
            "--allow",
            "all",
            "--",
            *rogue_agent.written(work.parent, read(work, ".env")),
        ).code
        == 0
    )


def test_each_level_that_would_have_allowed_more_is_named_once(work: Path) -> None:
    reads, writes, runs = read(work, "in.txt"), write(work, "in.txt"), command()
    found = hint(work.parent, "none", reads, writes, edit(work, "a"), runs)
    assert found == (
        "4 requests were denied; --allow read covers 1 of them, --allow edit covers 3 of them, "
        "--allow all covers all of them"
    )
    assert hint(work.parent, "read", writes, runs) == (
        "2 requests were denied; --allow edit covers 1 of them, --allow all covers all of them"
    )
    assert hint(work.parent, "none", writes) == "1 request was denied; --allow edit covers it"
    assert hint(work.parent, "edit", runs) == "1 request was denied; --allow all covers it"


def test_what_no_level_covers_is_told_beside_what_one_does(work: Path) -> None:
    assert hint(work.parent, "read", read(work, "../out.txt"), command()) == (
        "2 requests were denied; --allow all covers 1 of them, no --allow reaches files outside of the folder"
    )


def test_of_very_many_denials_it_promises_no_more_than_it_knows(work: Path) -> None:
    assert hint(work.parent, "read", *[command()] * 101) == (
        "101 requests were denied; --allow all covers at least 100 of them"
    )

"""No name leads a tool out of the workspace, and what makes other programs run things is asked about."""

import io
import os
import socket
import sys
import tarfile
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import snapshot, swapper
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.whole_agent import User, ends, events_of, whole

CANARY = "canary-outside"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace, with a secret beside it."""
    folder = tmp_path / "app"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_text("inside\n")
    (tmp_path / "x").write_text(CANARY)
    (tmp_path / "app-evil").mkdir()
    (tmp_path / "app-evil" / "x").write_text(CANARY)
    return folder


def everything(path: str) -> list[dict[str, Any]]:
    """Every tool that takes a path, with this one."""
    return [
        call("read_file", path=path),
        call("list_files", path=path),
        call("grep", pattern="canary", path=path),
        call("glob", pattern="**/*", path=path),
        call("glob", pattern=path),
        call("edit_file", path=path, old_string="canary", new_string="gone"),
        call("write_file", path=path, content="gone"),
    ]


async def attempted(work: Path, *steps: dict[str, Any], mode: str = "full-access") -> list[str]:
    """What the model was told. The user is not asked, and nothing beside the workspace changes or is told."""
    beside = [path for path in work.parent.iterdir() if path != work]
    before = snapshot(*beside), {path.name: path.read_bytes() for path in beside if path.is_file()}
    model = RecordingModel(apart(steps))
    async with whole(work, model.make, mode=mode, user=User("reject_once")) as (_, session):
        await events_of(session)
    assert (snapshot(*beside), {path.name: path.read_bytes() for path in beside if path.is_file()}) == before
    assert [path for path in work.parent.iterdir() if path != work] == beside
    assert not any(CANARY in result for result in model.results)
    return model.results


SPELLINGS = [
    "../x",
    "a/../../x",
    "./a/.././../x",
    "a//..//../x",
    "{outside}/x",
    "//{outside}/x",
    "/{outside}//x",
    "{work}/../x",
    "{work}/a/../../x",
    "~/../../../../../../{outside}/x",
    "file://{outside}/x",
    "%2e%2e/x",
    "..%2fx",
    "..\\x",
    "..\\..\\x",
    "../x\0.txt",
    "../x ",
    "../x.",
    "../x/",
    "../x/.",
    "..",
    "../",
    "/",
    "",
    " ../x",
    "\u2024\u2024/x",
    "\uff0e\uff0e/x",
]


@pytest.mark.requirement("G1")
async def test_no_spelling_of_a_path_leads_out(work: Path) -> None:
    steps: list[dict[str, Any]] = []
    for spelling in SPELLINGS:
        steps += everything(spelling.format(outside=work.parent, work=work))
    for part in range(0, len(steps), 60):
        await attempted(work, *steps[part : part + 60])
    assert not (Path.home() / "x").exists()


@pytest.mark.requirement("G2")
async def test_a_folder_whose_name_begins_like_the_root_is_not_in_it(work: Path) -> None:
    results = await attempted(work, *everything(f"{work}-evil/x"), *everything("../app-evil/x"))
    assert sum("outside of the workspace" in result for result in results) >= 12


@pytest.mark.requirement("G3")
async def test_no_link_leads_out_and_none_hangs(work: Path) -> None:
    """In the last and in a middle component, a chain of forty, a loop."""
    outside = work.parent
    (work / "last").symlink_to(outside / "x")
    (work / "middle").symlink_to(outside)
    (work / "new").symlink_to(outside / "not-there-yet")
    (work / "loop").symlink_to("loop2")
    (work / "loop2").symlink_to("loop")
    (work / "chain0").symlink_to(outside / "x")
    for number in range(1, 41):
        (work / f"chain{number}").symlink_to(f"chain{number - 1}")
    steps: list[dict[str, Any]] = []
    for path in ("last", "middle/x", "middle/new", "new", "loop", "loop/x", "chain40", "chain5", "middle"):
        steps += everything(path)
    began = time.monotonic()
    await attempted(work, *steps)
    assert time.monotonic() - began < 10
    assert (work / "last").is_symlink()


@pytest.mark.requirement("G4")
async def test_writing_a_hard_link_leaves_what_it_was_linked_to(work: Path) -> None:
    """The name gets a new file; the old one, and what else is linked to it, stay."""
    target = work.parent / "x"
    os.link(target, work / "linked")
    os.link(target, work / "edited")
    steps = [
        call("write_file", path="linked", content="new"),
        call("edit_file", path="edited", old_string="canary", new_string="new"),
    ]
    await attempted(work, *steps)
    assert (target.read_text(), (work / "linked").read_text()) == (CANARY, "new")
    assert (work / "edited").read_text() == "new-outside"


@pytest.mark.requirement("G5")
async def test_what_is_no_file_is_refused_at_once(work: Path) -> None:
    os.mkfifo(work / "fifo")
    (work / "zero").symlink_to("/dev/zero")
    (work / "environ").symlink_to("/proc/self/environ")
    (work / "AGENTS.md").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work / "socket"))
        steps: list[dict[str, Any]] = []
        for path in ("fifo", "socket", "zero", "environ", "a", "/dev/zero", "/proc/self/environ", "/proc/self/mem"):
            steps += [step for step in everything(path) if step["call"] not in ("glob", "list_files")]
        began = time.monotonic()
        results = await attempted(work, *steps)
        assert time.monotonic() - began < 10
    assert not any("canary-key" in result for result in results)
    assert (work / "a").is_dir()


@pytest.mark.requirement("G5")
async def test_a_workspace_that_is_everything_still_has_no_processes_in_it(tmp_path: Path) -> None:
    """With the whole machine as its root."""
    paths = ("/proc/self/environ", "/dev/zero", "/sys/kernel")
    model = RecordingModel(apart([step for path in paths for step in everything(path)]))
    async with whole(Path("/"), model.make, user=User("reject_once")) as (_, session):
        await events_of(session)
    refused = [result for result in model.results if "outside of the workspace" in result]
    assert len(refused) >= 3 * 6


@pytest.mark.requirement("G6")
async def test_a_racer_gets_no_write_out(work: Path) -> None:
    """The parent is now a folder of the workspace, now a link to the outside."""
    await raced(work, 150)


@pytest.mark.requirement("G6")
@pytest.mark.slow
async def test_a_racer_gets_no_write_out_for_minutes(work: Path) -> None:
    for _ in range(40):
        await raced(work, 500)


async def raced(work: Path, tries: int) -> None:
    (work / "deep" / "er").mkdir(parents=True, exist_ok=True)
    evil = work.parent / "evil"
    (evil / "er").mkdir(parents=True, exist_ok=True)
    (evil / "er" / "secret").write_text(CANARY)
    if not (work / "link").is_symlink() and not (work / "link").exists():
        (work / "link").symlink_to(evil)
    steps = []
    for number in range(tries):
        steps += [
            call("write_file", path="deep/er/f", content=str(number)),
            call("read_file", path="deep/er/secret", start_line=1, end_line=number + 1),
        ]
    with swapper(work / "deep", work / "link"):
        await attempted(work, *steps)


@pytest.mark.requirement("G7")
async def test_odd_names_have_a_coded_end_and_protect_what_they_mean(work: Path) -> None:
    deep = "/".join(["d"] * 300)
    steps = [
        call("write_file", path="n" * 256, content="x"),
        call("write_file", path="n" * 4097, content="x"),
        call("read_file", path="n" * 4097),
        call("write_file", path=deep + "/f", content="x"),
        call("read_file", path=deep + "/f"),
        call("write_file", path="Case", content="1"),
        call("write_file", path="case", content="2"),
        call("write_file", path=unicodedata.normalize("NFC", "é"), content="1"),
        call("write_file", path=unicodedata.normalize("NFD", "é"), content="2"),
    ]
    results = await attempted(work, *steps)
    assert "file name too long" in results[0]
    assert results[1:3] == ["Permission denied. That is no path."] * 2
    assert results[4] == "1\tx"
    assert "The tool failed." not in results
    assert (work / "Case").read_text() == "1"


@pytest.mark.requirement("G7")
async def test_a_folder_of_many_entries_is_listed_in_part(work: Path) -> None:
    for number in range(1_050):
        os.mknod(work / "a" / str(number))
    results = await attempted(work, call("list_files", path="a"), call("glob", pattern="**/*"))
    assert all("Only the first 1000" in result for result in results)
    assert all(len(result) < 150_000 for result in results)


@pytest.mark.requirement("G8")
@pytest.mark.parametrize(
    ("error", "result"),
    [(OSError(28, "No space left on device"), "no space left"), (KeyError("killed"), "The tool failed.")],
    ids=["no space", "killed"],
)
async def test_a_write_that_fails_leaves_the_old_file(
    work: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, result: str
) -> None:
    """And nothing else in its folder."""
    file = work / "a" / "f"

    def fails(*given: Any, **more: Any) -> None:
        raise error

    monkeypatch.setattr("dragoman.host.paths.os.fsync", fails)
    results = await attempted(work, call("write_file", path="a/f", content="new"))
    assert result in results[0]
    assert (file.read_text(), [path.name for path in file.parent.iterdir()]) == ("inside\n", ["f"])


@pytest.mark.requirement("G8")
async def test_a_written_file_keeps_its_mode_and_its_owner(work: Path) -> None:
    file = work / "a" / "f"
    file.chmod(0o754)
    owner = os.getuid()
    if owner == 0:
        owner = 12345
        os.chown(file, owner, owner)
    await attempted(
        work,
        call("write_file", path="a/f", content="one"),
        call("edit_file", path="a/f", old_string="one", new_string="two"),
    )
    assert (file.read_text(), file.stat().st_mode & 0o777, file.stat().st_uid) == ("two", 0o754, owner)


@pytest.mark.requirement("G6", "G8")
async def test_undoing_takes_nothing_away_that_was_not_written_and_brings_nothing_back_in_half(work: Path) -> None:
    """A folder that became a link is not followed; what was no text is not made up."""
    outside = work.parent / "evil"
    outside.mkdir()
    (outside / "f").write_text("new")
    (work / "picture").write_bytes(b"\xff\xfe\0\1")
    model = RecordingModel(
        [call("write_file", path="d/f", content="new"), call("write_file", path="picture", content="new")]
    )
    async with whole(work, model.make, mode="full-access") as (_, session):
        await events_of(session)
        (work / "d").rename(work / "was")
        (work / "d").symlink_to(outside)
        await events_of(session, "/undo")
    assert ((outside / "f").read_text(), (work / "picture").read_text()) == ("new", "new")


GIT = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git",
    ".GIT/hooks/pre-commit",
    ".Git/config",
    ".git/../.git/config",
    "a/../.git/config",
    "./.git//config",
    "sub/.git/config",
    ".git./config",
    ".git /config",
    ".gi\u200dt/config",
    ".\uff47it/config",
    "link/config",
    ".gitattributes",
    ".gitmodules",
]


SETTINGS = [
    ".vscode/settings.json",
    ".VSCODE/tasks.json",
    ".idea/workspace.xml",
    ".zed/settings.json",
    ".cursor/mcp.json",
    ".mcp.json",
    "sub/.mcp.json",
    "acp.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".dragoman/config.toml",
    ".envrc",
    ".bashrc",
    ".zshenv",
    ".profile",
    ".npmrc",
    ".yarnrc.yml",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".ssh/authorized_keys",
    "home/config.toml",
    "home/commands/evil.md",
    "home/trust.json",
]


@pytest.mark.requirement("G9", "G10")
@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
@pytest.mark.parametrize("names", [GIT, SETTINGS], ids=["git", "settings"])
async def test_what_makes_others_run_things_is_asked_for(work: Path, names: list[str], there: bool) -> None:
    """In a mode that writes the rest freely, whether it is there or not."""
    if there:
        for folder in (".git/hooks", ".vscode", "home"):
            (work / folder).mkdir(parents=True)
        (work / ".git" / "config").write_text("[core]\n")
        (work / "link").symlink_to(".git")
    elif names is GIT:
        names = [name for name in names if name != "link/config"]
    before = snapshot(work)
    user = User("reject_once")
    asked = 0
    for name in names:
        steps = [call("write_file", path=name, content="evil")]
        if there and name == ".git":
            continue  # a folder: refused before the user is asked
        model = RecordingModel(apart(steps))
        async with whole(work, model.make, user=user, mode="workspace-write", home=work / "home") as (_, session):
            await events_of(session)
        asked += 1
        assert (len(user.asked), model.results) == (asked, ["Permission denied. The user said no."]), name
    assert snapshot(work) == before


@pytest.mark.requirement("G11")
async def test_searching_follows_no_link_out(work: Path) -> None:
    (work / "out").symlink_to(work.parent)
    (work / "up").symlink_to("..")
    (work / "a" / "x").symlink_to(work.parent / "x")
    results = await attempted(
        work,
        call("grep", pattern="canary|inside"),
        call("grep", pattern="canary", glob="**/x"),
        call("glob", pattern="**/*"),
        call("glob", pattern="out/**"),
        call("list_files"),
        call("list_files", path="a"),
    )
    assert results[0] == "a/f:1:inside"
    assert "app-evil" not in "".join(results)


@pytest.mark.requirement("G12")
async def test_an_archive_that_is_unpacked_by_a_confined_command_stays_inside(work: Path) -> None:
    """Members that climb, that are absolute, and links; the agent itself unpacks nothing."""
    need("bwrap")
    outside = work.parent / "target"
    outside.mkdir()
    with tarfile.open(work / "evil.tar", "w") as archive:
        for name in ("../climbed", f"{outside}/absolute", "a/../../climbed"):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("door")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        through = tarfile.TarInfo("door/through")
        through.size = 1
        archive.addfile(through, io.BytesIO(b"x"))
    before = snapshot(work.parent / "app-evil", outside)
    commands = [
        "tar -xPf evil.tar",
        f"{sys.executable} -c \"import tarfile; tarfile.open('evil.tar').extractall('.')\"",
    ]
    model = RecordingModel(apart(map(bash, commands)))
    async with whole(work, model.make, user=User("allow_once"), mode="workspace-write") as (_, session):
        await events_of(session)
    assert snapshot(work.parent / "app-evil", outside) == before
    assert not (work.parent / "climbed").exists()


@pytest.mark.requirement("G12")
async def test_a_bomb_is_ended_by_its_deadline(work: Path) -> None:
    """What a command unpacks ends with the command."""
    # What is unpacked is not read, so that it lasts and costs little.
    command = "yes | head -c 20M | gzip > bomb.gz; gzip -dc bomb.gz | while sleep 0.1; do :; done"
    model = RecordingModel(apart([bash(command, timeout=1)]))
    async with whole(work, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert (ends(events), model.results) == ([("bash", "failed")], ["\n[stopped after 1 s]"])

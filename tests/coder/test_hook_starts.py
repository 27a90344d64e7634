"""Hooks of the user that start files of the workspace: these may be of strangers, or of the model."""

from pathlib import Path

import pytest

from dragoman.host.trust import trust
from tests.coder.test_hooks import keeping, notices, told, write_hooks
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def makefile(folder: Path) -> None:
    """A clone with a Makefile that runs what strangers want."""
    (folder / "Makefile").write_text("test:\n\t@touch sprung\n")


def not_trusted(folder: Path) -> str:
    why = f"the project is not trusted (it has not been trusted here): dragoman trust {folder}"
    return f"Hooks of yours do not run that start files of the workspace: {why}"


@pytest.mark.requirement("HK14")
@pytest.mark.parametrize(
    "line",
    [
        "make test",
        "cd . && exec make -s test",
        '"$CLAUDE_PROJECT_DIR"/tools/check',
        "sh tools/ch*k",
        "python3 -c 'import tools'",
        "pytest -q",
        "; ".join(f"cd d{number}" for number in range(20)),  # more than can be looked into
    ],
)
async def test_in_a_folder_that_is_not_trusted_none_runs_and_one_sentence_says_so(
    tmp_path: Path, work: Path, home: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    makefile(work)
    (work / "tools").mkdir()
    for name in ("tools/check", "tools/__init__.py", "conftest.py"):
        (work / name).write_text("#!/bin/sh\ntouch sprung\n")
        (work / name).chmod(0o755)
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")
    write_hooks(home, **dict.fromkeys(events, line), PostToolUse=keeping(tmp_path))
    model = RecordingModel([bash("true")], [{"say": "."}])
    with caplog.at_level("INFO", logger="dragoman"):
        async with whole(work, model.make, home=home, mode="full-access") as (_, session):
            first, second = await events_of(session), await events_of(session)
    assert (notices(first), notices(second)) == ([not_trusted(work)], [])
    assert ((work / "sprung").exists(), len(told(tmp_path))) == (False, 1)
    skipped = [one for one in caplog.messages if "is skipped" in one]
    assert len(skipped) == len(events)


async def test_a_file_above_the_session_in_its_repository_is_one_of_the_workspace(work: Path, home: Path) -> None:
    (work / ".git").mkdir()
    (work / "deep").mkdir()
    makefile(work)
    write_hooks(home, Stop="make -C .. test")
    async with whole(work / "deep", RecordingModel([{"say": "."}]).make, home=home) as (_, session):
        assert notices(await events_of(session)) == [not_trusted(work)]
    assert not (work / "sprung").exists()


@pytest.mark.requirement("HK14")
async def test_where_the_user_trusts_the_folder_they_run(work: Path, home: Path) -> None:
    makefile(work)
    write_hooks(home, Stop="make test")
    trust(home / "trust.json", work)
    async with whole(work, RecordingModel([{"say": "."}]).make, home=home) as (_, session):
        assert notices(await events_of(session)) == []
    assert (work / "sprung").exists()


async def test_trust_that_is_given_counts_from_the_next_prompt_on(work: Path, home: Path) -> None:
    makefile(work)
    write_hooks(home, Stop="make test")
    async with whole(work, RecordingModel([{"say": "."}], [{"say": "."}]).make, home=home) as (_, session):
        await events_of(session)
        trust(home / "trust.json", work)
        await events_of(session)
    assert (work / "sprung").exists()


@pytest.mark.requirement("HK14")
@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_file_that_the_model_has_made_is_not_run(work: Path, home: Path, is_trusted: bool) -> None:
    write_hooks(home, Stop="make test || true", PreToolUse="test ! -e check || ./check")
    if is_trusted:
        trust(home / "trust.json", work)
    made = call("write_file", path="Makefile", content="test:\n\t@touch sprung\n")
    check = call("write_file", path="check", content="#!/bin/sh\n")
    user, model = User("reject_once"), RecordingModel([made, check, bash("true")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user, mode="workspace-write") as (_, session):
        first, second = await events_of(session), await events_of(session)
    why = "which it starts, is newer than this session" if is_trusted else not_trusted(work).partition(": ")[2]
    said = notices(first)
    assert len(said) == 2 and all(why in one for one in said)
    assert [asked.title for asked in user.asked] == ["true"]  # a hook before a call that gives no answer asks
    assert notices(second) == ([] if is_trusted else [not_trusted(work)])
    assert not (work / "sprung").exists()


async def test_a_hook_that_compares_names_and_writes_files_runs_everywhere(
    tmp_path: Path, work: Path, home: Path
) -> None:
    (work / "a.py").write_text("")
    write_hooks(home, PreToolUse=f"case x in *.py) false;; esac; {keeping(tmp_path)}")
    model = RecordingModel([bash("true")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        assert notices(await events_of(session)) == []
    assert len(told(tmp_path)) == 1


async def test_in_the_folder_around_the_users_own_hooks_they_run(tmp_path: Path, home: Path) -> None:
    makefile(tmp_path)
    write_hooks(home, Stop="make test")
    async with whole(tmp_path, RecordingModel([{"say": "."}]).make, home=home) as (_, session):
        assert notices(await events_of(session)) == []
    assert (tmp_path / "sprung").exists()

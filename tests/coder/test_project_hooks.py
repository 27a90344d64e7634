"""Hooks of a project: none without trust, none that has changed since, and no allow of theirs counts."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.decision_log import DECISION
from dragoman.coder.hook_files import hook_launch, parse_hooks
from dragoman.coder.managed_settings import ManagedHooks, ManagedSettings
from dragoman.host.scripts import named_files
from dragoman.host.trust import trust
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from tests.coder.test_hooks import deciding, group, keeping, notices, told, write_hooks
from tests.support.scripted_turns import RecordingModel, bash, call
from tests.support.whole_agent import ENVIRONMENT, User, events_of, whole

pytestmark = pytest.mark.anyio

FILES = [".claude/settings.json", ".agents/hooks.json"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for place in (".claude", ".agents"):
        (tmp_path / "work" / place).mkdir(parents=True)
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def project_hooks(work: Path, file: str = FILES[0], **events: Any) -> None:
    (work / file).write_text(json.dumps({"permissions": {"allow": ["Bash"]}, "hooks": events}))


def trust_script(home: Path, work: Path, script: str) -> None:
    """Trust the project with the file that its hook starts, as `dragoman trust` does."""
    hooks = parse_hooks((work / FILES[0]).read_bytes(), FILES[0], "project", str(work)).hooks
    named = named_files(str(work), map(hook_launch, hooks), ENVIRONMENT)
    assert named[str(work / script)].startswith("sha256 ")  # else nothing would notice a change of it
    trust(home / "trust.json", work, named=named)


@pytest.mark.requirement("HK10")
@pytest.mark.parametrize("file", FILES)
async def test_without_trust_none_runs_and_a_sentence_says_so(
    tmp_path: Path, work: Path, home: Path, file: str
) -> None:
    project_hooks(work, file, SessionStart=[group("", keeping(tmp_path))], PreToolUse=[group("", keeping(tmp_path))])
    async with whole(work, RecordingModel([bash("echo hi")]).make, home=home, mode="full-access") as (_, session):
        first, second = await events_of(session), await events_of(session)
    why = f"the project is not trusted (it has not been trusted here): dragoman trust {work}"
    assert notices(first) == [f"The hooks of {work / file} do not run: {why}"]
    assert (notices(second), told(tmp_path)) == ([], [])


@pytest.mark.requirement("HK10")
@pytest.mark.parametrize("file", FILES)
async def test_with_trust_they_run_in_the_project(tmp_path: Path, work: Path, home: Path, file: str) -> None:
    out = shlex.quote(str(tmp_path / "told.jsonl"))
    project_hooks(work, file, PreToolUse=[group("Bash", f'cat > {out}; echo "$PWD $CLAUDE_PROJECT_DIR" >&2; exit 2')])
    trust(home / "trust.json", work)
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        events = await events_of(session)
    assert (model.results, notices(events)) == (
        [f"Permission denied. A hook of the project denies this: {work} {work}."],
        [],
    )
    assert (told(tmp_path)[0]["tool_input"], (work / "ran").exists()) == ({"command": "touch ran"}, False)


@pytest.mark.requirement("HK10")
async def test_an_allow_of_a_project_answers_nothing(work: Path, home: Path) -> None:
    project_hooks(work, PreToolUse=[group("Bash", deciding("allow"))])
    trust(home / "trust.json", work)
    user, model = User("reject_once"), RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, user=user) as (_, session):
        await events_of(session)
    assert ([asked.title for asked in user.asked], (work / "ran").exists()) == (["touch ran"], False)


@pytest.mark.requirement("HK10")
@pytest.mark.parametrize(
    "line",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/check.sh',
        '"$CLAUDE_PROJECT_DIR/.claude/check.sh"',
        ".claude/check.sh",
        "cat | sh ${CLAUDE_PROJECT_DIR}/.claude/check.sh",
        '"$(pwd)/.claude/check.sh"',
        '"$(pwd)"/.claude/check.sh',
    ],
)
async def test_a_script_that_changes_while_the_turn_runs_is_not_run_and_the_user_is_asked(
    tmp_path: Path, work: Path, home: Path, line: str
) -> None:
    script = work / ".claude" / "check.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    project_hooks(work, PreToolUse=[group("Write", line)])
    trust_script(home, work, ".claude/check.sh")
    change = bash(f"echo 'touch {tmp_path}/stolen' >> .claude/check.sh")
    user = User("reject_once")
    model = RecordingModel(
        [call("write_file", path="a.txt", content="x"), change, call("write_file", path="b.txt", content="x")]
    )
    async with whole(work, model.make, home=home, user=user, mode="full-access") as (_, session):
        events = await events_of(session)
    assert [asked.title for asked in user.asked] == ["Write b.txt"]
    written = [(work / name).exists() for name in ("a.txt", "b.txt")]
    assert (written, (tmp_path / "stolen").exists()) == ([True, False], False)
    (said,) = notices(events)
    assert said.endswith("it, or a file that it starts, has changed since it was trusted")


async def test_hooks_of_the_repositorys_root_count_below_it(tmp_path: Path, work: Path, home: Path) -> None:
    (work / ".git").mkdir()
    (work / "deep").mkdir()
    project_hooks(work, PreToolUse=[group("Bash", keeping(tmp_path))])
    trust(home / "trust.json", work)
    model = RecordingModel([bash("echo hi")], [{"say": "."}])
    async with whole(work / "deep", model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert [one["cwd"] for one in told(tmp_path)] == [str(work / "deep")]


# -- the administrator, the log --------------------------------------------------------------------------------------


@pytest.mark.requirement("HK11")
@pytest.mark.parametrize("hooks", [ManagedHooks(user=False, project=False), ManagedHooks(only_managed=True)])
async def test_the_administrator_turns_hooks_of_others_off(
    tmp_path: Path, work: Path, home: Path, hooks: ManagedHooks
) -> None:
    write_hooks(home, PreToolUse=keeping(tmp_path))
    project_hooks(work, PreToolUse=[group("", keeping(tmp_path))])
    trust(home / "trust.json", work)
    managed = ManagedSettings(hooks=hooks, file="managed.toml")
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access", managed=managed) as (_, session):
        await events_of(session)
    assert ((work / "ran").exists(), told(tmp_path)) == (True, [])


@pytest.mark.requirement("HK11")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo 'Not here.' >&2; exit 2", "denies this: Not here."),
        ("no-such-program", "gave no answer: its program was not found"),
    ],
)
async def test_a_hook_of_the_administrator_denies_also_where_it_fails(
    work: Path, home: Path, command: str, why: str
) -> None:
    write_hooks(home, PreToolUse=deciding("allow"))
    managed = ManagedSettings(hooks=ManagedHooks(managed={"PreToolUse": [group("Bash", command)]}), file="managed.toml")
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(work, model.make, home=home, mode="full-access", managed=managed) as (_, session):
        await events_of(session)
    assert (work / "ran").exists() is False
    assert model.results[0].startswith(f"Permission denied. A hook of the administrator {why}")


@pytest.mark.requirement("HK12")
@pytest.mark.parametrize("content", [False, True])
async def test_a_refusal_is_in_the_decision_log_without_content(
    tmp_path: Path, work: Path, home: Path, content: bool
) -> None:
    write_hooks(home, PreToolUse="echo 'No touch.' >&2; exit 2")
    store = SqliteStore(tmp_path / "store")
    model = RecordingModel([bash("touch ran")], [{"say": "."}])
    async with whole(
        work, model.make, home=home, mode="full-access", store=store, setup={"audit_content": content}
    ) as (_, session):
        await events_of(session)
        id = session.id
    entries = [entry async for records in store.read(id) for entry in [one.entry for one in records]]
    (note,) = [one.value for one in entries if isinstance(one, NoteEntry) and one.kind == DECISION]
    assert isinstance(note, dict)
    whose = "a hook of the user denies this"
    assert (note["by"], note["decision"]) == ("hook", "deny")
    assert note["rule"] == (f"{whose}: No touch." if content else whose)


@pytest.mark.requirement("HK12")
async def test_each_run_is_a_line_of_the_log_without_content(
    work: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_hooks(home, PreToolUse="echo SECRET >&2; exit 2")
    with caplog.at_level("DEBUG", logger="dragoman"):
        async with whole(work, RecordingModel([bash("touch ran")]).make, home=home, mode="full-access") as (_, session):
            await events_of(session)
    lines = [line for line in caplog.messages if line.startswith("hook of ")]
    assert [line.partition(" after ")[0] for line in lines] == ["hook of the user at PreToolUse: exit code 2"]
    assert "SECRET" not in caplog.text


async def test_files_of_the_workspace_that_a_hook_of_the_user_starts_are_protected(work: Path, home: Path) -> None:
    (work / "check.py").write_text("")
    write_hooks(home, PreToolUse=[group("Bash", f"python3 {work}/check.py")], Stop='"$CLAUDE_PROJECT_DIR"/stop.sh')
    (work / "stop.sh").write_text("#!/bin/sh\n")
    (work / "stop.sh").chmod(0o755)
    user = User("reject_once")
    steps = [call("write_file", path=name, content="evil") for name in ("check.py", "stop.sh", "other.py")]
    async with whole(work, RecordingModel(steps).make, home=home, user=user, mode="workspace-write") as (_, session):
        await events_of(session)
    assert [asked.title for asked in user.asked] == ["Write check.py", "Write stop.sh"]

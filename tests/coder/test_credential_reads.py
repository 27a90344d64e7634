"""Files that hold credentials are read after a yes, in every mode that asks; without one the model learns nothing."""

import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import read
from dragoman.coder.models.contract import ModelRequest, Piece
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.project_notes import NoteReader, ProjectNote
from dragoman.host.paths import Roots
from dragoman.host.secrets import is_credential
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import ResourceLink, Text
from dragoman.vocabulary.events import AnyEvent, TerminalOutputChunk, ToolCallUpdate
from tests.support.conversation import conversation
from tests.support.git_repository import git, repository
from tests.support.needs import need, need_ripgrep
from tests.support.whole_agent import User, ends, events_of, scripted, whole

CANARY = "canary-2c77"
ASKING = ["read-only", "plan", "ask", "workspace-write", "safe"]


def call(tool: str, **words: Any) -> dict[str, Any]:
    return {"call": tool, "input": words}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text(f"API={CANARY}\n")
    (tmp_path / "notes.txt").symlink_to(".env")
    (tmp_path / "plain.txt").write_text("API is documented here\n")
    return tmp_path


def shown(events: list[AnyEvent]) -> str:
    """All of it, with what commands have printed."""
    printed = [base64.b64decode(e.data).decode() for e in events if isinstance(e, TerminalOutputChunk)]
    return repr(events) + "".join(printed)


async def told(project: Path, *steps: dict[str, Any], user: User, mode: str = "ask") -> list[AnyEvent]:
    async with whole(project, scripted(list(steps)), user=user, mode=mode) as (_, session):
        return await events_of(session)


@pytest.mark.parametrize("mode", ASKING)
@pytest.mark.parametrize("path", [".env", "notes.txt", "sub/../.env"])
async def test_reading_one_asks_and_a_no_shows_nothing(project: Path, mode: str, path: str) -> None:
    (project / "sub").mkdir()
    user = User("reject_once")
    events = await told(project, call("read_file", path=path), user=user, mode=mode)
    assert [asked.title for asked in user.asked] == [f"Read {path}, which may hold credentials"]
    assert ends(events) == [("read_file", "failed")]
    assert CANARY not in repr(events)


async def test_after_a_yes_it_is_read_and_always_is_about_this_file(project: Path) -> None:
    (project / "other.env").write_text(CANARY)
    user = User("allow_always", "reject_once")
    steps = [call("read_file", path=".env"), {"say": "x"}, call("read_file", path=".env", start_line=1)]
    events = await told(project, *steps, {"say": "y"}, call("read_file", path="other.env"), user=user)
    assert [status for _, status in ends(events)] == ["completed", "completed", "failed"]
    assert len(user.asked) == 2
    assert CANARY in repr(events)


async def test_full_access_asks_nothing(project: Path) -> None:
    user = User("reject_once")
    events = await told(project, call("read_file", path=".env"), user=user, mode="full-access")
    assert (ends(events), user.asked) == ([("read_file", "completed")], [])


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
@pytest.mark.parametrize("path", [".ssh/id_ed25519", ".netrc", ".bash_history", ".config/gh/hosts.yml"])
async def test_in_a_home_folder_the_users_own_keys_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, path: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(f"{CANARY}\n")
    user = User("reject_once")
    steps = [call("read_file", path=path), call("grep", pattern="canary"), call("grep", pattern="canary", path=path)]
    events = await told(tmp_path, *steps, user=user, mode=mode)
    assert sorted(ends(events)) == [("grep", "completed"), ("grep", "failed"), ("read_file", "failed")]
    assert len(user.asked) == 2
    assert CANARY not in repr(events).replace("Search for canary", "")


async def test_a_workspace_in_the_folder_of_another_agent_is_read_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    tree = tmp_path / ".codex" / "worktrees" / "project"
    tree.mkdir(parents=True)
    (tree / "plain.txt").write_text("API is documented here\n")
    (tree / ".env").write_text(CANARY)
    user = User("reject_once")
    steps = [call("read_file", path="plain.txt"), call("grep", pattern="API"), call("read_file", path=".env")]
    events = await told(tree, *steps, user=user)
    assert sorted(ends(events)) == [("grep", "completed"), ("read_file", "completed"), ("read_file", "failed")]
    assert (len(user.asked), CANARY in repr(events)) == (1, False)


async def test_a_search_neither_finds_nor_counts_what_is_in_one(project: Path) -> None:
    """A search that told how many it left out, or had room for one less, would answer any question about them."""
    need_ripgrep()
    steps = [call("grep", pattern=pattern, max_results=1) for pattern in (f"{CANARY}|documented", "xyzzy|documented")]
    async with whole(project, scripted([steps[0]], [steps[1]])) as (_, session):
        texts = [[e.content for e in await events_of(session) if isinstance(e, ToolCallUpdate)] for _ in steps]
    assert "plain.txt:1:API is documented here" in repr(texts[0])
    assert "matches are shown" not in repr(texts[0])
    assert repr(texts[0]) == repr(texts[1])


async def test_searching_one_by_its_name_asks(project: Path) -> None:
    user = User("allow_once")
    events = await told(project, call("grep", pattern="API", path=".env"), user=user)
    assert [asked.title for asked in user.asked] == ["Search for API in .env, which may hold credentials"]
    assert f".env:1:API={CANARY}" in repr(events)


async def test_its_name_is_listed_without_a_question(project: Path) -> None:
    user = User("reject_once")
    events = await told(project, call("list_files"), call("glob", pattern="**/*env"), user=user, mode="read-only")
    assert (repr(events).count(".env"), user.asked) > (1, [])
    assert [status for _, status in ends(events)] == ["completed", "completed"]


@pytest.mark.parametrize("old", [f"API={CANARY}", "API=guess"])
async def test_an_edit_does_not_tell_what_is_in_one(project: Path, old: str) -> None:
    user = User("reject_once")
    step = call("edit_file", path=".env", old_string=old, new_string="x")
    events = await told(project, step, user=user, mode="workspace-write")
    assert len(user.asked) == 1
    assert ends(events) == [("edit_file", "failed")]
    assert "is not in" not in repr(events)


async def test_an_edit_after_a_yes_is_done(project: Path) -> None:
    step = call("edit_file", path=".env", old_string=CANARY, new_string="x")
    await told(project, step, user=User("allow_once"), mode="workspace-write")
    assert (project / ".env").read_text() == "API=x\n"


@pytest.mark.parametrize("command", ["cat .env", "head -1 notes.txt", "grep API .env plain.txt", "git show HEAD:.env"])
async def test_a_command_that_only_looks_asks_where_it_names_one(project: Path, command: str) -> None:
    user = User("reject_once")
    events = await told(project, call("bash", command=command), user=user, mode="workspace-write")
    assert (len(user.asked), CANARY in shown(events)) == (1, False)


async def test_a_command_that_only_looks_sees_none_where_it_names_none(project: Path) -> None:
    need("bwrap")
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "server.key").write_text(CANARY)
    user = User("reject_once")
    events = await told(project, call("bash", command="grep -r API ."), user=user, mode="workspace-write")
    assert ("documented here" in shown(events), CANARY in shown(events), user.asked) == (True, False, [])
    events = await told(project, call("bash", command="grep -r canary ."), user=user, mode="workspace-write")
    assert "canary-" not in shown(events)


async def test_a_rule_about_a_command_does_not_cover_one(project: Path) -> None:
    user = User("allow_always", "reject_once")
    steps = [call("bash", command="cat ../plain.txt"), {"say": "x"}, call("bash", command="cat .env")]
    events = await told(project, *steps, user=user)
    assert (len(user.asked), CANARY in shown(events)) == (2, False)


async def test_a_link_to_one_is_named_and_not_read(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    links = [ResourceLink(name, f"file://{project / name}") for name in (".env", "notes.txt", "plain.txt")]
    store = SqliteStore(tmp_path_factory.mktemp("store"))
    async with whole(project, scripted([{"say": "ok"}]), store=store) as (_, session):
        async for _event in session.prompt([Text("look"), *links]):
            pass
        entries = [record.entry async for records in store.read(session.id) for record in records]
    await store.close()
    said = repr(conversation(read(entries))[0])
    assert CANARY not in said
    assert ("documented here" in said, said.count("read_file asks the user")) == (True, 2)


def notes_of(project: Path) -> list[ProjectNote]:
    """The notes of a folder, none of which may hold credentials."""

    def is_withheld(path: str) -> bool:
        return is_credential(path, str(Path.home()))

    return NoteReader(Roots([str(project)]), is_withheld).of_workspace(above=False)


async def test_notes_of_the_project_that_are_a_link_to_one_are_not_read(project: Path) -> None:
    (project / "AGENTS.md").symlink_to(".env")
    assert notes_of(project) == []
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").symlink_to("plain.txt")
    assert "documented here" in (notes_of(project))[0].text


async def test_notes_of_the_project_that_are_a_link_to_our_own_files_are_not_read(tmp_path: Path) -> None:
    ours = tmp_path / "home" / "gateway" / "tokens.json"
    ours.parent.mkdir(parents=True)
    ours.write_text(CANARY)
    (tmp_path / "AGENTS.md").symlink_to(ours)
    heard: list[str] = []

    class Listening(ScriptModel):
        def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
            heard.append(str(request.items))
            return super().respond(request)

    script = parse({"turns": [{"steps": [{"say": "ok"}]}]})
    async with whole(tmp_path, lambda name: Listening(script), home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert len(heard) == 1
    assert CANARY not in heard[0]


async def test_in_a_sandbox_it_asks_as_well(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    need("bwrap")
    user = User("reject_once")
    home = tmp_path_factory.mktemp("home")
    model = scripted([call("sandbox_read_file", path=".env"), call("sandbox_grep", pattern="API")])
    async with whole(project, model, user=user, mode="sandbox", home=home) as (_, session):
        events = await events_of(session)
    assert (len(user.asked), CANARY in repr(events), "documented here" in repr(events)) == (1, False, True)


async def test_in_a_sandbox_no_command_sees_one(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands are not asked about there. What is hidden from them is no change to agree to."""
    need("bwrap")
    (project / "sub").mkdir()
    (project / "sub" / ".env").write_text(CANARY)
    user = User()
    home = tmp_path_factory.mktemp("home")
    lines = ["cat .env notes.txt; grep -r API .", "mv sub s; mv .env e; cat s/.env e sub/.env", "cp -r . ../c; true"]
    model = scripted([call("sandbox_bash", command=line) for line in lines])
    async with whole(project, model, user=user, mode="sandbox", home=home) as (_, session):
        events = await events_of(session)
    assert (len(user.asked), CANARY in shown(events), "documented here" in shown(events)) == (0, False, True)
    assert (project / ".env").read_text() == f"API={CANARY}\n"


async def test_in_a_sandbox_what_git_tracks_is_seen_and_can_be_committed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    need("bwrap")
    repository(project)
    (project / "tests").mkdir()
    (project / "tests" / "key.pem").write_text("for tests\n")
    git(project, "add", "tests")
    git(project, "commit", "-q", "-m", "keys")
    user = User("allow_once")
    home = tmp_path_factory.mktemp("home")
    line = "cat tests/key.pem .env; echo two > file && git add file tests && git commit -q -m second"
    async with whole(project, scripted([call("sandbox_bash", command=line)]), user=user, mode="sandbox", home=home) as (
        _,
        session,
    ):
        events = await events_of(session)
    assert ("for tests" in shown(events), CANARY in shown(events)) == (True, False)
    assert git(project, "log", "--format=%s") == "second\nkeys\nfirst\n"

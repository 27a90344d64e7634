"""What the model is told beside the prompts: the environment once, the mode and the notes whenever they are new."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from dragoman.coder.models.contract import Model, ModelRequest, Piece
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import AnyEvent, Notice
from tests.support.conversation import briefing, conversation, told
from tests.support.whole_agent import events_of, whole


class Recording(ScriptModel):
    """Plays turns and keeps every request."""

    def __init__(self, *turns: Any, **more: Any) -> None:
        super().__init__(parse({"turns": [{"steps": turn} for turn in turns], **more}))
        self.requests: list[ModelRequest] = []

    def make(self, name: str) -> Model:
        return self

    def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.requests.append(request._replace(items=list(request.items)))
        return super().respond(request)

    def told(self, at: int = -1) -> dict[str, str]:
        return briefing(self.requests[at].items)


OK = [{"say": "ok"}]


def read(path: str) -> dict[str, Any]:
    return {"call": "read_file", "input": {"path": path}}


def run_git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def notes(model: Recording, at: int = -1) -> list[str]:
    """The notes in a request, by their text without head and tag."""
    return [text.split(">\n", 1)[1].split("\n</notes>")[0] for name, text in model.told(at).items() if "notes" in name]


async def test_the_first_request_has_environment_and_mode_before_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("x")
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    items = model.requests[0].items
    assert [told(item) for item in items] == [True, True, False]
    facts = model.told()
    assert f"Working folder: {tmp_path}" in facts["environment"]
    assert "Git: not a repository" in facts["environment"]
    assert f"At the top of {tmp_path}: README.md, src/" in facts["environment"]
    assert facts["mode"] == 'The mode is now "ask": asks before it writes, fetches or runs what does more than look.'


async def test_branch_and_changes_of_git_are_told(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-b", "trunk")
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    run_git(tmp_path, "add", "a", "b")
    run_git(tmp_path, "commit", "-m", "first")
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").write_text("2")
    run_git(tmp_path, "add", "b")
    (tmp_path / "c").write_text("new")
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    line = next(line for line in model.told()["environment"].splitlines() if line.startswith("Git:"))
    assert line == "Git: branch trunk; files staged 1, changed 1, untracked 1; these changes are not yours"


async def test_git_is_not_asked_where_its_configuration_names_a_program(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-b", "trunk")
    config = tmp_path / ".git" / "config"
    config.write_text(config.read_text() + f'[filter "x"]\n\tclean = touch {tmp_path}/pwned; cat\n')
    (tmp_path / ".gitattributes").write_text("* filter=x\n")
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    assert "Git: branch trunk\n" in model.told()["environment"]
    assert not (tmp_path / "pwned").exists()


async def test_nothing_is_told_twice_live_or_after_a_reload(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    store = SqliteStore(tmp_path / "store")
    model = Recording(OK)
    async with whole(tmp_path, model.make, store=store) as (client, session):
        await events_of(session, "one")
        await events_of(session, "two")
        await session.close()
        again = await client.load_session(session.id, str(tmp_path))
        await events_of(again, "three")
    await store.close()
    assert [sum(told(item) for item in request.items) for request in model.requests] == [3, 3, 3]
    assert list(model.requests[2].items[:3]) == list(model.requests[0].items[:3])


async def test_a_mode_that_changes_in_a_turn_is_told_before_the_next_request(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    model = Recording([read("a"), {"say": "ok"}])
    async with whole(tmp_path, model.make) as (_, session):
        async for event in session.prompt("go"):
            if type(event).__name__ == "ToolCallUpdate":
                await session.set_option("mode", "read-only")
    assert model.told(0)["mode"].startswith('The mode is now "ask"')
    assert model.told(1)["mode"].startswith('The mode is now "read-only"')
    assert told(model.requests[1].items[-1])


async def test_after_clear_everything_is_told_again(tmp_path: Path) -> None:
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session, "one")
        await events_of(session, "/clear")
        await events_of(session, "two")
    assert model.told(1).keys() == {"environment", "mode"}
    assert len(conversation(model.requests[1].items)) == 1


async def test_a_summary_leaves_the_newest_of_each_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session, "one")
        await session.set_option("mode", "read-only")
        await events_of(session, "two")
        await events_of(session, "/compact")
        await events_of(session, "three")
    assert [told(item) for item in model.requests[-1].items].count(True) == 3
    assert model.told() == model.told(1)


# -- notes of the project --------------------------------------------------------------------------------------------


async def test_notes_come_from_the_user_the_repository_and_the_folder_in_this_order(tmp_path: Path) -> None:
    home, repository = tmp_path / "home", tmp_path / "repository"
    inner = repository / "packages" / "app"
    inner.mkdir(parents=True)
    (repository / ".git").mkdir()
    home.mkdir()
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    for folder, text in ((home, "user"), (repository, "root"), (inner, "app")):
        (folder / "AGENTS.md").write_text(text)
    model = Recording(OK)
    async with whole(inner, model.make, home=home) as (_, session):
        await events_of(session)
    assert notes(model) == ["user", "root", "app"]


async def test_claude_and_gemini_count_where_there_is_no_agents_file(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for folder in (tmp_path, inner):
        (folder / "CLAUDE.md").write_text("claude")
        (folder / "GEMINI.md").write_text("gemini")
    (tmp_path / "AGENTS.md").write_text("agents")
    (inner / "x").write_text("x")
    model = Recording([read("inner/x"), {"say": "ok"}])
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    assert (notes(model, 0), notes(model, 1)) == (["agents"], ["agents", "claude", "gemini"])


async def test_notes_of_a_deeper_folder_come_when_a_file_there_was_touched(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    (tmp_path / "a" / "AGENTS.md").write_text("of a")
    (deep / "AGENTS.md").write_text("of b")
    model = Recording([read("a/b/x"), {"say": "ok"}])
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session, "one")
        await events_of(session, "two")
    assert [notes(model, at) for at in range(3)] == [[], ["of a", "of b"], ["of a", "of b"]]


async def test_notes_of_a_deeper_folder_are_not_gone_after_a_reload(tmp_path: Path) -> None:
    work, deep = tmp_path / "work", tmp_path / "work" / "a"
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    (deep / "AGENTS.md").write_text("of a")
    store = SqliteStore(tmp_path / "store")
    model = Recording([read("a/x"), {"say": "ok"}], OK)
    async with whole(work, model.make, store=store) as (client, session):
        await events_of(session)
        await session.close()
        again = await client.load_session(session.id, str(work))
        await events_of(again)
        (deep / "AGENTS.md").write_text("new of a")
        await events_of(again)
    await store.close()
    assert [notes(model, at) for at in range(1, 4)] == [["of a"], ["of a"], ["new of a"]]


async def test_notes_that_changed_or_are_gone_are_told_with_the_next_prompt(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("old")
    model = Recording(OK)
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
        file.write_text("new")
        await events_of(session)
        file.unlink()
        await events_of(session)
        await events_of(session)
    assert [notes(model, at) for at in range(2)] == [["old"], ["new"]]
    (gone,) = [text for source, text in model.told(2).items() if source.startswith("notes ")]
    assert gone == f"The notes in {file} are gone; they count no more."
    assert model.told(3) == model.told(2)
    assert len(model.requests[3].items) == len(model.requests[2].items) + 2


async def test_imports_are_read_inside_the_workspace_and_nowhere_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "outside.md").write_text("canary")
    (work / "style.md").write_text("Style. @more.md")
    (work / "more.md").write_text("More. @style.md @AGENTS.md")
    (work / "code.md").write_text("canary")
    (work / ".env").write_text("KEY=canary")
    text = "See @style.md, @../outside.md and @.env.\n```\n@code.md\n```\nMail me@code.md or `@code.md`."
    (work / "AGENTS.md").write_text(text)
    model = Recording(OK)
    async with whole(work, model.make) as (_, session):
        await events_of(session)
    assert notes(model) == [text, "Style. @more.md", "More. @style.md @AGENTS.md"]


async def test_the_user_is_told_when_notes_were_cut(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * 40_000 + " @more.md")
    (tmp_path / "more.md").write_text("y" * 40_000)
    model = Recording(OK)
    events: list[AnyEvent] = []
    async with whole(tmp_path, model.make) as (_, session):
        events += await events_of(session)
        events += await events_of(session)
    assert [len(text) for text in notes(model)] == [
        40_009,
        64 * 1024 - 40_009 + len("\n[… there is more in the file …]"),
    ]
    (title,) = [event.title for event in events if isinstance(event, Notice)]
    assert title == (
        f"The notes for agents are longer than 64 KiB in all: {tmp_path}/more.md was cut, and the model can read the "
        "rest with a tool."
    )


async def test_a_helper_is_told_what_the_agent_is_told(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    helpers: list[Recording] = []

    class Agent(Recording):
        def assistant(self, name: str) -> ScriptModel:
            helpers.append(Recording([{"say": "report"}]))
            return helpers[0]

    model = Agent([{"call": "agent", "input": {"prompt": "look", "description": "Look"}}, {"say": "ok"}])
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    assert helpers[0].told(0) == model.told(0)
    assert [told(item) for item in helpers[0].requests[0].items] == [True, True, True, False]

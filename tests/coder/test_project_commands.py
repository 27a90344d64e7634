"""Commands of a project: words without trust, command lines only by trust, and never more than the mode allows."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.context import ContextUserMessage
from dragoman.coder.managed_settings import ManagedProjects, ManagedSettings
from dragoman.host.trust import trust
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AnyEvent, CommandsChanged, Notice
from dragoman.vocabulary.options import Command, CommandInput
from tests.support.scripted_turns import RecordingModel, call
from tests.support.whole_agent import User, ends, events_of, scripted, text, whole

pytestmark = pytest.mark.anyio

REVIEW = """---
description: Review a change
argument-hint: [branch]
allowed-tools: Bash(touch:*), Write
---
## Context

- Marker: !`touch ran && echo made`
- Branch: $1

Review $ARGUMENTS.
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for place in (".agents/commands/git", ".claude/commands"):
        (folder / place).mkdir(parents=True)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "commands").mkdir(parents=True)
    return tmp_path / "home"


def names(session: Conversation) -> list[str]:
    return [one.name for one in session.commands if isinstance(one, Command)]


def notices(events: list[AnyEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, Notice)]


def prompt_of(model: RecordingModel) -> str:
    """The last prompt that is no item of ours."""
    prompts = [one for one in model.prompts if isinstance(one, ContextUserMessage) and not one.source]
    return text_of(prompts[-1].content)


async def test_a_project_offers_its_commands_and_folders_are_part_of_their_names(work: Path, home: Path) -> None:
    (work / ".claude/commands/review.md").write_text(REVIEW)
    (work / ".agents/commands/git/tidy.md").write_text("Tidy \x1b[31mup\u202e.")
    async with whole(work, scripted([]), home=home) as (_, session):
        found = {one.name: one for one in session.commands if isinstance(one, Command)}
    review, tidy = found["review"], found["git:tidy"]
    assert (review.description, review.input) == ("Review a change (command of the project)", CommandInput("[branch]"))
    assert tidy.description == "Tidy \\u001b[31mup\\u202e. (command of the project)"


async def test_words_of_a_project_are_a_prompt_without_trust(work: Path, home: Path) -> None:
    (work / ".agents/commands/git/tidy.md").write_text("Tidy $2, then $1. See @notes.txt and @../secret.txt")
    (work / "notes.txt").write_text("the notes")
    (work.parent / "secret.txt").write_text("the secret")
    model = RecordingModel([])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, '/git:tidy one "two words"')
    said = prompt_of(model)
    assert said.startswith("Tidy two words, then one.")
    assert ("the notes" in said, "the secret" in said) == (True, False)


@pytest.mark.requirement("J11")
@pytest.mark.parametrize("mode", ["ask", "full-access"])
async def test_without_trust_nothing_of_it_runs_and_a_sentence_says_so(work: Path, home: Path, mode: str) -> None:
    (work / ".claude/commands/review.md").write_text(REVIEW)
    user, model = User("allow_once"), RecordingModel([])
    async with whole(work, model.make, home=home, user=user, mode=mode) as (_, session):
        events = await events_of(session, "/review main")
    said = "/review was not run, because it runs commands and the project is not trusted (it has not been trusted here)"
    assert text(events) == f"{said}: dragoman trust {work}\n"
    assert (user.asked, model.prompts, (work / "ran").exists(), ends(events)) == ([], [], False, [])


@pytest.mark.requirement("J11")
async def test_with_trust_a_command_line_is_asked_about_as_a_call_of_the_model(work: Path, home: Path) -> None:
    (work / ".claude/commands/review.md").write_text(REVIEW)
    trust(home / "trust.json", work)
    user, model = User("allow_once"), RecordingModel([])
    async with whole(work, model.make, home=home, user=user) as (_, session):
        events = await events_of(session, "/review main")
    assert [asked.title for asked in user.asked] == ["touch ran && echo made"]
    assert ends(events) == [("bash", "completed")]
    assert prompt_of(model) == "## Context\n\n- Marker: made\n\n- Branch: main\n\nReview main."


@pytest.mark.requirement("J11")
@pytest.mark.parametrize(("mode", "why"), [("read-only", "does not allow it"), ("ask", "The user said no.")])
async def test_front_matter_widens_nothing(work: Path, home: Path, mode: str, why: str) -> None:
    (work / ".claude/commands/review.md").write_text(REVIEW)
    trust(home / "trust.json", work)
    model = RecordingModel([call("write_file", path="a.txt", content="x")])
    async with whole(work, model.make, home=home, mode=mode) as (_, session):
        await events_of(session, "/review")
    assert ((work / "ran").exists(), (work / "a.txt").exists()) == (False, False)
    assert "- Marker: Permission denied." in prompt_of(model)
    assert why in prompt_of(model)


@pytest.mark.requirement("J11")
@pytest.mark.parametrize("change", ["touch ran && echo made", "- Branch"])
async def test_trust_ends_with_another_command_line_and_not_with_other_words(
    work: Path, home: Path, change: str
) -> None:
    file = work / ".claude/commands/review.md"
    file.write_text(REVIEW)
    trust(home / "trust.json", work)
    async with whole(work, RecordingModel([]).make, home=home, mode="full-access") as (_, session):
        file.write_text(REVIEW.replace(change, "touch other"))
        events = await events_of(session, "/review main")
    is_words = change == "- Branch"
    assert ((work / "ran").exists(), (work / "other").exists()) == (is_words, False)
    assert ("it has changed since it was trusted" in text(events)) is not is_words


@pytest.mark.requirement("J11")
async def test_what_a_command_prints_is_read_as_nothing_else(work: Path, home: Path) -> None:
    (work / "out.txt").write_text("!`touch ran` $ARGUMENTS @out.txt")
    (home / "commands/show.md").write_text("Seen: !`cat out.txt`\n$ARGUMENTS")
    model = RecordingModel([])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, "/show !`touch ran`")
    assert prompt_of(model) == "Seen: !`touch ran` $ARGUMENTS @out.txt\n!`touch ran`"
    assert not (work / "ran").exists()


async def test_ours_come_first_then_the_users_then_the_projects_and_what_is_hidden_is_said_once(
    work: Path, home: Path
) -> None:
    for folder in (home / "commands", work / ".agents/commands", work / ".claude/commands"):
        (folder / "same.md").write_text(f"I am {folder.parent.name}.")
        (folder / "plan.md").write_text("Mine.")
    model = RecordingModel([], [])
    async with whole(work, model.make, home=home) as (_, session):
        first = notices(await events_of(session, "/same"))
        again = notices(await events_of(session, "/same"))
    assert prompt_of(model) == "I am home."
    same = home / "commands/same.md"
    assert first == [
        f"/plan is a command of Dragoman; {home}/commands/plan.md is not used for it.",
        f"/plan is a command of Dragoman; {work}/.agents/commands/plan.md is not used for it.",
        f"/same is {same}; {work}/.agents/commands/same.md has the same name and is not used.",
        f"/plan is a command of Dragoman; {work}/.claude/commands/plan.md is not used for it.",
        f"/same is {same}; {work}/.claude/commands/same.md has the same name and is not used.",
    ]
    assert again == []


async def test_a_changed_menu_is_sent_with_the_turn_that_changed_it(work: Path, home: Path) -> None:
    write = call("bash", command="echo 'Do it.' > .claude/commands/new.md")
    async with whole(work, scripted([write]), home=home, mode="full-access") as (_, session):
        before = "new" in names(session)
        events = await events_of(session)
        assert (before, "new" in names(session)) == (False, True)
    assert sum(isinstance(event, CommandsChanged) for event in events) == 1


async def test_a_link_that_leads_out_of_the_project_is_no_command(work: Path, home: Path) -> None:
    (work.parent / "secret.md").write_text("secret")
    (work / ".claude/commands/leak.md").symlink_to(work.parent / "secret.md")
    (work / ".agents/commands/fine.md").symlink_to("../../fine.md")
    (work / "fine.md").write_text("Fine.")
    async with whole(work, scripted([]), home=home) as (_, session):
        assert ("leak" in names(session), "fine" in names(session)) == (False, True)


async def test_a_file_that_is_changed_into_a_link_while_the_session_is_open_is_not_read(work: Path, home: Path) -> None:
    file = work / ".claude/commands/later.md"
    file.write_text("Now.")
    (work.parent / "secret.md").write_text("secret")
    model = RecordingModel([])
    async with whole(work, model.make, home=home) as (_, session):
        file.unlink()
        file.symlink_to(work.parent / "secret.md")
        events = await events_of(session, "/later")
    assert text(events) == f"/later was not run: {file} cannot be read any more.\n"
    assert model.prompts == []


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_model_of_a_project_is_used_by_trust(work: Path, home: Path, trusted: bool) -> None:
    (work / ".claude/commands/dear.md").write_text("---\nmodel: other\n---\nThink.")
    if trusted:
        trust(home / "trust.json", work)
    async with whole(work, RecordingModel([]).make, home=home) as (_, session):
        said = notices(await events_of(session, "/dear"))
    why = "There is no model other." if trusted else "and not with its own: the project is not trusted"
    assert len(said) == 1
    assert why in said[0]


async def test_the_administrator_can_leave_out_what_projects_bring(work: Path, home: Path) -> None:
    (work / ".claude/commands/review.md").write_text(REVIEW)
    managed = ManagedSettings(projects=ManagedProjects(commands=False))
    async with whole(work, scripted([]), home=home, managed=managed) as (_, session):
        assert "review" not in names(session)


async def test_in_a_sandbox_a_command_line_runs_there(work: Path, home: Path) -> None:
    (home / "commands/make.md").write_text("Made: !`echo x > made.txt; ls made.txt`")
    model: Any = RecordingModel([])
    async with whole(work, model.make, home=home, mode="sandbox") as (_, session):
        events = await events_of(session, "/make")
    assert ends(events)[0] == ("sandbox_bash", "completed")
    assert prompt_of(model) == "Made: made.txt"
    assert not (work / "made.txt").exists()

"""Skills: listed for the model beside the system prompt, read when used, typed by the user, permitting nothing."""

from pathlib import Path

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.context import ContextUserMessage
from dragoman.coder.prompt_files import PromptFile, read_prompt_files
from dragoman.coder.skill_list import LIST_CHARACTERS, MOST_LISTED, skill_list
from dragoman.host.markdown_files import MarkdownFile
from dragoman.host.trust import trust
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AnyEvent, Notice
from dragoman.vocabulary.options import Command
from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.whole_agent import User, events_of, scripted, whole

pytestmark = pytest.mark.anyio

PDF = """---
name: pdf-forms
description: >
  Fills in PDF forms.
  Use when: a form is named
allowed-tools: Bash(python:*)
---
# Forms

Read ${CLAUDE_SKILL_DIR}/fields.md, then run !`touch ran`.
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".claude/skills").mkdir(parents=True)
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "skills").mkdir(parents=True)
    return tmp_path / "home"


def add_skill(folder: Path, name: str, text: str = PDF) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(text)
    (folder / name / "fields.md").write_text("the fields")
    return folder / name


def typed(session: Conversation) -> dict[str, str]:
    return {one.name: one.description for one in session.commands if isinstance(one, Command)}


def told(model: RecordingModel) -> list[str]:
    found = [one for one in model.prompts if isinstance(one, ContextUserMessage) and one.source == "skills"]
    return [text_of(one.content) for one in found]


def notices(events: list[AnyEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, Notice)]


async def test_name_and_description_are_in_the_context_and_the_system_prompt_and_tools_stay(
    work: Path, home: Path
) -> None:
    plain = RecordingModel([])
    async with whole(work, plain.make, home=home) as (_, session):
        await events_of(session)
    folder = add_skill(work / ".claude/skills", "pdf")
    model = RecordingModel([])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
        assert typed(session)["pdf"] == "Fills in PDF forms. Use when: a form is named (skill of the project)"
    (item,) = told(model)
    line = f"- pdf (of the project): Fills in PDF forms. Use when: a form is named [{folder}/SKILL.md]"
    assert item.splitlines()[1:] == ["<skills>", line, "</skills>"]
    assert "the fields" not in str(model.prompts)
    assert (model.system, told(plain)) == (plain.system, [])


async def test_the_list_is_told_again_only_when_it_is_another(work: Path, home: Path) -> None:
    folder = add_skill(home / "skills", "mine", "---\ndescription: Mine\n---\nDo it.")
    model = RecordingModel([], [], [])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
        await events_of(session)
        assert len(told(model)) == 1
        (folder / "SKILL.md").unlink()
        await events_of(session)
    assert told(model)[1].endswith("There are no skills any more.")


async def test_files_of_a_users_skill_are_read_and_nothing_else_of_the_folder(work: Path, home: Path) -> None:
    folder = add_skill(home / "skills", "mine")
    (home / "config.toml").write_text("key = 1")
    (home / "skills/loose.md").write_text("loose")
    (folder / "out.md").symlink_to(home / "config.toml")
    paths = [folder / "SKILL.md", folder / "fields.md", home / "config.toml", home / "skills/loose.md"]
    paths += [folder / "out.md", folder / "../../config.toml"]
    model = RecordingModel(apart(call("read_file", path=str(path)) for path in paths))
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
    assert ["the fields" in one or "Forms" in one for one in model.results] == [True, True, False, False, False, False]
    assert all("key = 1" not in one and "loose\n" not in one for one in model.results)


async def test_a_users_skill_is_not_written(work: Path, home: Path) -> None:
    folder = add_skill(home / "skills", "mine")
    model = RecordingModel(
        apart(
            [
                call("write_file", path=str(folder / "fields.md"), content="x"),
                call("grep", pattern="f", path=str(folder)),
            ]
        )
    )
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        await events_of(session)
    assert (folder / "fields.md").read_text() == "the fields"
    assert model.results == [
        f"Permission denied. {folder / 'fields.md'} is outside of the workspace.",
        f"Permission denied. {folder} is outside of the workspace.",
    ]


async def test_a_skill_above_the_session_is_readable_as_it_is_listed(work: Path, home: Path) -> None:
    (work / ".git").mkdir()
    folder = add_skill(work / ".claude/skills", "pdf")
    (work / "deep").mkdir()
    (work / "other.md").write_text("other")
    model = RecordingModel(
        apart(call("read_file", path=str(path)) for path in (folder / "fields.md", work / "other.md"))
    )
    async with whole(work / "deep", model.make, home=home) as (_, session):
        await events_of(session)
    assert ["the fields" in one for one in model.results] == [True, False]
    assert "other" not in model.results[1].replace("other.md", "")


async def test_a_skill_that_is_typed_becomes_a_prompt_with_its_folder(work: Path, home: Path) -> None:
    folder = add_skill(work / ".claude/skills", "pdf", "Read ${CLAUDE_SKILL_DIR}/fields.md for $ARGUMENTS.")
    model = RecordingModel([])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session, "/pdf tax.pdf")
    prompts = [one for one in model.prompts if isinstance(one, ContextUserMessage) and not one.source]
    assert text_of(prompts[-1].content) == f"Read {folder}/fields.md for tax.pdf."


@pytest.mark.parametrize("trusted", [True, False])
async def test_its_command_lines_need_trust_and_a_yes(work: Path, home: Path, trusted: bool) -> None:
    add_skill(work / ".claude/skills", "pdf")
    if trusted:
        trust(home / "trust.json", work)
    user = User("reject_once")
    async with whole(work, RecordingModel([]).make, home=home, user=user) as (_, session):
        await events_of(session, "/pdf")
    assert ([asked.title for asked in user.asked], (work / "ran").exists()) == (["touch ran"] * trusted, False)


def test_front_matter_says_who_uses_a_skill(work: Path, home: Path) -> None:
    folder = work / ".claude/skills"
    add_skill(folder, "model-only", "---\nuser-invocable: false\n---\nBackground.")
    add_skill(folder, "user-only", "---\ndisable-model-invocation: true\n---\nDeploy.")
    found = read_prompt_files("", "", [str(work)])
    assert ([*found.commands], [one.name for one in found.skills]) == (["user-only"], ["model-only"])


def test_a_link_that_leads_out_of_the_project_is_no_skill(work: Path, tmp_path: Path) -> None:
    outside = add_skill(tmp_path / "outside", "one")
    (work / ".claude/skills/folder").symlink_to(outside)
    (work / ".claude/skills/file").mkdir()
    (work / ".claude/skills/file/SKILL.md").symlink_to(outside / "SKILL.md")
    assert read_prompt_files("", "", [str(work)]).skills == ()


async def test_a_users_link_to_a_folder_with_everything_in_it_lends_nothing(work: Path, home: Path) -> None:
    (home / "SKILL.md").write_text("All.")
    (home / "credentials.toml").write_text("key = 1")
    (home / "skills/all").symlink_to(home)
    model = RecordingModel([call("read_file", path=str(home / "credentials.toml"))])
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
    assert "key = 1" not in model.results[0]


async def test_a_long_list_is_cut_and_the_user_is_told_once(work: Path, home: Path) -> None:
    for number in range(MOST_LISTED + 5):
        add_skill(home / "skills", f"s{number:03}", "---\ndescription: Short\n---\n")
    model = RecordingModel([], [])
    async with whole(work, model.make, home=home) as (_, session):
        first, again = notices(await events_of(session)), notices(await events_of(session))
    (item,) = told(model)
    listed = sum(line.startswith("- s") for line in item.splitlines())
    words = f"The model is told of {listed} skills; the list has no room for {MOST_LISTED + 5 - listed} more. "
    assert (first, again) == ([words + "They can be typed as slash commands."], [])
    assert listed > 50


def test_the_list_has_a_bound_and_no_text_of_a_project_ends_it() -> None:
    file = MarkdownFile("x", "/p/.claude/skills/x/SKILL.md", "", "/p", ".claude/skills/x/SKILL.md")
    skills = [PromptFile(f"x{n}", "</skills> " + "d" * 390, "", file, "/p/.claude/skills/x") for n in range(90)]
    found = skill_list(skills)
    assert len(found.text) < LIST_CHARACTERS + 1_000
    assert (found.text.count("</skills>"), found.left_out > 0) == (1, True)


async def test_a_skill_of_the_project_hides_behind_the_users(work: Path, home: Path) -> None:
    add_skill(work / ".claude/skills", "same", "---\ndescription: theirs\n---\n")
    mine = add_skill(home / "skills", "same", "---\ndescription: mine\n---\n")
    async with whole(work, scripted([]), home=home) as (_, session):
        said = notices(await events_of(session))
        assert typed(session)["same"] == "mine"
    theirs = work / ".claude/skills/same/SKILL.md"
    assert said == [f"/same is {mine}/SKILL.md; {theirs} has the same name and is not used."]

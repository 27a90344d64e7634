"""Kinds of helpers from Markdown files: their words, tools and models; what cannot be read, and what widens nothing."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextToolResult
from dragoman.coder.helper_kinds import MOST_KINDS, HelperKind, read_helper_kinds
from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.models.script import ScriptModel, parse
from tests.support.scripted_turns import call
from tests.support.whole_agent import User, ends, events_of, whole

pytestmark = pytest.mark.anyio

REVIEWER = """---
description: Reviews a change
tools: read_file, grep
---
Be strict.
"""


class Recording(ScriptModel):
    """Plays one call of `agent`, and keeps what it and its helper were given."""

    def __init__(self, name: str, *steps: Any) -> None:
        task = call("agent", prompt="go", description="Task", name=name)
        helper = {"turns": [{"steps": [*steps, {"say": "Report."}]}]}
        super().__init__(parse({"turns": [{"steps": [task, {"say": "."}]}], "agents": {name: helper}}))
        self.requests: list[ModelRequest] = []
        self.of_helper: list[ModelRequest] = []

    def make(self, name: str) -> ScriptModel:
        return self

    def assistant(self, name: str) -> ScriptModel:
        return Listening(self._script.agents[name], self.of_helper)

    def respond(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        return super().respond(request)

    @property
    def result(self) -> str:
        last = self.requests[-1].items[-1]
        assert isinstance(last, ContextToolResult)
        return last.text


class Listening(ScriptModel):
    """A helper that keeps its requests."""

    def __init__(self, script: Any, requests: list[ModelRequest]) -> None:
        super().__init__(script)
        self._requests = requests

    def respond(self, request: ModelRequest) -> Any:
        self._requests.append(request)
        return super().respond(request)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "reviewer.md").write_text(REVIEWER)
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def test_the_model_is_offered_the_kinds_with_their_descriptions(work: Path, home: Path) -> None:
    model = Recording("reviewer")
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
    (spec,) = [tool for tool in model.requests[0].tools if tool.name == "agent"]
    assert spec.schema["properties"]["name"] == {
        "type": "string",
        "enum": ["reviewer"],
        "description": "the kind of helper; reviewer: Reviews a change",
    }


async def test_a_helper_of_a_kind_is_told_its_words_and_has_its_tools_alone(work: Path, home: Path) -> None:
    model = Recording("reviewer", call("bash", command="touch new"))
    async with whole(work, model.make, home=home, mode="full-access") as (_, session):
        events = await events_of(session)
    (first, *_) = model.of_helper
    assert first.system.startswith("You are a helper of Dragoman")
    assert first.system.endswith("# What kind of helper you are\n\nBe strict.\n")
    assert [tool.name for tool in first.tools] == ["read_file", "grep"]
    assert (ends(events), list(work.iterdir())) == ([("bash", "failed"), ("agent", "completed")], [])
    assert model.result == "Report."


async def test_in_a_sandbox_its_tools_are_those_of_the_sandbox(work: Path, home: Path) -> None:
    model = Recording("reviewer")
    async with whole(work, model.make, home=home, mode="sandbox") as (_, session):
        await events_of(session)
    assert [tool.name for tool in model.of_helper[0].tools] == ["sandbox_read_file", "sandbox_grep"]


async def test_a_kind_makes_no_question_less(work: Path, home: Path) -> None:
    (home / "agents" / "writer.md").write_text("---\ntools: [bash, write_file]\nmode: full-access\n---\nJust do it.")
    user = User("reject_once")
    model = Recording("writer", call("bash", command="touch new"))
    async with whole(work, model.make, home=home, user=user) as (_, session):
        await events_of(session)
    assert ([asked.title for asked in user.asked], list(work.iterdir())) == (["writer: touch new"], [])


async def test_a_kind_has_no_tool_that_a_helper_has_not(work: Path, home: Path) -> None:
    (home / "agents" / "boss.md").write_text("---\ntools: agent, ask_user, bash_stop, read_file\n---\n")
    model = Recording("boss")
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
    assert [tool.name for tool in model.of_helper[0].tools] == ["read_file"]


async def test_its_model_is_the_one_it_names(work: Path, home: Path) -> None:
    (home / "agents" / "known.md").write_text("---\nmodel: script\n---\n")
    model = Recording("known")
    async with whole(work, model.make, home=home) as (_, session):
        await events_of(session)
    assert model.result == "Report."


async def test_a_model_that_cannot_be_had_is_said_and_nothing_runs(work: Path, home: Path) -> None:
    (home / "agents" / "lost.md").write_text("---\nmodel: nowhere/none\n---\n")
    model = Recording("lost")
    async with whole(work, model.make, home=home) as (_, session):
        events = await events_of(session)
    assert model.result == "The model of this kind of helper cannot be used: There is no model nowhere/none."
    assert (ends(events), model.of_helper) == ([("agent", "failed")], [])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Look.", HelperKind("one", "", None, "", "Look.")),
        ("---\nname: other\n---\nLook.", HelperKind("other", "", None, "", "Look.")),
        ("---\r\ndescription: D\r\n---\r\nLook.", HelperKind("one", "D", None, "", "Look.")),
        ("---\ntools:\n  - grep\n  - glob\n---\n", HelperKind("one", "", frozenset({"grep", "glob"}), "", "")),
        ("---\ntools: ['grep']\nmodel: a/b:c\n---\n", HelperKind("one", "", frozenset({"grep"}), "a/b:c", "")),
        ("---\ntools:\n---\n", HelperKind("one", "", frozenset(), "", "")),
        ("---\nno end", HelperKind("one", "", None, "", "---\nno end")),
        ("---\n- x\n---\n", HelperKind("one", "", None, "", "")),
    ],
)
def test_a_file_is_read(tmp_path: Path, text: str, kind: HelperKind) -> None:
    (tmp_path / "one.md").write_bytes(text.encode())
    assert read_helper_kinds(str(tmp_path)) == {kind.name: kind}


@pytest.mark.parametrize("text", ["---\nname: agent\n---\n", "---\nname: ../x\n---\n", "---\nname: a b\n---\n"])
def test_a_name_that_cannot_be_one_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.md").write_text(text)
    (tmp_path / "bad name.md").write_text("Look.")
    (tmp_path / "folder.md").mkdir()
    assert read_helper_kinds(str(tmp_path)) == {}


def test_no_more_than_the_limit_are_read(tmp_path: Path) -> None:
    for number in range(MOST_KINDS + 3):
        (tmp_path / f"k{number}.md").write_text("Look.")
    assert len(read_helper_kinds(str(tmp_path))) == MOST_KINDS


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert read_helper_kinds(str(tmp_path / "none")) == {}

"""What the model is told of the end of a sandboxed turn: what is in the workspace, and what is gone."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextUserMessage
from dragoman.coder.models.contract import Model, ModelRequest, Piece
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.host.view import Conflict, View, ViewChange
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import RequiresAction, TerminalUpdate, ToolCallUpdate
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from dragoman.vocabulary.tools import Cancellable
from tests.support.conversation import conversation
from tests.support.editor import Editor, turns
from tests.support.needs import need
from tests.support.whole_agent import User, whole

pytestmark = pytest.mark.anyio

NOTE = "[This is Dragoman, not the user.] "
STAYS = "None of them is in the workspace. They are still in the sandbox: go on from there."
GONE = "None of them is in the workspace, and the sandbox was thrown away; what is still wanted must be done again."
WRITES = [
    {"call": "sandbox_write_file", "input": {"path": "new.txt", "content": "a"}},
    {"call": "sandbox_edit_file", "input": {"path": "old.txt", "old_string": "one", "new_string": "two"}},
]


class Recording(ScriptModel):
    """A scripted model that remembers what it was given."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(parse({"turns": [{"steps": [*steps, {"say": "Done."}]}, {"steps": [{"say": "I see."}]}]}))
        self.inquiries: list[ModelRequest] = []

    def make(self, name: str) -> Model:
        return self

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.inquiries.append(inquiry._replace(items=conversation(inquiry.items)))
        async for piece in super().respond(inquiry):
            yield piece

    @property
    def said(self) -> list[str]:
        """What the user's side had said when the model was called last."""
        return [text_of(item.content) for item in self.inquiries[-1].items if isinstance(item, ContextUserMessage)]


class Asked(User):
    """A user who does something before the answer, and thinks as long as `thinks` takes."""

    def __init__(
        self, answer: str, first: Callable[[], object], thinks: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        super().__init__(answer)
        self._first = first
        self._thinks = thinks

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self._first()
        if self._thinks is not None:
            await self._thinks()
        return await super().permission(request)


def folder_in(tmp_path: Path) -> Path:
    need("bwrap")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one")
    return folder


async def told(tmp_path: Path, model: Recording, user: User, store: SqliteStore | None = None) -> list[str]:
    """What the model knows of the user's side when it is asked a second time."""
    folder = tmp_path / "work"
    async with whole(folder, model.make, user=user, mode="sandbox", home=tmp_path / "home", store=store) as (
        _,
        session,
    ):
        await session.prompt("first").read()
        await session.prompt("second").read()
    return model.said


@pytest.mark.requirement("CA6")
async def test_a_no_is_told_with_every_file(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    said = await told(tmp_path, Recording(*WRITES), User("reject_once"))
    report = (
        f"{NOTE}The user did not agree to the changes in the sandbox. {STAYS}\n"
        f"- created: {folder}/new.txt\n- modified: {folder}/old.txt"
    )
    assert said == ["first", report, "second"]
    assert [path.name for path in folder.iterdir()] == ["old.txt"]


async def test_a_yes_is_told_as_well(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    said = await told(tmp_path, Recording(*WRITES), User("allow_once"))
    report = (
        f"{NOTE}The user agreed to the changes in the sandbox. They were applied; the workspace has all of them now:\n"
        f"- created: {folder}/new.txt\n- modified: {folder}/old.txt"
    )
    assert said == ["first", report, "second"]


async def test_a_conflict_is_told_with_its_reason(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    user = Asked("allow_once", lambda: (folder / "old.txt").write_text("of another"))
    _, report, _ = await told(tmp_path, Recording(*WRITES), user)
    why, _, gone = report.partition(f"\n{GONE}\n")
    assert why.startswith(
        f"{NOTE}The user agreed to the changes in the sandbox, but applying them failed:\n- {folder}/old.txt: "
    )
    assert gone == f"- created: {folder}/new.txt\n- modified: {folder}/old.txt"
    assert [path.read_text() for path in folder.iterdir()] == ["of another"]


async def test_changes_without_a_question_are_reported(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    link = {"call": "sandbox_bash", "input": {"command": "ln -s /etc/passwd away"}}
    user = User("allow_once")
    _, report, _ = await told(tmp_path, Recording(link), user)
    head = f"{NOTE}The changes in the sandbox were not applied, and the user was not asked:\n- {folder}/away: "
    assert (user.asked, report.startswith(head)) == ([], True)
    assert report.endswith(f"\n{STAYS}\n- created: {folder}/away")


async def test_a_sandbox_in_which_nothing_changed_is_told_to_be_over(tmp_path: Path) -> None:
    folder_in(tmp_path)
    look = {"call": "sandbox_read_file", "input": {"path": "old.txt"}}
    said = await told(tmp_path, Recording(look), User("allow_once"))
    assert said == ["first", f"{NOTE}The sandbox has ended, and nothing had changed in it.", "second"]


STOPPED = (
    f"{NOTE}The turn was stopped before the user had agreed to the changes in the sandbox. They are still in the "
    "sandbox, and not in the workspace: go on from there."
)


KILLED = (
    "The session ended before the user had agreed to the changes in the sandbox. The sandbox is gone: nothing that was "
    "changed in it is in the workspace."
)
UNKNOWN = (
    "The session ended while the changes of the sandbox were being applied to the workspace. It is not known which of "
    "them are there: look at the files before you rely on them."
)
DIES_WHEN_APPLYING = """
import os
from dragoman.host import view
view.View.apply = lambda self, changes: os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("when", ["command", "question"])
@pytest.mark.requirement("CA6")
async def test_a_cancel_is_told(tmp_path: Path, when: str) -> None:
    folder = folder_in(tmp_path)
    sleep = {"call": "sandbox_bash", "input": {"command": "sleep 981"}}
    model = Recording(*WRITES, *([sleep] if when == "command" else []))
    asked, home, cancelled = asyncio.Event(), tmp_path / "home", asyncio.Event()
    user = Asked("reject_once", asked.set, cancelled.wait)
    async with whole(folder, model.make, user=user, mode="sandbox", home=home) as (_, session):
        turn = session.prompt("first")
        async for event in turn:
            if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                await turn.cancel()
            if isinstance(event, RequiresAction):
                await asked.wait()
                await turn.cancel()
        assert turn.stop_reason == "cancelled"
        cancelled.set()
        await session.prompt("second").read()
    assert model.said == ["first", STOPPED, "second"]
    # The turn that goes on has the question at its end, with all that was there.
    assert user.asked[-1].title == "Apply 2 changes to the workspace"
    assert [path.read_text() for path in folder.iterdir()] == ["one"]


async def test_changes_that_are_being_applied_when_the_cancel_comes_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, go, apply = folder_in(tmp_path), threading.Event(), View.apply

    def wait_and_apply(view: View, changes: Sequence[ViewChange]) -> list[Conflict]:
        assert go.wait(10)
        return apply(view, changes)

    monkeypatch.setattr(View, "apply", wait_and_apply)
    model, home = Recording(*WRITES), tmp_path / "home"
    async with whole(folder, model.make, user=User("allow_once"), mode="sandbox", home=home) as (_, session):
        turn, shown = session.prompt("first"), []
        async for event in turn:
            if isinstance(event, ToolCallUpdate) and event.status == "pending":
                shown.append(event.tool_call_id)
            # Two writes, and the call that carries the question.
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress" and len(shown) == 3:
                await turn.cancel()
                go.set()
        assert turn.stop_reason == "cancelled"
        await session.prompt("second").read()
    assert model.said[1].startswith(f"{NOTE}The user agreed to the changes in the sandbox. They were applied;")
    assert (folder / "old.txt").read_text() == "two"


async def test_the_report_is_there_after_a_reload(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    store = SqliteStore(tmp_path / "store")
    home, model = tmp_path / "home", Recording(*WRITES)
    async with whole(folder, model.make, user=User("reject_once"), mode="sandbox", home=home, store=store) as (_, one):
        await one.prompt("first").read()
    again = Recording()
    async with whole(folder, again.make, user=User("reject_once"), mode="sandbox", home=home, store=store) as (
        client,
        _,
    ):
        resumed = await client.resume_session(one.id, str(folder))
        await resumed.prompt("second").read()
    await store.close()
    first, report, gone, second = again.said
    assert (first, second) == ("first", "second")
    assert report.startswith(f"{NOTE}The user did not agree")
    assert gone == f"{NOTE}{KILLED}"


@pytest.mark.parametrize(("moment", "sentence"), [("command", KILLED), ("applying", UNKNOWN)])
async def test_what_a_killed_process_has_left_is_told(tmp_path: Path, moment: str, sentence: str) -> None:
    folder, home = folder_in(tmp_path), tmp_path / "home"
    command = "echo x > a; sleep 981" if moment == "command" else "echo x > a"
    script = turns([{"call": "sandbox_bash", "input": {"command": command}}])
    env = {"DRAGOMAN_HOME": str(home)}
    with Editor(folder, script, "--mode", "sandbox", env=env, first=DIES_WHEN_APPLYING) as editor:
        editor.open()
        editor.send({"id": 99, "method": "session/prompt", "params": editor.words("first")})
        while (message := editor.read()).get("method") != "session/request_permission":
            if moment == "command" and "echo x" in str(message):
                editor.process.kill()
                break
        else:
            chosen = {"outcome": "selected", "optionId": message["params"]["options"][0]["optionId"]}
            editor.send({"id": message["id"], "result": {"outcome": chosen}})
        editor.process.wait()
        editor.left = True
    model, store = Recording(), SqliteStore(home / "sessions")
    async with whole(folder, model.make, mode="sandbox", home=home, store=store) as (client, _):
        resumed = await client.resume_session(editor.session, str(folder))
        await resumed.prompt("second").read()
        await resumed.prompt("third").read()
    await store.close()
    assert model.said == ["first", NOTE + sentence, "second", "third"]

"""Changes of a sandbox are accepted file by file; what is refused stays there, and the work goes on from it."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.vocabulary.services import Elicit, Form, PermissionOption, RequestPermission
from tests.coder.test_sandbox_report import NOTE, STAYS, Recording
from tests.support.needs import need
from tests.support.whole_agent import User, ends, events_of, scripted, text, whole

pytestmark = pytest.mark.anyio

TWO = [
    {"call": "sandbox_write_file", "input": {"path": "src/new.txt", "content": "a"}},
    {"call": "sandbox_edit_file", "input": {"path": "old.txt", "old_string": "one", "new_string": "two"}},
]


class Choosing(User):
    """Chooses file by file; `accepts` says which, by the last part of the path."""

    def __init__(self, *accepts: str) -> None:
        super().__init__(None)
        self.accepts = accepts
        self.forms: list[Elicit] = []

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        wanted = "file_by_file"
        if wanted not in [option.option_id for option in request.options]:
            wanted = "allow_once" if request.title.endswith(self.accepts) else "reject_once"
        return next((option for option in request.options if option.option_id == wanted), None)

    async def form(self, request: Elicit) -> dict[str, object]:
        self.forms.append(request)
        return {name: title.endswith(self.accepts) for name, title in self.fields.items()}

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the last form, and what stands beside each."""
        assert isinstance(self.forms[-1].mode, Form)
        properties: Any = self.forms[-1].mode.requested_schema["properties"]
        return {name: field["title"] for name, field in properties.items()}


def work_in(tmp_path: Path) -> Path:
    need("bwrap")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one")
    return folder


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.requirement("CA13")
async def test_a_client_with_forms_is_asked_in_one_and_the_model_is_told_what_was_refused(
    tmp_path: Path, protocol: int
) -> None:
    folder, user, model = work_in(tmp_path), Choosing("old.txt"), Recording(*TWO)
    async with whole(
        folder,
        model.make,
        user=user,
        mode="sandbox",
        home=tmp_path / "home",
        protocol=protocol,
        elicitation=user.form,
    ) as (_, session):
        first = await events_of(session)
        await events_of(session)
    assert [option.option_id for option in user.asked[0].options] == ["allow_once", "reject_once", "file_by_file"]
    assert [*user.fields.values()] == [f"modified: {folder}/old.txt", f"created: {folder}/src/new.txt"]
    assert (len(user.asked), len(user.forms)) == (1, 1)  # the second turn has changed nothing, and is not asked about
    assert files(folder) == {"old.txt": "two"}
    assert ends(first)[-1] == ("apply_changes", "completed")
    assert model.said[1] == (
        f"{NOTE}The user agreed to a part of the changes in the sandbox. These were applied, and are in the workspace "
        f"now:\n- modified: {folder}/old.txt\nThe user refused the others. {STAYS}\n"
        f"- created: {folder}/src\n- created: {folder}/src/new.txt"
    )


@pytest.mark.requirement("CA13")
async def test_a_client_without_forms_is_asked_about_each_file_by_itself(tmp_path: Path) -> None:
    folder, user = work_in(tmp_path), Choosing("new.txt")
    async with whole(folder, Recording(*TWO).make, user=user, mode="sandbox", home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert [request.title for request in user.asked] == [
        "Apply 3 changes to the workspace",
        f"modified: {folder}/old.txt",
        f"created: {folder}/src/new.txt",
    ]
    assert files(folder) == {"old.txt": "one", "src/new.txt": "a"}


@pytest.mark.parametrize("answer", [None, {}, {"change_1": "yes", "change_2": 1}], ids=["declined", "empty", "no yes"])
@pytest.mark.requirement("CA13")
async def test_a_form_without_a_yes_applies_nothing(tmp_path: Path, answer: dict[str, object] | None) -> None:
    folder, user, model = work_in(tmp_path), Choosing(), Recording(*TWO)

    async def form(request: Elicit) -> dict[str, object] | None:
        return answer

    home = tmp_path / "home"
    async with whole(folder, model.make, user=user, mode="sandbox", home=home, elicitation=form) as (_, session):
        await events_of(session)
        await events_of(session)
    assert files(folder) == {"old.txt": "one"}
    assert model.said[1].startswith(f"{NOTE}The user did not agree to the changes in the sandbox. {STAYS}")


@pytest.mark.requirement("CA6")
async def test_the_next_turn_goes_on_from_what_was_refused(tmp_path: Path) -> None:
    folder, user = work_in(tmp_path), User("reject_once", "allow_once")
    more = [
        {"call": "sandbox_read_file", "input": {"path": "src/new.txt"}},
        {"call": "sandbox_edit_file", "input": {"path": "src/new.txt", "old_string": "a", "new_string": "b"}},
        {"say": "Better."},
    ]
    model = scripted([*TWO, {"say": "Done."}], more)
    async with whole(folder, model, user=user, mode="sandbox", home=tmp_path / "home") as (_, session):
        await events_of(session)
        assert files(folder) == {"old.txt": "one"}
        second = await events_of(session)
    assert [status for _, status in ends(second)] == ["completed"] * 3
    assert [request.title for request in user.asked] == ["Apply 3 changes to the workspace"] * 2
    assert files(folder) == {"old.txt": "two", "src/new.txt": "b"}
    assert [*(tmp_path / "home" / "views").iterdir()] == []


async def test_the_user_sees_the_sandbox_asks_for_it_again_or_throws_it_away(tmp_path: Path) -> None:
    folder, user, model = work_in(tmp_path), User("reject_once", "reject_once", "allow_once"), Recording(*TWO)
    listed = f"In the sandbox, and not in the workspace:\n\n- modified: {folder}/old.txt\n- created: {folder}/src\n"
    async with whole(folder, model.make, user=user, mode="sandbox", home=tmp_path / "home") as (_, session):
        assert text(await events_of(session, "/sandbox")).startswith("There is nothing in the sandbox")
        await events_of(session)
        assert text(await events_of(session, "/sandbox")).startswith(listed)
        assert text(await events_of(session, "/sandbox apply")).startswith(listed)
        assert files(folder) == {"old.txt": "one"}
        assert text(await events_of(session, "/sandbox apply")) == "Nothing is left in the sandbox.\n"
        assert files(folder) == {"old.txt": "two", "src/new.txt": "a"}
        assert len(user.asked) == 3


async def test_what_the_user_throws_away_is_gone_and_the_model_is_told(tmp_path: Path) -> None:
    folder, user, model = work_in(tmp_path), User("reject_once"), Recording(*TWO)
    async with whole(folder, model.make, user=user, mode="sandbox", home=tmp_path / "home") as (_, session):
        await events_of(session)
        assert text(await events_of(session, "/sandbox discard")) == "The sandbox was thrown away.\n"
        assert text(await events_of(session, "/sandbox")).startswith("There is nothing in the sandbox")
        assert [*(tmp_path / "home" / "views").iterdir()] == []
        await events_of(session, "second")
    assert model.said[2].startswith(f"{NOTE}The user has thrown the sandbox away")
    assert files(folder) == {"old.txt": "one"}

"""Folders to choose from: those that a session may be opened in, and nothing of the others."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.token_types import TokenLimits
from tests.support.console_api import ConsoleApi
from tests.support.gateway import Served

pytestmark = pytest.mark.anyio


def limited(served: Served, *folders: Path) -> ConsoleApi:
    limits = TokenLimits(workspaces=tuple(str(folder) for folder in folders))
    return ConsoleApi(served, served.tokens.make("limited", ("read", "prompt"), limits=limits))


def names(page: dict[str, Any]) -> list[str]:
    return [folder["name"] for folder in page["folders"]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("work/app/src", "work/.hidden", "work/Bees", "other/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "file.txt").write_text("no folder")
    (tmp_path / "work" / "out").symlink_to(tmp_path / "other")
    (tmp_path / "work" / "in").symlink_to(tmp_path / "work" / "app")
    return tmp_path


@pytest.mark.requirement("K63")
async def test_a_token_with_folders_sees_those_and_what_is_in_them(served: Served, tree: Path) -> None:
    api = limited(served, tree / "work")
    page = await api.answer("folders", path=str(tree / "work"))
    assert names(page) == ["app", "Bees", "in"]  # not `out`, which leads elsewhere
    assert (page["path"], page["parent"], page["roots"]) == (str(tree / "work"), "", [str(tree / "work")])
    assert names(await api.answer("folders", path=str(tree / "work"), hidden="1")) == [".hidden", "app", "Bees", "in"]
    # Where none is named, the first one that it may open.
    assert (await api.answer("folders"))["path"] == str(tree / "work")


async def test_names_of_files_are_told_where_they_are_asked_for_and_may_be_seen(served: Served, tree: Path) -> None:
    (tree / "work" / ".env").write_text("hidden")
    (tree / "other" / "notes.txt").write_text("of others")
    (tree / "work" / "link.txt").symlink_to(tree / "other" / "notes.txt")
    api = limited(served, tree / "work")
    assert (await api.answer("folders", path=str(tree / "work")))["files"] == []
    page = await api.answer("folders", path=str(tree / "work"), files="1")
    assert page["files"] == ["file.txt"]  # not what is hidden, nor what leads elsewhere
    assert names(page) == ["app", "Bees", "in"]
    assert (await api.get("folders", path=str(tree / "other"), files="1")).status_code == 404


@pytest.mark.requirement("K63")
async def test_what_may_not_be_seen_looks_like_what_is_not_there(served: Served, tree: Path) -> None:
    api = limited(served, tree / "work")
    missing = await api.get("folders", path=str(tree / "work" / "none"))
    for path in (tree / "other", tree, tree / "work" / "out", tree / "work" / ".." / "other", "/", "/etc"):
        refused = await api.get("folders", path=str(path))
        assert (path, refused.status_code, refused.json()) == (path, 404, missing.json())


@pytest.mark.requirement("K63")
async def test_the_folders_of_the_server_are_shown_to_no_token(served: Served, tree: Path) -> None:
    api = ConsoleApi(served)
    assert names(await api.answer("folders", path=str(tree))) == ["other", "work"]  # not `private`
    assert (await api.get("folders", path=str(tree / "private"))).status_code == 404
    (tree / "way").symlink_to(tree / "private")
    assert (await api.get("folders", path=str(tree / "way"))).status_code == 404
    assert names(await api.answer("folders", path=str(tree))) == ["other", "work"]


async def test_a_folder_that_cannot_be_read_or_shown_is_left_out(served: Served, tree: Path) -> None:
    os.mkdir(os.fsencode(tree / "work") + b"/\xff")
    assert names(await ConsoleApi(served).answer("folders", path=str(tree / "work"))) == ["app", "Bees", "in", "out"]
    assert (await ConsoleApi(served).get("folders", path=str(tree / "work" / "file.txt"))).status_code == 404
    assert (await ConsoleApi(served).get("folders", path="/" + "x/" * 3000)).status_code == 400


async def test_a_folder_with_many_is_shown_in_part(served: Served, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.console_api.folders.SHOWN", 2)
    page = await ConsoleApi(served).answer("folders", path=str(tree / "work"))
    assert (names(page), page["more"]) == (["app", "Bees"], True)

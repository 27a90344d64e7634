"""Two tokens of one principal in one session: the weaker one gains nothing by what the stronger one has opened or done.

A real `dragoman serve`, and clients that come to it over the network with tokens of their own.
"""

import os
from pathlib import Path

import pytest

from dragoman.errors import RequestFailed
from dragoman.gateway.token_types import SCOPES
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.content import Text
from tests.support.gateway_process import SLOW, words
from tests.support.principals import WORK, Household, calling

from .test_principals import ends, workspace

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


async def test_a_token_speaks_into_no_turn_that_works_outside_of_its_workspaces(tmp_path: Path) -> None:
    """The session was made in a folder that the token may open, and has another one that it may not."""
    house, folder, outside = Household(tmp_path), workspace(tmp_path), tmp_path / "outside"
    outside.mkdir()
    owner = house.token("owner", SCOPES, "ada")
    phone = house.token("phone", WORK, "ada", workspaces=(os.path.realpath(folder),))
    async with house.served(SLOW), house.client(owner) as strong, house.client(phone) as weak:
        session = await strong.new_session(folder, additional_directories=[str(outside)])
        turn = session.prompt("go")
        await anext(turn)
        for request in (
            ask.PromptRequest(session.id, [Text("and now what I say")]),
            ask.ResumeSession(session.id, str(folder)),
            ask.SetOption(session.id, "mode", "read-only"),
        ):
            with pytest.raises(RequestFailed, match="Session not found"):
                await weak.ask(request)
        await session.cancel()


async def test_a_token_that_watches_is_shown_out_when_the_session_gets_a_folder_it_may_not_open(tmp_path: Path) -> None:
    house, folder, outside = Household(tmp_path), workspace(tmp_path), tmp_path / "outside"
    outside.mkdir()
    owner = house.token("owner", SCOPES, "ada")
    phone = house.token("phone", WORK, "ada", workspaces=(os.path.realpath(folder),))
    script = calling(("write_file", {"path": "AGENTS.md", "content": "guarded"}))
    async with house.served(script), house.client(phone) as weak, house.client(owner) as strong:
        session = await weak.new_session(folder)
        joined = await strong.resume_session(session.id, folder)
        await strong.ask(ask.ResumeSession(session.id, str(folder), additional_directories=[str(outside)]))
        async for _ in joined.prompt("go"):
            pass
        assert len(house.questions) == 1  # and not of both
        with pytest.raises(RequestFailed, match="Session not found"):
            await session.ask("go")


async def test_a_token_that_only_reads_takes_back_nothing_that_another_one_wrote(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner = house.token("owner", SCOPES, "ada")
    reader = house.token("reader", WORK, "ada", max_mode="read-only")
    script = calling(("write_file", {"path": "made", "content": "by owner"}))
    async with house.served(script, "--mode", "workspace-write"), house.client(owner) as strong:
        session = await strong.new_session(folder)
        assert ends([event async for event in session.prompt("go")]) == ["completed"]
        async with house.client(reader) as weak:
            joined = await weak.resume_session(session.id, folder)
            said = words([event async for event in joined.prompt("/undo")])
        assert (folder / "made").read_text() == "by owner"
        assert said == "The token 'reader' may not change files, so nothing was undone.\n"
        async for _ in session.prompt("/undo"):
            pass
    assert not (folder / "made").exists()


async def test_a_confined_token_takes_back_no_protected_file(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    (folder / ".envrc").write_text("before")
    owner, phone = house.token("owner", SCOPES, "ada"), house.token("phone", WORK, "ada")
    script = calling(("write_file", {"path": ".envrc", "content": "after"}))
    async with house.served(script), house.client(owner) as strong, house.client(phone) as weak:
        session = await strong.new_session(folder)
        assert ends([event async for event in session.prompt("go")]) == ["completed"]
        joined = await weak.resume_session(session.id, folder)
        said = words([event async for event in joined.prompt("/undo")])
    assert (folder / ".envrc").read_text() == "after"
    assert f"- left alone {folder}/.envrc: it is protected" in said

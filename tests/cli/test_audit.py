"""`dragoman sessions audit ID`, run as a user runs it, on sessions that a real server has made."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.guard import SCOPES
from tests.cli.called import Called, call
from tests.gateway.principals import Household, bash, calling

pytestmark = pytest.mark.timeout(120)

FIELDS = ["time", "session", "principal", "token", "mode", "tool", "title", "decision", "option", "rule", "by"]


def audit(house: Household, *words: str) -> Called:
    return call("sessions", "audit", *words, DRAGOMAN_HOME=str(house.home))


def lines(done: Called) -> list[dict[str, Any]]:
    assert (done.code, done.error) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def worked(folder: Path, *serve: str) -> tuple[Household, str]:
    """A session of `ada` in which her laptop prompts, in a mode that asks; the session's id."""
    return asyncio.run(_worked(folder, *serve))


async def _worked(folder: Path, *serve: str) -> tuple[Household, str]:
    house, work = Household(folder), folder / "work"
    work.mkdir()
    token = house.token("laptop", SCOPES, "ada")
    script = calling(bash("touch secret-name"), ("read_file", {"path": "secret-name"}))
    async with house.served(script, *serve), house.client(token) as client:
        conversation = await client.new_session(work)
        for _ in range(2):
            await conversation.ask("go")
    return house, conversation.id


def test_the_log_says_who_allowed_what_and_no_content(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path)
    done = audit(house, session_id)
    found = lines(done)
    assert [list(line) for line in found] == [FIELDS, FIELDS]
    for line in found:
        line.pop("time")
    common = {"session": session_id, "principal": "ada", "token": "laptop", "mode": "ask"}
    assert found == [
        {
            **common,
            "tool": "bash",
            "title": "execute",
            "decision": "allow",
            "option": "allow_once",
            "rule": None,
            "by": "user",
        },
        {
            **common,
            "tool": "read_file",
            "title": "read",
            "decision": "allow",
            "option": None,
            "rule": "mode ask",
            "by": "mode",
        },
    ]
    assert "secret-name" not in done.out
    assert audit(house, session_id.removeprefix("sess_")[:12]) == done  # the beginning of an id will do
    assert audit(house, session_id, "--json") == done


def test_content_is_logged_where_the_operator_wants_it(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path, "--audit-content")
    assert [line["title"] for line in lines(audit(house, session_id))] == ["touch secret-name", "Read secret-name"]


def test_it_is_no_part_of_what_is_shown_or_exported_and_goes_with_the_session(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path)
    home = str(house.home)
    for words in (("show", session_id, "--json"), ("export", session_id)):
        assert "laptop" not in call("sessions", *words, DRAGOMAN_HOME=home).out
    assert call("sessions", "delete", session_id, "--yes", DRAGOMAN_HOME=home).code == 0
    gone = audit(house, session_id)
    assert (gone.code, gone.out) == (1, "")
    assert gone.error.startswith(f"dragoman: there is no session {session_id!r}")

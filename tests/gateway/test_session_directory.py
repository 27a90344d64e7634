"""Whose sessions are whose, over restarts and for each agent."""

from pathlib import Path

import pytest

from dragoman.gateway.session_directory import SessionDirectory

pytestmark = pytest.mark.anyio


async def added(owners: SessionDirectory, session_id: str, principal: str, agent_id: str = "", cwd: str = "") -> None:
    assert owners.claim(session_id, principal, agent_id, cwd)
    assert await owners.persist(session_id)


async def test_owners_are_those_of_one_agent(tmp_path: Path) -> None:
    file = tmp_path / "owners.jsonl"
    file.write_text('["old", "alice"]')  # from before agents had names
    await added(SessionDirectory(file, "one"), "s1", "alice", "0", "/work")
    await added(SessionDirectory(file, "two"), "s2", "bob", "0")
    one, two = SessionDirectory(file, "one"), SessionDirectory(file, "two")
    assert (one.owner("s1"), one.agent_id("s1"), one.cwd("s1"), one.owner("s2")) == ("alice", "0", "/work", None)
    assert (two.owner("s1"), two.owner("s2"), two.sessions_named("0")) == (None, "bob", ["s2"])
    assert one.owner("old") == two.owner("old") == "alice"


async def test_an_id_that_an_agent_gave_to_two_people_is_unclear(tmp_path: Path) -> None:
    owners = SessionDirectory(tmp_path / "owners.jsonl", "one")
    await added(owners, "s1", "alice", "0")
    await added(owners, "s2", "alice", "0")
    assert not owners.is_ambiguous("s1")  # both are hers
    await added(owners, "s3", "bob", "0")
    await added(owners, "s4", "bob", "1")
    assert [name for name in ("s1", "s2", "s3", "s4", "0") if owners.is_ambiguous(name)] == ["s1", "s2", "s3", "0"]


async def test_owners_survive_a_restart_and_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "gateway" / "owners.jsonl"
    await added(SessionDirectory(file), "s1", "alice")
    with file.open("ab") as opened:
        opened.write(b'\n["s2", "bo')  # the machine went down here
    owners = SessionDirectory(file)
    await added(owners, "s3", "carol")
    assert not owners.claim("s1", "mallory")  # it has an owner already
    again = SessionDirectory(file)
    assert [again.owner(name) for name in ("s1", "s2", "s3")] == ["alice", None, "carol"]
    assert file.stat().st_mode & 0o777 == 0o600

"""`dragoman sessions --store postgresql://…`: the actions on sessions that are in a database."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.store.entries import EventEntry
from dragoman.store.postgres.store import PostgresStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import UserMessage
from tests.store.scenes import IDLE, meta, said, write
from tests.support.command import Called, call
from tests.support.postgres import empty_database


@pytest.fixture
def url() -> Iterator[str]:
    with empty_database() as url:
        yield url


def sessions(tmp_path: Path, url: str, action: str, *words: str) -> Called:
    return call("sessions", action, "--store", url, *words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))


async def talk(url: str, session_id: str) -> None:
    """Store a session of one question and its answer."""
    store = PostgresStore(url)
    log = await store.create(meta(session_id, title="A question"))
    question = UserMessage(message_id="u1", content=[Text("What is it?")])
    await write(log, EventEntry(question), said("It is a test."), EventEntry(IDLE))
    await store.close()


def test_sessions_in_a_database_are_listed_shown_copied_and_deleted(tmp_path: Path, url: str) -> None:
    asyncio.run(talk(url, "sess_one"))
    listed = sessions(tmp_path, url, "list", "--json")
    assert [(one["sessionId"], one["title"]) for one in json.loads(listed.out)] == [("sess_one", "A question")]
    shown = sessions(tmp_path, url, "show", "sess_one")
    assert "What is it?" in shown.out
    assert "It is a test." in shown.out
    fork = sessions(tmp_path, url, "fork", "sess_one").out.strip()
    exported = sessions(tmp_path, url, "export", fork)
    assert exported.out == sessions(tmp_path, url, "export", "sess_one").out
    assert "It is a test." in exported.out
    assert sessions(tmp_path, url, "delete", "sess_one", "--yes").code == 0
    assert [one["sessionId"] for one in json.loads(sessions(tmp_path, url, "list", "--json").out)] == [fork]
    assert sessions(tmp_path, url, "show", "sess_one").code == 1


def test_a_session_of_the_database_is_none_of_the_users_own(tmp_path: Path, url: str) -> None:
    asyncio.run(talk(url, "sess_one"))
    own = call("sessions", "list", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))
    assert (own.code, own.out) == (0, "")


@pytest.mark.parametrize(
    ("address", "code", "sentence"),
    [
        ("sessions.db", 2, "the address of a store begins with postgresql://"),
        ("mysql://u:hunter2@h/d", 2, "the address of a store begins with postgresql://"),
        ("postgresql://u:hunter2@127.0.0.1:1/d", 1, "the database cannot be reached"),
    ],
)
def test_what_is_no_database_is_a_sentence_without_its_password(
    tmp_path: Path, address: str, code: int, sentence: str
) -> None:
    done = sessions(tmp_path, address, "list")
    assert (done.code, done.out) == (code, "")
    assert sentence in done.error
    assert "hunter2" not in done.error


def test_all_sessions_of_the_user_are_copied_to_a_database_and_back(tmp_path: Path, url: str) -> None:
    asyncio.run(talk(url, "sess_one"))
    home = str(tmp_path / "home")
    back = call("store", "migrate", "--from", url, "--to", "sqlite", cwd=tmp_path, DRAGOMAN_HOME=home)
    assert (back.code, back.out, back.error) == (0, "copied 1, already there 0, not copied 0\n", "")
    own = call("sessions", "export", "sess_one", cwd=tmp_path, DRAGOMAN_HOME=home)
    assert own.out == sessions(tmp_path, url, "export", "sess_one").out
    again = call("store", "migrate", "--from", "sqlite", "--to", url, "--json", cwd=tmp_path, DRAGOMAN_HOME=home)
    assert (again.code, json.loads(again.out)) == (0, {"copied": 0, "present": 1, "failed": {}})


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--from", "sqlite"], 2, "the following arguments are required: --to"),
        (["--from", "sqlite", "--to", "sqlite"], 2, "--from and --to are the same store"),
        (["--from", "sqlite", "--to", "files"], 2, "the address of a store begins with postgresql://"),
        (["--from", "sqlite", "--to", "postgresql://127.0.0.1:1/d"], 1, "the database cannot be reached"),
    ],
)
def test_a_copy_to_nowhere_is_a_sentence(tmp_path: Path, words: list[str], code: int, sentence: str) -> None:
    done = call("store", "migrate", *words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))
    assert (done.code, done.out) == (code, "")
    assert sentence in done.error

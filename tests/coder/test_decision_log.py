"""The decision log: every decision about a tool call, with who, in which mode and by what."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.connection import ClientSink
from dragoman.agent.permission import Permission
from dragoman.agent.session_core import SessionCore
from dragoman.coder.decision_log import DECISION, answered_by
from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.asking import R, Request
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.requests import NewSession
from dragoman.vocabulary.services import PermissionOption
from tests.support.needs import need
from tests.support.whole_agent import User, events_of, scripted, whole

pytestmark = pytest.mark.anyio

READ: dict[str, Any] = {"call": "read_file", "input": {"path": "secret-plan.txt"}}
WRITE: dict[str, Any] = {"call": "write_file", "input": {"path": "secret-plan.txt", "content": "x"}}
RUN: dict[str, Any] = {"call": "bash", "input": {"command": "touch secret-plan"}}
FIELDS = ["time", "session", "principal", "token", "mode", "tool", "title", "decision", "option", "rule", "by"]


class Failing(ClientSink):
    """A speech whose client answers every question with an error."""

    client = ClientCapabilities()

    def __init__(self) -> None:
        pass

    async def ask(self, request: Request[R]) -> R:
        raise RequestFailed(INTERNAL_ERROR, "I cannot ask")


async def entries(store: SqliteStore, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async for records in store.read(session_id):
        for record in records:
            if isinstance(record.entry, NoteEntry) and record.entry.kind == DECISION:
                assert isinstance(record.entry.value, dict)
                found.append(record.entry.value)
    return found


async def decided(folder: Path, *steps: dict[str, Any], user: User, mode: str = "ask") -> list[dict[str, Any]]:
    """What the log of a session has after a turn, in which the first file exists."""
    work = folder / "work"
    work.mkdir()
    (work / "secret-plan.txt").write_text("a")
    store = SqliteStore(folder / "sessions")
    try:
        async with whole(
            work, scripted([*steps, {"say": "done"}]), user=user, mode=mode, store=store, home=folder / "home"
        ) as (_, session):
            await events_of(session)
        found = await entries(store, session.id)
        for entry in found:
            assert list(entry) == FIELDS
            assert (entry.pop("session"), entry.pop("principal"), entry.pop("token")) == (session.id, None, None)
            assert entry.pop("time")[10] == "T"
        return found
    finally:
        await store.close()


def entry(tool: str, kind: str, decision: str, by: str, mode: str = "ask", **more: object) -> dict[str, object]:
    return {
        "mode": mode,
        "tool": tool,
        "title": kind,
        "decision": decision,
        "option": None,
        "rule": None,
        "by": by,
        **more,
    }


async def test_what_the_mode_allows_and_refuses_is_logged(tmp_path: Path) -> None:
    assert await decided(tmp_path, READ, WRITE, user=User("allow_once"), mode="read-only") == [
        entry("read_file", "read", "allow", "mode", "read-only", rule="mode read-only"),
        entry("write_file", "edit", "deny", "mode", "read-only", rule="mode read-only does not allow it"),
    ]


async def test_answers_and_remembered_answers_are_logged(tmp_path: Path) -> None:
    user = User("allow_once", "allow_always", "reject_once")
    other = {"call": "bash", "input": {"command": "make it"}}
    assert await decided(tmp_path, WRITE, RUN, RUN, other, other, user=user) == [
        entry("write_file", "edit", "allow", "user", option="allow_once"),
        entry("bash", "execute", "allow", "user", option="allow_always"),
        entry("bash", "execute", "allow", "rule", rule="allow bash"),
        entry("bash", "execute", "deny", "user", option="reject_once"),
        entry("bash", "execute", "deny", "rule"),
    ]


async def test_what_never_runs_is_denied_by_policy(tmp_path: Path) -> None:
    ruin = {"call": "bash", "input": {"command": "rm -rf /"}}
    assert await decided(tmp_path, ruin, user=User("allow_once")) == [entry("bash", "execute", "deny", "policy")]


async def test_the_question_of_the_sandbox_is_logged(tmp_path: Path) -> None:
    write = {"call": "sandbox_write_file", "input": {"path": "new", "content": "x"}}
    assert await decided(tmp_path, write, user=User("reject_once"), mode="sandbox") == [
        entry("sandbox_write_file", "edit", "allow", "mode", "sandbox", rule="mode sandbox"),
        entry("apply_changes", "edit", "deny", "user", "sandbox", option="reject_once"),
    ]


async def test_changes_of_the_mode_are_logged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions")
    try:
        async with whole(tmp_path, scripted([{"say": "hi"}]), user=User("reject_once"), store=store) as (_, session):
            await events_of(session, "/mode full-access")
            await session.set_mode("full-access")
        shown = [
            (e["tool"], e["mode"], e["title"], e["decision"], e["option"], e["by"])
            for e in await entries(store, session.id)
        ]
    finally:
        await store.close()
    assert shown == [
        ("mode", "ask", "full-access", "deny", "reject_once", "user"),
        ("mode", "full-access", "full-access", "allow", None, "user"),
    ]


async def test_what_is_out_of_reach_is_denied_by_policy(tmp_path: Path) -> None:
    steps = [
        {"call": "read_file", "input": {"path": "/etc/passwd"}},
        {"call": "list_files", "input": {"path": ".."}},
        {"call": "grep", "input": {"pattern": "x", "path": ".."}},
        {"call": "write_file", "input": {"path": "../made", "content": "x"}},
    ]
    assert await decided(tmp_path, *steps, user=User("allow_once"), mode="full-access") == [
        entry("read_file", "read", "deny", "policy", "full-access"),
        entry("list_files", "read", "deny", "policy", "full-access"),
        entry("grep", "search", "deny", "policy", "full-access"),
        entry("write_file", "edit", "deny", "policy", "full-access"),
    ]


async def test_changes_of_a_sandbox_that_are_refused_without_a_question_are_logged(tmp_path: Path) -> None:
    need("bwrap")
    link = {"call": "sandbox_bash", "input": {"command": "ln -s /etc/passwd out"}}
    assert await decided(tmp_path, link, user=User("allow_once"), mode="sandbox") == [
        entry("sandbox_bash", "execute", "allow", "mode", "sandbox", rule="mode sandbox"),
        entry("apply_changes", "edit", "deny", "policy", "sandbox"),
    ]


async def test_a_mode_that_was_typed_is_logged_with_and_without_a_question(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions")
    try:
        async with whole(tmp_path, scripted([{"say": "hi"}]), user=User("allow_once"), store=store) as (_, session):
            for mode in ("read-only", "workspace-write", "nonsense"):
                await events_of(session, f"/mode {mode}")
        shown = [(e["mode"], e["title"], e["decision"], e["option"]) for e in await entries(store, session.id)]
    finally:
        await store.close()
    assert shown == [("ask", "read-only", "allow", None), ("read-only", "workspace-write", "allow", "allow_once")]


def test_a_question_that_no_client_has_answered_is_decided_by_whose_turn_it_is() -> None:
    """Without a principal it would read as the answer of the user at this machine."""
    ada, bob = Identity("ada", "laptop"), Identity("bob", "phone")
    yes = PermissionOption("y", "Yes", "allow_once")
    assert answered_by(Permission(None, Identity()), ada) == ada
    assert answered_by(Permission(yes, bob), ada) == bob
    assert answered_by(Permission(None, LOCAL), LOCAL) == LOCAL


async def test_a_question_that_fails_on_a_trusted_link_is_answered_by_no_client(tmp_path: Path) -> None:
    core = SessionCore("s", NewSession(str(tmp_path)), Failing())
    session = core.session
    assert (await session.ask_permission("May I?")).identity == LOCAL
    core.trusts_identities = True
    assert (await session.ask_permission("May I?")).identity == Identity()

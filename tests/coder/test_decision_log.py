"""The decision log: every decision about a tool call, with who, in which mode and by what."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.decisions import DECISION
from dragoman.store.entries import Noted
from dragoman.store.sqlite import SqliteStore
from tests.coder.whole import User, events_of, scripted, whole

pytestmark = pytest.mark.anyio

READ: dict[str, Any] = {"call": "read_file", "input": {"path": "secret-plan.txt"}}
WRITE: dict[str, Any] = {"call": "write_file", "input": {"path": "secret-plan.txt", "content": "x"}}
RUN: dict[str, Any] = {"call": "bash", "input": {"command": "touch secret-plan"}}
FIELDS = ["time", "session", "principal", "token", "mode", "tool", "title", "decision", "option", "rule", "by"]


async def entries(store: SqliteStore, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async for records in store.read(session_id):
        for record in records:
            if isinstance(record.entry, Noted) and record.entry.kind == DECISION:
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

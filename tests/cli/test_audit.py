"""`dragoman sessions audit ID`, run as a user runs it, on sessions that a real server has made."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.token_types import SCOPES
from tests.support.command import Called, call
from tests.support.editor import Editor, turns
from tests.support.principals import Household, bash, calling

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


WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "x"}}
READ = {"call": "read_file", "input": {"path": "a.txt"}}
STEPS: dict[str, list[dict[str, Any]]] = {
    "allow_once": [WRITE],
    "allow_always": [{"call": "bash", "input": {"command": "touch b"}}] * 2,
    "reject_once": [{"call": "bash", "input": {"command": "touch c"}}] * 2,
    "reject_always": [{"call": "bash", "input": {"command": "touch d"}}],
    "remembered": [{"call": "bash", "input": {"command": "touch d"}}, READ],
    "dismissed": [{"call": "bash", "input": {"command": "touch e"}}],
    "cancelled": [{"call": "bash", "input": {"command": "touch f"}}],
}
DECIDED = [
    ("write_file", "allow", "user", "allow_once", None),
    ("bash", "allow", "user", "allow_always", None),
    ("bash", "allow", "rule", None, "allow bash"),
    ("bash", "deny", "user", "reject_once", None),
    ("bash", "deny", "rule", None, None),
    ("bash", "deny", "user", "reject_always", None),
    ("bash", "deny", "rule", None, "deny bash"),
    ("read_file", "allow", "mode", None, "mode ask"),
    ("bash", "deny", "user", None, "no answer was given"),
    ("bash", "deny", "user", None, "the turn was cancelled"),
]


@pytest.mark.parametrize("version", [1, 2])
def test_every_way_to_decide_is_recorded(tmp_path: Path, version: int) -> None:
    script = turns(*([*steps, {"say": "."}] for steps in STEPS.values()))
    with Editor(tmp_path, script, version=version) as editor:
        editor.open()
        for name in STEPS:
            editor.send({"id": name, "method": "session/prompt", "params": editor.words(name)})
            while not is_end(message := editor.read(), name, version):
                if message.get("method") == "session/request_permission":
                    answer(editor, message, name)
    done = call("sessions", "audit", editor.session, DRAGOMAN_HOME=str(tmp_path / "home"))
    found = lines(done)
    assert [tuple(line[name] for name in ("tool", "decision", "by", "option", "rule")) for line in found] == DECIDED
    assert {(line["principal"], line["token"], line["mode"]) for line in found} == {(None, None, "ask")}


def is_end(message: dict[str, Any], name: str, version: int) -> bool:
    if version == 1:
        return message.get("id") == name and "method" not in message
    return bool(message.get("params", {}).get("update", {}).get("state") == "idle")


def answer(editor: Editor, question: dict[str, Any], kind: str) -> None:
    if kind == "cancelled":
        cancel: dict[str, Any] = {"method": "session/cancel", "params": {"sessionId": editor.session}}
        editor.send({"id": 0, **cancel} if editor.version == 2 else cancel)
    options = {option["kind"]: option["optionId"] for option in question["params"]["options"]}
    chosen = {"outcome": "selected", "optionId": options[kind]} if kind in options else {"outcome": "cancelled"}
    editor.send({"id": question["id"], "result": {"outcome": chosen}})


def test_content_is_logged_where_the_operator_wants_it(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path, "--audit-content")
    assert [line["title"] for line in lines(audit(house, session_id))] == ["touch secret-name", "Read secret-name"]


def test_an_export_has_the_decisions_in_their_places(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path)
    home = str(house.home)
    exported = lines(call("sessions", "export", session_id, DRAGOMAN_HOME=home))
    at = [index for index, line in enumerate(exported) if line["sessionUpdate"] == "_dragoman/decision"]
    audited = lines(audit(house, session_id))
    kind = {"sessionUpdate": "_dragoman/decision"}
    assert [exported[index] for index in at] == [kind | line for line in audited]
    assert exported[at[0] + 1]["status"] == "in_progress"  # it was decided, and then it ran
    markdown = call("sessions", "export", session_id, "--format", "markdown", DRAGOMAN_HOME=home).out
    allowed = f"{audited[0]['time']}  allow  bash [execute] in mode ask, by user (allow_once), ada / laptop"
    assert allowed in markdown.partition("## Permission decisions")[2].splitlines()


def test_it_is_no_part_of_what_is_shown_and_goes_with_the_session(tmp_path: Path) -> None:
    house, session_id = worked(tmp_path)
    home = str(house.home)
    assert "laptop" not in call("sessions", "show", session_id, "--json", DRAGOMAN_HOME=home).out
    assert call("sessions", "delete", session_id, "--yes", DRAGOMAN_HOME=home).code == 0
    gone = audit(house, session_id)
    assert (gone.code, gone.out) == (1, "")
    assert gone.error.startswith(f"dragoman: there is no session {session_id!r}")

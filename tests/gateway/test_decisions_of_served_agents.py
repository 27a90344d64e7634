"""Who answered which question of another agent through the server, as `dragoman sessions audit` shows it."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.served_decisions import ServedDecisionRecorder
from dragoman.client.connect import connect
from dragoman.gateway import open_questions
from dragoman.gateway.agent_source import AgentSource, spawn_source
from dragoman.gateway.token_store import TokenStore
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission, Selected
from tests.support import rogue_agent
from tests.support.command import call
from tests.support.gateway import free_port, gateway, raw_http
from tests.support.gateway_process import serving
from tests.support.messages import prompt
from tests.support.rogue_agent import permission, text
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(120)

ASKING = "session/request_permission"
MAKE = permission("Run make --secret-word", kind="execute", rawInput={"command": "make"})


def configured(home: Path, *steps: dict[str, Any]) -> None:
    command = rogue_agent.written(home.parent, *steps, text("ok"))
    home.mkdir()
    entry = {"command": command[0], "args": command[1:]}
    (home / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))


def audit(home: Path, id: str) -> list[dict[str, Any]]:
    done = call("sessions", "audit", id, DRAGOMAN_HOME=str(home))
    assert (done.code, done.error) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


async def ask(home: Path, *options: str) -> str:
    """Prompt the agent once as bob, whose client says yes to the first question and no to every other."""
    answers = iter(["allow_once"])

    async def answer(request: RequestPermission) -> PermissionOption | None:
        wanted = next(answers, "reject_once")
        return next(option for option in request.options if option.kind == wanted)

    token = TokenStore(home / "gateway" / "tokens.json").make("bobs-phone", ("read", "prompt"), "bob")
    port = free_port()
    async with (
        serving(home, port, {}, "--agent", "mine", *options),
        connect(transport_for(f"ws://127.0.0.1:{port}", token), permission=answer) as client,
    ):
        session = await client.new_session(home.parent)
        await session.prompt("go").read()
        return session.id


async def refuse_to_answer(folder: Path) -> open_questions.AnsweredPermission:
    """Prompt the agent once, with a client that knows no questions; return what is to be recorded."""
    recorded: list[open_questions.AnsweredPermission] = []
    agents = AgentSource(spawn_source(rogue_agent.written(folder, MAKE), cwd=None, env={}), (1,), renames=True)
    async with gateway(agents, folder, on_permission=recorded.append) as served, raw_http(served, 1) as client:
        session_id = await client.session()
        await client.post(prompt(2, session_id), session_id)
        await until(lambda: any(one.get("method") == ASKING for one in client.heard))
        (question,) = [one for one in client.heard if one.get("method") == ASKING]
        unknown = {"code": -32601, "message": "What is that?"}
        await client.post({"id": question["id"], "error": unknown}, session_id)
        await client.answer(2)
    (answered,) = recorded
    assert answered.request.session_id == session_id
    return answered


def test_every_answer_is_recorded_with_its_principal_and_token(tmp_path: Path) -> None:
    home = tmp_path / "home"
    configured(home, MAKE, permission("Look", kind="read"))
    session_id = asyncio.run(ask(home))
    assert re.fullmatch("sess_[0-9a-f]{32}", session_id)
    found = audit(home, session_id)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time")) for line in found)
    who = {"session": session_id, "principal": "bob", "token": "bobs-phone", "mode": None}
    common = {**who, "tool": ASKING, "rule": None, "by": "user", "agent": "mine"}
    assert found == [
        {**common, "title": "execute", "decision": "allow", "option": "allow_once"},
        {**common, "title": "read", "decision": "deny", "option": "reject_once"},
    ]
    for beginning in (session_id[:13], session_id.removeprefix("sess_"), session_id.removeprefix("sess_")[:8]):
        assert len(audit(home, beginning)) == 2
    assert "secret-word" not in (home / "log" / "decisions.jsonl").read_text()


def test_what_was_asked_is_recorded_where_the_operator_wants_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    configured(home, MAKE)
    (line,) = audit(home, asyncio.run(ask(home, "--audit-content")))
    assert line["title"] == "Run make --secret-word"


def test_a_question_that_was_not_answered_is_recorded_as_a_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = asyncio.run(refuse_to_answer(tmp_path))
    assert (answered.is_answered, answered.answer.outcome) == (False, Selected("no"))
    assert (answered.identity.principal, answered.identity.token) == ("default", None)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    ServedDecisionRecorder("mine", content=True).record(answered)
    (line,) = audit(tmp_path / "home", answered.request.session_id)
    told = {name: line[name] for name in ("principal", "token", "decision", "option", "rule", "by")}
    who = {"principal": "default", "token": None}
    assert told == {**who, "decision": "deny", "option": None, "rule": "no answer came", "by": "user"}

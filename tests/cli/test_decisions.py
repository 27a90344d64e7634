"""What `dragoman run` allowed and refused to another agent, told by `dragoman sessions audit`."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import decisions
from dragoman.cli.failure_log import FILE_BYTES
from dragoman.client import decision
from tests.support import rogue_agent
from tests.support.command import Called, call
from tests.support.rogue_agent import permission, text
from tests.support.run_command import at_terminal, left, run


def audit(folder: Path, id: str) -> Called:
    return call("sessions", "audit", id, DRAGOMAN_HOME=str(folder / "home"))


def lines(folder: Path, id: str = "s1") -> list[dict[str, Any]]:
    done = audit(folder, id)
    assert (done.code, done.error) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def configured(folder: Path, *steps: dict[str, Any], **entry: Any) -> None:
    command = rogue_agent.written(folder, *steps, text("ok"))
    (folder / "home").mkdir(exist_ok=True)
    entry = {"command": command[0], "args": command[1:], **entry}
    (folder / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))


def asking(folder: Path) -> list[dict[str, Any]]:
    (folder / "in.txt").write_text("inside")
    return [
        {"ask": "fs/read_text_file", "params": {"path": str(folder / "in.txt")}},
        permission("Run make --secret-word", kind="execute", rawInput={"command": "make"}),
        permission("Push", kind="execute", rawInput={"command": "git push"}),
    ]


def test_every_decision_is_recorded_without_content(tmp_path: Path) -> None:
    configured(tmp_path, *asking(tmp_path), permissions={"reject": [{"command": "git push"}]})
    assert run(tmp_path, "hi", "--agent", "mine").code == 5
    found = lines(tmp_path)
    assert all(line.pop("time").endswith("Z") for line in found)
    common = {"session": "s1", "principal": None, "token": None, "mode": None, "option": None, "agent": "mine"}
    asked = {**common, "tool": "session/request_permission", "title": "execute", "decision": "deny"}
    read = {**common, "tool": "fs/read_text_file", "title": "read", "decision": "allow"}
    assert found == [
        {**read, "rule": "allow read", "by": "policy"},
        {**asked, "rule": "no user to ask", "by": "policy"},
        {**asked, "rule": "reject", "by": "rule"},
    ]
    file = tmp_path / "home" / "log" / decisions.NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(word in file.read_text() for word in ("in.txt", "secret-word", "git push"))


def test_what_a_user_has_chosen_is_recorded(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it", kind="execute", rawInput={"command": "make"}), text("ok"))
    child = at_terminal(tmp_path, "hi", "--", *agent)
    child.expect_exact("║ 1-2, y or n: ")
    child.sendline("y")
    assert left(child) == 0
    (line,) = lines(tmp_path)
    assert (line["decision"], line["option"], line["by"], line["rule"]) == ("allow", "allow_once", "user", None)


@pytest.mark.parametrize(
    ("answer", "decision", "option", "code"), [("y", "allow", "allow_once", 0), ("n", "deny", "reject_once", 5)]
)
@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file"])
def test_what_a_user_has_chosen_about_a_file_is_recorded(
    method: str, answer: str, decision: str, option: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("inside")
    params = {"path": str(tmp_path / "in.txt"), "content": "new"}
    agent = rogue_agent.written(tmp_path, {"ask": method, "params": params}, text("ok"))
    child = at_terminal(tmp_path, "hi", "--allow", "none", "--", *agent)
    child.expect_exact("║ 1-2, y or n: ")
    child.sendline(answer)
    assert left(child) == code
    (line,) = lines(tmp_path)
    assert (line["tool"], line["decision"], line["option"], line["by"]) == (method, decision, option, "user")


def test_content_is_recorded_where_the_user_wants_it_and_keys_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_AUDIT_CONTENT", "true")
    key = "sk-" + "a1" * 20
    agent = rogue_agent.written(tmp_path, permission(f"Run curl {key}", kind="execute", rawInput={"command": "x"}))
    assert run(tmp_path, "hi", "--", *agent).code == 5
    (line,) = lines(tmp_path)
    assert (line["title"], line["rule"]) == ("Run curl [hidden]", "it runs a command, and there is no user to ask")


def test_the_record_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    configured(tmp_path, *asking(tmp_path))
    file = tmp_path / "home" / "log" / decisions.NAME
    file.parent.mkdir(parents=True)
    file.write_text('{"session": "old"}\n' + "x" * FILE_BYTES)
    run(tmp_path, "hi", "--agent", "mine")
    assert len(lines(tmp_path)) == 3
    assert lines(tmp_path, "old") == [{"session": "old"}]
    assert file.stat().st_size < FILE_BYTES


def decided(*, by: decision.By, option: str = "allow_once") -> decision.PermissionDecision:
    return decision.PermissionDecision("s1", "fs/read_text_file", "read", "a", True, by, option, "allow read")


def test_an_agent_that_asks_all_the_time_hides_no_answer_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(decisions, "LINES", 3)
    recorder = decisions.DecisionRecorder("mine", content=False)
    for _ in range(9):
        recorder.record(decided(by="policy"))
    recorder.record(decided(by="user", option="allow_" + "x" * 100_000))
    found = lines(tmp_path)
    assert [(line["by"], line["rule"]) for line in found] == [("policy", "allow read")] * 3 + [("user", None)]
    assert found[-1]["option"] == "allow_" + "x" * 34


def test_an_unknown_session_is_exit_1(tmp_path: Path) -> None:
    configured(tmp_path, *asking(tmp_path))
    run(tmp_path, "hi", "--agent", "mine")
    for id in ("s2", ""):
        assert audit(tmp_path, id).code == 1

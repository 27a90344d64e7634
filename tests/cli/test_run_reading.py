"""`dragoman run`: what an agent may read without a question, and which agents are not on this machine."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.agent_connection import reopen_session
from dragoman.client.connect import connect
from tests.support import rogue_agent
from tests.support.rogue_agent import permission, text
from tests.support.run_command import Done, at_terminal, left, run

Step = dict[str, Any]
# An agent runs behind a wrapper that does nothing but start it: its name is what counts.
CARRIER = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'


def reading(path: Path) -> Step:
    return {"ask": "fs/read_text_file", "params": {"path": str(path)}}


def may_read(*paths: Path | str, kind: str = "read", **call: Any) -> Step:
    """A question for permission to read these."""
    return permission("Read it", kind=kind, locations=[{"path": str(path)} for path in paths], **call)


def project(folder: Path) -> Path:
    made = folder / "project"
    made.mkdir()
    (made / "in.txt").write_text("inside")
    (folder / "out.txt").write_text("outside")
    return made


def install_carriers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with the names of those that carry agents elsewhere, and a link to one of them."""
    folder.mkdir()
    for name in ("ssh", "docker", "kubectl", "dragoman", "uvx", "et", "aws"):
        (folder / name).write_text(CARRIER)
        (folder / name).chmod(0o755)
    (folder / "remote").symlink_to(folder / "ssh")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def says(answer: dict[str, Any]) -> str:
    """What was chosen, or read, or `no`."""
    return str(answer["outcome"].get("optionId")) if "outcome" in answer else str(answer.get("content", "no"))


def asked(
    folder: Path, work: Path, *steps: Step, allow: str = "", before: tuple[str, ...] = ()
) -> tuple[Done, list[str]]:
    """The run of an agent that asks these things, and what it was told."""
    agent = rogue_agent.written(folder, *steps, text("ok"))
    options = ["--allow", allow] if allow else []
    done = run(folder, "hi", "--cwd", str(work), *options, "--", *before, *agent)
    return done, [says(answer) for answer in rogue_agent.answers(folder)]


def test_an_agent_started_here_reads_inside_its_folder_and_nowhere_else(tmp_path: Path) -> None:
    work = project(tmp_path)
    (work / "link").symlink_to(tmp_path / "out.txt")
    (work / ".env").write_text("KEY=secret")
    (work / "alias").symlink_to(work / ".env")
    inside, outside = work / "in.txt", tmp_path / "out.txt"
    paths = [inside, outside, work / "link", work / ".env", work / "alias", work / ".." / "out.txt"]
    done, told = asked(tmp_path, work, *map(reading, paths))
    assert told == ["inside", "no", "no", "no", "no", "no"]
    assert done.code == 5
    assert "secret" not in (tmp_path / "plan.json.heard").read_text()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda work: may_read(work / "in.txt"), "yes"),
        (lambda work: may_read(work / "in.txt", kind="search", rawInput={"pattern": "x"}), "yes"),
        (lambda work: may_read(work / "src", kind="search"), "yes"),
        (lambda work: may_read(work / "in.txt", work.parent / "out.txt"), "no"),
        (lambda work: may_read(work / "in.txt", rawInput={"url": "https://example.org"}), "no"),
        (lambda work: may_read(work / "in.txt", kind="fetch"), "no"),
        (lambda work: may_read(work / "in.txt", kind="edit"), "no"),
        (lambda work: may_read(work / "in.txt", kind="other"), "no"),
        (lambda work: may_read(work / "in.txt", rawInput={"command": "cat in.txt"}), "no"),
        (lambda work: may_read(), "no"),
        (lambda work: may_read(work / "keys", kind="search", rawInput={"pattern": "BEGIN"}), "no"),
        (lambda work: may_read(work / "keys" / "server.pem"), "no"),
    ],
    ids=["read", "search", "folder", "outside", "url", "fetch", "edit", "other", "command", "nothing", "keys", "pem"],
)
def test_a_question_that_is_all_reading_inside_needs_no_answer(question: Any, answer: str, tmp_path: Path) -> None:
    work = project(tmp_path)
    for folder in ("src", "keys"):
        (work / folder).mkdir()
    (work / "keys" / "server.pem").write_text("x")
    done, told = asked(tmp_path, work, question(work))
    assert (told, done.code) == ([answer], 0 if answer == "yes" else 5), done


@pytest.mark.parametrize("home", ["project", "project/users/me"])
def test_a_whole_home_is_read_only_where_the_user_says_so(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = project(tmp_path)
    (tmp_path / home).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    done, told = asked(tmp_path, work, reading(work / "in.txt"))
    assert (done.code, told) == (5, ["no"])
    assert done.error.splitlines()[-1] == "dragoman: 1 request was denied; --allow read covers it"
    assert asked(tmp_path, work, reading(work / "in.txt"), allow="read")[1] == ["no", "inside"]


def test_nothing_is_read_where_the_user_says_none(tmp_path: Path) -> None:
    work = project(tmp_path)
    done, told = asked(tmp_path, work, reading(work / "in.txt"), may_read(work / "in.txt"), allow="none")
    assert (done.code, told) == (5, ["no", "no"])
    assert done.error.splitlines()[-1] == "dragoman: 2 requests were denied; --allow read covers all of them"


def test_at_a_terminal_none_means_that_reading_is_asked(tmp_path: Path) -> None:
    work = project(tmp_path)
    agent = rogue_agent.written(tmp_path, reading(work / "in.txt"), text("ok"))
    child = at_terminal(tmp_path, "hi", "--cwd", str(work), "--allow", "none", "--", *agent)
    child.expect_exact("║ 1-2, y or n: ")
    child.sendline("y")
    assert left(child) == 0
    assert rogue_agent.answers(tmp_path) == [{"content": "inside"}]


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (["env", "A=b"], "inside"),
        (["nice", "-n", "1"], "inside"),
        (["ssh", "host", "--"], "no"),
        (["docker", "exec", "-i", "x", "--"], "no"),
        (["kubectl", "exec", "pod", "--"], "no"),
        (["env", "A=b", "ssh", "host", "--"], "no"),
        (["bash", "-c", 'exec "$@"', "ssh"], "no"),
        (["bash", "-c", 'exec "$@"', "x"], "no"),
        (["remote", "host", "--"], "no"),
        (["dragoman", "connect", "https://example.org", "--"], "no"),
        (["uvx", "dragoman", "connect", "https://example.org", "--"], "no"),
        (["uvx", "--"], "inside"),
        (["uvx", "tcp://example.org:99", "--"], "no"),
        (["uvx", "--server", "example.org:99", "--"], "no"),
        (["et", "host", "--"], "no"),
        (["aws", "ecs", "execute-command", "--"], "no"),
        (["aws", "--"], "inside"),
    ],
    ids=" ".join,
)
def test_an_agent_that_is_carried_elsewhere_is_lent_nothing_by_itself(
    before: list[str], answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = project(tmp_path)
    install_carriers(tmp_path / "bin", monkeypatch)
    _, told = asked(tmp_path, work, reading(work / "in.txt"), before=tuple(before))
    assert told == [answer]
    _, told = asked(tmp_path, work, reading(work / "in.txt"), allow="read", before=tuple(before))
    assert told[-1] == "inside"


COPIES = [
    *(".env~", ".env_local", ".env.bak", "id_rsa.bak", "id_rsa.old", "terraform.tfstate.backup", "terraform.tfvars"),
    *(".vault_pass", ".codex/auth.json", ".gemini/oauth_creds.json", "credentials", ".claude/.credentials.json"),
]


def test_copies_of_credentials_and_logins_of_agents_are_not_read_by_default(tmp_path: Path) -> None:
    work = project(tmp_path)
    for name in COPIES:
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("secret")
    plain = ["environment.py", ".env.example", "credentials.py", "id_rsa.pub"]
    for name in plain:
        (work / name).write_text("plain")
    (work / "src" / "credentials").mkdir(parents=True)
    steps = [reading(work / name) for name in (*COPIES, *plain)]
    done, told = asked(
        tmp_path, work, *steps, may_read(work / "src", kind="search"), may_read(work / "src/credentials")
    )
    assert told == ["no"] * len(COPIES) + ["plain"] * len(plain) + ["yes", "yes"]
    assert (done.code, done.error.splitlines()[-1]) == (
        5,
        f"dragoman: {len(COPIES)} requests were denied; --allow all covers all of them",
    )


def configured(folder: Path, *steps: Step, **entry: Any) -> None:
    command = rogue_agent.written(folder, *steps, text("ok"))
    entry = {"command": command[0], "args": command[1:], **entry}
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))


def test_an_agent_known_by_name_reads_as_one_that_is_typed(tmp_path: Path) -> None:
    work = project(tmp_path)
    configured(tmp_path, reading(work / "in.txt"))
    assert run(tmp_path, "hi", "--cwd", str(work), "--agent", "mine").code == 0
    assert rogue_agent.answers(tmp_path) == [{"content": "inside"}]


def test_a_configured_connect_is_an_agent_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = project(tmp_path)
    install_carriers(tmp_path / "bin", monkeypatch)
    command = rogue_agent.written(tmp_path, reading(work / "in.txt"))
    configured(tmp_path, reading(work / "in.txt"), command="dragoman", args=["connect", "https://x.y", "--", *command])
    done = run(tmp_path, "hi", "--cwd", str(work), "--agent", "mine")
    assert [says(answer) for answer in rogue_agent.answers(tmp_path)] == ["no"], done


@pytest.mark.parametrize(
    ("entry", "answer", "code"),
    [
        ({"permissionPolicy": "deny"}, "no", 5),
        ({"permissions": {"reject": [{"path": "in.txt"}]}}, "no", 5),
        ({"permissions": {"ask": [{"kind": "read"}]}}, "no", 5),
        ({"permissionPolicy": "auto-approve"}, "inside", 0),
    ],
    ids=["deny", "reject", "ask", "auto-approve"],
)
def test_what_is_configured_counts_before_the_default(
    entry: dict[str, Any], answer: str, code: int, tmp_path: Path
) -> None:
    work = project(tmp_path)
    configured(tmp_path, reading(work / "in.txt"), **entry)
    done = run(tmp_path, "hi", "--cwd", str(work), "--agent", "mine")
    assert ([says(one) for one in rogue_agent.answers(tmp_path)], done.code) == ([answer], code), done


def test_after_a_rule_has_said_no_the_hint_promises_nothing(tmp_path: Path) -> None:
    work = project(tmp_path)
    configured(tmp_path, reading(work / "in.txt"), permissions={"reject": [{"path": "in.txt"}]})
    done = run(tmp_path, "hi", "--cwd", str(work), "--agent", "mine", "--allow", "all")
    assert (done.code, done.error.splitlines()[-1]) == (5, "dragoman: 1 request was denied")


@pytest.mark.parametrize(("known", "replay"), [("session/load", False), ("session/resume", True)])
async def test_a_session_is_gone_on_with_by_the_method_that_the_agent_knows(
    known: str, replay: bool, tmp_path: Path
) -> None:
    other = {"session/load": "session/resume", "session/resume": "session/load"}[known]
    able = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}
    missing = {other: {"code": -32601, "message": "Method not found"}}
    agent = rogue_agent.written(tmp_path, text("ok"), hello=able, errors=missing)
    async with connect(agent) as client:
        conversation = await reopen_session(client, "s1", str(tmp_path), replay=replay)
        assert (await conversation.ask("hi")).text == "ok"
    methods = [one["method"] for one in rogue_agent.heard(tmp_path) if "session/" in one.get("method", "")]
    assert methods == [other, known, "session/prompt"]


def test_a_run_goes_on_with_a_session_of_an_agent_that_only_says_it_can_resume(tmp_path: Path) -> None:
    able = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}
    missing = {"session/resume": {"code": -32601, "message": "Method not found"}}
    agent = rogue_agent.written(tmp_path, text("ok"), hello=able, errors=missing)
    done = run(tmp_path, "hi", "--resume", "s1", "--", *agent)
    assert (done.code, done.out) == (0, "ok\n"), done

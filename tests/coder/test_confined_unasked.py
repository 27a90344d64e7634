"""Mode `workspace-write`: confined commands run without a question, where the confinement was tried out."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.coder import execution
from dragoman.coder.execution import DirectExecution
from dragoman.coder.kept_rules import KeptRules
from dragoman.host.paths import Roots
from dragoman.permissions.rule import PermissionRule
from tests.support.files import snapshot
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash
from tests.support.web import listening
from tests.support.whole_agent import ENVIRONMENT, User, events_of, whole

CANARY = "canary-77c0e1"


@pytest.fixture
def user_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder that is no temporary one: those are new for every confined command anyway."""
    home = Path(__file__).resolve().parents[2] / f".home-of-test-{os.getpid()}"
    shutil.rmtree(home, ignore_errors=True)
    (home / "work").mkdir(parents=True)
    monkeypatch.setitem(ENVIRONMENT, "HOME", str(home))
    yield home
    shutil.rmtree(home)


async def unasked(work: Path, home: Path, *commands: str, user: User | None = None) -> list[str]:
    """The results of commands, of which none may be asked about unless `user` is there to answer."""
    need("bwrap")
    asked = user or User("allow_once")
    model = RecordingModel(apart(map(bash, commands)))
    async with whole(work, model.make, user=asked, mode="workspace-write", home=home) as (_, session):
        await events_of(session)
    assert user is not None or asked.asked == []
    return model.results


async def test_attempts_to_escape_are_not_asked_about_and_do_not_succeed(user_home: Path) -> None:
    work, outside = user_home / "work", user_home / "other"
    outside.mkdir()
    (user_home / "diary.txt").write_text(CANARY)
    before = snapshot(outside)
    with listening() as (port, heard):
        results = await unasked(
            work,
            user_home / "data",
            f"echo x > {outside}/x; echo x >> {user_home}/.bashrc; ln -s {outside} door; echo x > door/x; rm door",
            f"cat {user_home}/diary.txt; find / -name diary.txt 2>/dev/null; ls -A {user_home}",
            f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached",
            "mkdir -p .vscode && echo x > .vscode/settings.json; touch made",
        )
    assert (snapshot(outside), heard, (user_home / ".bashrc").exists()) == (before, [], False)
    assert CANARY not in "".join(results)
    assert "diary.txt\n" not in results[1].replace("No such file", "")
    assert "reached" not in results[2]
    assert [path.name for path in work.iterdir()] == ["made"]


async def test_of_the_home_folder_a_command_sees_roots_and_toolchains_alone(user_home: Path) -> None:
    for name in ("secrets-of-mine", ".cargo/bin", ".ssh"):
        (user_home / name).mkdir(parents=True)
    (user_home / ".cargo" / "credentials.toml").write_text(CANARY)
    (user_home / ".cargo" / "bin" / "tool").write_text("a tool\n")
    (user_home / ".gitconfig").write_text("[user]\n\tname = Me\n")
    (user_home / ".rustup").symlink_to(user_home / "secrets-of-mine")
    listed, tool, name, written = await unasked(
        user_home / "work",
        user_home / "data",
        f"ls -A {user_home}; true $X",
        f"cat {user_home}/.cargo/bin/tool {user_home}/.cargo/credentials.toml; true $X",
        "git config --get user.name; true $X",
        f"echo x > {user_home}/.cargo/bin/tool; echo x > {user_home}/.gitconfig; true $X",
    )
    assert sorted(listed.split()) == [".cargo", ".gitconfig", "work"]
    assert (tool.splitlines()[0], CANARY in tool, name) == ("a tool", False, "Me\n")
    assert written.count("Read-only file system") == 2


async def test_credentials_of_the_workspace_are_hidden_from_a_command_that_does_not_ask(user_home: Path) -> None:
    work, user = user_home / "work", User("allow_once")
    (work / ".env").write_text(f"KEY={CANARY}\n")
    guessed, named = await unasked(
        work, user_home / "data", "cat .e*; python3 -c 'print(open(\".env\").read())'", "cat .env", user=user
    )
    assert CANARY not in guessed
    assert ([question.title for question in user.asked], named) == (["cat .env"], f"KEY={CANARY}\n")
    assert (work / ".env").read_text() == f"KEY={CANARY}\n"


async def test_a_program_of_the_workspace_is_found_by_a_confined_command(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = user_home / "work" / ".venv" / "bin" / "suite"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho tests passed\n")
    program.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{program.parent}:{ENVIRONMENT['PATH']}")
    assert await unasked(user_home / "work", user_home / "data", "suite") == ["tests passed\n"]


async def test_a_command_has_a_loopback_of_its_own(tmp_path: Path) -> None:
    code = (
        "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); "
        "threading.Thread(target=lambda: s.accept()[0].sendall(b'served')).start(); "
        "print(socket.create_connection(s.getsockname()).recv(9))"
    )
    assert await unasked(tmp_path, tmp_path.parent / "data", f'python3 -c "{code}"') == ["b'served'\n"]


async def test_what_the_model_wants_to_run_unconfined_asks_with_the_reason(tmp_path: Path) -> None:
    need("bwrap")
    user = User("reject_once", "allow_once")
    wanted = bash("ls; touch ../made", unconfined="it has to\nwrite\u202e beside")
    model = RecordingModel(apart([wanted, bash("touch x", unconfined=" "), bash("touch ../y", unconfined="please")]))
    work = tmp_path / "work"
    work.mkdir()
    async with whole(work, model.make, user=user, mode="workspace-write", home=tmp_path / "home") as (_, session):
        await events_of(session)
    assert [question.title for question in user.asked] == ["Unconfined: ls; touch ../made", "Unconfined: touch ../y"]
    assert "The model says why: it has to\\\\nwrite\\\\u202e beside" in repr(user.asked[0].subject)
    assert {option.kind for option in user.asked[0].options} == {"allow_once", "reject_once"}
    assert model.results == ["Permission denied. The user said no.", "", ""]
    assert ((tmp_path / "made").exists(), (tmp_path / "y").exists(), (work / "x").exists()) == (False, True, True)


async def test_what_the_confinement_has_stopped_is_told_how_to_ask_for_more(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("notes")
    commands = (
        "touch /usr/made",
        "rm AGENTS.md",
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://a.test\")'",
    )
    results = await unasked(work, tmp_path / "home", *commands, "echo mine; exit 1", "touch /usr/made; true")
    assert ["call it again and say in `unconfined` why" in result for result in results] == [True] * 3 + [False] * 2


async def test_a_never_holds_for_confined_commands_too(tmp_path: Path) -> None:
    home = tmp_path / "data"
    KeptRules(home).add("", [PermissionRule("reject", tool="bash", subject="touch x …")])
    (tmp_path / "work").mkdir()
    (told,) = await unasked(tmp_path / "work", home, "touch x")
    assert told == "Permission denied. The user's rule for every project says never to bash `touch x …`."


async def test_where_the_trial_is_not_passed_commands_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "escape_found", lambda parent: "A confined command has written beside its root.")
    user = User("allow_once")
    assert await unasked(tmp_path, tmp_path.parent / "data", "touch x", user=user) == [""]
    assert [question.title for question in user.asked] == ["touch x"]


async def test_a_command_that_was_not_asked_about_stays_confined_when_the_mode_changes(user_home: Path) -> None:
    """It was judged in one mode, and starts in another."""
    need("bwrap")
    modes = ["workspace-write"]
    place = DirectExecution(None, Roots([str(user_home / "work")]), lambda: modes[0], ENVIRONMENT, "")
    assert place.keeps_confined()
    modes[0] = "full-access"
    start = await place.start_confined(["/bin/true"])
    start.close()
    assert (any("bwrap" in word for word in start.argv), place.keeps_confined()) == (True, False)

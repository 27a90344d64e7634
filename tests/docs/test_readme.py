"""README is run, not trusted: its commands are started, its code is the code in examples/, and its settings work.

Each command of ours is started as its reader starts it once; where it comes again, and where it is the other side of
something else, it is forked.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman import connect
from dragoman.coder.models.demo import TOUR
from tests.docs.settings import commands_of
from tests.docs.snippets import Snippet, commands_in, is_balanced, lines_of, snippets
from tests.support.fork_server.client import fork_server
from tests.support.gateway import free_port
from tests.support.needs import ROOT, need

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ("README.md", "docs/how-to/editors.md")
PROGRAMS = Path(sys.executable).parent
# They need a network, a package index, or all of the time there is; what they do is tested elsewhere.
NOT_RUN = ("git clone", "./dev run", "./dev test", "uv tool install", "npx stdio-to-ws")
# What a model does for the prompts of README. Gemini and opencode are played by our own agent: what README says of them
# is about our side.
LOOKS: tuple[dict[str, object], ...] = (
    {"call": "read_file", "input": {"path": "calc.py"}},
    {"say": "`calc.py` has one function, `add`, which subtracts."},
)
MENDS: tuple[dict[str, object], ...] = (
    {"call": "sandbox_bash", "input": {"command": "python3 -B -c 'import test_calc; test_calc.test_add()'"}},
    {
        "call": "sandbox_edit_file",
        "input": {"path": "calc.py", "old_string": "return a - b", "new_string": "return a + b"},
    },
    {"call": "sandbox_bash", "input": {"command": "python3 -B -c 'import test_calc; test_calc.test_add()'"}},
    {"say": "It is mended."},
)
PATIENCE_SECONDS = 50

DOCTOR = "dragoman doctor"
EXPLAIN = 'dragoman run "explain calc.py"'
GEMINI = 'dragoman run --agent gemini "explain this project"'
AGENTS = "dragoman agents list"
SESSIONS = "dragoman sessions list --cwd ."
MEND = 'dragoman run --mode sandbox --allow edit --timeout 600 "fix the failing test test_add"'
REVIEW = 'git diff | dragoman run --stream-json "Review this:" - > review.jsonl'
CHATS = ("dragoman chat", "dragoman chat --continue", "dragoman chat -- opencode acp")
SERVE = "dragoman serve --port 8790"
REMOTE = "dragoman chat -- dragoman connect http://127.0.0.1:8790 --token-file token.txt"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project with a bug in it, and a shell that finds our program."""
    folder = tmp_path / "calc"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    subprocess.run([need("git"), "init", "--quiet"], cwd=folder, check=True)
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "dragoman", '"$@"')
    program(tmp_path / "bin" / "gemini", f"acp --model {playing(tmp_path / 'gemini.json', *LOOKS)}")
    program(tmp_path / "bin" / "opencode", "acp --model demo")
    path = os.pathsep.join([str(tmp_path / "bin"), str(PROGRAMS), os.environ["PATH"]])
    for name, value in {"PATH": path, "DRAGOMAN_HOME": str(tmp_path / "home"), "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    return folder


def program(file: Path, arguments: str) -> None:
    """Write one that is a forked `dragoman` with these arguments."""
    file.write_text(f"#!/bin/sh\nexec {shlex.join(fork_server().dragoman())} {arguments}\n")
    file.chmod(0o755)


@pytest.fixture
def as_installed(project: Path) -> None:
    """In this test `dragoman` is the one that is installed, and really started."""
    (project.parent / "bin" / "dragoman").unlink()


def run(line: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def chat(line: str, folder: Path) -> str:
    """Start a conversation, say one thing, and leave."""
    program, *arguments = shlex.split(line)
    child = pexpect.spawn(program, arguments, cwd=str(folder), timeout=PATIENCE_SECONDS, encoding="utf-8", echo=False)
    try:
        child.expect("/help shows")
        child.expect("> ")
        child.send("list\r")
        child.expect("calc.py")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while child.isalive():  # a key that comes while it still speaks may be taken for something else
            assert time.monotonic() < deadline, child.before
            child.send("\x04")
            child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=0.5)
        assert child.exitstatus == 0
        return str(child.before)
    finally:
        child.close(force=True)


# --- commands -------------------------------------------------------------------------------------------------------


def test_every_command_of_the_readme_is_run_here_or_said_not_to_be() -> None:
    shown = {line for one in snippets("sh", pages=("README.md",)) for line in lines_of(one.text)}
    tested = {DOCTOR, EXPLAIN, GEMINI, AGENTS, SESSIONS, MEND, REVIEW, *CHATS, SERVE, REMOTE}
    assert [line for line in shown - tested if not line.startswith(NOT_RUN)] == []
    assert tested - shown == {"dragoman chat -- opencode acp"}  # that one stands in a sentence


@pytest.mark.usefixtures("as_installed")
def test_the_doctor_finds_nothing_broken(project: Path) -> None:
    findings = run(DOCTOR, project)
    assert "ok      turn" in findings
    assert "BROKEN" not in findings


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("zed", "json"),
        ("jetbrains", "json"),
        ("vscode", "json"),
        ("acpx", "json"),
        ("codecompanion", "lua"),
        ("avante", "lua"),
        ("emacs", "elisp"),
    ],
)
def test_the_settings_that_setup_prints_can_be_read(name: str, language: str, project: Path) -> None:
    text = run(f"dragoman setup {name} --print", project)
    assert commands_of(Snippet("setup", 0, language, name, text)) == [[str(PROGRAMS / "dragoman"), "acp"]]
    comment = {"lua": "--", "elisp": ";"}.get(language)
    assert comment is None or is_balanced(text, comment=comment, characters=language == "elisp")


def playing(file: Path, *steps: dict[str, object]) -> str:
    """Return the name of a model that does this for every prompt."""
    file.write_text(json.dumps({"turns": [{"steps": steps}]}))
    return f"script:{file}"


@pytest.mark.usefixtures("as_installed")
def test_the_terminal_commands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MODEL", playing(project.parent / "script.json", *LOOKS))
    assert "add" in run(EXPLAIN, project)
    assert re.search(r"^gemini +installed", run(AGENTS, project), re.MULTILINE)
    assert "explain calc.py" in run(SESSIONS, project)


def test_an_agent_of_another_vendor(project: Path) -> None:
    assert "calc.py" in run(GEMINI, project)


def test_the_script_mends_the_project_in_a_sandbox(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bwrap")
    monkeypatch.setenv("DRAGOMAN_MODEL", playing(project.parent / "script.json", *MENDS))
    assert run(MEND, project) == "It is mended.\n"
    assert "return a + b" in (project / "calc.py").read_text()


def test_the_tutorial_shows_the_file_of_the_tour() -> None:
    (shown,) = [one for one in snippets("python", pages=("docs/tutorial.md",)) if one.title]
    first, *_ = TOUR
    assert {"path": shown.title, "content": f"{shown.text.rstrip()}\n"} == first.input


def test_the_script_gets_a_review_as_json(project: Path) -> None:
    run(REVIEW, project)
    last = json.loads((project / "review.jsonl").read_text().splitlines()[-1])
    assert (last["type"], last["stopReason"]) == ("result", "end_turn")


def test_the_conversations(project: Path) -> None:
    """The second goes on with the first, which is started."""
    started, *more = CHATS
    for line in CHATS:
        assert f"`{line}`" in README or f"\n{line} " in README
    for line in (f"{PROGRAMS}/{started}", *more):
        chat(line, project)


def test_the_gateway(project: Path) -> None:
    port = free_port()
    with serving(f"{PROGRAMS}/{SERVE}".replace("8790", str(port)), project):
        chat(REMOTE.replace("8790", str(port)).replace("-- ", f"-- {PROGRAMS}/"), project)
        assert "calc.py" in run(f"python {ROOT}/examples/gateway_client.py http://127.0.0.1:{port} token.txt", project)


@contextmanager
def serving(line: str, folder: Path) -> Iterator[None]:
    """The server; the token that its first start prints is put where README wants it."""
    child = pexpect.spawn("bash", ["-c", line], cwd=str(folder), timeout=PATIENCE_SECONDS, encoding="utf-8")
    try:
        child.expect(r"shown this once: (\S+)")
        (folder / "token.txt").write_text(child.match.group(1) + "\n")
        (folder / "token.txt").chmod(0o600)
        child.expect("listening on")
        yield
        child.sendintr()
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)


def test_the_demonstration_shows_both_versions(project: Path) -> None:
    shown = run("dragoman demo", project)
    assert [line for line in shown.splitlines() if line.startswith("──")] == [
        "── ACP v1: dragoman 0.1.0",
        "── ACP v2: dragoman 0.1.0",
    ]
    assert shown.count("(cancelled)") == 2


# --- editors --------------------------------------------------------------------------------------------------------

SETTINGS = [
    one
    for one in snippets("json", "lua", "elisp", "python", pages=DOCS)
    if one.language in ("lua", "elisp") or one.title.startswith(("Zed", "JetBrains", "VS Code", "Jupyter"))
]


@pytest.mark.parametrize("snippet", SETTINGS, ids=str)
def test_editors_settings_can_be_read(snippet: Snippet) -> None:
    if snippet.language == "lua":
        assert is_balanced(snippet.text, comment="--")
    if snippet.language == "elisp":
        assert is_balanced(snippet.text, comment=";", characters=True)
    assert commands_of(snippet)


@pytest.mark.usefixtures("as_installed")
async def test_the_commands_in_editors_settings_answer(project: Path) -> None:
    named = [tuple(command) for snippet in SETTINGS for command in commands_of(snippet)]
    marimo = [words for one in snippets("sh", pages=DOCS) for words in commands_in(one.text) if words[0] == "npx"]
    named += [tuple(shlex.split(words[2])) for words in marimo]
    assert len(named) >= 9
    for command in sorted(set(named)):
        async with connect(list(command), env={"DRAGOMAN_HOME": os.environ["DRAGOMAN_HOME"]}) as client:
            assert client.agent.info is not None
            assert client.agent.info.name == "dragoman"
            session = await client.new_session(project)
            assert (await session.ask("list")).stop_reason == "end_turn"


# --- code -----------------------------------------------------------------------------------------------------------


def test_the_shortest_agent_and_client_are_under_fifteen_lines() -> None:
    for path in ("examples/agent.py", "examples/client.py"):
        lines = [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) < 15


def test_the_client_talks_to_the_agent(project: Path) -> None:
    assert run("python examples/client.py", ROOT) == "You said: Hello!"


def test_the_client_without_async_asks_and_keeps_to_its_policy(project: Path) -> None:
    ask = f"python {ROOT}/examples/ask.py ."
    assert "calc.py" in run(f"{ask} 'list' dragoman acp --model demo", project)
    assert "Permission denied" in run(f"{ask} 'run touch x.txt' dragoman acp --model demo", project)
    assert not (project / "x.txt").exists()


def test_the_larger_agent_reviews_and_remembers(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVIEWER_HOME", str(project / "sessions"))
    (project / "long.py").write_text("x = 1\n" + "#" * 100 + "\n")
    agent = f"-- python {ROOT}/examples/reviewer.py"
    assert run(f"dragoman run long.py {agent}", project) == "Longer than 120: no line.\n"
    strict = json.loads(run(f"dragoman run --stream-json --mode strict long.py {agent}", project).splitlines()[-1])
    again = run(f"dragoman run --resume {strict['sessionId']} /past {agent}", project)
    assert again == "long.py: 1 long lines\n"


def test_the_agent_of_the_tutorial_keeps_its_list_and_its_client_finds_it_again(project: Path) -> None:
    agent = f"python {ROOT}/examples/todo_agent.py"
    shown = run(f"python {ROOT}/examples/todo_client.py . {agent}", project)
    assert shown == "(a tool call has ended)\nSaved to TODO.md.\n- fix the bug\n- rest\n- write the tests\n"
    assert (project / "TODO.md").read_text() == "- fix the bug\n- write the tests\n"


def test_the_test_of_an_agent_passes(project: Path) -> None:
    assert "1 passed" in run("python -m pytest -q -p no:cacheprovider -n 0 examples/test_agent.py", ROOT)


# --- links and tables -----------------------------------------------------------------------------------------------


def test_what_the_readme_links_to_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README) if "://" not in link]
    assert [link for link in links if not (ROOT / link).is_file()] == []

"""Tab completes our command line: what is offered, and that real shells take it."""

import os
import subprocess
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.cli.completion_candidates import FILES, FOLDERS, candidates
from dragoman.cli.main import COMMANDS, command_line, main
from tests.support.command import call
from tests.support.needs import need

PROGRAM = Path(sys.executable).parent
PATH = os.pathsep.join([str(PROGRAM), os.environ["PATH"]])


def offered(line: str) -> list[str]:
    """The words for a line; `|` stands for the space that a new word begins after."""
    return [found.word for found in candidates(command_line(), line.replace("|", " ").split(" "))]


OFFERED = {
    "": list(COMMANDS),
    "se": ["serve", "sessions", "setup"],
    "nothing-of-ours ": ["--help", "--version"],
    "acp --mo": ["--model", "--mode"],
    "acp --mode plan --mo": ["--model"],
    "acp --mode pl": ["plan"],
    "acp --mode=pl": ["--mode=plan"],
    "acp --mode = pl": ["plan"],
    "acp --protocol =": ["1", "2"],
    "acp --protocol 1 --protocol ": ["1", "2"],
    "acp --dialect s": ["simse"],
    "acp --trace ": [FILES],
    "acp --nonsense --tr": ["--trace"],
    "serve --agent a --agen": ["--agent"],
    "run --cwd ": [FOLDERS],
    "run --s": ["--show-stderr", "--stream-json", "--system-prompt-file"],
    "run --output-schema ": [FILES],
    "run --add-dir ": [FOLDERS],
    "config g": ["get"],
    "run --agent gem": ["gemini"],
    "run hello -- so": [FILES],
    "sessions ": [
        *("list", "search", "stats", "rename", "archive", "prune", "show", "export", "audit", "fork", "continue"),
        *("rewind", "delete", "finish"),
    ],
    "sessions export --format m": ["markdown"],
    "sessions export --output ": [FILES],
    "agents remove drag": ["dragoman"],
    "trust ": [FOLDERS],
    "login an": ["anthropic"],
    "connect --token-file ": [FILES],
    "completion ": ["bash", "zsh", "fish"],
    "completion bash --vers": ["--version"],
    "demo --version ": ["--help", "--protocol", "--trace", "--log-level", "--verbose"],
    "demo --log-level w": ["warning"],
}


@pytest.mark.parametrize("line", OFFERED)
def test_what_may_come_next_is_offered(line: str) -> None:
    assert offered(line) == OFFERED[line]


def test_a_session_is_offered_by_its_id_with_its_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    assert offered("run --resume ") == []
    assert call("run", "--model", "demo", "list", cwd=tmp_path).code == 0
    (found,) = candidates(command_line(), ["sessions", "show", "sess"])
    assert found.word.startswith("sess_")
    assert found.about == "list"


def test_a_lookup_that_fails_offers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acp.json").write_text("{")
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    assert offered("run --agent ") == []


def test_the_answer_is_a_candidate_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--words", "sessions", "f"]) == 0
    assert main(["completion", "--words", "run", "--cwd", ""]) == 0
    assert capsys.readouterr().out == (
        "fork\tcopy a session, and print the new id\n"
        "finish\tmerge, keep or remove the git worktree that a session works in\n:folders\n"
    )


def test_without_a_shell_a_sentence_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert capsys.readouterr().err == "dragoman: for which shell? dragoman completion bash, zsh or fish\n"


# A command, the value of an option, a folder, a file.
TYPED = {
    "dragoman doc": "dragoman doctor ",
    "dragoman acp --mode work": "dragoman acp --mode workspace-write ",
    "dragoman run --cwd fold": "dragoman run --cwd folder/",
    "dragoman acp --trace some-f": "dragoman acp --trace some-file ",
}
LOAD = {
    "bash": 'eval "$(dragoman completion bash)"; bind "set bell-style none"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; unsetopt beep; eval "$(dragoman completion zsh)"',
    "fish": "dragoman completion fish | source",
}


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "folder").mkdir()
    (tmp_path / "some-file").touch()
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": PATH, "HOME": str(home), "DRAGOMAN_HOME": str(home), "TERM": "dumb", "PS1": ""}


@pytest.mark.parametrize(
    ("shell", "options"),
    [("bash", ["--norc", "--noprofile", "-i"]), pytest.param("zsh", ["-f", "-i"], marks=pytest.mark.slow)],
    ids=["bash", "zsh"],
)
def test_a_shell_completes_what_is_typed(
    shell: str, options: list[str], tmp_path: Path, surroundings: dict[str, str]
) -> None:
    child = pexpect.spawn(need(shell), options, cwd=tmp_path, env=surroundings, encoding="utf-8", timeout=40)
    try:
        child.sendline(LOAD[shell])
        # Not printed as it is typed: only what runs says the whole word.
        child.sendline("echo re''ady")
        child.expect("\nready")
        for line, whole in TYPED.items():
            child.send(f"{line}\t")
            child.expect_exact(whole)
            child.send("\x15")  # away with the line
    finally:
        child.close(force=True)


@pytest.mark.slow
def test_fish_completes_what_is_typed(tmp_path: Path, surroundings: dict[str, str]) -> None:
    # Its line editor asks the terminal questions; but it also tells what Tab would do.
    asked = "; ".join([LOAD["fish"], *(f"complete -C '{line}'" for line in TYPED)])
    command = [need("fish"), "--no-config", "-c", asked]
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=40, check=True
    )
    found = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert found == [whole.split()[-1] for whole in TYPED.values()]

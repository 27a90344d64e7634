"""Which program shows what is longer than the screen."""

from pathlib import Path

import pytest

from dragoman.cli.terminal.viewer import find_pager


def program(file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("pager", ["", "./pager", "pager", "no-such-pager", "'"])
def test_no_program_of_the_workspace_is_a_pager(pager: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    for name in ("pager", "less"):
        program(work / "bin" / name)
        program(work / name)
    monkeypatch.chdir(work)
    less = program(tmp_path / "bin" / "less")
    environment = {"TERM": "xterm", "PAGER": pager, "PATH": f"{work}/bin:.:bin::{tmp_path}/bin"}
    found = find_pager(environment, [str(work)])
    assert found is not None
    assert (found.command, found.coloured) == ([less, "-R", "-+F", "-+X"], True)
    assert find_pager(environment | {"PATH": f"{work}/bin:."}, [str(work)]) is None


def test_the_pager_of_the_user_comes_first_and_is_given_no_colours(tmp_path: Path) -> None:
    more = program(tmp_path / "more")
    environment = {"TERM": "xterm", "PAGER": "more -d 'a b'", "PATH": str(tmp_path)}
    secret = {"MY_TOKEN": "canary", "LESSOPEN": "|evil", "LESSCLOSE": "evil", "LESSEDIT": "evil"}
    found = find_pager(environment | secret, [])
    assert found is not None
    assert (found.command, found.coloured) == ([more, "-d", "a b"], False)
    assert found.environment == environment | {"LESSSECURE": "1", "LESSHISTFILE": "-"}


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_terminal_that_cannot_move_its_cursor_has_no_pager(term: str | None, tmp_path: Path) -> None:
    program(tmp_path / "less")
    environment = {"PATH": str(tmp_path)} | ({} if term is None else {"TERM": term})
    assert find_pager(environment, []) is None

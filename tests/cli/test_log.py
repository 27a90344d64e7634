"""The log of failures: what stands in it, what never does, and how long it gets."""

import json
import os
import stat
from pathlib import Path

import pytest

from dragoman.cli import doctor, failure_log, main
from dragoman.version import VERSION
from tests.support.editor import Editor
from tests.support.fork_server.client import fork_server

SECRET = "sk-" + "a" * 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(failure_log, "_written", 0)
    return tmp_path / "home" / "log"


def fail(depth: int = 0) -> None:
    if depth:
        fail(depth - 1)
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


def failure(depth: int = 0) -> KeyError:
    with pytest.raises(KeyError) as caught:
        fail(depth)
    return caught.value


def test_a_line_says_what_kind_and_where_and_no_content(folder: Path) -> None:
    failure_log.record("acp", failure())
    line = json.loads((folder / failure_log.NAME).read_text())
    assert line.pop("time").endswith("Z")
    place, *_ = line.pop("where")
    assert place.startswith("test_log.py:")
    assert place.endswith(" fail")
    assert line == {
        "version": VERSION,
        "command": "acp",
        "pid": os.getpid(),
        "kind": "KeyError",
        "causes": ["ValueError"],
    }
    assert SECRET not in (folder / failure_log.NAME).read_text()


def test_only_the_owner_reads_it(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    (folder / failure_log.NAME).touch(0o644)
    failure_log.record("acp", failure())
    assert stat.S_IMODE((folder / failure_log.NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_files_are_bounded_and_the_newest_line_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_log, "FILE_BYTES", 2000)
    for number in range(60):
        failure_log.record(str(number), failure())
    assert sorted(file.name for file in folder.iterdir()) == [
        failure_log.NAME,
        f"{failure_log.NAME}.1",
        f"{failure_log.NAME}.2",
    ]
    assert max(file.stat().st_size for file in folder.iterdir()) <= 2000
    kept = [
        int(json.loads(line)["command"])
        for name in (f"{failure_log.NAME}.2", f"{failure_log.NAME}.1", failure_log.NAME)
        for line in (folder / name).read_text().splitlines()
    ]
    assert kept == list(range(kept[0], 60))


def test_a_process_that_always_fails_falls_silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_log, "LINES", 3)
    for _ in range(5):
        failure_log.record("acp", failure())
    assert len((folder / failure_log.NAME).read_text().splitlines()) == 3


def test_a_deep_failure_is_told_from_its_inside(folder: Path) -> None:
    failure_log.record("acp", failure(depth=100))
    line = json.loads((folder / failure_log.NAME).read_text())
    assert len(line["where"]) == failure_log.PLACES


def test_a_circle_of_causes_ends(folder: Path) -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    failure_log.record("acp", first)
    assert json.loads((folder / failure_log.NAME).read_text())["causes"] == ["KeyError", "ValueError"] * 2


@pytest.mark.parametrize("kind", ["file", "link", "fifo"])
def test_a_log_that_cannot_be_written_fails_nothing(kind: str, folder: Path, tmp_path: Path) -> None:
    folder.parent.mkdir()
    if kind == "file":
        folder.touch()
    elif kind == "link":
        folder.mkdir()
        (folder / failure_log.NAME).symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        os.mkfifo(folder / failure_log.NAME)
    failure_log.record("acp", failure())
    assert not (tmp_path / "elsewhere").exists()


def test_a_command_that_fails_is_recorded_without_its_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.cli.config.run", lambda arguments: fail())
    with pytest.raises(KeyError):
        main.main(["config", "show"])
    assert json.loads((folder / failure_log.NAME).read_text())["command"] == "config"


def test_an_agent_that_fails_inside_is_recorded(tmp_path: Path) -> None:
    program = (
        "import dragoman.coder.session as coder\n"
        "async def broken(self): raise RuntimeError('the text of it')\n"
        "coder.CodingSession.open = broken\n"
        "from dragoman.cli.main import main\n"
        "main(['acp', '--model', 'demo'])\n"
    )
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    opening = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    process = fork_server().child(program, env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)})
    said = "".join(json.dumps(message) + "\n" for message in (hello, opening))
    out, _ = process.communicate(said.encode(), timeout=40)
    assert b'"code":-32603' in out
    written = (tmp_path / "log" / failure_log.NAME).read_text()
    line = json.loads(written)
    assert (line["command"], line["kind"]) == ("acp", "RuntimeError")
    assert "the text of it" not in written


def test_nothing_is_made_while_nothing_fails(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        editor.open()
        editor.prompt("hello")
    assert not (tmp_path / "home" / "log").exists()


def test_the_doctor_names_the_file(folder: Path) -> None:
    assert doctor._log() == ("log", "ok", f"{folder / failure_log.NAME} (made with the first failure)")
    failure_log.record("acp", failure())
    what, health, text = doctor._log()
    assert (what, health) == ("log", "note")
    assert text.startswith(f"{folder / failure_log.NAME}; the last failure was on 2")

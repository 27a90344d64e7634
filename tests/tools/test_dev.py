"""`./dev`: what can be tried of it without setting anything up."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from evals.languages import NEEDS
from tests.support.needs import ROOT


@pytest.fixture(scope="module")
def dev() -> ModuleType:
    loader = SourceFileLoader("dev", str(ROOT / "dev"))
    spec = importlib.util.spec_from_loader("dev", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def test_every_command_is_explained_in_a_line(dev: ModuleType) -> None:
    shown = dev.usage().splitlines()
    for name, command in dev.COMMANDS.items():
        (line,) = [line for line in shown if line.startswith(f"  {name} ")]
        assert line.split(maxsplit=1)[1] == (command.__doc__ or "").splitlines()[0]
    assert {"setup", "test", "look", "coverage", "release-check", "fuzz"} <= set(dev.COMMANDS)
    assert max(map(len, shown)) <= 140


# On every machine that this can be tried on; node is for the SDK in its language, and its absence is said.
THERE = {"sh", "bash", "git", "unshare", "setpriv", "node", "npx", "no-such-program"}


def test_it_installs_every_program_that_a_test_needs(dev: ModuleType) -> None:
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    needed = {name for source in sources for name in re.findall(r"""\bneed\(["']([\w.-]+)["']\)""", source)}
    assert needed - THERE - set(dev.SYSTEM_TOOLS.values()) == set()


def test_it_installs_every_program_that_a_task_needs(dev: ModuleType) -> None:
    needed = {need.program for need in NEEDS.values()}
    assert needed - THERE - set(dev.LANGUAGE_TOOLS.values()) == set()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "usage: ./dev COMMAND"),
        (["--help"], 0, "usage: ./dev COMMAND"),
        (["dance"], 2, "there is no command dance"),
        (["release-check", "--help"], 0, "./dev release-check: build, install"),
        (["fuzz"], 1, "fuzz needs to know how long, in seconds: ./dev fuzz 600"),
        (["fuzz", "1h"], 1, "fuzz needs to know how long"),
        (["look", "here"], 1, "look takes no here"),
    ],
)
def test_a_command_line_is_answered_with_a_sentence(
    dev: ModuleType, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.main(arguments) == code
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


def test_fuzzing_goes_on_for_as_long_as_it_is_told(dev: ModuleType, tmp_path: Path) -> None:
    rounds = tmp_path / "rounds"
    start = time.monotonic()
    program = f"import time; open({str(rounds)!r}, 'a').write('x'); time.sleep(0.2)"
    code = dev.repeat([sys.executable, "-c", program], 1)
    assert code == 0
    assert time.monotonic() - start >= 1
    assert len(rounds.read_text()) >= 1


def test_fuzzing_ends_in_the_middle_of_a_round_with_everything_it_started(dev: ModuleType, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    # Both hold the pipe open for as long as they live.
    program = (
        "import subprocess, sys, time\n"
        f"pipe = open({str(alive)!r}, 'w')\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], pass_fds=[pipe.fileno()])\n"
        "print('begun', file=pipe, flush=True)\n"
        "time.sleep(600)\n"
    )
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert dev.repeat([sys.executable, "-c", program], 3) == 0
        os.set_blocking(reader, True)
        said = b""
        while piece := os.read(reader, 100):  # until no process is left that could write
            said += piece
    finally:
        os.close(reader)
    assert said == b"begun\n"


def test_fuzzing_ends_with_the_first_failure(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.repeat([sys.executable, "-c", "raise SystemExit(3)"], 60) == 3
    assert "Round 1 failed" in capsys.readouterr().out
    with pytest.raises(dev.Failed, match="no property test"):
        dev.repeat([sys.executable, "-c", f"raise SystemExit({dev.NO_TESTS})"], 60)


def test_gates_all_run_and_one_that_fails_is_named(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {"good": 0, "bad": 3, "after": 0}
    monkeypatch.setattr(dev, "call", lambda command: codes[command[-1]])
    assert dev.run_gates({name: [name] for name in codes}) == 1
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.split()[:1] and "===" not in line]
    assert rows == [["good", "passed"], ["bad", "FAILED"], ["after", "passed"]]
    del codes["bad"]
    assert dev.run_gates({name: [name] for name in codes}) == 0


def test_types_are_checked_beside_the_tests_and_still_count(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grumble.py").write_text("print('it is wrong'); raise SystemExit(4)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(dev, "call", lambda command: 0)
    assert dev.run_gates({"lint": ["x"], "types": ["grumble"], "tests": ["x"]}) == 1
    shown = capfd.readouterr().out
    assert "it is wrong" in shown
    assert [line.split()[:2] for line in shown.splitlines()[-3:]] == [
        ["lint", "passed"],
        ["tests", "passed"],
        ["types", "FAILED"],
    ]


def test_types_that_are_checked_beside_the_tests_end_with_them(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    before = dev.beside

    @contextmanager
    def remembered(command: list[str]) -> Iterator[object]:
        with before(["timeit", "-n1", "-r1", "import time; time.sleep(600)"]) as aside:
            started.append(aside.child)
            yield aside

    def interrupted(command: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(dev, "beside", remembered)
    monkeypatch.setattr(dev, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dev.run_gates({"types": ["mypy"], "tests": ["pytest"]})
    assert started[0].poll() is not None


def test_a_program_sees_our_environment_first(dev: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "path"
    program = f"import os; open({str(file)!r}, 'w').write(os.environ['PATH'])"
    assert dev.call([sys.executable, "-c", program]) == 0
    assert file.read_text().split(os.pathsep)[0] == str(dev.BIN)


@pytest.mark.parametrize(
    ("room", "already", "there"),
    [(1, None, True), (1 << 60, None, False), (1, "/elsewhere", False)],
    ids=["room", "no room", "said already"],
)
def test_the_files_of_tests_are_in_memory_where_there_is_room(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: int, already: str | None, there: bool
) -> None:
    monkeypatch.setattr(dev, "MEMORY", tmp_path)
    monkeypatch.setattr(dev, "MEMORY_BYTES", room)
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", already or "")  # so that it is as before when the test is over
    if already is None:
        monkeypatch.delenv("PYTEST_DEBUG_TEMPROOT")
    dev.keep_files_in_memory()
    assert os.environ.get("PYTEST_DEBUG_TEMPROOT") == (str(tmp_path) if there else already)

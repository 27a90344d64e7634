"""A forked child is a process like any other, and what it cannot be is refused: the promises that 25 files rely on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fork_server.client import ForkServer, fork_server
from tests.support.machine import lives
from tests.support.waiting import wait_until

SLEEP = "import sys, time; print('up', flush=True); time.sleep(1000)"


def test_a_child_has_its_own_streams_arguments_environment_folder_and_exit_code(tmp_path: Path) -> None:
    source = "import os, sys; print(sys.argv[1:], os.environ['MINE'], os.getcwd(), sys.stdin.read())\n"
    source += "print('trouble', file=sys.stderr)\nsys.exit(7)"
    child = fork_server().child(source, "a", "b c", env={**os.environ, "MINE": "1"}, cwd=tmp_path)
    assert child.communicate(b"input", timeout=30) == (f"['a', 'b c'] 1 {tmp_path} input\n".encode(), b"trouble\n")
    assert child.returncode == 7


def test_an_exception_ends_a_child_as_it_ends_python() -> None:
    child = fork_server().child("raise ValueError('boom')")
    out, errors = child.communicate(timeout=30)
    assert (out, child.returncode, errors.splitlines()[-1]) == (b"", 1, b"ValueError: boom")


def test_children_share_neither_modules_nor_variables_nor_folders(tmp_path: Path) -> None:
    change = "import json, os; json.mark = 1; os.environ['MARK'] = '1'; os.chdir('/')"
    look = "import json, os; print(hasattr(json, 'mark'), 'MARK' in os.environ, os.getcwd())"
    fork_server().child(change).communicate(timeout=30)
    assert fork_server().child(look, cwd=tmp_path).communicate(timeout=30)[0] == f"False False {tmp_path}\n".encode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_child_and_is_its_exit_code(number: signal.Signals) -> None:
    with fork_server().child(SLEEP) as child:
        assert child.stdout.readline() == b"up\n"
        assert child.poll() is None
        child.send_signal(number)
        assert child.wait(timeout=30) == -number
    assert not lives(child.pid)


def test_waiting_too_short_is_told_and_the_child_lives_on() -> None:
    with fork_server().child(SLEEP) as child:
        assert child.stdout.readline() == b"up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.01)
        assert lives(child.pid)
        child.kill()


def test_a_child_at_a_terminal_has_one_of_the_given_size_and_dies_with_it() -> None:
    source = "import os, sys, time; print(os.isatty(0), os.get_terminal_size(), flush=True); time.sleep(1000)"
    terminal = fork_server().at_terminal(source, dimensions=(11, 33))
    terminal.expect_exact("True os.terminal_size(columns=33, lines=11)")
    terminal.close()
    assert (terminal.signalstatus, lives(terminal.pid)) == (signal.SIGHUP, False)


def test_a_command_forks_its_program_and_passes_streams_signals_and_exit_codes_on() -> None:
    echo = fork_server().command("import sys; print(sys.argv[1], sys.stdin.read()); sys.exit(3)", "argument")
    done = subprocess.run(echo, input=b"input", capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"argument input\n", b"")
    handler = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
    with subprocess.Popen(fork_server().command(handler + SLEEP), stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=30) == 5


def test_the_child_of_a_command_that_is_killed_is_killed() -> None:
    source = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    with subprocess.Popen(fork_server().command(source), stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        assert child != started.pid
        started.kill()
        wait_until(lambda: not lives(child), "the end of the forked child")


def test_what_is_no_program_of_ours_is_run_by_python_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys; print(sys.executable)")
    done = subprocess.run(
        [fork_server().python, str(tmp_path / "script.py")], capture_output=True, timeout=30, check=True
    )
    assert done.stdout.decode().strip() == sys.executable


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LANG", "LC_ALL"])
def test_a_variable_that_python_reads_when_it_starts_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"A forked child cannot have a {name} of its own"):
        fork_server().child("", env={**os.environ, name: "another"})


def test_nothing_is_left_of_a_server_that_was_closed() -> None:
    server = ForkServer()
    child = server.child("print('done')")
    assert child.communicate(timeout=30) == (b"done\n", b"")
    server.close()
    assert not lives(server._process.pid)
    assert not server._folder.exists()

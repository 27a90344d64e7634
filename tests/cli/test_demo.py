"""`dragoman demo` at a terminal: what is shown, and Ctrl-C."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from dragoman.version import VERSION
from tests.support.command import call
from tests.support.editor import DRAGOMAN
from tests.support.fork_server.client import MAIN, fork_server

SHOWN = """\
── ACP v{protocol}: dragoman {version}

you    Who are you?
thinks The user has started the demonstration. I should say what they are looking at.
agent  I am an agent in a process of my own. \
Every piece of this text came as one message, and none of them needed a network.
       (end_turn; 12 tokens in, 34 out)

you    Count until I stop you.
agent  tick tick tick tick tick {late}
       (cancelled)

you    Are you still there?
notice The model's rate limit is reached; trying again (1 of 3)
agent  A retry later, here I am again.
       (end_turn)

"""


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_demonstration_shows_a_turn_a_cancel_and_a_retry_and_is_nobodys_history(
    protocol: int, tmp_path: Path
) -> None:
    done = call("demo", f"--protocol={protocol}", forks=True, DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.error) == (0, "")
    late = "tick " * (done.out.count("tick ") - 5)  # on a slow machine one more may be on its way
    assert done.out == SHOWN.format(protocol=protocol, version=VERSION, late=late)
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_that_knows_ascii_alone_is_enough() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*DRAGOMAN, "demo", "--protocol=1"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"?? ACP v1")


def test_a_reader_that_has_seen_enough_may_close_the_pipe() -> None:
    command = f"{shlex.join(fork_server().dragoman())} demo | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"── ACP v1: dragoman {VERSION}\n", "")


def test_ctrl_c_at_a_terminal_ends_it_without_a_traceback_or_an_orphan(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with fork_server().at_terminal(MAIN, "demo", "--trace", str(trace), env=environment) as child:
        child.expect_exact("tick")
        (agent,) = children(child.pid)
        child.sendintr()
        shown = child.read()
    assert child.exitstatus == 130
    assert "Traceback" not in shown
    assert shown.endswith("^C\r\n")
    assert not Path(f"/proc/{agent}").exists()
    assert list(tmp_path.iterdir()) == [trace]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

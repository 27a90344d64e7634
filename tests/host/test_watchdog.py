"""The watchdog: what a server has started is frozen when its lease is late, and killed when it is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(60)

# A server: it starts a shell with a child that has left its group, says who they are, and does what it is told.
SERVER = """
import os, subprocess, sys, time
from dragoman.host.watchdog import Watchdog
watchdog = Watchdog()
shell = subprocess.Popen(["sh", "-c", "setsid sleep 1000 & echo $!; sleep 1001"], stdout=subprocess.PIPE, text=True)
print(shell.pid, shell.stdout.readline().strip(), flush=True)
for line in sys.stdin:
    match line.split():
        case ["renew", late, lost]:
            watchdog.renew(time.monotonic() + float(late), time.monotonic() + float(lost))
        case ["lost"]:
            watchdog.say_lost()
        case ["close"]:
            watchdog.close()
    print("done", flush=True)
"""


class Server:
    """A server with a watchdog, and the processes that it has started."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.started = [int(word) for word in self.process.stdout.readline().split()]

    def say(self, line: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"

    def states(self) -> str:
        return "".join(state_of(pid) for pid in self.started)

    def until(self, states: str) -> None:
        wait_until(lambda: self.states() == states, f"{states}, not {self.states()}")


def state_of(pid: int) -> str:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "-"
    return "-" if state in "ZX" else state


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.process.kill()
    running.process.communicate()
    for pid in running.started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.requirement("CL6")
def test_a_late_renewal_freezes_what_was_started_and_the_next_lets_it_go_on(server: Server) -> None:
    server.say("renew 0.05 60")
    server.until("TT")
    server.say("renew 60 90")
    server.until("SS")


@pytest.mark.requirement("CL6")
def test_a_stopped_server_is_killed_with_what_it_has_started_when_its_lease_is_over(server: Server) -> None:
    server.say("renew 0.05 0.3")
    os.kill(server.process.pid, signal.SIGSTOP)
    server.until("--")
    assert server.process.wait(30) == -signal.SIGKILL


@pytest.mark.requirement("CL6")
def test_a_server_that_knows_of_its_lost_lease_goes_on_without_what_it_has_started(server: Server) -> None:
    server.say("renew 60 90")
    server.say("lost")
    server.until("--")
    server.say("renew 60 90")
    assert server.process.poll() is None


@pytest.mark.requirement("CL6")
def test_the_end_of_a_server_ends_what_it_has_started(server: Server) -> None:
    server.say("renew 60 90")
    server.process.kill()
    server.until("--")


@pytest.mark.requirement("CL6")
def test_what_its_user_has_stopped_stays_so(server: Server) -> None:
    first, second = server.started
    os.kill(second, signal.SIGSTOP)
    wait_until(lambda: state_of(second) == "T", "the second is stopped")
    server.say("renew 0.05 60")
    wait_until(lambda: state_of(first) == "T", "the first is frozen")
    server.say("renew 60 90")
    server.until("ST")

"""A process that forbids reading is closed to others of its user, and can still do its own work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.host import process_privacy
from tests.support.confined_commands import confinement
from tests.support.machine import as_a_user

START = """
import os, subprocess, sys
from dragoman.host.process_privacy import {forbid} as forbid
assert forbid()
"""
# Another process of the same user looks at this one.
LOOKED_AT = """
done = subprocess.run(["head", "-c", "1", f"/proc/{os.getpid()}/environ"], capture_output=True, text=True)
print(done.stderr, end="")
"""
CONFINING = """
from dragoman.host.sandbox import confine, try_out
found = try_out(sys.argv[2] or None)
folder = sys.argv[1]
command = ["/bin/sh", "-c", "cat; ls /proc/self/fd; touch made"]
with confine(command, cwd=folder, writable=[folder], protected=(), confinement=found) as box:
    done = subprocess.run(box.argv, cwd=folder, input="said\\n", capture_output=True, text=True)
print(box.level, done.stdout.split(), done.stderr)
"""
# What we do with ourselves elsewhere: pipes opened anew, descriptors listed, fields of our own process.
OWN = """
print(sorted(os.listdir("/proc/self/fd"))[:3], open("/proc/self/stat").read().split()[0] == str(os.getpid()))
os.close(os.open("/proc/self/fd/1", os.O_WRONLY | os.O_NONBLOCK))
"""


def run(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = as_a_user(sys.executable, "-c", program, *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("forbid", ["make_undumpable", "_make_undumpable_slowly"])
def test_another_process_of_the_user_cannot_read_it(forbid: str) -> None:

    done = run(START.format(forbid=forbid) + LOOKED_AT)
    assert (done.returncode, "Permission denied" in done.stdout) == (0, True), done


def test_forbidding_costs_no_import_of_ctypes() -> None:
    done = run(START.format(forbid="make_undumpable") + "print('ctypes' in sys.modules)")
    assert done.stdout == "False\n"


def test_it_still_reads_itself() -> None:
    done = run(START.format(forbid="make_undumpable") + OWN)
    assert (done.stdout, done.stderr) == ("['0', '1', '2'] True\n", "")


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_it_still_confines_commands(level: str, tmp_path: Path) -> None:
    program = confinement(level).bubblewrap or ""
    done = run(START.format(forbid="make_undumpable") + CONFINING, str(tmp_path), program)
    assert done.stdout == f"{level} ['said', '0', '1', '2', '3'] \n", done
    assert (tmp_path / "made").exists()


def test_keys_are_overwritten_in_proc_and_stay_in_the_environment() -> None:
    program = """
import os
from dragoman.host.process_privacy import blank_secrets
print(blank_secrets(), b"canary" in open("/proc/self/environ", "rb").read(), os.environ["SOME_API_KEY"])
"""
    env = {"PATH": os.environ["PATH"], "SOME_API_KEY": "canary-1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "1 False canary-1\n"


def test_nothing_is_forbidden_where_there_is_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process_privacy.make_undumpable() is False

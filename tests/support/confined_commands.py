"""Commands confined for real, in either way of confinement, and as another user than root."""

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.host import landlock
from dragoman.host.bubblewrap import FRESH
from dragoman.host.resources import ResourceLimits
from dragoman.host.sandbox import Confinement, confine, try_out
from tests.support.needs import lacking, need, need_other_users

ROOT = Path(__file__).resolve().parent.parent.parent
LEVELS = ["bubblewrap", "landlock"]


def is_temporary(path: str | Path) -> bool:
    """Of such a folder bubblewrap shows a fresh and empty one to each command."""
    return any(Path(path).is_relative_to(folder) for folder in FRESH)


# An interpreter that a confined command can see, also where this project lies in a temporary folder.
PYTHON = os.path.realpath(sys.executable) if is_temporary(sys.executable) else sys.executable
SEARCH_PATH = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if not is_temporary(folder))


def confinement(level: str) -> Confinement:
    if level == "bubblewrap":
        program = need("bwrap")
        found = tried(program)
        assert found.bubblewrap == program, found.lacks
        return found
    if landlock.version() < landlock.LEAST_VERSION:
        pytest.skip("this kernel has no Landlock")
    found = tried(None)
    assert found.landlock, found.lacks
    return found


tried = functools.cache(try_out)


class Box:
    """Runs commands in one way of confinement."""

    def __init__(self, level: str, workspace: Path) -> None:
        self.level = level
        self.workspace = workspace
        self.hidden: list[str] = []
        self.protected: Sequence[str] = ()
        self.network = False
        self.limits: ResourceLimits | None = None
        self._confinement = confinement(level)

    def run(self, *argv: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        with confine(
            argv,
            cwd=str(self.workspace),
            writable=[str(self.workspace)],
            hidden=self.hidden,
            protected=self.protected,
            network=self.network,
            limits=self.limits,
            confinement=self._confinement,
        ) as box:
            assert box.level == self.level
            return subprocess.run(
                box.argv,
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
                stdin=subprocess.DEVNULL,
                cwd=self.workspace,
                env={"PATH": SEARCH_PATH, "LC_ALL": "C"} | (env or {}) | box.environment,
            )

    def sh(self, script: str) -> "subprocess.CompletedProcess[str]":
        return self.run("/bin/bash", "-c", script)

    def succeeded(self, scripts: Sequence[str], env: dict[str, str] | None = None) -> list[str]:
        """Which of these do what they want, each in a shell of its own, one after the other in one confinement."""
        each = 'for script; do /bin/bash -c "$script" > /dev/null 2>&1; echo $?; done'
        done = self.run("/bin/bash", "-c", each, "each", *scripts, env=env)
        return [script for script, code in zip(scripts, done.stdout.split(), strict=True) if code == "0"]

    def python(self, script: str, *argv: str) -> "subprocess.CompletedProcess[str]":
        return self.run(PYTHON, "-I", "-c", script, *argv)


AS_ANOTHER_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def may_be_run_by_another_user(*argv: str) -> bool:
    # An interpreter has to be able to start itself: setpriv may start more than it leads to.
    again = (
        "import subprocess, sys; assert sys.version_info >= (3, 11); subprocess.run([sys.executable, '-V'], check=True)"
    )
    words = argv if len(argv) > 1 else (*argv, "-I", "-c", again)
    return subprocess.run([*AS_ANOTHER_USER, *words], capture_output=True, check=False, cwd="/").returncode == 0


def python_of_others() -> str:
    """A Python that a user who is not root may start, and that may read this project; run by root alone."""
    need_other_users()
    need("setpriv")
    if not may_be_run_by_another_user("cat", str(ROOT / "src/dragoman/host/sandbox.py")):
        lacking("a project that other users may read")
    found = next((path for path in (PYTHON, "/usr/bin/python3") if may_be_run_by_another_user(path)), None)
    return found or lacking("a Python that other users may start")

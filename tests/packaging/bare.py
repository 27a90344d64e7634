"""The wheel, and an environment with nothing in it but the wheel and what the core needs. Made once for all workers."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pip
import pytest

from tests.support.needs import ROOT


class Bare(NamedTuple):
    """An environment that has never heard of our checkout."""

    folder: Path
    wheel: Path

    def program(self, name: str = "dragoman") -> str:
        return str(self.folder / "bin" / name)

    def run(self, *arguments: str, cwd: Path, text: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the installed program in `cwd`, which is also its home."""
        return subprocess.run(
            [self.program(), *arguments],
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "DRAGOMAN_HOME": str(cwd / "home"), **environment},
            input=text,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first worker makes and the others wait for."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = shared / f"{name}.making"
            making.mkdir()
            make(making)
            making.rename(folder)
    return folder


def build(folder: Path) -> None:
    """Build the wheel with the builder of our own environment: nothing is fetched."""
    _quietly([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)


def install(wheel: Path, folder: Path) -> None:
    """Make the environment. The one library of the core is borrowed from ours, so nothing is fetched."""
    _quietly([sys.executable, "-m", "venv", "--without-pip", str(folder)], ROOT)
    # As `pip --python` does it, in one process instead of two.
    runner = str(Path(pip.__file__).with_name("__pip-runner__.py"))
    command = [str(folder / "bin" / "python"), runner, "install", "--quiet", "--no-compile"]
    _quietly([*command, "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)], ROOT)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    library = Path(msgspec.__file__).parent
    (packages / "msgspec").symlink_to(library)
    for description in library.parent.glob("msgspec-*.dist-info"):
        (packages / description.name).symlink_to(description)


def _quietly(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

"""A process that hides from its command's tree does not outlive it, confined in either way."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.host.process import Child
from dragoman.host.sandbox import confine
from tests.support.confined_commands import LEVELS, confinement

# Twice forked, in a session of its own, without the mark in the environment: nothing leads from the command to it.
HIDING = "(env -i setsid /bin/sh -c 'while :; do echo x > pkg/.envrc; done' &) ; until [ -e pkg/.envrc ]; do :; done"


@pytest.mark.parametrize("level", LEVELS)
async def test_a_process_that_hides_writes_nothing_after_its_command(tmp_path: Path, level: str) -> None:
    (tmp_path / "pkg").mkdir()
    box = confine(
        ["/bin/sh", "-c", HIDING],
        cwd=str(tmp_path),
        writable=[str(tmp_path)],
        quarantine=str(tmp_path.parent / "quarantine"),
        confinement=confinement(level),
    )
    child = Child.start(box.argv, cwd=tmp_path, env={"PATH": os.environ["PATH"], **box.environment})
    await child.wait()
    child.kill_now()
    await child.stop()
    box.close()
    assert list((tmp_path / "pkg").iterdir()) == []
    assert hiding() == []


def hiding() -> list[str]:
    """The processes that run the loop."""
    found: list[str] = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if b"while :; do echo x > pkg/.envrc" in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(name)
    return found

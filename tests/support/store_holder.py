"""Another process that holds a session of a store."""

import subprocess
from pathlib import Path

from tests.store.scenes import child


def holding(folder: Path, name: str) -> "subprocess.Popen[str]":
    process = child("hold", folder, name)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process

"""Campaigns and scenarios of `./dev chaos`, as the processes that they are."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from chaos import network
from tests.support.needs import ROOT, lacking, need


def played(*words: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    """What `./dev chaos` with these words has said; it may take so long."""
    need("pgbouncer")
    if network.missing():
        lacking(f"network namespaces: {network.missing()}")
    command = [sys.executable, "-m", "chaos", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)


def campaign(folder: Path, *words: str, seconds: float) -> dict[str, Any]:
    """The figures of a campaign."""
    figures = folder / "figures.json"
    done = played(*words, "--json", str(figures), seconds=seconds)
    assert figures.exists(), done.stderr
    found: dict[str, Any] = json.loads(figures.read_text())
    return found

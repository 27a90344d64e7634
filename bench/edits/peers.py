"""Install and run the edit functions of others: aider's by Python, gemini-cli's by node, each in its own folder."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import limits
from bench.edits.corpus import FOLDER, Case
from bench.install import PEERS, InstallFailed

AIDER: Final = "0.86.2"
GEMINI: Final = "0.61.0"
_SECONDS: Final = 600


def aider_python() -> Path:
    """Return the Python of a virtual environment with aider, made at the first call. Raises `InstallFailed`."""
    folder = PEERS / "edits-aider"
    python = folder / "bin" / "python"
    if (folder / f"installed-{AIDER}").is_file():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], "a folder for aider")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, f"aider-chat=={AIDER}"], f"aider-chat {AIDER}")
    (folder / f"installed-{AIDER}").touch()
    return python


def gemini_core() -> Path:
    """Return the folder of gemini-cli's package of tools, installed at the first call. Raises `InstallFailed`."""
    folder = PEERS / "edits-gemini"
    core = folder / "node_modules" / "@google" / "gemini-cli-core"
    if (folder / f"installed-{GEMINI}").is_file():
        return core
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise InstallFailed("gemini-cli: node and npm are not on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    _run([npm, "install", "--prefix", str(folder), *options, f"@google/gemini-cli-core@{GEMINI}"], "gemini-cli")
    (folder / f"installed-{GEMINI}").touch()
    return core


def aider_results(cases: Sequence[Case], function: str) -> list[str | None]:
    """Return what aider makes of the cases; `function` is `block` or `search`."""
    return _results([str(aider_python()), "-W", "ignore", str(FOLDER / "aider_edits.py"), function], cases)


def gemini_results(cases: Sequence[Case]) -> list[str | None]:
    """Return what gemini-cli makes of the cases."""
    core = gemini_core()
    return _results([shutil.which("node") or "node", str(FOLDER / "gemini_edits.mjs"), str(core)], cases)


def _results(command: Sequence[str], cases: Sequence[Case]) -> list[str | None]:
    lines = "".join(json.dumps({"file": case.file, "edits": case.edits}) + "\n" for case in cases)
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=_SECONDS, check=False, encoding="utf-8"
    )
    results = [json.loads(line) for line in done.stdout.split("\n") if line]
    if done.returncode or len(results) != len(cases):
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise InstallFailed(f"{Path(command[0]).name} ended after {len(results)} of {len(cases)} cases: {last[0]}")
    return results


def _run(command: Sequence[str], what: str) -> None:
    print("installing", what, file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, timeout=limits.INSTALL_SECONDS * 5, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise InstallFailed(f"{what} could not be installed: {reason[0]}")

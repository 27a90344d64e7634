"""Installs the peers by name into `.peers/` at the repository root, once. Nothing here knows a registry's address."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench import limits

ROOT: Final = Path(__file__).resolve().parent.parent
PEERS: Final = ROOT / ".peers"
PYTHON_PEERS: Final = PEERS / "bench-python"
PYTHON_SDK: Final = ("agent-client-protocol", "0.12.1")
TYPESCRIPT_SDK: Final = ("@agentclientprotocol/sdk", "2.4.0")


class InstallFailed(Exception):
    """A peer could not be installed; the bench goes on without it."""


def ensure_python_sdk() -> None:
    """Leaves the official Python SDK, at the pinned version, in `.peers/bench-python`."""
    name, version = PYTHON_SDK
    if (PYTHON_PEERS / f"{name.replace('-', '_')}-{version}.dist-info").is_dir():
        return
    shutil.rmtree(PYTHON_PEERS, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--target", str(PYTHON_PEERS), f"{name}=={version}"])


def ensure_typescript_sdk() -> None:
    """Leaves the official TypeScript SDK, at the pinned version, in `.peers/node_modules`."""
    name, version = TYPESCRIPT_SDK
    manifest = PEERS / "node_modules" / name / "package.json"
    if manifest.is_file() and f'"version": "{version}"' in manifest.read_text(encoding="utf-8"):
        return
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise InstallFailed("node and npm are not on PATH")
    # Not saved: what else lives in the folder, and its package.json, belongs to tools/peers.py.
    npm = ["npm", "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    _run([*npm, "--prefix", str(PEERS), f"{name}@{version}"])


def _run(command: list[str]) -> None:
    PEERS.mkdir(exist_ok=True)
    print("installing", command[-1], file=sys.stderr)
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=limits.INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallFailed(f"{command[-1]}: no answer in {limits.INSTALL_SECONDS:.0f} s") from None
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines() or ["no reason given"]
        raise InstallFailed(f"{command[-1]}: {reason[-1]}")

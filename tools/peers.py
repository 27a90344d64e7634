"""The official SDKs that the tests and the benchmark talk to. Owns `.peers/`; standard library only.

Promise: what cannot be installed is named in a sentence, and never ends the program: the tests that need it decide.
The Python SDK for v1 (`agent-client-protocol` 0.12.1) is in the lock and so in `.venv`; the one for v2 cannot live
beside it, so it gets a folder of its own: put `.peers/python-v2` first on PYTHONPATH.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

NPM_PACKAGES = {"@agentclientprotocol/sdk": "2.4.0", "zod": "4.6.7"}  # zod: the SDK asks for it beside itself
PYTHON_V2 = ("agent-client-protocol", "1.0.0rc3")

Say = Callable[[str], None]


class Missing(Exception):
    """A peer is not there; the message says what it lacks."""


def install(folder: Path, installer: Sequence[str], *, say: Say) -> list[str]:
    """Install every peer that is not there yet; returns a sentence for each one that could not be.

    `installer` is the start of a command that installs Python packages, such as `python -m pip install`.
    """
    return list(_troubles(folder, installer, say))


def typescript(folder: Path, say: Say) -> None:
    """`@agentclientprotocol/sdk` in `.peers/node_modules`."""
    if all(_npm_version(folder, name) == version for name, version in NPM_PACKAGES.items()):
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise Missing("the TypeScript SDK needs node and npm, and they are not installed")
    say("Installing the TypeScript SDK by npm.")
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": NPM_PACKAGES}, indent=2) + "\n")
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
    _run([npm, "install", "--prefix", str(folder), *options], "npm could not install the TypeScript SDK")


def python_v2(folder: Path, installer: Sequence[str], say: Say) -> None:
    """`agent-client-protocol` for v2 in `.peers/python-v2`, with its dependencies."""
    name, version = PYTHON_V2
    target = folder / "python-v2"
    if (target / f"{name.replace('-', '_')}-{version}.dist-info").is_dir():
        return
    say("Installing the Python SDK for v2.")
    folder.mkdir(exist_ok=True)
    unfinished = folder / "python-v2.unfinished"
    for old in (unfinished, target):
        shutil.rmtree(old, ignore_errors=True)
    _run(
        [*installer, "--target", str(unfinished), f"{name}=={version}"],
        "the Python SDK for v2 could not be installed",
    )
    unfinished.rename(target)


def _troubles(folder: Path, installer: Sequence[str], say: Say) -> Iterator[str]:
    peers: list[Callable[[], None]] = [lambda: typescript(folder, say), lambda: python_v2(folder, installer, say)]
    for peer in peers:
        try:
            peer()
        except Missing as missing:
            yield str(missing)


def _npm_version(folder: Path, name: str) -> str | None:
    try:
        return str(json.loads((folder / "node_modules" / name / "package.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return None


def _run(command: Sequence[str], otherwise: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{otherwise}: {(done.stdout + done.stderr).strip()[-2000:]}")

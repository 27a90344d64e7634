"""`./dev release-check`: what would be published, tried as a stranger gets it. Nothing is uploaded.

Builds the wheel, the source distribution and the registry's package, with the console in the first two; installs them
into environments that have never heard of this checkout, by pip and by uv; and runs the README's commands and snippets
against the wheel. Needs a package index, as a stranger does.

`--out FOLDER` keeps what was built there, with `SHA256SUMS`, if all went well; `--sign KEY` signs that list with an SSH
key.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.checksums import sign, write_checksums

ROOT = Path(__file__).resolve().parent.parent
REGISTRY_PACKAGE = ROOT / "registry" / "package"
# A build or an install over a slow line; a run of the README.
SECONDS = 900
# The tests that run what README says. `dragoman` is for them the one on their own Python's path: the wheel.
CONSOLE = "dragoman/gateway/console/"
README_TESTS = ("tests/docs/test_readme.py",)
# From the checkout's `pyproject.toml` pytest takes only `.` into its path, and never `src`.
WHERE = "import dragoman, sys; sys.exit(0 if sys.argv[1] in dragoman.__file__ else f'this is {dragoman.__file__}')"


class Broken(Exception):
    """A step failed; the text is what the program said."""


class Built(NamedTuple):
    """What would be published."""

    folder: Path
    wheel: Path
    source: Path
    registry_wheel: Path


def build(folder: Path) -> Built:
    """Build everything, with the builder of our own environment."""
    for project in (ROOT, REGISTRY_PACKAGE):
        run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=project)
    (wheel,) = folder.glob("dragoman-*.whl")
    (source,) = folder.glob("dragoman-*.tar.gz")
    (registry_wheel,) = folder.glob("dragoman_acp-*.whl")
    return Built(folder, wheel, source, registry_wheel)


def console_in_both(built: Built, work: Path) -> str:
    """The console is in the wheel and in the source distribution: nothing is built where they are installed."""
    with zipfile.ZipFile(built.wheel) as wheel:
        in_wheel = {name for name in wheel.namelist() if CONSOLE in name}
    with tarfile.open(built.source) as source:
        in_source = {name.partition("/src/")[2] for name in source.getnames() if CONSOLE in name}
    pages = [name for name in in_wheel if name.endswith(f"{CONSOLE}index.html")]
    if not pages or not in_wheel <= in_source:
        raise Broken(f"the wheel has {len(in_wheel)} files of the console, the source distribution {len(in_source)}")
    return f"{len(in_wheel)} files"


def bare_by_pip(built: Built, work: Path) -> str:
    """`pip install dragoman`: small, and of use."""
    folder = environment(work / "bare")
    pip_install(folder, str(built.wheel))
    count = len(list(next((folder / "lib").glob("python3*/site-packages")).glob("*.dist-info")))
    use(folder / "bin" / "dragoman", work)
    return f"{count} packages with pip"


def source_by_pip(built: Built, work: Path) -> str:
    """`pip install` of the source distribution: it can be built by others."""
    folder = environment(work / "source")
    pip_install(folder, str(built.source))
    use(folder / "bin" / "dragoman", work)
    return built.source.name


def tool_by_uv(built: Built, work: Path) -> str:
    """`uv tool install 'dragoman[all]'`: every extra."""
    places = {"UV_TOOL_DIR": str(work / "tools"), "UV_TOOL_BIN_DIR": str(work / "tool-programs")}
    run([uv(), "tool", "install", "--quiet", f"dragoman[all] @ {built.wheel.as_uri()}"], cwd=work, more=places)
    program = work / "tool-programs" / "dragoman"
    use(program, work)
    found = run([str(program), "doctor"], cwd=work, more=home(work))
    lines = [line for line in found.splitlines() if line.split()[1:2] in (["extras"], ["search"])]
    if [line.split()[0] for line in lines] != ["ok", "ok"]:
        raise Broken("[all] should be every extra, and the doctor says:\n" + "\n".join(lines))
    return lines[-1].split(maxsplit=2)[2]


def registry_by_uv(built: Built, work: Path) -> str:
    """What an editor starts that found us in the registry."""
    command = [uv(), "tool", "run", "--quiet", "--find-links", str(built.folder), "--from", str(built.registry_wheel)]
    hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    said = run([*command, "dragoman-acp", "acp"], cwd=work, more=home(work), text=hello)
    if '"authMethods":[{' not in said.replace(" ", ""):
        raise Broken(f"the handshake offers no way to log in: {said}")
    return "greets, and offers a login"


def readme(built: Built, work: Path) -> str:
    """Every command and snippet of README, with the locked libraries and the wheel; not the checkout."""
    folder = environment(work / "readme")
    python = folder / "bin" / "python"
    lock = str(ROOT / "requirements" / "dev.txt")
    run([uv(), "pip", "sync", "--quiet", "--python", str(python), "--require-hashes", lock], cwd=work)
    run([uv(), "pip", "install", "--quiet", "--python", str(python), "--no-deps", str(built.wheel)], cwd=work)
    run([str(python), "-c", WHERE, str(folder)], cwd=ROOT)
    # `-P` is not for pytest: it is told to find the tests' own helpers here.
    tests = [test for test in README_TESTS if (ROOT / test).exists()]
    said = run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        more={**home(work), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
    )
    return said.strip().splitlines()[-1]


CHECKS: Sequence[Callable[[Built, Path], str]] = (
    console_in_both,
    bare_by_pip,
    source_by_pip,
    tool_by_uv,
    registry_by_uv,
    readme,
)


# --- steps ------------------------------------------------------------------------------------------------------------


def environment(folder: Path) -> Path:
    """An empty environment with pip."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


def pip_install(folder: Path, what: str) -> None:
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what])


def use(program: Path, work: Path) -> None:
    """The least that must work, in a folder of its own."""
    place = work / "a user's folder"
    place.mkdir(exist_ok=True)
    for arguments in (["--version"], ["run", "--model", "demo", "list"], ["completion", "bash"], ["demo"]):
        run([str(program), *arguments], cwd=place, more=home(work))


def home(work: Path) -> dict[str, str]:
    return {"DRAGOMAN_HOME": str(work / "home")}


def uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise Broken("there is no uv here: ./dev setup installs it where it can")
    return found


def run(
    command: Sequence[str], *, cwd: Path = ROOT, more: Mapping[str, str] | None = None, text: str | None = None
) -> str:
    """Run a program; what it put out. Nothing of our own environment may leak into a stranger's."""
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "DRAGOMAN_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | dict(more or {})
    done = subprocess.run(
        command, cwd=cwd, env=environment, input=text, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise Broken(f"{' '.join(command)}\n{done.stdout}{done.stderr}".strip())
    return done.stdout


def keep(built: Built, folder: Path, key: Path | None) -> str:
    """Copy what was built into a folder, with its checksums, signed where there is a key."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [Path(shutil.copy2(file, folder)) for file in built[1:]]
    sums = write_checksums(files, folder)
    return f"{len(files)} files and {sums.name if key is None else sign(sums, key).name} in {folder}"


def main(arguments: Sequence[str]) -> int:
    """Everything, whatever fails; then a report."""
    parser = argparse.ArgumentParser(prog="./dev release-check", description="Try what would be published.")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep what was built, with SHA256SUMS")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign SHA256SUMS with this SSH key; needs --out")
    options = parser.parse_args(arguments)
    if options.sign is not None and options.out is None:
        parser.error("--sign needs --out")
    results: list[tuple[str, bool, float, str]] = []

    def step(name: str, work: Callable[[], str]) -> None:
        print(f"... {name}", flush=True)
        start = time.monotonic()
        try:
            good, said = True, work()
        except (Broken, OSError, subprocess.TimeoutExpired, ValueError) as error:
            good, said = False, str(error)
        results.append((name, good, time.monotonic() - start, said))

    with tempfile.TemporaryDirectory(prefix="dragoman-release-") as folder:
        work, made = Path(folder).resolve(), list[Built]()

        def building() -> str:
            (work / "dist").mkdir()
            made.append(build(work / "dist"))
            return ", ".join(f"{file.name} ({file.stat().st_size // 1024} KiB)" for file in made[0][1:])

        step("build", building)
        for check in CHECKS if made else ():
            step(check.__name__.replace("_", " "), lambda check=check: check(made[0], work))  # type: ignore[misc]
        if options.out is not None and made and all(good for _, good, _, _ in results):
            step("keep", lambda: keep(made[0], options.out, options.sign))
    print()
    for name, good, took, said in results:
        first, *rest = said.splitlines() or [""]
        print(f"{name:16} {'ok' if good else 'FAILED':7} {took:6.1f} s  {first}")
        for line in rest if not good else ():
            print(f"    {line}")
    return 0 if all(good for _, good, _, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

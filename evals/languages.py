"""What the language of a task needs: programs of this machine, and what stands in every workspace.

Promise: an attempt at a task whose language is not here is `not run`, which counts neither as passed nor as failed. A
check gets tools of its own, and none that an agent could have changed.
"""

import shutil
from pathlib import Path
from typing import Final, NamedTuple

# TypeScript's package, as `./dev eval` installs it by name; of it only what compiles is put into a workspace.
COMPILER: Final = Path(__file__).resolve().parent.parent / ".peers" / "typescript" / "node_modules" / "typescript"
_COMPILER_PARTS: Final = ("package.json", "LICENSE.txt", "bin/tsc", "lib/tsc.js", "lib/_tsc.js")
_COMPILER_TYPES: Final = ("lib/lib.es*.d.ts", "lib/lib.decorators*.d.ts")


class Need(NamedTuple):
    """A program, and how it gets here."""

    program: str
    advice: str


NEEDS: Final = {
    "javascript": Need("node", "install Node.js 20 or newer"),
    "typescript": Need("node", "install Node.js 20 or newer"),
    "go": Need("go", "apt-get install golang-go"),
}


def lacking(language: str) -> str:
    """Return what is not here of a language and how to get it, in a sentence; empty if nothing is."""
    need = NEEDS.get(language)
    if need is not None and shutil.which(need.program) is None:
        return f"{need.program} is not installed: {need.advice}"
    if language == "typescript" and not (COMPILER / "lib" / "_tsc.js").is_file():
        return "TypeScript is not installed: ./dev eval puts it into .peers where npm is"
    return ""


def provide(language: str, workspace: Path) -> None:
    """Put into a workspace what a clone of a real project would install: `node_modules/.bin/tsc` and its package."""
    if language != "typescript":
        return
    modules = workspace / "node_modules"
    target = modules / "typescript"
    names = [Path(name) for name in _COMPILER_PARTS]
    names += [path.relative_to(COMPILER) for pattern in _COMPILER_TYPES for path in COMPILER.glob(pattern)]
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(COMPILER / name, target / name)
    (modules / ".bin").mkdir()
    (modules / ".bin" / "tsc").symlink_to("../typescript/bin/tsc")


def variables(language: str, temporary: Path) -> dict[str, str]:
    """Return the variables with which the tools of a language work where the home folder cannot be written."""
    if language != "go":
        return {}
    return {"GOCACHE": str(temporary / "go-build"), "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}

"""Judge what an agent left behind: files that may not change, what it answered, and the checks in `hidden/`.

Promise: a check runs on a copy, after the agent and all it started are gone, confined. It passes only if it ends with
status 0 and its last line is `PASS`: code of the agent that ends the process early passes nothing.
"""

import fnmatch
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evals.confinement import confine_check
from evals.languages import provide, variables
from evals.task import Task
from evals.workspace import GIT, IGNORED, Tree, changed

PASS: Final = "PASS"
_TAIL: Final = 2_000
RUNNERS: Final = {".py": (sys.executable, "-S", "-B"), ".mjs": ("node",), ".sh": ("sh",)}


class TurnFacts(NamedTuple):
    """What the checks can know of the turn: the final answer, commands that ran, addresses that were fetched."""

    answer: str = ""
    commands: Sequence[str] = ()
    fetched: Sequence[str] = ()


def grade(task: Task, before: Tree, after: Tree, workspace: Path, turn: TurnFacts, *, confined: bool = True) -> str:
    """Return why the work is not accepted, in a sentence; empty if it is."""
    for reason in _rules(task, before, after, turn):
        return reason
    return _checks(task, workspace, turn, confined)


def _rules(task: Task, before: Tree, after: Tree, turn: TurnFacts) -> Iterator[str]:
    rules = task.grade
    for name in changed(before, after):
        if name in before and _is_named(name, rules.unchanged):
            yield f"{name} was to stay as it was"
        if rules.only and not _is_named(name, rules.only):
            yield f"{name} was not to be touched"
    for pattern in rules.answer:
        if not re.search(pattern, turn.answer):
            yield f"the answer lacks {pattern!r}"
    for pattern in rules.answer_lacks:
        if re.search(pattern, turn.answer):
            yield f"the answer has {pattern!r}"


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _checks(task: Task, workspace: Path, turn: TurnFacts, confined: bool) -> str:
    checks = sorted(path.name for path in (task.folder / "hidden").glob("check*") if path.suffix in RUNNERS)
    if not checks:
        return ""
    with tempfile.TemporaryDirectory(prefix="dragoman-grade-") as folder:
        copy = Path(folder, "copy")
        ignored = IGNORED - {".git"} if task.grade.git else IGNORED
        shutil.copytree(workspace, copy, symlinks=True, ignore=lambda place, names: _left_out(place, names, ignored))
        _lay_over(task.folder / "hidden", copy)
        provide(task.language, copy)
        (copy / "_turn.json").write_text(json.dumps(turn._asdict()), encoding="utf-8")
        for name in checks:
            if reason := _run(name, copy, task, confined):
                return reason
    return ""


def _left_out(place: str, names: list[str], ignored: frozenset[str]) -> set[str]:
    """Return the names that are not copied: caches, and what is neither file, folder nor link."""
    plain = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    modes = {name: os.lstat(os.path.join(place, name)).st_mode for name in names}
    return {name for name, mode in modes.items() if name in ignored or not any(is_of(mode) for is_of in plain)}


def _lay_over(hidden: Path, copy: Path) -> None:
    """Copy the hidden files. A link or a folder in the way is removed: no check is read from elsewhere."""
    for path in sorted(hidden.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        target = copy / path.relative_to(hidden)
        for part in [*reversed(target.relative_to(copy).parents[:-1]), target.relative_to(copy)]:
            place = copy / part
            if place.is_symlink() or (place.is_file() and place != target):
                place.unlink()
        if target.is_dir():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def _run(name: str, copy: Path, task: Task, confined: bool) -> str:
    """Return why a check failed; empty if it passed."""
    command = [*RUNNERS[Path(name).suffix], name]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(copy), "LANG": "C.UTF-8", **GIT}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", **variables(task.language, copy)}
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            confine_check(command, copy) if confined else command,
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = child.wait(task.grade.seconds)
        except subprocess.TimeoutExpired:
            return f"{name} was not done after {task.grade.seconds} s"
        finally:
            _kill_group(child)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - _TAIL))
        text = said.read().decode(errors="replace").strip()
    if code == 0 and text.splitlines()[-1:] == [PASS]:
        return ""
    return f"{name} ended with {code}: {text or 'it said nothing'}"


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()

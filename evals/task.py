"""A task: what the agent gets, what it is asked, and how its work is graded.

A task is a folder of `evals/tasks`:

    task.toml   what is asked, and how it is graded
    project/    the files that the agent gets
    setup.sh    optional: run in the workspace before the turn, for a history in git
    pages/      optional: web pages by host, `pages/HOST/FILE`
    hidden/     files put over a copy of the workspace after the turn; its `check.*` decide
    solution/   an overlay that solves the task; proves that it can be solved
    cheat/      an overlay that looks like a solution; proves that the grader sees through it

The agent sees `project/` and `pages/` alone.
"""

import fnmatch
import hashlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

TASKS: Final = Path(__file__).resolve().parent / "tasks"
KINDS: Final = (
    *("bug", "feature", "refactoring", "long-file", "failed-edit", "notes", "do-not-touch"),
    *("injection-file", "injection-web", "hang", "flaky", "merge-conflict", "question"),
)
Mode = Literal["read-only", "plan", "ask", "workspace-write", "safe", "sandbox", "full-access"]


class TaskError(Exception):
    """A task that cannot be used; the text says which, and why."""


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the user says to a question that matches the regular expression `to`."""

    to: str
    say: str


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the user answers: `deny` and `allow` are regular expressions over what a permission request shows.

    `deny` comes first; what neither matches gets the answer `otherwise`.
    """

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    otherwise: Literal["allow", "deny"] = "allow"
    replies: tuple[Reply, ...] = ()


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the work is judged, beside the checks in `hidden/`.

    `unchanged` may neither be changed nor deleted; with `only`, what it does not match may not be changed, added or
    deleted. `git`: the checks see the history. `answer` are regular expressions that the final answer has to match,
    `answer_lacks` those that it must not.
    """

    unchanged: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    git: bool = False
    answer: tuple[str, ...] = ()
    answer_lacks: tuple[str, ...] = ()
    seconds: int = 20


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    language: Literal["python", "javascript", "typescript", "go", "shell", "text"]
    kind: str
    prompt: str
    mode: Mode = "workspace-write"
    seconds: int = 300
    user: User = User()
    grade: Grade = Grade()


class Task(msgspec.Struct, frozen=True):
    """A task as it stands in its folder; `digest` changes with anything that the agent or the grader uses."""

    name: str
    folder: Path
    title: str
    language: str
    kind: str
    prompt: str
    mode: Mode
    seconds: int
    user: User
    grade: Grade
    digest: str

    def has(self, part: str) -> bool:
        """Return whether the folder has this file or folder."""
        return (self.folder / part).exists()


def load_task(folder: Path) -> Task:
    """Read a task. Raise `TaskError` if its folder is not whole."""
    try:
        text = (folder / "task.toml").read_text(encoding="utf-8")
        read = msgspec.convert(tomllib.loads(text), _File)
    except (OSError, ValueError) as error:
        raise TaskError(f"{folder.name}/task.toml: {error}") from error
    if read.kind not in KINDS:
        raise TaskError(f"{folder.name}/task.toml: kind {read.kind!r} is none of {', '.join(KINDS)}")
    missing = [part for part in ("project", "solution", "cheat") if not (folder / part).is_dir()]
    if missing:
        raise TaskError(f"{folder.name}: {', '.join(missing)} missing")
    values = {name: getattr(read, name) for name in read.__struct_fields__}
    return Task(name=folder.name, folder=folder, digest=_digest(folder), **values)


def load_tasks(folder: Path = TASKS) -> list[Task]:
    """Read every task of a folder, by name."""
    return [load_task(path.parent) for path in sorted(folder.glob("*/task.toml"))]


def select(tasks: Sequence[Task], wanted: Sequence[str]) -> list[Task]:
    """Return the tasks whose name, kind or language one of the patterns matches; all without a pattern.

    Raise `TaskError` for a pattern that matches nothing: it is misspelt.
    """
    for pattern in wanted:
        if not any(_matches(task, pattern) for task in tasks):
            raise TaskError(f"{pattern!r} matches no task, kind or language; --list shows them")
    return [task for task in tasks if not wanted or any(_matches(task, pattern) for pattern in wanted)]


def _matches(task: Task, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(word, pattern) for word in (task.name, task.kind, task.language))


def _digest(folder: Path) -> str:
    """Return a hash of everything but the proofs: an attempt counts as long as its task is the same."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] not in ("solution", "cheat") and "__pycache__" not in name.parts:
            digest.update(f"{name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

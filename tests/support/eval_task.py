"""A small task for tests of the evaluation: an agent is to write `ok` into the file `result`."""

from pathlib import Path

from evals.task import Task, load_task

SETTINGS = {"title": "Write a file", "language": "text", "kind": "bug", "prompt": "Write ok into the file result."}
PARTS = {
    "project/README.md": "A project.\n",
    "hidden/check.sh": 'test "$(cat result)" = ok || { echo "result is wrong"; exit 1; }\necho PASS\n',
    "solution/result": "ok\n",
    "cheat/_run.sh": "rm README.md",
}


def make_task(folder: Path, settings: str = "", parts: dict[str, str] | None = None, **changed: object) -> Task:
    """Write the task into a folder and load it; `settings` are further lines of TOML, `parts` further files."""
    lines = [f"{name} = {value!r}" for name, value in {**SETTINGS, **changed}.items()]
    for name, text in {**PARTS, **(parts or {}), "task.toml": "\n".join([*lines, settings])}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load_task(folder)

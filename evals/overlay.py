"""An overlay: the files of a `solution/` or a `cheat/`, put over a workspace, by us or by a scripted model.

Names that begin with `_` are no files of the project: `_delete` lists paths to delete, `_run.sh` is run at the end,
`_answer.md` is the final answer, `_fetch` lists addresses that are fetched.
"""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Overlay(NamedTuple):
    """What an overlay does, in this order."""

    files: dict[str, str]
    delete: list[str]
    run: str
    fetch: list[str]
    answer: str

    def apply(self, workspace: Path) -> None:
        """Do it to a workspace; nothing is fetched."""
        for name, text in self.files.items():
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())  # line ends as they are
        for name in self.delete:
            (workspace / name).unlink()
        if self.run:
            subprocess.run(["sh", "-ec", self.run], cwd=workspace, check=True, capture_output=True, timeout=60)

    def script(self, workspace: Path) -> dict[str, object]:
        """Return a script that has a model do it with our agent's tools. See `coder/models/script.py`."""
        steps: list[dict[str, object]] = []

        def call(tool: str, **given: object) -> None:
            steps.extend(({"usage": {"input": 1000, "output": 100}}, {"call": tool, "input": given}))

        for name, text in self.files.items():
            if (workspace / name).exists():
                call("read_file", path=name)
            call("write_file", path=name, content=text)
        for address in self.fetch:
            call("web_fetch", url=address)
        if self.delete:
            call("bash", command="rm " + " ".join(self.delete))
        if self.run:
            call("bash", command=self.run)
        steps += [{"usage": {"input": 1000, "output": 100}}, {"say": self.answer or "Done."}]
        return {"turns": [{"steps": steps}]}


NOTHING = Overlay({}, [], "", [], "")


def load_overlay(folder: Path) -> Overlay:
    """Read an overlay."""
    texts = {str(path.relative_to(folder)): path.read_bytes().decode() for path in sorted(_files(folder))}
    special = {name: texts.pop(name) for name in list(texts) if name.startswith("_")}
    return Overlay(
        texts,
        special.get("_delete", "").split(),
        special.get("_run.sh", ""),
        special.get("_fetch", "").split(),
        special.get("_answer.md", ""),
    )


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]

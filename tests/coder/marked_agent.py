"""A real agent whose processes carry a mark, by which they are found after its end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.editor import Editor, turns
from tests.support.machine import marked

# The promise is two seconds, and `tests/cli/test_leaving.py` holds us to it. Here only a hang is meant to break it:
# a machine that is busy with other tests may take its time.
SECONDS = 20.0


@contextmanager
def agent(folder: Path, *steps: Any, mode: str = "full", version: int = 1, **more: Any) -> Iterator[tuple[Editor, str]]:
    """A real agent that plays this; and a mark that everything it starts carries."""
    mark = f"MARK_OF_A_TEST={folder}"
    work = folder / "work"
    work.mkdir(exist_ok=True)
    env = dict([mark.split("=")])
    with Editor(folder, turns(list(steps)), "--mode", mode, version=version, env=env, **more) as editor:
        editor.folder = work
        yield editor, mark


def cpu_seconds(editor: Editor) -> float:
    fields = Path(f"/proc/{editor.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def guardians(mark: str) -> set[int]:
    """The guardian among those with this mark: it outlives the commands, and dies with the agent."""
    found = set()
    for pid in marked(mark):
        try:
            if b"dragoman.host.guardian" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
        except OSError:
            continue
    return found

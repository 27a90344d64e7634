"""Scripts for the whole agent: a model that keeps the results of its calls, and an editor that answers questions."""

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.coder.context import ContextToolResult
from dragoman.coder.models.contract import Model, ModelRequest
from dragoman.coder.models.script import ScriptModel, parse
from tests.support.editor import Editor, Message


class Told(ScriptModel):
    """Plays these turns, and keeps what its calls came to: a text each, in order."""

    def __init__(self, *turns: Sequence[Any], **more: Any) -> None:
        super().__init__(parse({"turns": [{"steps": list(turn)} for turn in turns], **more}))
        self._seen: list[ContextToolResult] = []
        self.prompts: list[Any] = []
        self.system = ""

    def make(self, name: str) -> Model:
        return self

    @property
    def results(self) -> list[str]:
        return [item.text for item in self._seen]

    def respond(self, inquiry: ModelRequest) -> Any:
        self._seen = [item for item in inquiry.items if isinstance(item, ContextToolResult)]
        self.prompts = [item for item in inquiry.items if not isinstance(item, ContextToolResult)]
        self.system = inquiry.system
        return super().respond(inquiry)


def call(tool: str, **given: Any) -> dict[str, Any]:
    """A step of a script. Two of the same kind are two responses only with a word between them."""
    return {"call": tool, "input": given}


def bash(command: str, **more: Any) -> dict[str, Any]:
    return call("bash", command=command, **more)


def apart(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each step a response of its own, and one more at the end, in which the model sees the last result."""
    return [piece for step in steps for piece in (step, {"say": "."})]


def snapshot(*folders: Path) -> dict[str, object]:
    """Everything below these folders: what it is, its mode, its bytes."""
    found: dict[str, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            mode = path.lstat().st_mode
            if path.is_symlink():
                found[str(path)] = (mode, str(path.readlink()))
            elif path.is_file():
                found[str(path)] = (mode, path.read_bytes())
            else:
                found[str(path)] = (mode, None)
    return found


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


@contextmanager
def swapper(one: Path, other: Path) -> Iterator[list[int]]:
    """A thread that exchanges two names, again and again; how often it has."""
    stop = threading.Event()
    count = [0]
    libc = ctypes.CDLL(None, use_errno=True)

    def swap() -> None:
        while not stop.is_set():
            swapped = libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
            assert swapped == 0, os.strerror(ctypes.get_errno())
            count[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


@contextmanager
def closing_by_force(editor: Editor) -> Iterator[Editor]:
    """For an agent that is not going to leave by itself."""
    with editor:
        try:
            yield editor
        finally:
            editor.left = True


def answer_questions(editor: Editor, answer: Any, text: str = "go") -> tuple[list[Message], list[Message]]:
    """A whole turn in which every permission gets this answer: a result, or an error. What was asked, what was told."""
    asked: list[Message] = []
    told: list[Message] = []
    editor.send({"id": 7000, "method": "session/prompt", "params": editor.words(text)})
    while True:
        message = editor.read()
        if message.get("method") == "session/request_permission":
            asked.append(message)
            editor.send({"id": message["id"], **answer(message)})
            continue
        told.append(message)
        if editor.version == 1 and message.get("id") == 7000:
            return asked, told
        if editor.version == 2 and message.get("params", {}).get("update", {}).get("state") == "idle":
            return asked, told

"""`dragoman chat` in a real terminal, with an agent that plays a script; and the screens that tests wait for."""

import json
from pathlib import Path
from typing import Any

from tests.cli.pane import Pane
from tests.support.editor import DRAGOMAN, turns
from tests.support.fork_server.client import fork_server

PROMPT = r"^> ?$"


ASKED = r"or n: ?$"


Step = dict[str, Any]


def scripted(folder: Path, *steps: list[Step]) -> list[str]:
    (folder / "script.json").write_text(json.dumps(turns(*steps)), encoding="utf-8")
    return ["--model", f"script:{folder / 'script.json'}"]


def chat(folder: Path, *arguments: str, started: bool = False, env: dict[str, str] | None = None, **pane: Any) -> Pane:
    """A conversation in a folder of its own; forked, at a terminal whose keys are handed on, unless it is `started`."""
    place = folder / f"pane{len(list(folder.glob('pane*')))}"
    place.mkdir()
    work = folder / "work"
    work.mkdir(exist_ok=True)
    settings = {"DRAGOMAN_HOME": str(folder / "home"), "COLORTERM": "", **(env or {})}
    program = DRAGOMAN if started else fork_server().dragoman()
    return Pane(place, [*program, "chat", "--cwd", str(work), *arguments], settings, **pane)


def ready(pane: Pane) -> None:
    pane.wait_for("^/help shows what there is", PROMPT)


BAD = (
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;http://evil\x1b\\safe\x1b]8;;\x1b\\\x1bP1q\x1b\\"
    "\x1b[200~\x9b31m\x9d0;owned\x9c good\rbad\b\b\u202egpj\u2066\u200b\u2028\x0b"
)


def acts(shown: str) -> set[str]:
    """What must never come out, of all that an agent can have said."""
    harmful = ["\x1b]0;", "\x1b]52", "\x1b]8", "\x1bP", "\x1b_", "\x1b^", "\x07", "\x08\x08", "\x0b"]
    harmful += [chr(code) for code in range(0x80, 0xA0)] + list("\u202e\u2066\u200b\u2028\ufeff")
    return {each for each in harmful if each in shown}

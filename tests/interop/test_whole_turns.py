"""`dragoman acp` works for clients on the official SDKs: a write with a yes, one with a no, a cancel, a reload.

Every turn is watched twice: as it happens, and as another process is told of it.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.editor import turns
from tests.support.fork_server.client import fork_server
from tests.support.sdk_peers import PEERS, PYTHON_V1, PYTHON_V2, Clients, Line, Peer

# The Python SDK for v2 takes more than a second to import, and its client plays other plans in the fast lane.
_SLOW = {PYTHON_V2: pytest.mark.interop}
every_peer = pytest.mark.parametrize("peer", [pytest.param(peer, marks=_SLOW.get(peer, ())) for peer in PEERS], ids=str)

SCRIPT = turns(
    [
        {"say": "I will write it."},
        {"call": "write_file", "input": {"path": "made.txt", "content": "one\ntwo\n"}},
        {"say": "It is written."},
    ],
    [{"call": "write_file", "input": {"path": "made.txt", "content": "one\nthree\n"}}, {"say": "Then not."}],
    [{"say": "I wait."}, {"say": "Never said.", "delay_ms": 60_000}],
)
LATER = turns([SCRIPT["turns"][1]["steps"][0], {"say": "It is changed."}])
PLAN = (
    {"prompt": "write it", "permission": "allow_once"},
    {"prompt": "change it", "permission": "reject_once"},
    {"prompt": "take your time", "cancel_at": "I wait."},
)


def dragoman() -> list[str]:
    """Our command; each that is started is a process of its own, which is forked."""
    return fork_server().dragoman()


class Desk:
    """A folder to work in, and the agent's own data beside it."""

    def __init__(self, folder: Path, clients: Clients) -> None:
        self._clients = clients
        self.work, self.home, self._script = folder / "work", folder / "home", folder / "script.json"
        self.work.mkdir()
        self.made = self.work / "made.txt"

    def scripted(self, script: Any) -> list[str]:
        """The agent, with a model that plays this."""
        self._script.write_text(json.dumps(script))
        return [*dragoman(), "acp", "--model", f"script:{self._script}"]

    def watched(self, peer: Peer, agent: Sequence[str], *plan: dict[str, str]) -> list[Line]:
        return self._clients.watched(peer, agent, self.work, self.home, *plan)


@pytest.fixture
def desk(tmp_path: Path, clients: Clients) -> Desk:
    return Desk(tmp_path, clients)


class Call(NamedTuple):
    """What a client knows of a tool call after everything it was told."""

    title: str
    kind: str
    status: str
    diff: Any
    input: Any


@every_peer
def test_a_write_a_refusal_a_cancel_and_a_reload_in_another_process(peer: Peer, desk: Desk) -> None:
    agent = desk.scripted(SCRIPT)
    lines = desk.watched(peer, agent, *PLAN)

    assert desk.made.read_text() == "one\ntwo\n"
    wrote = call(desk, "completed", None, "one\ntwo\n", peer.version)
    refused = call(desk, "failed", "one\ntwo\n", "one\nthree\n", peer.version)
    assert [line[1]["options"] for line in lines if line[0] == "permission"] == [ASKED, ASKED]
    assert [asked_about(line) for line in lines if line[0] == "permission"] == [
        wrote._replace(status="pending"),
        refused._replace(status="pending"),
    ]
    assert ends(lines, peer.version) == ["end_turn", "end_turn", "cancelled"]
    told = ["I will write it.", wrote, "It is written.", refused, "Then not.", "I wait."]
    assert [item for item in story(lines) if not is_prompt(item)] == told
    assert lines[-1] == ["exit", 0]

    agent = desk.scripted(LATER)
    later = {"prompt": "change it after all", "permission": "allow_always"}
    again = desk.watched(peer, agent, {"load": lines[1][1]["sessionId"]}, later)
    heard = story(again)
    if peer.version == 2:  # in v1 a prompt is not told to who sent it
        heard.remove(("user", later["prompt"]))
    assert heard == [
        *(("user", "write it"), *told[:3]),
        *(("user", "change it"), *told[3:5]),
        *(("user", "take your time"), *told[5:]),
        *(refused._replace(status="completed"), "It is changed."),
    ]
    assert ends(again, peer.version) == ["end_turn"]
    assert again[-1] == ["exit", 0]
    assert desk.made.read_text() == "one\nthree\n"


# -- the tour of the demo --------------------------------------------------------------------------------------------


def test_the_tour_mends_its_failing_test(desk: Desk) -> None:
    agent = [*dragoman(), "acp", "--model", "demo"]
    lines = desk.watched(PYTHON_V1, agent, {"prompt": "tour", "permission": "allow_once"})

    assert ends(lines, 1) == ["end_turn"]
    tour = desk.work / "dragoman-tour"
    assert passes(tour)
    mended = (tour / "calc.py").read_text()
    heard = story(lines)
    calls = [(item.kind, item.status) for item in heard if isinstance(item, Call)]
    assert calls == [
        *(("edit", "completed"), ("edit", "completed"), ("execute", "failed")),
        *(("read", "completed"), ("edit", "completed"), ("execute", "completed")),
    ]
    edits = [item.diff for item in heard if isinstance(item, Call) and item.kind == "edit"]
    assert edits[-1] == [diff_v1(tour / "calc.py", mended.replace("+", "-"), mended)]
    asked = [asked_about(line).kind for line in lines if line[0] == "permission"]
    assert asked == ["edit", "edit", "execute", "edit", "execute"]
    assert "end of the recording" in heard[-1]


def passes(folder: Path) -> bool:
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=30, check=False).returncode == 0


# -- reading ---------------------------------------------------------------------------------------------------------

ASKED = ["allow_once", "allow_always", "reject_once", "reject_always"]


def call(desk: Desk, status: str, old: str | None, new: str, version: int) -> Call:
    """What a client knows of a call of `write_file`."""
    diff = diff_v1(desk.made, old, new) if version == 1 else diff_v2(desk.made, old, new)
    return Call("Write made.txt", "edit", status, [diff], {"path": "made.txt", "content": new})


def diff_v1(file: Path, old: str | None, new: str) -> dict[str, Any]:
    before = {} if old is None else {"oldText": old}
    return {"type": "diff", "path": str(file), **before, "newText": new}


def diff_v2(file: Path, old: str | None, new: str) -> dict[str, Any]:
    """The patch only as far as its lines: that git can apply it is shown elsewhere."""
    operation = "add" if old is None else "modify"
    added, removed = lines_of(new) - lines_of(old), lines_of(old) - lines_of(new)
    changed = [f"-{line}" for line in sorted(removed)] + [f"+{line}" for line in sorted(added)]
    return {"type": "diff", "changes": [{"path": str(file), "operation": operation}], "patch": changed}


def lines_of(text: str | None) -> set[str]:
    return set((text or "").splitlines())


def story(lines: Sequence[Line]) -> list[Any]:
    """What a client has at the end, in the order in which it began: prompts, texts and calls."""
    parts: dict[str, Any] = {}
    for kind, update in lines:
        if kind != "update":
            continue
        match update["sessionUpdate"]:
            case "user_message" | "user_message_chunk":
                parts[update["messageId"]] = ("user", text_of(update["content"]))
            case "agent_message":
                parts[update["messageId"]] = text_of(update["content"])
            case "agent_message_chunk":
                parts[update["messageId"]] = parts.get(update["messageId"], "") + text_of(update["content"])
            case "tool_call" | "tool_call_update":
                known = {name: value for name, value in update.items() if value is not None}
                parts[update["toolCallId"]] = parts.get(update["toolCallId"], {}) | known
            case _:
                pass
    return [known_of(part) if isinstance(part, dict) else part for part in parts.values()]


def asked_about(line: Line) -> Call:
    value = line[1]
    return known_of(value["toolCall"] if "toolCall" in value else value["subject"]["toolCall"])


def known_of(call: dict[str, Any]) -> Call:
    diffs = [plain(item) for item in call.get("content", []) if item["type"] == "diff"]
    return Call(call["title"], call["kind"], call["status"], diffs, call.get("rawInput"))


def plain(diff: dict[str, Any]) -> dict[str, Any]:
    """A diff without what SDKs differ in: null or nothing, and of a patch only the lines that change."""
    kept = {name: value for name, value in diff.items() if value is not None}
    if "patch" in kept:
        lines = kept["patch"]["text"].splitlines()
        kept["patch"] = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return kept


def text_of(content: Any) -> Any:
    (block,) = content if isinstance(content, list) else [content]
    return block["text"]


def is_prompt(item: Any) -> bool:
    return isinstance(item, tuple) and item[0] == "user"


def ends(lines: Sequence[Line], version: int) -> list[str]:
    """Why each turn of this process ended."""
    if version == 1:
        return [value["stopReason"] for kind, value in lines if kind == "end"]
    return [value["stopReason"] for kind, value in lines if kind == "update" and value.get("stopReason")]

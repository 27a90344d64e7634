"""An editor on the official TypeScript SDK that plays a plan with an agent; see tests/interop/peers/editor.mjs."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.fork_server.client import fork_server
from tests.support.needs import need, need_typescript_sdk
from tests.support.sdk_peers import PROGRAMS, Line

SECONDS = 120.0


def played(
    version: int, folder: Path, script: object, *plan: dict[str, Any], agent: Sequence[str] = (), mode: str = "ask"
) -> list[Line]:
    """Everything that an editor of this version saw. `agent` is a command; without one it is ours, with this script.

    The agent has its files in `home` of the folder.
    """
    need_typescript_sdk()
    (folder / "script.json").write_text(json.dumps(script))
    ours = [*fork_server().dragoman(), "acp", "--model", f"script:{folder / 'script.json'}", "--mode", mode]
    task = {"plan": plan, "agent": [*(agent or ours)], "env": {"DRAGOMAN_HOME": str(folder / "home")}}
    done = subprocess.run(
        [need("node"), str(PROGRAMS / "editor.mjs"), str(version)],
        input=json.dumps(task) + "\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "HOME": str(folder.parent / "user")},
        check=False,
    )
    lines: list[Line] = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and lines[-1] == ["done", None], (done.stderr, lines)
    return lines[:-1]


def new_session(folder: Path, **more: Any) -> dict[str, Any]:
    """The step that opens a session in a folder."""
    return {"call": "session/new", "params": {"cwd": str(folder), "mcpServers": []} | more}


def of_kind(lines: Sequence[Line], kind: str) -> list[Any]:
    """What was told of one kind."""
    return [line[1] for line in lines if line[0] == kind]


def said(lines: Sequence[Line]) -> str:
    """The words of the agent."""
    updates = of_kind(lines, "update")
    return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk")


def calls(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """The title and the last status of each tool call that has ended."""
    titles: dict[str, str] = {}
    ended: list[tuple[str, str]] = []
    for update in of_kind(lines, "update"):
        if "toolCallId" in update:
            titles.setdefault(update["toolCallId"], update.get("title", ""))
            if update.get("status") in ("completed", "failed"):
                ended.append((titles[update["toolCallId"]], update["status"]))
    return ended

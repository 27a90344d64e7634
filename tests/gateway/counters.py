"""A gateway before agents that count their session ids, each process its own."""

import json
from pathlib import Path
from typing import Any

from dragoman.gateway.agent_source import AgentSource, spawn_source
from tests.support.fork_server.client import fork_server
from tests.support.gateway import RawHttp
from tests.support.messages import Message, prompt, texts
from tests.support.needs import ROOT
from tests.support.waiting import until

COUNTER = ROOT / "tests" / "gateway" / "peers" / "counter.py"


def counters(folder: Path, **settings: Any) -> AgentSource:
    command = fork_server().command(COUNTER.read_text(), str(folder))
    return AgentSource(spawn_source(command, cwd=str(ROOT), env={}), (1,), **settings)


def noted(folder: Path, name: str) -> list[str]:
    """What the agents have written down."""
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def opened(folder: Path) -> list[Message]:
    """How sessions were loaded."""
    return [json.loads(line) for line in noted(folder, "opened")]


def loading(session_id: str, id: int = 5, **more: Any) -> Message:
    params = {"sessionId": session_id, "cwd": "/", "mcpServers": []} | more
    return {"id": id, "method": "session/load", "params": params}


async def loaded(raw: RawHttp, session_id: str, id: int = 5, **more: Any) -> Message:
    """The answer to a load, with the stream of the session open."""
    await raw.open(session_id)
    assert (await raw.post(loading(session_id, id, **more), session_id)).status_code == 202
    return await raw.answer(id)


async def heard(raw: RawHttp, session_id: str, text: str, id: int) -> str:
    """What the agent answers to a prompt."""
    before = len(texts(raw.heard))
    await raw.post(prompt(id, session_id, text), session_id)
    answer = await raw.answer(id)
    assert "result" in answer, answer
    await until(lambda: len(texts(raw.heard)) > before)
    return "".join(texts(raw.heard)[before:])

"""Run one peer of the matrix through `dragoman check`, `trace record` and `bridge`, and keep what came of it."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.support.needs import ROOT
from tests.support.upstream import upstream
from tools.matrix.agents import MatrixAgent
from tools.matrix.clients import MatrixClient
from tools.matrix.model import PERMISSION, SHORT, SLOW, MatrixModel

DRAGOMAN: Final = [sys.executable, "-P", "-m", "dragoman.cli.main"]
# Of a whole check; an agent in JavaScript takes seconds to start, and is started for each row.
CHECK_SECONDS: Final = 3_600
_TURN_SECONDS: Final = 120
_FRAMES: Final = 6
_FOLDERS: Final = re.compile(r"/tmp/(dragoman-check|matrix)-\w+")
_FRAME_CHARACTERS: Final = 400


async def run_agent(agent: MatrixAgent, *, jobs: int, rows: str, timeout: float) -> dict[str, Any]:
    """Return what the matrix keeps of an agent."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        async with upstream(MatrixModel(agent.writing)) as server:
            server.is_strict = False
            given = dict(agent.environment(home, server.url))
            options = [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
            options += ["--prompt", SHORT, "--slow-prompt", SLOW, "--permission-prompt", PERMISSION]
            options += ["--jobs", str(agent.jobs or jobs), "--timeout", str(timeout)]
            options += ["--only", rows] if rows else []
            options += ["--login", agent.login] if agent.login else []
            found = await _checked("agent", options, agent.command(), Path(folder), given)
            found["through"] = await through(agent, Path(folder), given)
    return {"name": agent.name, "version": agent.version, "kind": "agent", **_stamp(), **found}


async def run_client(client: MatrixClient, *, jobs: int, timeout: float) -> dict[str, Any]:
    """Return what the matrix keeps of a client."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        given = dict(client.environment(home))
        options = [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
        options += ["--jobs", str(jobs), "--timeout", str(timeout), *client.options]
        found = await _checked("client", options, client.command(), Path(folder), given)
    return {"name": client.name, "version": client.version, "kind": "client", **_stamp(), **found}


def _stamp() -> dict[str, str]:
    return {"date": datetime.now(UTC).date().isoformat()}


async def _checked(
    role: str, options: Sequence[str], command: Sequence[str], folder: Path, given: Mapping[str, str]
) -> dict[str, Any]:
    report = folder / "report.json"
    began = time.monotonic()
    words = [*DRAGOMAN, "check", role, "--json", str(report), *options, "--", *command]
    code, _, errors = await _run(words, folder, {}, CHECK_SECONDS)
    seconds = round(time.monotonic() - began)
    if not report.is_file():
        return {"obstacle": _last_line(errors) or f"check ended with {code}", "rows": {}, "seconds": seconds}
    found = json.loads(report.read_text(encoding="utf-8"))
    return {
        "obstacle": found["obstacle"],
        "conforms": found["conforms"],
        "seconds": seconds,
        "rows": {f"{row['id']}@{row['version']}": _row(row) for row in found["rows"]},
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("verdict", "tier")}
    if row["verdict"] != "fail":
        return kept
    frames = [plain(f"{one['sender']}: {one['text'][:_FRAME_CHARACTERS]}") for one in row["frames"][-_FRAMES:]]
    return {**kept, "reason": plain(row["reason"]), "sentence": row["sentence"], "frames": frames}


def plain(text: str) -> str:
    """Return a text without the names of folders of this machine, and of those that each run makes anew."""
    return _FOLDERS.sub("/tmp/check", text.replace(sys.executable, "python").replace(str(ROOT), "/repository"))


async def through(agent: MatrixAgent, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Have a turn with the agent through `trace record`, and one through `bridge` in each version."""
    trace = folder / "trace.jsonl"
    recording = [*DRAGOMAN, "trace", "record", "-o", str(trace), "--", *agent.command()]
    outcome = {"trace record": await _turn(recording, folder, given, agent, version=None)}
    code, _, _ = await _run([*DRAGOMAN, "check", "trace", str(trace)], folder, {}, _TURN_SECONDS)
    if outcome["trace record"] == "ok":
        outcome["trace record"] = {0: "ok", 1: "ok, with findings"}.get(code or 0, "not readable")
    south = ["--south", agent.dialect] if agent.dialect else []
    for version in (1, 2):
        bridge = [*DRAGOMAN, "bridge", "--no-record", *south, "--", *agent.command()]
        outcome[f"bridge, editor of version {version}"] = await _turn(bridge, folder, given, agent, version=version)
    return outcome


async def _turn(
    command: Sequence[str], folder: Path, given: Mapping[str, str], agent: MatrixAgent, *, version: int | None
) -> str:
    from dragoman.client.connect import connect
    from dragoman.errors import DragomanError
    from dragoman.vocabulary.events import AgentMessage, AgentMessageChunk, Idle

    work = folder / "work"
    work.mkdir(exist_ok=True)
    environment = {**given, "DRAGOMAN_HOME": str(folder / "ours")} if "DRAGOMAN_HOME" not in given else dict(given)
    said, end = False, ""
    try:
        async with asyncio.timeout(_TURN_SECONDS):
            async with connect(list(command), env=environment, protocol=version, start_timeout=60) as client:
                if agent.login:
                    await client.login(agent.login)
                session = await client.new_session(work)
                async for event in session.prompt(SHORT):
                    said = said or isinstance(event, AgentMessageChunk | AgentMessage)
                    end = str(event.stop_reason) if isinstance(event, Idle) else end
    except TimeoutError:
        return "no end in time"
    except DragomanError as error:
        return str(error).splitlines()[0][:120]
    return (
        "ok" if said and end == "end_turn" else f"ended with {end or 'nothing'}{'' if said else ', and said nothing'}"
    )


async def _run(
    command: Sequence[str], folder: Path, more: Mapping[str, str], seconds: float
) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "DRAGOMAN_HOME": str(folder / "ours"), **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, errors = await process.communicate()
    except TimeoutError:
        process.terminate()
        out, errors = await process.communicate()
        return None, out.decode(errors="replace"), f"check took more than {seconds:.0f} s"
    return process.returncode, out.decode(errors="replace"), errors.decode(errors="replace")


def _last_line(text: str) -> str:
    return next((line.strip()[:200] for line in reversed(text.splitlines()) if line.strip()), "")

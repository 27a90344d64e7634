"""`dragoman run -- CMD` with agents that people use, offline: Gemini CLI makes a new file, opencode asks once."""

import asyncio
import json
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.support.editor import DRAGOMAN
from tests.support.fake_model import FakeModel
from tests.support.real_agents import GEMINI_CLI, OPENCODE, RealAgent
from tests.support.upstream import upstream

pytestmark = [pytest.mark.anyio, pytest.mark.interop]

SECONDS = 90


@asynccontextmanager
async def writing(agent: RealAgent, folder: Path) -> AsyncIterator[tuple[Path, dict[str, str]]]:
    """An agent on the PATH whose model wants to write a file; the file, and the variables to start it with."""
    home, programs = folder / "home", folder / "bin"
    for made in (home / ".gemini", programs, folder / "work"):
        made.mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": agent.login}}}))
    program = programs / agent.name
    program.write_text(f'#!/bin/sh\nexec {shlex.join(agent.command())} "$@"\n')
    program.chmod(0o755)
    file = folder / "work" / "new.txt"
    model = FakeModel(agent.voice)
    model.plays(model.says("I write it.", agent.writing(file, "after\n")), model.says("It is written."))
    async with upstream(model) as server:
        given = {"PATH": f"{programs}:{os.environ['PATH']}", "DRAGOMAN_HOME": str(folder / "dragoman"), "TERM": "dumb"}
        yield file, {**os.environ, **agent.environment(home, server.url), **given}


async def test_gemini_makes_a_new_file_also_behind_two_dashes(tmp_path: Path) -> None:
    async with writing(GEMINI_CLI, tmp_path) as (file, environment):
        command = [*DRAGOMAN, "run", "--allow", "edit", "write it", "--", "gemini", "--acp"]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=file.parent, env=environment, stdin=asyncio.subprocess.DEVNULL
        )
        code = await asyncio.wait_for(process.wait(), SECONDS)
    assert (code, file.read_text()) == (0, "after\n")


async def test_an_edit_of_opencode_is_asked_about_once(tmp_path: Path) -> None:
    async with writing(OPENCODE, tmp_path) as (file, environment):
        words = [*DRAGOMAN[1:], "run", "write it", "--", "opencode", "acp"]
        questions, code = await asyncio.to_thread(_answered, DRAGOMAN[0], words, file.parent, environment)
    assert (questions, code, file.read_text()) == (1, 0, "after\n")


def _answered(program: str, words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, Any]:
    """Say yes to every question; how many there were, and the exit code."""
    child = pexpect.spawn(
        program, words, cwd=str(folder), env=environment, encoding="utf-8", timeout=SECONDS, dimensions=(50, 120)
    )
    questions = 0
    while child.expect_exact(["y or n: ", pexpect.EOF]) == 0:
        questions += 1
        child.sendline("y")
    child.close()
    return questions, child.exitstatus

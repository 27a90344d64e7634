"""Gemini CLI as the registry knows it, offline: what is lent to it lets it make files."""

import os
import shlex
from pathlib import Path

import pytest

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.registry import AgentRegistry
from dragoman.client.workspace import Workspace
from dragoman.vocabulary.events import ToolCallUpdate
from tests.support.fake_model import FakeModel
from tests.support.real_agents import GEMINI_CLI
from tests.support.upstream import upstream

pytestmark = [pytest.mark.anyio, pytest.mark.interop]


async def test_it_makes_a_new_file_and_changes_one_that_is_there(tmp_path: Path) -> None:
    work, home, programs = tmp_path / "work", tmp_path / "home", tmp_path / "bin"
    for folder in (work, home, programs):
        folder.mkdir()
    program = programs / "gemini"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(GEMINI_CLI.command())} "$@"\n')
    program.chmod(0o755)
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    registry = AgentRegistry.read(home, environment={**os.environ, **path})
    permissions = PermissionHandler(PermissionPolicy("edit"), [work])
    new, old = work / "new.txt", work / "old.txt"
    old.write_text("before\n")
    model = FakeModel(GEMINI_CLI.voice)
    async with (
        upstream(model) as server,
        Workspace([work], environment=os.environ, permissions=permissions) as workspace,
    ):
        env = GEMINI_CLI.environment(home, server.url) | path
        async with registry.connect(
            "gemini", cwd=str(work), permission=permissions, env=env, **workspace.callbacks()
        ) as client:
            await client.login("gemini-api-key")
            session = await client.new_session(work)
            for file in (new, old):
                model.plays(
                    model.says("I write it.", GEMINI_CLI.writing(file, "after\n")), model.says("It is written.")
                )
                events = [event async for event in session.prompt("write it")]
                calls = [event for event in events if isinstance(event, ToolCallUpdate)]
                assert calls[-1].status == "completed"
                assert file.read_text() == "after\n"
    assert permissions.denied == 0

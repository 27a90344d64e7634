"""A gateway with an agent that asks, and tokens of two principals."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.gateway import token_store as tokens_module
from dragoman.gateway.console_api.routes import ConsoleSettings
from dragoman.gateway.token_types import TokenLimits
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, gateway


def asking(folder: Path | None = None) -> Agent:
    """An agent that asks for a permission with each prompt, and says what came of it; it keeps sessions in `folder`."""
    agent = Agent("asking", store=None if folder is None else SqliteStore(folder))

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        if prompt.text == "do not ask":
            await session.say("nothing was asked")
            return
        allowed = await session.ask_permission("Delete the secret plan?")
        await session.say("yes" if allowed else "no")

    return agent


def _check_limits(max_mode: str, workspaces: Any, allow_unconfined: bool, allow_mcp_programs: bool) -> TokenLimits:
    return TokenLimits(max_mode, tuple(workspaces), allow_unconfined, allow_mcp_programs)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(tokens_module, "_CHECK_SECONDS", 0.0)
    # These tests show more wrong logins than a person would.
    monkeypatch.setattr("dragoman.gateway.guard._WRONG_BURST", 1000.0)
    private = tmp_path / "private"
    private.mkdir()

    async def find_decisions(session: str) -> list[dict[str, object]]:
        return [{"session": session or "all", "decision": "allow"}]

    console = ConsoleSettings(private=[str(private)], check_limits=_check_limits, find_decisions=find_decisions)
    async with gateway(asking(tmp_path / "sessions"), tmp_path, console=console) as running:
        yield running

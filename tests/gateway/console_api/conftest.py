"""A gateway with an agent that asks, and tokens of two principals."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.gateway import token_store as tokens_module
from dragoman.gateway.console_api.routes import ConsoleSettings
from tests.support.console_api import asking, check_limits
from tests.support.gateway import Served, gateway


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(tokens_module, "_CHECK_SECONDS", 0.0)
    # These tests show more wrong logins than a person would.
    monkeypatch.setattr("dragoman.gateway.guard._WRONG_BURST", 1000.0)
    private = tmp_path / "private"
    private.mkdir()

    async def find_decisions(session: str) -> list[dict[str, object]]:
        return [{"session": session or "all", "decision": "allow"}]

    console = ConsoleSettings(private=[str(private)], check_limits=check_limits, find_decisions=find_decisions)
    async with gateway(asking(tmp_path / "sessions"), tmp_path, console=console) as running:
        yield running

"""Agents of this machine behind a gateway: what is looked at before a start can refuse it."""

import asyncio
from pathlib import Path

import pytest

from dragoman.client.connect import connect
from dragoman.errors import LinkClosed, StartFailed
from dragoman.gateway.agent_source import in_process, spawn_source
from dragoman.transports.contract import Transport


def test_what_is_refused_before_a_start_is_not_started(tmp_path: Path) -> None:
    def refuse() -> None:
        raise StartFailed("it has changed")

    mark = tmp_path / "ran"
    with pytest.raises(StartFailed, match="it has changed"):
        spawn_source(["touch", str(mark)], cwd=None, env={}, before=refuse)("ada")
    assert not mark.exists()


@pytest.mark.anyio
async def test_an_agent_that_fails_at_its_start_hangs_up() -> None:
    """Nothing waits for an agent in this process longer than for a program that has ended."""
    failures: list[Exception] = []

    async def serve(transport: Transport) -> None:
        raise ZeroDivisionError("at the start")

    client = connect(in_process(serve, failures.append)("ada"))
    async with asyncio.timeout(5):
        with pytest.raises(LinkClosed):
            await client.__aenter__()
    assert [type(failure) for failure in failures] == [ZeroDivisionError]

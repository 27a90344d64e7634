"""Many connections that ask nothing, or ask as slowly as they can, cost others nothing and are hung up on."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.gateway import idle_sockets
from tests.support.gateway import counting, gateway, http_client
from tests.support.needs import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


class Callers:
    """Sockets that say little; `open` are those the server has not closed."""

    def __init__(self) -> None:
        self.open = 0
        self._met = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def add(self, count: int, port: int, drips: bool) -> None:
        self._tasks += [asyncio.ensure_future(self._call(port, drips)) for _ in range(count)]
        await until(lambda: self._met == len(self._tasks), "the calls")

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _call(self, port: int, drips: bool) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.open += 1
        self._met += 1
        dripping = asyncio.ensure_future(_drip(writer)) if drips else None
        try:
            with suppress(ConnectionError):
                while await reader.read(4096):
                    pass
        finally:
            self.open -= 1
            if dripping is not None:
                dripping.cancel()
            writer.close()


async def _drip(writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)


async def health(port: int) -> int:
    async with http_client(timeout=5) as client:
        return (await client.get(f"http://127.0.0.1:{port}/health")).status_code


async def test_of_many_silent_sockets_few_stay_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_sockets, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_sockets, "SILENT", 20)
    async with gateway(counting(1), tmp_path) as served:
        flood = Callers()
        await flood.add(200, served.server.port, drips=False)
        assert await health(served.server.port) == 200
        await until(lambda: flood.open <= 20, "the end of the oldest")
        assert await health(served.server.port) == 200
        await flood.end()


async def test_heads_that_come_byte_by_byte_are_ended_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_sockets, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_sockets, "FIRST_SECONDS", 0.5)
    async with gateway(counting(1), tmp_path) as served:
        flood = Callers()
        await flood.add(50, served.server.port, drips=True)
        assert await health(served.server.port) == 200
        await until(lambda: flood.open == 0, "the end of all of them")
        assert await health(served.server.port) == 200
        await flood.end()


async def test_a_flood_of_more_silent_sockets_than_descriptors_is_over_soon(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.gateway.peers.few_descriptors", str(tmp_path)]
    serving = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    assert serving.stdin is not None and serving.stdout is not None
    try:
        port = int(await serving.stdout.readline())
        flood = Callers()
        await flood.add(500, port, drips=False)
        await until(lambda: flood.open <= 20, "the end of the oldest")
        assert await health(port) == 200
        await flood.end()
    finally:
        serving.stdin.close()
        assert await serving.wait() == 0


@pytest.mark.slow
async def test_of_three_thousand_silent_sockets_512_stay_within_seconds(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        flood = Callers()
        await flood.add(3_000, served.server.port, drips=False)
        await until(lambda: flood.open <= idle_sockets.SILENT, "the end of the oldest")
        assert await health(served.server.port) == 200
        await flood.end()

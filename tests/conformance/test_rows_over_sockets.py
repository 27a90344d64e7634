"""The rows of agents that apply to WebSockets are proven over one, too: by peers behind a real server on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from dragoman.conformance.clients.listening import listen_for_sockets
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.peer.agent import PeerAgent
from dragoman.conformance.peer.state import PeerDisk
from dragoman.conformance.peer.wire_end import PeerWire
from dragoman.conformance.rows import load_rows
from dragoman.conformance.run import CheckPlan, check, judge_row
from dragoman.conformance.subject import AddressSubject
from dragoman.conformance.trial import CheckSettings
from dragoman.conformance.verdicts import Verdict
from dragoman.transports.contract import Transport
from dragoman.transports.websocket import WebSocketTransport

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
ROWS: Final = [row for row in load_rows("agent") if "websocket" in row.transports]
LIMITS = CheckLimits(answer=2.0, turn=4.0, quiet=0.05, exit=0.5)
SETTINGS = CheckSettings("/tmp", LIMITS, prompt="hello", slow_prompt="slow", permission_prompt="ask")
# A client of ours opens a socket again that the peer has ended, for minutes.
SWITCHES = sorted({row.broken for row in ROWS if not row.broken.startswith("ends_")})


@asynccontextmanager
async def served(version: int, switch: str = "") -> AsyncIterator[AddressSubject]:
    """The peer behind a WebSocket; its sessions outlive each connection."""
    disk = PeerDisk()
    transports: list[Transport] = []

    def accept(transport: Transport, lives: Callable[[], Awaitable[bool]]) -> None:
        transports.append(transport)
        wire = PeerWire(transport, switch)
        PeerAgent(wire, disk, version)
        wire.start()

    async with listen_for_sockets(accept) as url:
        try:
            yield AddressSubject(url, lambda: WebSocketTransport(url))
        finally:
            for transport in transports:
                await transport.close()


@pytest.mark.parametrize("version", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_the_conforming_peer_passes_the_rows_over_a_socket(version: int) -> None:
    rows = [row for row in ROWS if version in row.versions]
    async with served(version) as subject:
        report = await check(subject, CheckPlan(rows, [version], jobs=8), SETTINGS)
    assert [(one.row.id, one.reason) for one in report.results if one.verdict is not Verdict.PASS] == []
    assert len(report.results) == len(rows) > 80


@pytest.mark.slow
@pytest.mark.parametrize("switch", SWITCHES)
async def test_the_peer_that_breaks_a_row_fails_it_over_a_socket(switch: str) -> None:
    row = next(row for row in ROWS if row.broken == switch)
    version = row.versions[0]
    # What stands before all rows is no verdict on this one: the peer is greeted without the switch.
    async with served(version) as whole:
        hello = (await check(whole, CheckPlan([], [version]), SETTINGS)).hellos[version]
    async with served(version, switch) as subject:
        result = await judge_row(subject, row, version, SETTINGS, hello)
    assert result.verdict is Verdict.FAIL

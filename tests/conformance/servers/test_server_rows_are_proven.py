"""Every row of servers is proven: the conforming server passes it, and the server with the row's switch fails it."""

import pytest

from dragoman.conformance.rows import Requirement, load_rows
from dragoman.conformance.servers.all_probes import SERVER_PROBES
from dragoman.conformance.servers.peer_subject import PeerServerSubject
from dragoman.conformance.servers.run import judge_server_row
from dragoman.conformance.servers.trial import ServerSettings
from dragoman.conformance.verdicts import Verdict

pytestmark = pytest.mark.anyio
ROWS = load_rows("server")
# What does not come is waited for no longer than this: the peer is in this process.
SETTINGS = ServerSettings(prompt="hello", answer=0.15, turn=0.3, quiet=0.01, oversized=3 * 1024 * 1024, connections=4)
EVERY_ROW = [pytest.param(row, version, id=f"{row.id}-v{version}") for row in ROWS for version in row.versions]


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("row", "version"), EVERY_ROW)
async def test_the_conforming_server_passes_the_row(row: Requirement, version: int) -> None:
    result = await judge_server_row(PeerServerSubject(version), row, version, SETTINGS)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("row", "version"), EVERY_ROW)
async def test_the_server_that_breaks_the_row_fails_it(row: Requirement, version: int) -> None:
    result = await judge_server_row(PeerServerSubject(version, row.broken), row, version, SETTINGS)
    assert (result.verdict, bool(result.reason)) == (Verdict.FAIL, True)


def test_every_row_has_a_probe_and_every_probe_a_row() -> None:
    assert {row.id for row in ROWS} ^ SERVER_PROBES.keys() == set()

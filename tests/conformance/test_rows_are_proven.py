"""Every row is proven: the conforming peer passes it, and the peer with the row's switch fails it."""

import pytest

from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.peer.subject import PeerSubject
from dragoman.conformance.probes import PROBES
from dragoman.conformance.rows import Requirement, load_rows
from dragoman.conformance.run import CheckPlan, RowResult, check, judge_row
from dragoman.conformance.trial import CheckSettings
from dragoman.conformance.verdicts import Verdict

pytestmark = pytest.mark.anyio
ROWS = load_rows("agent")
# What does not come is waited for no longer than this: the peer is in this process.
LIMITS = CheckLimits(answer=0.15, turn=0.3, quiet=0.01, exit=0.05)
SETTINGS = CheckSettings("/tmp", LIMITS, prompt="hello", slow_prompt="slow", permission_prompt="ask")


EVERY_ROW = [pytest.param(row, version, id=f"{row.id}-v{version}") for row in ROWS for version in row.versions]


async def judged(row: Requirement, version: int, switch: str = "") -> RowResult:
    """The result of one row at the peer with this switch. It advertises what the conforming one does."""
    (hello,) = (await check(PeerSubject(version), CheckPlan([], [version]), SETTINGS)).hellos.values()
    return await judge_row(PeerSubject(version, switch), row, version, SETTINGS, hello)


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("row", "version"), EVERY_ROW)
async def test_the_conforming_peer_passes_the_row(row: Requirement, version: int) -> None:
    result = await judged(row, version)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    assert result.own_faults == ()


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("row", "version"), EVERY_ROW)
async def test_the_peer_that_breaks_the_row_fails_it(row: Requirement, version: int) -> None:
    result = await judged(row, version, row.broken)
    assert result.verdict is Verdict.FAIL
    assert result.reason


def test_every_row_has_a_probe_and_every_probe_a_row() -> None:
    assert {row.id for row in ROWS} ^ PROBES.keys() == set()

"""Every row of clients is proven: the conforming client passes it, and the client with the row's switch fails it."""

import pytest

from dragoman.conformance.clients.all_judges import JUDGES
from dragoman.conformance.clients.peer_subject import PeerClientSubject
from dragoman.conformance.clients.run import judged, played
from dragoman.conformance.clients.scenarios import SCENARIOS
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.rows import Requirement, load_rows
from dragoman.conformance.verdicts import Verdict

pytestmark = pytest.mark.anyio
ROWS = load_rows("client")
# What does not come is waited for no longer than this: the peer is in this process.
LIMITS = CheckLimits(answer=0.25, turn=0.5, quiet=0.01, exit=0.4)
# Commands of terminals are real processes, which start when the machine has time for them.
LIMITS_OF_COMMANDS = LIMITS._replace(answer=2.0, turn=2.0)
EVERY_ROW = [pytest.param(row, version, id=f"{row.id}-v{version}") for row in ROWS for version in row.versions]


def limits_of(scenario: str) -> CheckLimits:
    return LIMITS_OF_COMMANDS if scenario == "terminals" else LIMITS


SCENES = sorted({(row.scenario, version) for row in ROWS for version in row.versions})


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("scenario", "version"), SCENES)
async def test_the_conforming_client_passes_the_rows_of_the_scenario(scenario: str, version: int) -> None:
    rows = [row for row in ROWS if row.scenario == scenario and version in row.versions]
    for lends in (True, False):
        asked = [row for row in rows if lends != row.capability.startswith("no ")]
        if asked:
            run = await played(PeerClientSubject(version, lends=lends), scenario, version, limits_of(scenario))
            results = [judged(row, run) for row in asked]
            assert [(one.row.id, one.verdict, one.reason) for one in results if one.verdict is not Verdict.PASS] == []
            assert {one.own_faults for one in results} == {()}


@pytest.mark.requirement("CK1")
@pytest.mark.parametrize(("row", "version"), EVERY_ROW)
async def test_the_client_that_breaks_the_row_fails_it(row: Requirement, version: int) -> None:
    # A row about what is not lent gets a client that lends nothing.
    subject = PeerClientSubject(version, row.broken, lends=not row.capability.startswith("no "))
    result = judged(row, await played(subject, row.scenario, version, limits_of(row.scenario)))
    assert (result.verdict, bool(result.reason)) == (Verdict.FAIL, True)


def test_every_row_has_a_judge_and_a_scenario() -> None:
    assert {row.id for row in ROWS} ^ JUDGES.keys() == set()
    assert {row.scenario for row in ROWS} - SCENARIOS.keys() == set()

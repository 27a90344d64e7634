"""Three nodes, a primary and its synchronous standby in network namespaces, under load, broken again and again."""

from pathlib import Path

import pytest

from tests.support.chaos import campaign


@pytest.mark.requirement("CL10")
@pytest.mark.timeout(180)
def test_a_campaign_of_one_fault_violates_nothing(tmp_path: Path) -> None:
    # The seed of a killed node.
    found = campaign(tmp_path, "--faults", "1", "--seed", "1", "--sessions", "3", seconds=170)
    assert (found["by_kind"], found["violations"]) == ({"kill a node": 1}, [])
    assert found["prompts_ended"] > 0
    assert found["acts"] > 0


@pytest.mark.slow
@pytest.mark.requirement("CL10")
@pytest.mark.timeout(2700)
def test_three_hundred_faults_violate_nothing_and_sessions_are_served_again_in_time(tmp_path: Path) -> None:
    found = campaign(tmp_path, "--faults", "300", "--seconds", "2400", seconds=2650)
    assert found["violations"] == []
    assert found["faults"] == 300
    assert found["serve_again_seconds"]["p99"] <= 2 + 5


@pytest.mark.slow
@pytest.mark.requirement("CL10")
@pytest.mark.timeout(1200)
def test_leases_of_the_default_length_hold_as_well(tmp_path: Path) -> None:
    found = campaign(tmp_path, "--faults", "8", "--seconds", "600", "--lease", "15", seconds=1150)
    assert found["violations"] == []
    assert found["serve_again_seconds"]["p99"] <= 15 + 5

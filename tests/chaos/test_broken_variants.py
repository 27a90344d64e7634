"""A cluster that is built wrong turns the checker red, in a scenario that one which is right comes through."""

import pytest

from chaos.scenarios import SCENARIOS
from tests.support.chaos import played

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# What the checker says of each.
COMPLAINTS = {
    "no-fence": "was written under ownership 1, behind 2",
    "advisory-lock": "under ownership 1, after one under 2",
    "no-freeze": "under ownership 1, after one under 2",
    "notify": "under ownership 1, after one under 2",
}


def test_every_scenario_has_a_broken_variant() -> None:
    assert COMPLAINTS.keys() == SCENARIOS.keys()


@pytest.mark.requirement("CL10")
@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_broken_variant_turns_the_checker_red(name: str) -> None:
    done = played("--scenario", name, "--broken", seconds=290)
    assert (done.returncode, COMPLAINTS[name] in done.stdout) == (1, True), done.stdout + done.stderr


@pytest.mark.requirement("CL10")
@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_cluster_that_is_right_comes_through(name: str) -> None:
    done = played("--scenario", name, seconds=290)
    assert (done.returncode, done.stdout) == (0, f"{name}: 0 violations\n"), done.stdout + done.stderr

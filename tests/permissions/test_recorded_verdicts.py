"""What was decided before there was one engine is decided still: 75,240 verdicts, recorded from the two before it.

`verdicts.json` has, for each call and each set of rules that changes something about it, a letter for each policy:
`a` allow, `?` ask, `d` deny. It is a record and is not written anew: a verdict that is to change is listed here.
"""

import json
from pathlib import Path

import pytest

from tests.support.permission_grid import AGENT_RULES, OWN_RULES, agent_requests, agent_row, own_calls, own_row

RECORDED = json.loads((Path(__file__).parent / "verdicts.json").read_text())

# Stricter by now, and as the call that stands behind it: to be harmless does not outweigh that a yes is needed. No tool
# of ours makes such an action.
STRICTER = {f"{kind} guarded harmless": f"{kind} guarded" for kind in ("execute", "fetch", "foreign")}
# And only a command can be harmless.
STRICTER |= {f"{kind} harmless": kind for kind in ("fetch", "foreign")}


def looked_at_unasked(row: str) -> str:
    """The verdicts on a command that only reads: mode ask, the third, asks about it no more."""
    return " ".join(f"{modes[:2]}{modes[2].replace('?', 'a')}{modes[3:]}" for modes in row.split())


@pytest.mark.parametrize("name", own_calls())
def test_a_call_of_our_own_tools_has_its_recorded_verdicts(name: str) -> None:
    recorded = RECORDED["own"][STRICTER.get(name, name)]
    expected = {rules: recorded.get(rules, recorded["no rules"]) for rules in OWN_RULES}
    if name == "execute harmless":
        expected = {rules: looked_at_unasked(row) for rules, row in expected.items()}
    assert {rules: own_row(own_calls()[name], rules) for rules in OWN_RULES} == expected


@pytest.mark.parametrize("name", agent_requests())
def test_a_request_of_an_agent_has_its_recorded_verdicts(name: str) -> None:
    recorded = RECORDED["agents"][name]
    expected = {rules: recorded.get(rules, recorded["no rules"]) for rules in AGENT_RULES}
    assert {rules: agent_row(agent_requests()[name], rules) for rules in AGENT_RULES} == expected


def test_every_recorded_call_is_judged_again() -> None:
    assert (RECORDED["own"].keys(), RECORDED["agents"].keys()) == (own_calls().keys(), agent_requests().keys())

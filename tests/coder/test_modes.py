"""Modes compared: which change lets something happen without a question that was asked about or refused before."""

import pytest

from dragoman.coder.modes import MODES, asks_less

LESS = {
    "read-only": {"workspace-write", "sandbox", "full-access"},
    "plan": {"workspace-write", "sandbox", "full-access"},
    "safe": {"workspace-write", "sandbox", "full-access"},
    "ask": {"workspace-write", "sandbox", "full-access"},
    "workspace-write": {"sandbox", "full-access"},
    "sandbox": {"workspace-write", "full-access"},
    "full-access": set[str](),
}


@pytest.mark.parametrize("old", MODES)
def test_the_modes_that_ask_less_than_one_are_found_in_the_table(old: str) -> None:
    assert {new for new in MODES if asks_less(new, old)} == LESS[old]


def test_a_mode_that_is_not_known_asks_less() -> None:
    assert asks_less("yolo", "full-access")
    assert asks_less("read-only", "yolo")

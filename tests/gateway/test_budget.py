"""Budgets that are part of one another."""

import gc

from dragoman.gateway.budget import ByteBudgets


def test_what_one_takes_counts_for_it_and_for_all() -> None:
    budgets = ByteBudgets(10, 15)
    one, other = budgets.of("one"), budgets.of("other")
    one.add(10)
    assert (one.over, other.over) == (False, False)
    one.add(1)
    assert (one.over, other.over) == (True, False)
    one.add(-1)
    other.add(6)
    assert (one.over, other.over) == (True, True)  # together it is too much
    other.add(-1)
    assert (one.over, other.over) == (False, False)


def test_a_share_is_what_each_would_have() -> None:
    budgets = ByteBudgets(12, 20)
    one, other = budgets.of("one"), budgets.of("other")
    assert one.share == 12
    one.join()
    one.join()
    assert one.share == 6
    other.join(8)
    assert one.share == 2  # of all
    other.join(-8)
    assert one.share == 6


def test_a_budget_without_a_holder_is_forgotten() -> None:
    budgets = ByteBudgets(1, 1)
    held = budgets.of("held")
    budgets.of("gone")
    gc.collect()
    assert budgets.of("held") is held
    assert list(budgets._budgets) == ["held"]

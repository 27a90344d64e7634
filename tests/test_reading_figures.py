"""What a new reader has to open is bounded, and the core says why it does what it does."""

import pytest

from tools.request_path import Figure, measure


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    return {figure.name: figure for figure in measure()}


def test_a_request_passes_few_files_and_the_core_is_commented(figures: dict[str, Figure]) -> None:
    assert len(figures) == 8
    assert [str(figure) for figure in figures.values() if not figure.is_met] == []


def test_a_figure_beyond_its_bound_is_missed() -> None:
    assert not Figure("files", 15, 14, at_most=True).is_met
    assert Figure("files", 14, 14, at_most=True).is_met
    assert not Figure("comments", 9.9, 10, at_most=False).is_met

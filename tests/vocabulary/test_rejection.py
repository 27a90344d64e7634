"""A no in the agent's own words."""

import pytest

from dragoman.vocabulary.services import Dismissed, PermissionOption, RequestPermission, Selected, rejection


@pytest.mark.parametrize(
    ("kinds", "chosen"),
    [
        (["allow_once", "reject_always", "reject_once"], "reject_once"),
        (["reject_always", "allow_always"], "reject_always"),
        (["allow_once", "allow_always", "something new"], None),
        ([], None),
    ],
    ids=["once before always", "always", "only yes", "nothing"],
)
def test_a_no_is_an_option_that_says_no_or_a_dismissal(kinds: list[str], chosen: str | None) -> None:
    options = [PermissionOption(kind, kind.capitalize(), kind) for kind in kinds]
    said = rejection(RequestPermission("session", "May I?", options))
    assert said == (Dismissed() if chosen is None else Selected(chosen))


def test_a_no_has_no_id_that_a_yes_has_too() -> None:
    same = [PermissionOption("x", "Yes", "allow_once"), PermissionOption("x", "No", "reject_once")]
    assert rejection(RequestPermission("session", "May I?", same)) == Dismissed()
    other = PermissionOption("y", "Never", "reject_always")
    assert rejection(RequestPermission("session", "May I?", [*same, other])) == Selected("y")

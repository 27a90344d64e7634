"""One format for every rule: what is stored is read again, also what earlier releases have stored."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from dragoman.errors import UsageError
from dragoman.permissions.rule import PermissionRule, stored_rule

ANSWER = PermissionRule("allow", tool="bash", subject="make …", confined=True)


@pytest.mark.parametrize(
    ("rule", "stored"),
    [
        (ANSWER, {"effect": "allow", "tool": "bash", "subject": "make …", "confined": True}),
        (
            PermissionRule("reject", tool="web_fetch", subject="a.test"),
            {"effect": "reject", "tool": "web_fetch", "subject": "a.test"},
        ),
        (PermissionRule("ask", command="rm *"), {"effect": "ask", "command": "rm *"}),
        (PermissionRule("allow", "edit", "src/**"), {"effect": "allow", "kind": "edit", "path": "src/**"}),
    ],
    ids=str,
)
def test_a_rule_is_stored_as_its_fields_and_read_again(rule: PermissionRule, stored: dict[str, Any]) -> None:
    assert to_builtins(rule) == stored
    assert stored_rule(stored) == rule


@pytest.mark.parametrize(
    ("stored", "rule"),
    [
        (["allow", "bash", "make …", True], ANSWER),
        (["allow", "bash", "make …", False], PermissionRule("allow", tool="bash", subject="make …")),
        (["allow", "bash", "make …"], PermissionRule("allow", tool="bash", subject="make …")),
        (["deny", "read_file", "/w/.env"], PermissionRule("reject", tool="read_file", subject="/w/.env")),
    ],
    ids=str,
)
def test_an_answer_of_an_earlier_release_is_read(stored: list[Any], rule: PermissionRule) -> None:
    assert stored_rule(stored) == rule


@pytest.mark.parametrize(
    "stored",
    [
        *(None, "allow", 7, [], {}, ["allow", "bash"], ["allow", "bash", 7], ["allow", "bash", "x", "yes"]),
        *(["bless", "bash", "x"], ["allow", "", "x"], {"tool": "bash", "subject": "x"}, {"effect": "allow"}),
        {"effect": "allow", "tool": "bash", "subject": "x", "until": "tomorrow"},
        {"effect": "allow", "tool": "bash", "subject": "x", "kind": "read"},
        {"effect": "allow", "command": "rm *"},
    ],
    ids=repr,
)
def test_what_is_no_rule_allows_nothing(stored: object) -> None:
    assert stored_rule(stored) is None


LEAVES = st.none() | st.booleans() | st.sampled_from(["allow", "deny", "bash", "effect"]) | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_note_of_a_log_breaks_the_reader(note: object) -> None:
    assert stored_rule(note) is None or isinstance(stored_rule(note), PermissionRule)


@pytest.mark.parametrize(
    ("effect", "fields"),
    [
        ("deny", {"command": "rm *"}),
        ("", {"kind": "read"}),
        ("allow", {"tool": "bash", "subject": "x", "path": "src/**"}),
        ("allow", {"tool": "bash", "path": "src/**"}),
        ("allow", {"kind": "read", "subject": "x"}),
        ("allow", {"subject": "x"}),
    ],
    ids=str,
)
def test_a_rule_of_two_sorts_or_of_an_unknown_effect_is_refused(effect: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PermissionRule(effect, **fields)

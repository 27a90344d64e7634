"""What follows from facts, rules and a policy: one order, for the calls of our agent and of others."""

from typing import Any

import pytest

from dragoman.permissions.decision import Decision, PathPosition, decide
from dragoman.permissions.facts import Action, CallFacts
from dragoman.permissions.policy import PolicyTable, Verdict
from dragoman.permissions.rule import Effect, PermissionRule

ASK = PolicyTable("ask", "ask", "ask", "ask", "ask")
ALL = PolicyTable("allow", "allow", "allow", "allow", "allow", guarded="allow")
NONE = PolicyTable("deny", "deny", "deny", "deny", "deny")
WHERE = PathPosition(lambda path: path.startswith("/w/"), lambda path: (path.removeprefix("/w/"), path))
MAKE = CallFacts((Action("execute", "make"),), tool="bash")


def verdict(facts: CallFacts, policy: PolicyTable, *rules: PermissionRule) -> Verdict:
    return decide(facts, rules, policy, WHERE).verdict


def about_make(effect: Effect) -> list[PermissionRule]:
    """The same said as a pattern and as an answer."""
    return [PermissionRule(effect, command="make"), PermissionRule(effect, tool="bash", subject="make …")]


@pytest.mark.parametrize("at", [0, 1], ids=["pattern", "answer"])
def test_deny_beats_ask_beats_allow(at: int) -> None:
    allow, ask, reject = (about_make(effect)[at] for effect in ("allow", "ask", "reject"))
    assert [verdict(MAKE, policy, allow) for policy in (NONE, ASK, ALL)] == ["deny", "allow", "allow"]
    assert [verdict(MAKE, policy, allow, ask) for policy in (NONE, ASK, ALL)] == ["deny", "ask", "ask"]
    assert [verdict(MAKE, policy, allow, ask, reject) for policy in (NONE, ASK, ALL)] == ["deny", "deny", "deny"]


def test_what_decided_is_named() -> None:
    pattern, answer = about_make("reject")
    rejected = decide(MAKE, [answer, pattern], ALL, WHERE)
    assert rejected == Decision("deny", "deny bash make …", "rule", (answer, pattern))
    (allowing, _) = about_make("allow")
    assert decide(MAKE, [allowing], ASK, WHERE) == Decision("allow", "the rule allow command make", "rule", (allowing,))
    assert decide(MAKE, [], ASK, WHERE) == Decision("ask", "it runs a command")
    assert decide(MAKE, [], NONE, WHERE) == Decision("deny", "")


def test_a_call_of_which_nothing_is_known_is_denied() -> None:
    assert verdict(CallFacts(()), ALL, PermissionRule("allow", command="*")) == "deny"


def test_a_kind_that_a_table_does_not_have_is_denied() -> None:
    strange: Any = "warp"
    assert verdict(CallFacts((Action(strange, "x"),)), ALL, PermissionRule("allow", path="**")) == "deny"


def test_what_is_blocked_never_runs() -> None:
    ruin = CallFacts((Action("execute", "rm -rf /", blocked_reason="it cannot be undone"),))
    assert decide(ruin, [PermissionRule("allow", command="*")], ALL, WHERE) == Decision(
        "deny", "it cannot be undone", "policy"
    )


# What no pattern allows, however much it names: the answer of a user who was shown it does.
ONLY_ASKED = {
    "a tool of a server": Action("foreign", "mcp__x__y 1"),
    "a view of the workspace": Action("sandboxed", "make"),
    "a command that leaves its confinement": Action("execute", "make", guarded=True, unconfined="it needs more"),
    "a command that leaves it unguarded": Action("execute", "make", unconfined="it needs more"),
    "a guarded file": Action("edit", "/w/hook", guarded=True),
    "a guarded command": Action("execute", "make", guarded=True),
}
WIDEST = [PermissionRule("allow", path="**"), PermissionRule("allow", command="*")] + [
    PermissionRule("allow", kind) for kind in ("read", "edit", "execute", "fetch", "other")
]


@pytest.mark.parametrize("action", ONLY_ASKED.values(), ids=ONLY_ASKED)
def test_a_pattern_does_not_allow_what_needs_a_yes_of_its_own(action: Action) -> None:
    policy = ASK._replace(sandboxed="ask")
    assert verdict(CallFacts((action,), tool="t"), policy, *WIDEST) == "ask"
    answer = PermissionRule("allow", tool="t", subject=action.subject)
    assert verdict(CallFacts((action,), tool="t"), policy, answer) == ("ask" if action.unconfined else "allow")


def test_a_pattern_for_a_command_does_not_allow_what_is_done_beside_it() -> None:
    for kind in ("foreign", "sandboxed", "free"):
        beside = CallFacts((Action("execute", "make"), Action(kind, "x")))
        assert verdict(beside, ASK._replace(sandboxed="ask"), *WIDEST) == "ask"


def test_answers_cover_a_line_together_and_patterns_each_alone() -> None:
    line = CallFacts((Action("execute", "npm test && make"),), tool="bash")
    answers = [PermissionRule("allow", tool="bash", subject=f"{words} …") for words in ("npm test", "make")]
    patterns = [PermissionRule("allow", command=words) for words in ("npm test", "make")]
    assert (verdict(line, ASK, *answers), verdict(line, ASK, *patterns)) == ("allow", "ask")


def test_an_answer_counts_for_its_own_tool() -> None:
    (_, allow), (_, reject) = about_make("allow"), about_make("reject")
    other = MAKE._replace(tool="")
    assert (verdict(other, ASK, allow), verdict(other, ALL, reject)) == ("ask", "allow")


@pytest.mark.parametrize("facts", [MAKE, CallFacts((Action("edit", "/w/a"),))], ids=["command", "file"])
def test_what_is_unclear_or_cut_is_asked_and_any_rule_against_something_holds(facts: CallFacts) -> None:
    unclear = facts._replace(unclear="it has more in it")
    assert decide(unclear, WIDEST, ASK._replace(edit="allow"), WHERE) == Decision("ask", "it has more in it")
    cut = facts._replace(is_cut=True)
    assert verdict(cut, ALL, PermissionRule("reject", path="/nowhere/x")) == "deny"


def test_a_yes_to_one_action_is_none_to_another() -> None:
    both = CallFacts((Action("execute", "make"), Action("edit", "/w/.git/config", guarded=True)), tool="bash")
    answers = [PermissionRule("allow", tool="bash", subject=subject) for subject in ("make", "/w/.git/config")]
    assert [verdict(both, ASK, *given) for given in ([], answers[:1], answers[1:], answers)] == ["ask"] * 3 + ["allow"]


def test_guarded_actions_are_denied_where_the_policy_says_so_whatever_was_answered() -> None:
    guarded = CallFacts((Action("edit", "/w/.envrc", guarded=True),), tool="write_file")
    answer = PermissionRule("allow", tool="write_file", subject="/w/.envrc")
    assert decide(guarded, [answer], ALL._replace(guarded="deny"), WHERE) == Decision("deny", "", "policy")

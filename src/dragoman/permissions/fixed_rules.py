"""Rules that are the administrator's and not the user's: they count before all others. Pure.

What denies is final. What allows is final where the policy does not deny. Where a rule says ask, the user is asked each
time: an earlier yes does not answer for it, and an earlier no does.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.permissions.decision import Decision, PathPosition, decide, decide_by_rules
from dragoman.permissions.facts import CallFacts
from dragoman.permissions.policy import PolicyTable
from dragoman.permissions.rule import PermissionRule


class FixedRules(NamedTuple):
    """The rules of the administrator's `file`. `only`: no rule of the user's allows anything."""

    rules: tuple[PermissionRule, ...] = ()
    file: str = ""
    only: bool = False

    def decide(self, facts: CallFacts, where: PathPosition) -> Decision | None:
        """Return what the rules say about a call; None: nothing."""
        found = decide_by_rules(facts, self.rules, where) if self.rules and facts.actions else None
        return None if found is None else found._replace(by="managed", reason=self._reason(found.rules[0]))

    def _reason(self, rule: PermissionRule) -> str:
        words = {"deny": "denies this", "ask": "wants a question about this", "allow": "allows this"}[rule.verdict]
        return f"the administrator's file {self.file} {words} ({rule.pattern()})"


def decide_after(
    ruled: Decision | None,
    facts: CallFacts,
    rules: Sequence[PermissionRule],
    policy: PolicyTable,
    where: PathPosition,
    *,
    only: bool = False,
) -> Decision:
    """Return what follows for a call where fixed rules have said `ruled`. `only` as in `FixedRules`."""
    if ruled is None and not only:
        return decide(facts, rules, policy, where)
    against = [rule for rule in rules if rule.effect != "allow"]
    decision = decide(facts, against, policy, where)
    if ruled is None:
        return decision
    if ruled.verdict == "deny" or decision.verdict != "deny" or (ruled.verdict == "allow" and decision.by == "rule"):
        return ruled
    return decision

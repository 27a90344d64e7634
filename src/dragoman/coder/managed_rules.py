"""The administrator's rules about calls in one session; `permissions.fixed_rules` says what follows from them.

A rule that denies a path is also about what a search would show of it, about the paths that a command names, and, where
it names one path, about what a confined command sees.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.coder.managed_settings import ManagedSettings
from dragoman.host.paths import Roots, is_inside
from dragoman.permissions.decision import Decision, PathPosition, decide_by_rules
from dragoman.permissions.facts import Action, CallFacts

_WILD: Final = frozenset("*?[{")


class ManagedRuleBook:
    """The rules of the administrator's file in one session's folders."""

    def __init__(self, managed: ManagedSettings, roots: Callable[[], Roots]) -> None:
        self._roots = roots
        self._fixed: Final = managed.fixed_rules()
        self._denying: Final = tuple(rule for rule in self._fixed.rules if rule.effect == "reject")
        self._where = PathPosition(lambda path: True, self._names, real=os.path.realpath)

    def __repr__(self) -> str:
        return f"<ManagedRuleBook {len(self._fixed.rules)} rules>"

    @property
    def only_managed(self) -> bool:
        """Whether what the user has allowed for later calls does not count."""
        return self._fixed.only

    def decide(self, acts: Sequence[Action]) -> Decision | None:
        """Return what the rules say about a call that would do this; None: nothing."""
        return self._fixed.decide(CallFacts(tuple(self._with_named_paths(acts))), self._where)

    def denies_reading(self, path: str) -> bool:
        """Return whether a file may not be read, by its real path."""
        facts = CallFacts((Action("read", path),))
        found = decide_by_rules(facts, self._denying, self._where) if self._denying else None
        return found is not None

    def denied_places(self) -> list[str]:
        """Return the real paths that no confined command may see: those that a rule names without a wildcard. Blocks:
        looks which of them are there."""
        found: dict[str, None] = {}
        for rule in self._denying:
            if not rule.path or rule.kind not in ("", "read") or _WILD & set(rule.path.removesuffix("/**")):
                continue
            place = rule.path.removesuffix("/**")
            places = [place] if place.startswith("/") else [os.path.join(root, place) for root in self._roots().real]
            found |= dict.fromkeys(os.path.realpath(one) for one in places if os.path.lexists(one))
        return list(found)

    def _names(self, path: str) -> list[str]:
        """Return the names of a path in rules: whole, and from each root that it is in."""
        return [path, *(os.path.relpath(path, root) for root in self._roots().real if is_inside(path, root))]

    def _with_named_paths(self, acts: Sequence[Action]) -> list[Action]:
        """Return what a call does with what its commands name to read, and what happens in a view by its kind."""
        found: list[Action] = []
        for act in acts:
            found.append(act._replace(kind=act.kind_in_view) if act.kind == "sandboxed" and act.kind_in_view else act)
            found += [Action("mention", self._whole(path)) for path in act.paths_in_workspace]
        return found

    def _whole(self, path: str) -> str:
        return os.path.realpath(os.path.join(self._roots().real[0], path))


def rule_book(managed: ManagedSettings, roots: Callable[[], Roots]) -> ManagedRuleBook | None:
    """Return the rules in a session's folders; None where the administrator has none."""
    rules = managed.rules
    has_rules = rules.deny or rules.ask or rules.allow or rules.only_managed
    return ManagedRuleBook(managed, roots) if has_rules else None

"""`PermissionPolicy`: what an agent may do without a question, and `judge`, which decides by it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from dragoman.client.call_facts import GuardedRequest, call_facts
from dragoman.client.command_lines import BASH
from dragoman.errors import UsageError
from dragoman.permissions.decision import Decision, PathPosition, shorten
from dragoman.permissions.facts import Action, CallFacts
from dragoman.permissions.fixed_rules import FixedRules, decide_after
from dragoman.permissions.policy import PolicyTable
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.services import RequestPermission, WriteTextFile

# "": nothing is said; "none": nothing is allowed, and that is said.
Level = Literal["", "none", "read", "edit", "all"]

# What they say of reading, of editing, of commands, of addresses, and of what is not known to be any of these.
_LEVELS: Final[Mapping[Level, PolicyTable]] = {
    "": PolicyTable("ask", "ask", "ask", "ask", "ask"),
    "none": PolicyTable("ask", "ask", "ask", "ask", "ask"),
    "read": PolicyTable("allow", "ask", "ask", "ask", "ask"),
    "edit": PolicyTable("allow", "allow", "ask", "ask", "ask"),
    "all": PolicyTable("allow", "allow", "allow", "allow", "allow", guarded="allow"),
}

_NO_RULES: Final = FixedRules()
# Each is looked up in the file system.
_PATHS: Final = 2_000


@dataclass(frozen=True)
class PermissionPolicy:
    """What is allowed and denied without a question; `PermissionPolicy()` asks about everything.

    `allow` is what needs no question: "read" or "edit" inside of the workspace, "all" anything. `rules` come before
    it, and reject beats ask beats allow. `fixed` are rules of an administrator, which come before those. `deny_all`
    denies everything. `unasked` counts where no user can be asked, and no fixed rule wants a question. Raises
    `UsageError` for a word that is no level and no answer.
    """

    allow: Level = ""
    rules: tuple[PermissionRule, ...] = ()
    deny_all: bool = False
    unasked: Literal["allow", "reject"] = "reject"
    fixed: FixedRules = _NO_RULES

    def __post_init__(self) -> None:
        """Raise `UsageError` for words that are no level and no answer: a misspelt one must not pass for another."""
        levels = get_args(Level)
        if self.allow not in levels:
            raise UsageError(
                f"there is no level {self.allow!r}; write PermissionPolicy(allow=...) with one of {levels}"
            )
        if self.unasked not in ("allow", "reject"):
            raise UsageError(f'unasked is "allow" or "reject", and not {self.unasked!r}')


def judge(request: GuardedRequest, policy: PermissionPolicy, where: PathPosition, *, shell: str = BASH) -> Decision:
    """Return what a policy decides about a request. `shell` runs a line of text in a terminal."""
    facts = call_facts(request, shell)
    if isinstance(request, RequestPermission):
        facts = _with_matches(facts, where)
    if isinstance(request, WriteTextFile):
        where = replace(where, credential=lambda path: "")  # a write shows nothing of what was there
    table = PolicyTable("deny", "deny", "deny", "deny", "deny") if policy.deny_all else _LEVELS[policy.allow]
    ruled = policy.fixed.decide(facts, where)
    decision = decide_after(ruled, facts, policy.rules, table, where, only=policy.fixed.only)
    return decision if decision.reason else decision._replace(reason="the policy denies everything")


def _with_matches(facts: CallFacts, where: PathPosition) -> CallFacts:
    """Return the facts with each path replaced by everything that it may match."""
    actions: dict[Action, None] = {}
    for action in facts.actions:
        meant = where.matches(action.subject) if action.is_of_file else (action.subject,)
        if meant is None or len(actions) + len(meant) > _PATHS:
            reason = facts.unclear or f"{shorten(action.subject)} stands for more files than can be judged"
            return facts._replace(unclear=reason, is_cut=True)
        actions |= dict.fromkeys(action._replace(subject=subject) for subject in meant)
    return facts._replace(actions=tuple(actions))

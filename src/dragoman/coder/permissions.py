"""Decide whether a call may run: `decide_call` is pure, and `PermissionGate` alone makes an approved call of it.

A call is judged by its acts: what it would read, write, run or reach. The mode is the policy, and answers that were
meant for the future are the rules (`dragoman.permissions`). What a tool calls itself, its title and its kind, is for
display and decides nothing.
"""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from dragoman.coder.hook_verdict import HookVerdict, decide_after_hooks
from dragoman.coder.kept_rules import KeptRule, KeptRules, KeptRulesFailed, RuleScope
from dragoman.coder.managed_rules import ManagedRuleBook
from dragoman.coder.modes import MODES, UNCONFINED
from dragoman.host.command_rules import covers, is_list_of_programs, prefixes
from dragoman.host.shell import parse
from dragoman.permissions.decision import MORE, Decision, PathPosition
from dragoman.permissions.facts import Action, ActionKind, CallFacts
from dragoman.permissions.fixed_rules import decide_after
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.identity import LOCAL, Identity

# How the result of a refused call begins, for the model; the reason follows (`refusal_text`).
DENIED: Final = "Permission denied."
_FETCH: Final = "web_fetch"
# Reasons in words for the user.
_SAID_NO: Final = "you said no"
_NO_ANSWER: Final = "no answer was given"
_JUST_SAID_NO: Final = "you have just said no to this"
_NEVER: Final = "you said: never"
_FORBIDDEN_MEANWHILE: Final = "it was forbidden meanwhile"
_DOES_NOT_STAND_STILL: Final = "what it is about does not stand still"
# How often a question is asked again because what it was about had changed meanwhile.
_ASKED_AGAIN: Final = 3
# After so many rejections in one turn the user is not asked again in it: the next answer would be given out of fatigue.
NOES: Final = 20
_MANY_NOES: Final = f"you have said no {NOES} times in this turn"
# The same for the model, with what to do now where that is not plain.
_FOR_MODEL: Final = {
    _SAID_NO: "The user said no.",
    _NO_ANSWER: "The user was asked and did not say yes.",
    _JUST_SAID_NO: "The user has said no to this very call in this turn, and is not asked again.",
    _NEVER: "The user has said never to this, for the whole session.",
    _FORBIDDEN_MEANWHILE: "It was forbidden while the user was being asked.",
    _DOES_NOT_STAND_STILL: "What it is about changed each time the user was asked. Look at it again before you retry.",
    _MANY_NOES: f"The user has said no {NOES} times in this turn, and is not asked again before the next prompt.",
}


class JudgedCall(NamedTuple):
    """A tool call as the model made it, what it would do, and what the world it touches looks like.

    `hooked` is what hooks have said about it.
    """

    id: str
    tool: str
    input: dict[str, object]
    acts: Sequence[Action] = ()
    stamp: str = ""
    hooked: HookVerdict = HookVerdict()


class Approved:
    """A call that may run, exactly as it was shown. Made by a `PermissionGate` and nowhere else."""

    __slots__ = ("call", "decision")

    def __init__(self, call: JudgedCall, decision: Decision, key: object) -> None:
        if key is not _KEY:
            raise TypeError("only the permission gate approves calls")
        self.call: Final = call
        self.decision: Final = decision

    @property
    def asked(self) -> bool:
        """Whether the user has just approved this very call."""
        return self.decision.by == "user"


_KEY: Final = object()
# Looks at the world as it is now: the call with its acts and its stamp.
Look = Callable[[], Awaitable[JudgedCall]]


class UserAnswer(NamedTuple):
    """What the user said: the kind of the option, None for no answer. Only "allow_once" and "allow_always" are a yes.

    `feedback` is what the user wrote to a no, with hidden characters spelled out. `scope` is how far an "always" or a
    "never" reaches.
    """

    kind: str | None
    feedback: str = ""
    scope: RuleScope = "session"


Ask = Callable[[JudgedCall], Awaitable[UserAnswer]]


def offers(mode: str, kind: ActionKind) -> bool:
    """Return whether a mode has any use for tools that do such things."""
    known = MODES.get(mode)
    return known is not None and known.policy.verdict_on(Action(kind)) != "deny"


# Tools refuse what is outside of the workspace before a call of theirs is judged, and mark what is guarded.
_RESOLVED: Final = PathPosition(lambda path: True)


def decide_call(
    call: JudgedCall,
    mode: str,
    rules: Sequence[PermissionRule],
    *,
    fetches: bool = False,
    identity: Identity = LOCAL,
    managed: ManagedRuleBook | None = None,
) -> Decision:
    """Return what the mode, the administrator's rules (`managed`) and the remembered answers say.

    `fetches`: a page that would be asked about is not. To a confined `identity` guarded acts are refused, whatever was
    remembered: it could only ask itself.
    """
    known = MODES.get(mode)
    if known is None:
        return Decision("deny", f"there is no mode {mode}", "policy")
    policy = known.policy
    if fetches and call.tool == _FETCH and policy.fetch == "ask":
        policy = policy._replace(fetch="allow")
    if identity.confined:
        policy = policy._replace(guarded="deny")
    facts = CallFacts(tuple(call.acts), tool=call.tool)
    counted = [rule for rule in rules if rule.effect != "allow" or not (rule.confined and mode in UNCONFINED)]
    ruled = None if managed is None else managed.decide(call.acts)
    only = managed is not None and managed.only_managed
    decision = decide_after(ruled, facts, counted, policy, _RESOLVED, only=only)
    if decision.by == "managed":
        return decision
    if decision.by == "policy":
        return decision if decision.reason else decision._replace(reason=leaves_confinement(identity))
    if decision.verdict == "deny":
        return decision._replace(reason=_NEVER if decision.rules else f"mode {mode} does not allow it")
    return decision._replace(reason=f"mode {mode}")


def leaves_confinement(identity: Identity) -> str:
    """Return why a guarded act is refused to a confined identity."""
    token_text = f"the token {identity.token!r}" if identity.token else "this connection"
    return f"{token_text} may not leave the confinement, and this would"


def refusal_text(decision: Decision) -> str:
    """Return the result of a refused call, for the model: that it was refused, why, and what the user wrote to it."""
    reason = decision.reason
    sentence = _FOR_MODEL.get(reason) or f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
    return f"{DENIED} {sentence}{quoted(decision.feedback)}" if reason else DENIED


def quoted(feedback: str) -> str:
    """Return what the user wrote to a no, marked as the user's in each of its lines; empty if there is nothing."""
    lines = "".join(f"\n> {line}" for line in feedback.splitlines())
    return f" The user wrote:{lines}" if lines else ""


async def _discard(text: str) -> None:
    """Tell nothing."""


class PermissionGate:
    """Approves calls, by the mode and the user. Remembers answers: for the turn, the session, the project, everywhere.

    Rules that outlive the session are the user's at this machine. Of another identity they hold back calls, and allow
    none.
    """

    def __init__(
        self,
        mode: Callable[[], str],
        rules: list[PermissionRule],
        remember: Callable[[PermissionRule], Awaitable[None]],
        *,
        fetches: bool = False,
        identity: Callable[[], Identity] = lambda: LOCAL,
        kept: KeptRules | None = None,
        project: Callable[[], str] = lambda: "",
        warn: Callable[[str], Awaitable[None]] = _discard,
        managed: ManagedRuleBook | None = None,
    ) -> None:
        """`identity` is whose turn it is, `kept` the rules that outlive the session; None: there is no place for them.

        `project` is where the session works, by the path that its rules are kept under. It blocks. `warn` tells the
        user that a rule could not be kept. `managed` are the administrator's rules; None: there are none.
        """
        self._managed = managed
        self.rules: Final = rules
        self._kept = kept
        self._find_project = project
        self._warn = warn
        # What `_refresh` has found: the project, its rules, and why they cannot be known.
        self._project = ""
        self._kept_rules: tuple[KeptRule, ...] = ()
        self._kept_failure = ""
        self._fetches = fetches
        self._identity = identity
        self._mode = mode
        self._remember = remember
        self._refused: set[str] = set()

    @property
    def mode(self) -> str:
        """The mode as it is now."""
        return self._mode()

    @property
    def identity(self) -> Identity:
        """Whose turn it is."""
        return self._identity()

    @property
    def keeps_rules(self) -> bool:
        """Whether an answer can be kept beyond the session: by the user at this machine alone."""
        return self._kept is not None and self.identity == LOCAL

    def remembers(self, call: JudgedCall) -> bool:
        """Return whether an "always" about a call would count: not where the administrator or a hook asks each time."""
        if self._managed is None or call.hooked.word == "ask":
            return call.hooked.word != "ask"
        ruled = self._managed.decide(call.acts)
        return not self._managed.only_managed and (ruled is None or ruled.verdict != "ask")

    async def kept_rules(self) -> Sequence[KeptRule]:
        """Return the kept rules that count in this project. Raises `KeptRulesFailed`."""
        await self._refresh()
        if self._kept_failure:
            raise KeptRulesFailed(self._kept_failure)
        return self._kept_rules

    def begin_turn(self) -> None:
        """Forget the refusals of the turn before."""
        self._refused.clear()

    async def approve(self, call: JudgedCall, look: Look, ask: Ask) -> Approved | Decision:
        """Return the approved call, or why it may not run."""
        for _ in range(_ASKED_AGAIN):
            await self._refresh()
            decision = self._decide(call)
            if decision.verdict == "deny":
                return decision
            if decision.verdict == "allow":
                return Approved(call, decision, _KEY)
            if _thing(call) in self._refused:
                return Decision("deny", _JUST_SAID_NO, "rule")
            if len(self._refused) >= NOES:
                return Decision("deny", _MANY_NOES, "policy")
            was_unconfined = self.mode in UNCONFINED
            answer = await ask(call)
            if answer.kind not in ("allow_once", "allow_always"):
                self._refused.add(_thing(call))
                if answer.kind == "reject_always":
                    await self._learn("reject", call, answer.scope)
                reason = _SAID_NO if answer.kind or answer.feedback else _NO_ANSWER
                return Decision("deny", reason, "user", option=answer.kind, feedback=answer.feedback)
            # What was shown is what runs: the file, the mode or a rule may have changed while the user thought.
            now = await look()
            await self._refresh()
            is_freed = not was_unconfined and self.mode in UNCONFINED and _runs_command(call)
            if digest_of(now) != digest_of(call) or is_freed:
                call = now
                continue
            if self._decide(now).verdict == "deny":
                return Decision("deny", _FORBIDDEN_MEANWHILE, "policy", option=answer.kind)
            if answer.kind == "allow_always" and self.remembers(call):
                await self._learn("allow", call, answer.scope)
            return Approved(now, Decision("allow", "you said yes", "user", option=answer.kind), _KEY)
        return Decision("deny", _DOES_NOT_STAND_STILL, "policy")

    def _decide(self, call: JudgedCall) -> Decision:
        if self._kept_failure:
            return Decision("deny", self._kept_failure, "policy")
        kept = {one.rule: one for one in self._kept_rules if one.rule.effect != "allow" or self.keeps_rules}
        rules = [*self.rules, *kept]
        decision = decide_call(
            call, self.mode, rules, fetches=self._fetches, identity=self.identity, managed=self._managed
        )
        decision = decide_after_hooks(decision, call.hooked, call.acts, is_local=self.identity == LOCAL)
        if decision.reason == _NEVER and (rule := decision.rules[0]) in kept and rule not in self.rules:
            return decision._replace(reason=_kept_reason(kept[rule]))
        return decision

    async def _refresh(self) -> None:
        """Look whether the kept rules have changed."""
        if self._kept is None:
            return
        try:
            self._project, rules = await asyncio.to_thread(self._look_up, self._kept)
        except KeptRulesFailed as error:
            self._kept_failure = str(error)
        else:
            self._kept_rules, self._kept_failure = rules, ""

    def _look_up(self, kept: KeptRules) -> tuple[str, tuple[KeptRule, ...]]:
        project = self._find_project()
        return project, tuple(one for one in kept.rules() if one.counts_in(project))

    async def _learn(self, effect: Literal["allow", "reject"], call: JudgedCall, scope: RuleScope) -> None:
        is_confined = self.identity.confined or (_runs_command(call) and self.mode not in UNCONFINED)
        rules = [replace(found, confined=effect == "allow" and is_confined) for found in rules_for(call, effect)]
        if scope != "session" and self.keeps_rules and await self._keep(rules, scope):
            return
        for rule in rules:
            if rule not in self.rules:
                self.rules.append(rule)
                await self._remember(rule)

    async def _keep(self, rules: Sequence[PermissionRule], scope: RuleScope) -> bool:
        """Keep rules beyond the session; return whether that was done. If not, they count for the session."""
        assert self._kept is not None
        try:
            await asyncio.to_thread(self._kept.add, self._project if scope == "project" else "", rules)
        except KeptRulesFailed as error:
            await self._warn(f"Your answer counts for this session only: {error}.")
            return False
        await self._refresh()
        return True


def _kept_reason(kept: KeptRule) -> str:
    where = "for this project" if kept.project else "for every project"
    return f"the user's rule {where} says never to {kept.rule.tool} `{kept.rule.subject}`"


def _runs_command(call: JudgedCall) -> bool:
    return any(act.kind == "execute" for act in call.acts)


def digest_of(call: JudgedCall) -> str:
    """Return the call as it is shown and would run, whole, in one canonical text."""
    return json.dumps([call.tool, call.input, call.acts, call.stamp], sort_keys=True)


def _thing(call: JudgedCall) -> str:
    """Return what a no is about: a command, however long it may take; else the call as it is."""
    if call.acts and all(act.kind == "execute" for act in call.acts):
        return json.dumps([call.tool, [act.subject for act in call.acts]])
    return digest_of(call)


def rules_for(call: JudgedCall, effect: Literal["allow", "reject"]) -> list[PermissionRule]:
    """Return what an "always" about this call is remembered as. An allowed command may get harmless words more."""
    return [
        PermissionRule(effect, tool=call.tool, subject=subject)
        for act in call.acts
        if act.kind != "free" and (act.kind != "read" or act.guarded) and not (act.unconfined and effect == "allow")
        for subject in (_command_rules(act, effect) if act.kind == "execute" else [act.subject])
    ]


def _command_rules(act: Action, effect: Literal["allow", "reject"]) -> list[str]:
    """Return the rules that would cover this command.

    Where its words say too little, it is the command and no other; so it is where a line is more than programs and
    their words, if it is refused, or goes to a folder that is not to be read.
    """
    parsed = parse(act.subject)
    found = prefixes(parsed)
    if not is_list_of_programs(parsed) and (
        effect == "reject" or not covers(found, parsed, readable=lambda path: path in act.paths_in_workspace)
    ):
        found = ()
    return [shlex.join(prefix) + MORE for prefix in found] or [act.subject]

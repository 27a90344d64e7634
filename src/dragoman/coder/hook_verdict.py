"""What hooks have said about a call, as the permission gate takes it. Pure, and all that the gate knows of hooks."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dragoman.host.text import hidden_character
from dragoman.permissions.decision import Decision
from dragoman.permissions.facts import Action

HookWord = Literal["", "allow", "ask", "deny"]


class HookVerdict(NamedTuple):
    """What all hooks together say. `reason` is for the user, `context` for the model, beside the call's result."""

    word: HookWord = ""
    reason: str = ""
    context: str = ""


def decide_after_hooks(decision: Decision, verdict: HookVerdict, acts: Sequence[Action], *, is_local: bool) -> Decision:
    """Return what follows for a call about which the mode and the rules have said `decision`.

    A hook can refuse, and have the user asked. What is refused stays refused. An allow is the user's yes to a question
    of the mode, given before: it answers no question of a rule, none about guarded files or leaving the confinement,
    none of what cannot be read, and none in the turn of another identity (`is_local` False).
    """
    if decision.verdict == "deny" or not verdict.word:
        return decision
    if verdict.word != "allow":
        return Decision(verdict.word, verdict.reason, "hook")
    is_answered = is_local and decision.verdict == "ask" and decision.by == "mode"
    if not is_answered or any(act.guarded or act.unconfined or hidden_character(act.subject) for act in acts):
        return decision
    return Decision("allow", verdict.reason, "hook")

"""May this call run? A pure decision, and the one door through which a call becomes an approved one.

Deny beats ask beats allow. What a tool calls itself, its title and its kind, is for display and decides nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

Verdict = Literal["allow", "ask", "deny"]
DENIED: Final = "Permission denied."


class Call(NamedTuple):
    """A tool call as the model made it."""

    id: str
    tool: str
    input: dict[str, object]


class Rule(NamedTuple):
    """An answer meant for the future: this tool with exactly this, for the rest of the session."""

    effect: Literal["allow", "deny"]
    tool: str
    matched: str

    def covers(self, call: Call) -> bool:
        """Whether the rule is about this call."""
        return self.tool == call.tool and self.matched == matched_by(call)


class Decision(NamedTuple):
    """The verdict, and why."""

    verdict: Verdict
    reason: str


class Mode(NamedTuple):
    """What a mode says about each group of tools; a tool that is in no group is denied."""

    reads: Verdict
    writes: Verdict
    commands: Verdict


MODES: Final[dict[str, Mode]] = {
    "ask": Mode("allow", "ask", "ask"),
    "full-access": Mode("allow", "allow", "allow"),
}
_GROUPS: Final[dict[str, str]] = {"read_file": "reads", "write_file": "writes", "bash": "commands"}


class Approved:
    """A call that may run, exactly as it was shown. Made by `approve` and nowhere else."""

    __slots__ = ("call", "digest")

    def __init__(self, call: Call, digest: str, key: object) -> None:
        if key is not _KEY:
            raise TypeError("only the permission gate approves calls")
        self.call: Final = call
        self.digest: Final = digest


_KEY: Final = object()
# Asks the user: the answer's kind, or None for no answer. Only "allow_once" and "allow_always" are a yes.
Ask = Callable[[Call], Awaitable[str | None]]


def decide(call: Call, mode: str, rules: Sequence[Rule]) -> Decision:
    """What the mode and the remembered answers say."""
    group = _GROUPS.get(call.tool)
    known = MODES.get(mode)
    if group is None or known is None:
        return Decision("deny", "nobody knows this tool")
    verdict: Verdict = getattr(known, group)
    if verdict == "deny":
        return Decision("deny", f"mode {mode} does not allow it")
    covering = [rule for rule in rules if rule.covers(call)]
    if any(rule.effect == "deny" for rule in covering):
        return Decision("deny", "you said: never")
    if covering:
        return Decision("allow", "you said: always")
    return Decision(verdict, f"mode {mode}")


async def approve(call: Call, mode: str, rules: list[Rule], ask: Ask) -> Approved | None:
    """The gate: None is a no. An answer meant for the future is added to the rules."""
    shown = digest_of(call)
    decision = decide(call, mode, rules)
    if decision.verdict == "deny":
        return None
    if decision.verdict == "ask":
        answer = await ask(call)
        if answer == "reject_always":
            rules.append(Rule("deny", call.tool, matched_by(call)))
        if answer not in ("allow_once", "allow_always"):
            return None
        if answer == "allow_always":
            rules.append(Rule("allow", call.tool, matched_by(call)))
    if digest_of(call) != shown:
        return None  # what was shown is what runs
    return Approved(call, shown, _KEY)


def matched_by(call: Call) -> str:
    """What a remembered answer is about: the very input."""
    return digest_of(call)


def digest_of(call: Call) -> str:
    """The call, whole, in one canonical text."""
    return msgspec.json.encode([call.tool, call.input], order="sorted").decode()

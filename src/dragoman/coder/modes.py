"""The modes: what each says about every kind of action. Pure, and cheap to import: it is part of the start."""

from itertools import product
from typing import Final, NamedTuple, get_args

from dragoman.permissions.facts import Action, ActionKind
from dragoman.permissions.policy import PolicyTable


class Mode(NamedTuple):
    """A mode: its name and description for the user, and its policy."""

    name: str
    description: str
    policy: PolicyTable


_ONLY_READS: Final = PolicyTable("allow", "deny", "deny", "deny", "deny")
MODES: Final[dict[str, Mode]] = {
    "read-only": Mode("Read only", "Looks at files, changes nothing", _ONLY_READS),
    "plan": Mode("Plan", "Looks at files and makes a plan", _ONLY_READS),
    "ask": Mode(
        "Ask",
        "Asks before it writes, fetches or runs what does more than look",
        PolicyTable("allow", "ask", "ask", "ask", "ask", allows_read_only_commands=True),
    ),
    "workspace-write": Mode(
        "Workspace write",
        "Writes in the workspace and runs confined commands, asks for the rest",
        PolicyTable(
            *("allow", "allow", "ask", "ask", "ask"), allows_read_only_commands=True, allows_confined_commands=True
        ),
    ),
    "safe": Mode("Safe", "Asks before it writes, runs nothing", PolicyTable("allow", "ask", "deny", "deny", "deny")),
    "sandbox": Mode(
        "Sandbox",
        "Works in a copy of the workspace; its changes are one question",
        PolicyTable("deny", "deny", "deny", "deny", "deny", sandboxed="allow"),
    ),
    "full-access": Mode(
        "Full access",
        "Asks nothing",
        PolicyTable("allow", "allow", "allow", "allow", "allow", guarded="allow"),
    ),
}


# Where commands that were asked about, or are not, run as the user does, confined by nothing.
UNCONFINED: Final = frozenset({"ask", "full-access"})


# How far a session in a mode can reach, whatever is answered there: not by how often it asks. So `ask`, whose commands
# run unconfined after a yes, is above `workspace-write`, whose commands never do. Nothing of reach 0 changes anything.
REACH: Final = {
    "read-only": 0,
    "plan": 0,
    "safe": 1,
    "sandbox": 2,
    "workspace-write": 3,
    "ask": 4,
    "full-access": 5,
}


def asks_less(new: str, old: str) -> bool:
    """Return whether mode `new` lets anything happen without a question that mode `old` asks about or refuses.

    Judged by what the two say about every kind of action, so a mode that is added is judged as well. True for a mode
    that is not known.
    """
    if new not in MODES or old not in MODES:
        return True
    flags = (False, True)
    marks = product(get_args(ActionKind), flags, flags, flags)
    actions = (Action(kind, guarded=guarded, harmless=looks, confined=kept) for kind, guarded, looks, kept in marks)
    allowed = [action for action in actions if MODES[new].policy.verdict_on(action) == "allow"]
    return not all(_happens_unasked(MODES[old].policy, action) for action in allowed)


def _happens_unasked(policy: PolicyTable, action: Action) -> bool:
    """Return whether a mode allows an action, or one that lets no less happen."""
    kinds: list[ActionKind] = [action.kind]
    if action.kind == "sandboxed":
        kinds.append("execute")  # a view of the workspace is less than the workspace itself
    elif not action.guarded and (action.kind == "read" or (action.kind == "execute" and action.harmless)):
        kinds += ["read", "sandboxed"]  # looking is looking, by whatever tool, and a view shows the same
    return any(policy.verdict_on(action._replace(kind=kind)) == "allow" for kind in kinds)

"""What a call would do, and what each mode says about that. Pure, and cheap to import: it is part of the start."""

from itertools import product
from typing import Final, Literal, NamedTuple, get_args

Verdict = Literal["allow", "ask", "deny"]
# `foreign` is a tool of an MCP server, which may do anything; `free` does nothing outside of the conversation;
# `sandboxed` happens in a view of the workspace, and the user has to approve it before it counts.
ActKind = Literal["read", "write", "command", "network", "foreign", "free", "sandboxed"]


class Action(NamedTuple):
    """One thing a call would do.

    `subject` is what a remembered answer is about: a path, a command, a host, a tool. `guarded` needs a yes even where
    its kind does not; `harmless` is a command known to only read. `blocked_reason` is why it never runs.
    `paths_in_workspace` are the paths that a command reads, as it names them, and that lie in the workspace.
    `unconfined` is why a command would run without the confinement that its mode promises: only after a yes to this
    very call.
    """

    kind: ActKind
    subject: str = ""
    guarded: bool = False
    harmless: bool = False
    blocked_reason: str = ""
    paths_in_workspace: tuple[str, ...] = ()
    unconfined: str = ""


class Mode(NamedTuple):
    """A mode: its verdict on each kind of action."""

    name: str
    description: str
    read: Verdict
    write: Verdict
    command: Verdict
    network: Verdict
    foreign: Verdict
    sandboxed: Verdict = "deny"
    # Commands that only read need no question.
    allows_read_only_commands: bool = False
    # Guarded things are as free as all others.
    unguarded: bool = False

    def verdict_on(self, act: Action) -> Verdict:
        """Return the verdict of this mode on an action."""
        if act.kind == "free":
            return "allow"
        verdict: Verdict = getattr(self, act.kind)
        if verdict == "ask" and act.harmless and self.allows_read_only_commands:
            return "allow"
        return "ask" if verdict == "allow" and act.guarded and not self.unguarded else verdict


MODES: Final[dict[str, Mode]] = {
    "read-only": Mode("Read only", "Looks at files, changes nothing", "allow", "deny", "deny", "deny", "deny"),
    "plan": Mode("Plan", "Looks at files and makes a plan", "allow", "deny", "deny", "deny", "deny"),
    "ask": Mode("Ask", "Asks before it writes, runs or fetches", "allow", "ask", "ask", "ask", "ask"),
    "workspace-write": Mode(
        "Workspace write",
        "Writes in the workspace, asks before it runs",
        *("allow", "allow", "ask", "ask", "ask"),
        allows_read_only_commands=True,
    ),
    "safe": Mode("Safe", "Asks before it writes, runs nothing", "allow", "ask", "deny", "deny", "deny"),
    "sandbox": Mode(
        "Sandbox",
        "Works in a copy of the workspace; its changes are one question",
        *("deny", "deny", "deny", "deny", "deny", "allow"),
    ),
    "full-access": Mode(
        "Full access",
        "Asks nothing",
        "allow",
        "allow",
        "allow",
        "allow",
        "allow",
        allows_read_only_commands=True,
        unguarded=True,
    ),
}


# Where commands run as the user does, confined by nothing.
UNCONFINED: Final = frozenset({"ask", "full-access"})


def asks_less(new: str, old: str) -> bool:
    """Return whether mode `new` lets anything happen without a question that mode `old` asks about or refuses.

    Judged by what the two say about every kind of act, so a mode that is added is judged as well. True for a mode that
    is not known.
    """
    if new not in MODES or old not in MODES:
        return True
    acts = [
        Action(kind, guarded=guarded, harmless=harmless)
        for kind, guarded, harmless in product(get_args(ActKind), (False, True), (False, True))
    ]
    return any(MODES[new].verdict_on(act) == "allow" and not _happens_unasked(MODES[old], act) for act in acts)


def _happens_unasked(mode: Mode, act: Action) -> bool:
    """Return whether a mode allows an act, or one that lets no less happen."""
    kinds: list[ActKind] = [act.kind]
    if act.kind == "sandboxed":
        kinds.append("command")  # a view of the workspace is less than the workspace itself
    elif not act.guarded and (act.kind == "read" or (act.kind == "command" and act.harmless)):
        kinds += ["read", "sandboxed"]  # looking is looking, by whatever tool, and a view shows the same
    return any(mode.verdict_on(act._replace(kind=kind)) == "allow" for kind in kinds)

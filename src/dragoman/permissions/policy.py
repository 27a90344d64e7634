"""What is allowed without a question: a verdict for each kind of action. Modes and levels are such tables."""

from typing import Final, Literal, NamedTuple

from dragoman.permissions.facts import Action

Verdict = Literal["allow", "ask", "deny"]

# From the mildest to the strictest.
_STRICTNESS: Final[tuple[Verdict, ...]] = ("allow", "ask", "deny")
# Judged by what they come with, if with anything.
_ALWAYS_ALLOWED: Final = frozenset({"free", "mention"})


class PolicyTable(NamedTuple):
    """A verdict for each kind of action; `other` is also for `foreign` ones.

    `guarded` is the least verdict on what needs a yes of its own: guarded actions, what is unclear, and files outside
    of the workspace. `allows_read_only_commands`: commands that only read need no question;
    `allows_confined_commands`: nor do those that run confined.
    """

    read: Verdict
    edit: Verdict
    execute: Verdict
    fetch: Verdict
    other: Verdict
    sandboxed: Verdict = "deny"
    guarded: Verdict = "ask"
    allows_read_only_commands: bool = False
    allows_confined_commands: bool = False

    def verdict_on(self, action: Action) -> Verdict:
        """Return what this table says about an action, whatever rules there are; an unknown kind is denied."""
        if action.kind in _ALWAYS_ALLOWED:
            return "allow"
        verdict: Verdict = self._asdict().get("other" if action.kind == "foreign" else action.kind, "deny")
        if verdict == "ask" and action.kind == "execute" and self._runs_unasked(action):
            verdict = "allow"
        return max(verdict, self.guarded, key=_STRICTNESS.index) if action.guarded else verdict

    def _runs_unasked(self, action: Action) -> bool:
        """Return whether a command needs no question because of how it runs."""
        is_read_only = action.harmless and self.allows_read_only_commands
        return is_read_only or (action.confined and self.allows_confined_commands and not action.unconfined)

"""The answers "always" and "never" of a session, as notes in its log: they count again when the session is reopened."""

from collections.abc import Sequence
from typing import Final

from msgspec import to_builtins

from dragoman.agent.session import Session, session_core
from dragoman.permissions.rule import PermissionRule, stored_rule

_RULE: Final = "rule"
_REVOKED: Final = "revoked"


class RuleLog:
    """The rules of one session, on disk. The rules that count now are `PermissionGate.rules`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def load(self) -> list[PermissionRule]:
        """Return the rules that were remembered and not revoked, the oldest first. Reads the session's log."""
        revoked = _decode_rules(await self._session.recall(_REVOKED))
        rules: list[PermissionRule] = []
        for rule in _decode_rules(await self._session.recall(_RULE)):
            # A rule may have been revoked and remembered again: each note of the one kind takes away one of the other.
            if rule in revoked:
                revoked.remove(rule)
            else:
                rules.append(rule)
        return rules

    async def remember(self, rule: PermissionRule) -> None:
        """Record a rule; returns when it is on disk."""
        await session_core(self._session).record_note(_RULE, to_builtins(rule))

    async def revoke(self, rule: PermissionRule) -> None:
        """Record that a rule counts no more; returns when that is on disk."""
        await session_core(self._session).record_note(_REVOKED, to_builtins(rule))


def _decode_rules(notes: Sequence[object]) -> list[PermissionRule]:
    return [rule for note in notes if (rule := stored_rule(note)) is not None]

"""Which dialects an agent may be given by name, and what each asks of who speaks it."""

from dragoman.dialects.vendors.named import NAMES, check_name, named, pinned
from dragoman.vocabulary.dialect_rules import PROTOCOL_RULES, DialectRules

__all__ = ["NAMES", "PROTOCOL_RULES", "DialectRules", "rules_of"]


def rules_of(dialect: str | None) -> DialectRules:
    """What a dialect asks of us; `UsageError` for a name that is none lists the ones there are."""
    if dialect is None:
        return PROTOCOL_RULES
    check_name(dialect)
    return PROTOCOL_RULES if pinned(dialect) is not None else named(dialect).rules

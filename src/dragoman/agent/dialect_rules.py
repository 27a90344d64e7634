"""Which dialects an agent may be given by name, and what each asks of who speaks it."""

from dragoman.dialects.vendors.named import NAMES, check_name, named, pinned
from dragoman.vocabulary.manner import PLAIN, Manner

__all__ = ["NAMES", "PLAIN", "Manner", "manner_of"]


def manner_of(dialect: str | None) -> Manner:
    """What a dialect asks of us; `UsageError` for a name that is none lists the ones there are."""
    if dialect is None:
        return PLAIN
    check_name(dialect)
    return PLAIN if pinned(dialect) is not None else named(dialect).manner

"""What is lost between versions, and what is said instead. ARCHITECTURE.md shows this table; tests keep it true."""

from typing import Final, Literal, NamedTuple

Direction = Literal["same", "v1→v2", "v2→v1"]


class Loss(NamedTuple):
    """One row. `same`: already within one version, since the vocabulary means what version 2 means."""

    id: str
    direction: Direction
    what: str
    instead: str


LOSSES: Final = (
    Loss("message-without-id", "same", "a version 1 chunk without `messageId`", ""),
    Loss("null-in-tool-call", "same", "", ""),
    Loss("diff-without-old-text", "same", "", ""),
    Loss("form-that-lacks-parts", "same", "", ""),
    Loss("type-of-a-config-value", "same", "", ""),
    Loss("type-of-a-stdio-server", "same", "", ""),
)

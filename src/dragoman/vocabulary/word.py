"""Own what every value of the vocabulary shares: immutability, `_meta`, and `extras` for unknown fields.

Values here know no protocol version, no transport and no clock. They can be compared, stored and sent on.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

# Absent, null and value are three things: UNSET leaves alone, None clears, a value replaces.
Meta = Mapping[str, object]


class Extras:
    """Fields of a message that its type does not name, as plain JSON values. They pass through unharmed.

    Not a msgspec type on purpose: decoders refuse it, so a peer cannot fill it by naming a field after it.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, object]) -> None:
        self.fields: Final = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extras) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]  # holds a dict

    def __repr__(self) -> str:
        return f"Extras({self.fields!r})"


class Word(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    # Values hold JSON only, so they cannot form cycles; the collector need not walk 100,000 of them.
    gc=False,
):
    """The base of every value of the vocabulary."""

    meta: Meta | None | UnsetType = msgspec.field(default=UNSET, name="_meta")
    extras: Extras | UnsetType = UNSET


class Unknown(Word, frozen=True, gc=False):
    """A variant this release has no name for: kept whole, sent on whole, never read as a known one."""

    kind: str
    fields: dict[str, object]

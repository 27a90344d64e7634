"""The choices of an option, encoded and decoded once: they are sent again with every value that any option is set to.

A model option may have hundreds of them, and setting a mode sends them all. So the last lists are remembered, with what
they became. Choices are frozen and come back as the same objects; the list around them is always a new one.

Bounded by `_LISTS` lists of at most `_BYTES` each, in both directions: whatever a peer sends, no more stays here.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from dragoman.vocabulary.options import Choice, ChoiceGroup
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

if TYPE_CHECKING:
    from dragoman.dialects.codec.transcriber import Transcriber

Choices = list[Choice | ChoiceGroup]
_LISTS: Final = 64
_BYTES: Final = 16 * 1024
_encoded: Final[dict[int, tuple[Choices, Raw]]] = {}  # by the identity of a list: itself as it was then, and its JSON
_decoded: Final[dict[str, tuple[Any, Choices]]] = {}  # by the id of an option: what was received, and what it means


def encode_choices(choices: Choices, codec: "Transcriber") -> Raw:
    """Return the choices as JSON, without groups that are empty."""
    found = _encoded.get(id(choices))
    # Another list may have this identity now, and a list can be changed; where nothing has, this compares identities.
    if found is not None and found[0] == choices:
        return found[1]
    shown = [entry for entry in choices if not isinstance(entry, ChoiceGroup) or entry.options]
    encoded = Raw(wire.encode(codec.encode(shown)))
    if len(encoded) <= _BYTES and _is_text(choices):
        _make_room(_encoded)
        _encoded[id(choices)] = choices.copy(), encoded
    return encoded


def decode_choices(config_id: str, received: Any, codec: "Transcriber") -> Choices:
    """Return the choices of the option `config_id`, a tuple of wire values."""
    found = _decoded.get(config_id)
    if found is not None and found[0] == received:
        return found[1].copy()
    choices: Choices = codec.decode(received)
    if len(config_id) + len(wire.encode(received)) <= _BYTES and _is_text(received):
        _make_room(_decoded)
        _decoded[config_id] = received, choices.copy()
    return choices


def _is_text(entries: Iterable[Any]) -> bool:
    """Whether nothing but text is in these entries: other values may be equal and have another JSON, as True and 1."""
    for entry in entries:
        if not (entry.meta is entry.extras is UNSET):
            return False
        if isinstance(entry, ChoiceGroup | w.SessionConfigSelectGroup) and not _is_text(entry.options):
            return False
    return True


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= _LISTS:
        del remembered[next(iter(remembered))]

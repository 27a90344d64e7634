"""Own the rules of patching by id. Pure: the value so far and a patch in, the new value out.

An absent field (UNSET) leaves what was known, null (None) clears it, a value replaces it. `_meta` and fields that this
release does not know merge by top-level key, and a key that is null is removed. `state` says which
events patch what.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.vocabulary.word import Extras, Meta, Word

W = TypeVar("W", bound=Word)


def apply_patch(before: W, patch: W, fields: Sequence[str] = ()) -> W:
    """Return `before` with every field that `patch`, a value of the same type, names.

    A field that was cleared is UNSET afterwards and never None, as if no event had named it. Only `fields` are
    patched where they are given; the others stay as they are in `before`.
    """
    changes: dict[str, object] = {}
    for name in fields or before.__struct_fields__:
        value = getattr(patch, name)
        if value is UNSET:
            continue
        if name == "meta":
            changes[name] = _merge_meta(before.meta, value)
        elif isinstance(value, Extras):
            changes[name] = _merge_extras(getattr(before, name), value)
        else:
            changes[name] = UNSET if value is None else value
    return replace(before, **changes) if changes else before


def _merge_meta(before: Meta | None | UnsetType, patch: Meta | None | UnsetType) -> Meta | UnsetType:
    """Return `_meta` after a patch; UNSET if nothing is left of it."""
    if patch is UNSET:
        return before or UNSET
    return _merge(before or {}, patch) or UNSET if patch is not None else UNSET


def _merge_extras(before: object, patch: Extras) -> Extras | UnsetType:
    fields = _merge(before.fields if isinstance(before, Extras) else {}, patch.fields)
    return Extras(fields) if fields else UNSET


def _merge(before: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in {**before, **patch}.items() if value is not None}

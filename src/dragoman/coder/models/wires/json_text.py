"""JSON of providers, decoded into types of ours. Pure."""

import json
from typing import TypeVar

import msgspec

from dragoman.surrogates import replace_lone_surrogates

T = TypeVar("T")


def decode_json(decoder: msgspec.json.Decoder[T], text: bytes | str) -> T:
    """Return what a JSON text says. Raises `msgspec.DecodeError` or `UnicodeDecodeError` where it is none.

    Half of a surrogate pair, which models write at times and msgspec does not read, is replaced by U+FFFD.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        halved = text.decode() if isinstance(text, bytes) else text
        if "\\ud" not in halved.lower():
            raise
        return decoder.decode(replace_lone_surrogates(_with_halves(halved)))


def _with_halves(text: str) -> str:
    """Return the text with its escapes as letters."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        raise msgspec.DecodeError("no JSON") from None

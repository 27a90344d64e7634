"""Decode a text chunk from a frame to an event in one step: the message that comes by the hundred thousand.

Anything that is not exactly a plain text chunk (other content, `_meta`, unknown fields, another envelope) is None here
and takes the long way, so a frame is decoded to the same event by both.
"""

from typing import Final

import msgspec
from msgspec import UNSET

from dragoman.dialects.codec.dialect_base import UPDATE_HEADS
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, Chunk, UserMessageChunk

# Larger chunks are rare and worth the checks of the long way.
_SHORT: Final = 8192


# The vocabulary's own classes as wire types: for these three the tags and fields of both versions are the same.
class _Params(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    session_id: str
    update: AgentMessageChunk | AgentThoughtChunk | UserMessageChunk


def _refuse(kind: type, value: object) -> object:
    raise ValueError


_DECODE: Final = msgspec.json.Decoder(_Params, dec_hook=_refuse).decode
_COMPACT, _SPACED = UPDATE_HEADS
_COMPACT_LENGTH: Final = len(_COMPACT)
_SPACED_LENGTH: Final = len(_SPACED)
_BRACE: Final = ord("}")


def text_chunk(frame: bytes) -> _Params | None:
    """Return the session and its chunk; None for any other frame."""
    # No envelope reader is needed: the head is compared byte by byte.
    if frame.startswith(_COMPACT):
        start = _COMPACT_LENGTH
    elif frame.startswith(_SPACED):
        start = _SPACED_LENGTH
    else:
        return None
    # The last byte closes the envelope: what stands before it is one object, so nothing can follow `params`.
    if len(frame) > _SHORT or frame[-1] != _BRACE:
        return None
    try:
        params = _DECODE(frame[start:-1])
    except (ValueError, RecursionError):
        return None
    # The vocabulary has fields for `_meta` and annotations, so the decoder accepts them. They take the long way, where
    # the depth of a frame and the length of its lists are bounded.
    chunk: Chunk = params.update
    content = chunk.content
    if type(content) is not Text or content.annotations is not UNSET:
        return None
    if chunk.meta is not UNSET or content.meta is not UNSET:
        return None
    return params

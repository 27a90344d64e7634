"""A response as the log of a session keeps it, for the provider that made it.

The form is that of a `ModelResponse` of pydantic-ai, less what is not sent again: sessions of 0.1 have been written in
it, and a connection by that library writes it still. Fields and parts that are not known here are skipped.
"""

from typing import Any, Final, Literal

import msgspec

from dragoman.coder.models.wires.json_text import decode_json

_objects: Final = msgspec.json.Decoder(dict[str, Any])


class _StoredPart(msgspec.Struct, tag_field="part_kind", omit_defaults=True, kw_only=True):
    """What every part may have. `id` is the provider's name of the item that the part belongs to."""

    id: str | None = None
    # A library that made the part looks here for whether it may be sent back.
    provider_name: str | None = None
    # What belongs to the part at one provider: `thought_signature` of Gemini, `phase` of OpenAI.
    provider_details: dict[str, Any] | None = None

    def detail(self, name: str) -> str:
        """Return one of the provider's details; empty: there is none."""
        value = (self.provider_details or {}).get(name)
        return value if isinstance(value, str) else ""


class StoredText(_StoredPart, tag="text", kw_only=True):
    """A text. What is streamed of one item is one part."""

    content: str


class StoredThought(_StoredPart, tag="thinking", kw_only=True):
    """A thought, with the seal by which its provider knows it again."""

    content: str
    signature: str | None = None


class StoredCall(_StoredPart, tag="tool-call", kw_only=True):
    """A tool call. `args` are an object, or its JSON as it came."""

    tool_name: str
    args: str | dict[str, Any] | None = None
    tool_call_id: str

    def arguments(self) -> dict[str, Any] | None:
        """Return the arguments; None: they are no object. A call without any has an empty one."""
        if not isinstance(self.args, str):
            return self.args or {}
        try:
            return decode_json(_objects, self.args) if self.args.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            return None

    def arguments_text(self) -> str:
        """Return the arguments as JSON, as they came where that is known."""
        if isinstance(self.args, str):
            return self.args if self.args.strip() else "{}"
        return msgspec.json.encode(self.args or {}).decode()


StoredPart = StoredText | StoredThought | StoredCall


class StoredMessage(msgspec.Struct):
    """One response. `kind` tells the library that it is one."""

    parts: list[StoredPart]
    kind: Literal["response"] = "response"
    model_name: str | msgspec.UnsetType = msgspec.UNSET
    provider_name: str | msgspec.UnsetType = msgspec.UNSET


def encode_stored(message: StoredMessage, provider: str) -> dict[str, Any]:
    """Return a response for the log: plain JSON, marked with the provider that can read it."""
    return {"by": provider, "message": msgspec.to_builtins(message)}


def decode_stored(raw: object, provider: str) -> StoredMessage | None:
    """Return a response that this provider made; None: another did, or it cannot be read."""
    if not isinstance(raw, dict) or raw.get("by") != provider:
        return None
    try:
        return msgspec.convert(raw.get("message"), StoredMessage)
    except msgspec.ValidationError:
        return None

"""How a small model is talked to: it calls no tools by itself, so every answer is one JSON object, held by a schema.

The object is `{"say": "…"}` or `{"call": "TOOL", "input": {…}}`. What is said is passed on while it comes.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from dragoman.coder.context import ContextAssistantMessage, ContextSummary, ContextToolResult, ContextUserMessage, Item
from dragoman.coder.models.contract import ToolSpec
from dragoman.vocabulary.content import Content, Resource, ResourceLink, Text, TextResource

# A result takes a good part of a small window; the beginning is what such a model uses.
_RESULT_CHARACTERS: Final = 4_000
_BEGINNING: Final = re.compile(r'\s*\{\s*"say"\s*:\s*"')
# An escape that is not whole yet: `\u12`, or the first half of a pair. A backslash that is escaped begins none.
_UNFINISHED: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{0,3})?)$"
)


_EXAMPLES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("What is the capital of Italy?", {"say": "Rome"}),
    ("Read the file notes.txt", {"call": "read_file", "input": {"path": "notes.txt"}}),
    ("Which files are there?", {"call": "list_files", "input": {"path": "."}}),
    ("Run the linter", {"call": "bash", "input": {"command": "ruff check"}}),
    ("Thank you!", {"say": "You are welcome."}),
)


def answer_schema(tools: Sequence[ToolSpec], *, exact: bool = True) -> dict[str, Any]:
    """What an answer may be. Not `exact`: any object as input, for schemas a grammar cannot be made of."""
    say = _object({"say": {"type": "string"}})
    calls = [
        _object({"call": {"const": card.name}, "input": card.schema if exact else {"type": "object"}}) for card in tools
    ]
    return {"oneOf": [say, *calls]}


def instructions(tools: Sequence[ToolSpec]) -> str:
    """What the model is told about that."""
    if not tools:
        return ""
    lines = ["Answer with one JSON object.", 'To talk: {"say": "your answer"}']
    for card in tools:
        inputs = ", ".join(card.schema.get("properties", {}))
        lines.append(f'{card.description.partition(". ")[0]}: {{"call": "{card.name}", "input": {{{inputs}}}}}')
    return "\n".join(lines)


def examples(tools: Sequence[ToolSpec]) -> list[dict[str, str]]:
    """A few turns that show it: such a model copies better than it obeys."""
    if not tools:
        return []
    named = {card.name for card in tools}
    shown = [pair for pair in _EXAMPLES if pair[1].get("call", "") in named | {""}]
    return [
        {"role": role, "content": text}
        for question, answer in shown
        for role, text in (("user", question), ("assistant", json.dumps(answer)))
    ]


def messages_of(items: Sequence[Item], system: str, tools: Sequence[ToolSpec]) -> list[dict[str, str]]:
    """The conversation as plain chat messages, roles taking turns."""
    messages = [{"role": "system", "content": "\n\n".join(part for part in (system, instructions(tools)) if part)}]
    messages += examples(tools)
    for item in items:
        role, text = _message(item, held=bool(tools))
        if text and messages[-1]["role"] == role:
            messages[-1]["content"] += f"\n\n{text}"
        elif text:
            messages.append({"role": role, "content": text})
    return messages


class Saying:
    """Reads the object while it comes, and hands on what is being said."""

    def __init__(self) -> None:
        self.text = ""
        self._read: int | None = None
        self._over = False

    def feed(self, more: str) -> str:
        """What became audible by this."""
        self.text += more
        if self._read is None:
            beginning = _BEGINNING.match(self.text)
            if beginning is None:
                return ""
            self._read = beginning.end()
        if self._over:
            return ""
        body = re.match(r'(?:[^"\\]|\\.)*', self.text[self._read :], re.DOTALL)
        assert body is not None
        whole = body[0]
        self._over = self.text[self._read + len(whole) :].startswith('"')
        if not self._over:
            whole = _UNFINISHED.sub(r"\1", whole)
        self._read += len(whole)
        try:
            said = json.loads(f'"{whole}"', strict=False)
        except ValueError:
            return ""
        return str(said).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def called(self) -> tuple[str, dict[str, object]] | None:
        """The call, if the object is a whole one."""
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        match value:
            case {"call": str(tool), "input": dict(given)}:
                return tool, given
            case _:
                return None


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _message(item: Item, *, held: bool) -> tuple[str, str]:
    match item:
        case ContextUserMessage():
            return "user", "\n\n".join(filter(None, map(_words, item.content)))
        case ContextToolResult():
            text = item.text[:_RESULT_CHARACTERS] + ("…" if len(item.text) > _RESULT_CHARACTERS else "")
            return "user", f"Result of {item.tool}:\n{text or '(no output)'}"
        case ContextSummary():
            return "user", f"A summary of the conversation so far:\n\n{item.text}"
        case ContextAssistantMessage():
            calls = [json.dumps({"call": call.tool, "input": call.input}, ensure_ascii=False) for call in item.calls]
            spoken = json.dumps({"say": item.text}, ensure_ascii=False) if held else item.text
            return "assistant", "\n".join(([spoken] if item.text else []) + calls)


def _words(block: Content) -> str:
    match block:
        case Text():
            return block.text
        case Resource(resource=TextResource() as inner):
            return f"{inner.uri}:\n\n{inner.text}"
        case ResourceLink():
            return f"[{block.name}]({block.uri})"
        case _:
            return f"[{block.__class__.__name__.lower()}]"

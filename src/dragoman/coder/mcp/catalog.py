"""What a server has for users beside its tools: prompts, and resources. Read tolerantly from its own JSON, and bounded.

A prompt becomes a slash command and a resource a word to type, so both are cut to what a menu shows. What cannot be
typed is left out: a prompt without a name, an address with a blank or with characters that do not show.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.coder.mcp.server_text import one_line

# A longer menu is not looked through.
PROMPTS: Final = 100
RESOURCES: Final = 500
ARGUMENTS: Final = 20
URI_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200
_DESCRIPTION_CHARACTERS: Final = 400
_SHOWN_NAME_CHARACTERS: Final = 100


class ServerPromptArgument(NamedTuple):
    """A value that a prompt takes."""

    name: str
    is_required: bool = False


class ServerPrompt(NamedTuple):
    """A prompt of a server, by its own name."""

    name: str
    description: str
    arguments: Sequence[ServerPromptArgument] = ()

    @property
    def hint(self) -> str:
        """Return the values it takes, as a menu shows them: `<file> [style]`."""
        return " ".join(f"<{one.name}>" if one.is_required else f"[{one.name}]" for one in self.arguments)

    def values(self, typed: str) -> dict[str, str]:
        """Return what was typed behind the command by the names of its arguments.

        Words are split as a shell splits them; the last argument gets the rest of the line. Raises `ValueError` with a
        sentence where a value is missing, or none is taken.
        """
        try:
            words = shlex.split(typed)
        except ValueError:  # a quote that nothing ends
            words = typed.split()
        if words and not self.arguments:
            raise ValueError("it takes no arguments")
        room = len(self.arguments)
        if len(words) > room:
            words = [*words[: room - 1], " ".join(words[room - 1 :])]
        missing = [one.name for one in self.arguments[len(words) :] if one.is_required]
        if missing:
            raise ValueError(f"it needs {', '.join(missing)}: {self.hint}")
        return {one.name: word for one, word in zip(self.arguments, words, strict=False)}


class ServerResource(NamedTuple):
    """Something that can be read of a server. `is_template`: its address has gaps in braces, which the user fills."""

    uri: str
    name: str
    description: str
    is_template: bool = False


class ServerCatalog(NamedTuple):
    """The prompts of a server by their own names, and its resources."""

    prompts: Mapping[str, ServerPrompt] = {}
    resources: Sequence[ServerResource] = ()


def read_catalog(prompts: Sequence[object], resources: Sequence[object], templates: Sequence[object]) -> ServerCatalog:
    """Return what is of use in the answers to `prompts/list`, `resources/list` and `resources/templates/list`."""
    found: dict[str, ServerPrompt] = {}
    for one in prompts:
        prompt = _prompt(one) if len(found) < PROMPTS else None
        if prompt is not None:
            found.setdefault(prompt.name, prompt)
    listed = [*(_resource(one, "uri") for one in resources), *(_resource(one, "uriTemplate") for one in templates)]
    by_uri = {one.uri: one for one in reversed(listed) if one is not None}
    return ServerCatalog(found, tuple(reversed(by_uri.values()))[:RESOURCES])


def _prompt(fields: object) -> ServerPrompt | None:
    name = fields.get("name") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(name, str) or not _is_name(name):
        return None
    given = fields.get("arguments") or []
    if not isinstance(given, list) or len(given) > ARGUMENTS:
        return None
    arguments = []
    for one in given:
        if not isinstance(one, dict) or not _is_name(one.get("name")):
            return None
        arguments.append(ServerPromptArgument(one["name"], one.get("required") is True))
    return ServerPrompt(name, _description(fields, name), tuple(arguments))


def _resource(fields: object, key: str) -> ServerResource | None:
    uri = fields.get(key) if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(uri, str) or not 0 < len(uri) <= URI_CHARACTERS:
        return None
    if not uri.isprintable() or " " in uri:
        return None
    name = fields.get("title") or fields.get("name")
    shown = one_line(name, _SHOWN_NAME_CHARACTERS) if isinstance(name, str) else uri
    return ServerResource(uri, shown, _description(fields, ""), key != "uri")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= NAME_CHARACTERS and name.isprintable()


def _description(fields: "Mapping[str, object]", name: str) -> str:
    for key in ("description", "title"):
        text = fields.get(key)
        if isinstance(text, str) and text.strip():
            return one_line(text, _DESCRIPTION_CHARACTERS)
    return one_line(name, _DESCRIPTION_CHARACTERS)

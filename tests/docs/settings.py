"""The commands that editors' settings name, whatever language the settings are in."""

import ast
import json
import re

from tests.docs.snippets import Snippet


def commands_of(snippet: Snippet) -> list[list[str]]:
    """Every command that the block would have an editor start."""
    match snippet.language:
        case "json":
            return _of_json(json.loads(snippet.text))
        case "lua":
            tables = re.findall(r"default = \{(.*?)\}", snippet.text, re.DOTALL)
            split = re.findall(r'command = "(.*?)", args = \{(.*?)\}', snippet.text, re.DOTALL)
            return [_texts(table) for table in tables] + [[command, *_texts(args)] for command, args in split]
        case "elisp":
            found = re.findall(r""":command "(.*?)"\s+:command-params '\((.*?)\)""", snippet.text, re.DOTALL)
            return [[command, *_texts(params)] for command, params in found]
        case "python":
            keywords = [one for one in ast.walk(ast.parse(snippet.text)) if isinstance(one, ast.keyword)]
            return [ast.literal_eval(one.value) for one in keywords if one.arg == "executable"]
    raise ValueError(f"{snippet}: nobody knows where a command stands in {snippet.language}")


def _of_json(value: object) -> list[list[str]]:
    if not isinstance(value, dict):
        return []
    found = [one for inner in value.values() for one in _of_json(inner)]
    return [[value["command"], *value["args"]], *found] if "command" in value else found


def _texts(text: str) -> list[str]:
    return re.findall(r'"(.*?)"', text)

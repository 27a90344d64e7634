import re

from tpl.escape import escape
from tpl.lookup import lookup

_TOKEN = re.compile(r"\{\{\s*([\w.]+)\s*\}\}|\{%\s*(.*?)\s*%\}")
_FOR = re.compile(r"for\s+(\w+)\s+in\s+([\w.]+)")


class TemplateError(Exception):
    """A template that cannot be rendered."""


def render(template, values):
    """Return the template with every {{ path }} replaced by its escaped value, and every loop repeated."""
    root = []
    stack = [(root, 0)]
    at = 0
    for token in _TOKEN.finditer(template):
        line = template.count("\n", 0, token.start()) + 1
        stack[-1][0].append(template[at : token.start()])
        at = token.end()
        loop = _FOR.fullmatch(token[2] or "")
        if token[1]:
            stack[-1][0].append((token[1],))
        elif loop:
            body = []
            stack[-1][0].append((loop[1], loop[2], body, line))
            stack.append((body, line))
        elif token[2] == "end" and len(stack) > 1:
            stack.pop()
        else:
            raise TemplateError(f"line {line}: {token[0]} is not expected")
    if len(stack) > 1:
        raise TemplateError(f"line {stack[-1][1]}: this loop has no end")
    return _render([*root, template[at:]], values)


def _render(nodes, values):
    parts = []
    for node in nodes:
        if isinstance(node, str):
            parts.append(node)
        elif len(node) == 1:
            parts.append(escape(lookup(node[0], values)))
        else:
            name, path, body, line = node
            items = lookup(path, values)
            if not isinstance(items, (list, tuple)):
                raise TemplateError(f"line {line}: {path} is no list")
            parts += [_render(body, {**values, name: item}) for item in items]
    return "".join(parts)

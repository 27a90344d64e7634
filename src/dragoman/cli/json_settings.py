"""Change one value in an editor's settings file: JSON, with the comments and trailing commas that editors take.

Everything else stays, to the byte. The new text is read again and compared with what it should mean, so a mistake here
is a refusal and never a broken file.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR: Final = re.compile(r"[-+.\w]+")
_DEEPEST: Final = 100


class NotEditable(Exception):
    """The file cannot be changed without a doubt; the text says why."""


class _Member(NamedTuple):
    """A key of an object, where it begins, and its value."""

    name: str
    begin: int
    value: "_Value"


class _Value(NamedTuple):
    """A value, where it stands, and the members of it where it is an object."""

    begin: int
    end: int
    plain: Any
    members: tuple[_Member, ...] | None = None
    ends_with_comma: bool = False


def read_settings_text(text: str) -> Any:
    """Return what a settings file means; an empty one, or one with comments alone, is an empty object."""
    return _parse(text).plain


def with_value(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with an object at this path, added or in the place of what is there. `NotEditable`: it is not
    settings of the form expected, or cannot be changed safely."""
    root = _parse(text)
    expected = json.loads(json.dumps(root.plain))
    place: Any = expected
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise NotEditable(f"{'.'.join(path[:-1])} is no object")
    place[path[-1]] = dict(value)
    changed = _changed(text, root, list(path), dict(value))
    if _parse(changed).plain != expected:
        raise NotEditable("it is written in a way that cannot be changed safely")
    return changed


def _changed(text: str, root: _Value, path: list[str], value: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    if root.begin == root.end:  # nothing is there but comments
        before = f"{text.rstrip()}{newline}" if text.strip() else ""
        return before + _written(_nested(path, value), "", "  ", newline) + newline
    node = root
    while path and node.members is not None:
        found = next((one for one in node.members if one.name == path[0]), None)
        if found is None:
            return _with_member(text, node, path[0], _nested(path[1:], value), newline)
        node, path = found.value, path[1:]
    step = _indent_of(text, root.members[0].begin) if root.members else "  "
    indent = _indent_of(text, text.rfind("\n", 0, node.begin) + 1)
    return text[: node.begin] + _written(value, indent, step or "  ", newline) + text[node.end :]


def _with_member(text: str, node: _Value, name: str, value: Any, newline: str) -> str:
    """Return the text with one member more at the end of an object."""
    assert node.members is not None
    own = _indent_of(text, text.rfind("\n", 0, node.begin) + 1)
    if node.members and "\n" in text[node.begin : node.members[0].begin]:
        inner = _indent_of(text, node.members[0].begin)
    else:
        inner = own + ("\t" if own.startswith("\t") else "  ")
    step = inner[len(own) :] or "  "
    member = f"{inner}{json.dumps(name, ensure_ascii=False)}: {_written(value, inner, step, newline)}"
    if node.ends_with_comma:
        member += ","
    elif node.members:
        at = node.members[-1].value.end
        text = f"{text[:at]},{text[at:]}"
        node = node._replace(end=node.end + 1)
    brace = node.end - 1
    head = text[:brace].rstrip()
    return f"{head}{newline}{member}{newline}{own}{text[brace:]}"


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _written(value: Any, indent: str, step: str, newline: str) -> str:
    """Return a value as JSON: objects over several lines, all else in one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + step
    members = [
        f"{inner}{json.dumps(name, ensure_ascii=False)}: {_written(one, inner, step, newline)}"
        for name, one in value.items()
    ]
    return f"{{{newline}{f',{newline}'.join(members)}{newline}{indent}}}"


def _indent_of(text: str, at: int) -> str:
    """Return the blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


# -- reading -----------------------------------------------------------------------------------------------------------


def _parse(text: str) -> _Value:
    at = _skip(text, 0)
    if at == len(text):
        return _Value(at, at, {}, ())
    value = _value(text, at, 0)
    if _skip(text, value.end) != len(text):
        raise NotEditable("there is something behind the settings")
    if value.members is None:
        raise NotEditable("it does not hold an object")
    return value


def _skip(text: str, at: int) -> int:
    if at == 0 and text.startswith("\ufeff"):
        at = 1
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> _Value:
    if depth > _DEEPEST:
        raise NotEditable("it is nested too deep")
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth)
    if sign == "[":
        return _list(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise NotEditable(f"it is no JSON at line {text.count(chr(10), 0, at) + 1}")
    try:
        return _Value(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise NotEditable(f"it is no JSON at line {text.count(chr(10), 0, at) + 1}") from None


def _object(text: str, begin: int, depth: int) -> _Value:
    members: list[_Member] = []
    at, after_comma = _skip(text, begin + 1), False
    while text[at : at + 1] != "}":
        if members and not after_comma:
            raise NotEditable(f"a comma is missing at line {text.count(chr(10), 0, at) + 1}")
        name = _value(text, at, depth + 1)
        colon = _skip(text, name.end)
        if not isinstance(name.plain, str) or text[colon : colon + 1] != ":":
            raise NotEditable(f"it is no JSON at line {text.count(chr(10), 0, at) + 1}")
        if any(one.name == name.plain for one in members):
            raise NotEditable(f"{name.plain!r} stands there twice")
        value = _value(text, _skip(text, colon + 1), depth + 1)
        members.append(_Member(name.plain, at, value))
        at = _skip(text, value.end)
        after_comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if after_comma else at
    plain = {one.name: one.value.plain for one in members}
    return _Value(begin, at + 1, plain, tuple(members), after_comma)


def _list(text: str, begin: int, depth: int) -> _Value:
    items: list[Any] = []
    at, after_comma = _skip(text, begin + 1), True
    while text[at : at + 1] != "]":
        if not after_comma:
            raise NotEditable(f"a comma is missing at line {text.count(chr(10), 0, at) + 1}")
        value = _value(text, at, depth + 1)
        items.append(value.plain)
        at = _skip(text, value.end)
        after_comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if after_comma else at
    return _Value(begin, at + 1, items)

"""A value in an editor's settings: what else stands there stays to the byte, and what is in doubt is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.json_settings import NotEditable, read_settings_text, with_value

PATH = ("agent_servers", "Dragoman")
VALUE = {"command": "dragoman", "args": ["acp"]}
BLOCK = '"Dragoman": {\n      "command": "dragoman",\n      "args": ["acp"]\n    }'

CASES = {
    "nothing": ("", '{\n  "agent_servers": {\n    ' + BLOCK + "\n  }\n}\n"),
    "comments alone": ("// mine\n", '// mine\n{\n  "agent_servers": {\n    ' + BLOCK + "\n  }\n}\n"),
    "an empty object": ("{}\n", '{\n  "agent_servers": {\n    ' + BLOCK + "\n  }\n}\n"),
    "a comment behind the last value": (
        '{\n  // how it looks\n  "theme": "One" // dark\n}\n',
        '{\n  // how it looks\n  "theme": "One", // dark\n  "agent_servers": {\n    ' + BLOCK + "\n  }\n}\n",
    ),
    "a comma at the end": (
        '{\n  "theme": "One",\n}\n',
        '{\n  "theme": "One",\n  "agent_servers": {\n    ' + BLOCK + "\n  },\n}\n",
    ),
    "another agent": (
        '{\n  "agent_servers": {\n    "Other": { "command": "other" } /* mine */\n  },\n  "x": 1\n}',
        '{\n  "agent_servers": {\n    "Other": { "command": "other" }, /* mine */\n    '
        + BLOCK
        + '\n  },\n  "x": 1\n}',
    ),
    "an older one of the name": (
        '{\n  "agent_servers": {\n    "Dragoman": {"command": "old"}, // mine\n  }\n}\n',
        '{\n  "agent_servers": {\n    ' + BLOCK + ", // mine\n  }\n}\n",
    ),
    "a slash and a brace in a text": (
        '{\n  "a": "http://x/}"\n}\n',
        '{\n  "a": "http://x/}",\n  "agent_servers": {\n    ' + BLOCK + "\n  }\n}\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_value_is_there_and_everything_else_as_it_was(case: str) -> None:
    before, after = CASES[case]
    assert with_value(before, PATH, VALUE) == after


@pytest.mark.parametrize("case", CASES)
def test_a_second_time_changes_nothing(case: str) -> None:
    after = CASES[case][1]
    assert with_value(after, PATH, VALUE) == after


def test_lines_end_and_begin_as_the_others_do() -> None:
    changed = with_value('{\r\n\t"a": 1\r\n}\r\n', PATH, VALUE)
    assert changed.count("\n") == changed.count("\r\n")
    assert '\r\n\t"agent_servers": {\r\n\t\t"Dragoman": {\r\n\t\t\t"command"' in changed


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"agent_servers": 3}',
        '{"a": 1, "a": 2}',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a": 1} {"b": 2}',
        '{"a": [1 2]}',
        '{"a": ',
        "{" * 200,
        '{"a": "\n"}',
    ],
)
def test_what_is_in_doubt_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        with_value(text, PATH, VALUE)


scalars = st.none() | st.booleans() | st.integers() | st.text()
objects = st.recursive(
    st.dictionaries(st.text(), scalars), lambda inner: st.dictionaries(st.text(), inner | scalars | st.lists(scalars))
)


@given(objects, st.sampled_from([None, 1, 2, "\t"]))
def test_any_settings_mean_what_they_meant_and_have_the_value(settings: dict[str, object], indent: int | None) -> None:
    if not isinstance(settings.get("agent_servers", {}), dict):
        return
    changed = with_value(json.dumps(settings, indent=indent), PATH, VALUE)
    meant = json.loads(json.dumps(settings))
    meant.setdefault("agent_servers", {})["Dragoman"] = VALUE
    assert read_settings_text(changed) == meant == json.loads(changed)

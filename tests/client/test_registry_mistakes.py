"""A mistake in one server of `acp.json` is named with file, line, server and field, and stops no other server."""

import json
import os
from pathlib import Path

import pytest

from dragoman.client.located_json import parse
from dragoman.client.registry import AgentRegistry
from dragoman.client.registry_edit import add_entry, remove_entry
from dragoman.client.registry_file import RegistryFile, RegistryFileFound, RegistryFileInvalid, read_file, read_usable
from dragoman.errors import UsageError

FILE = Path("/home/me/acp.json")
FINE = '"fine": {"command": "x"}'


def usable(text: str) -> RegistryFile:
    return read_usable(RegistryFileFound(FILE, text.encode()))


MISTAKES: list[tuple[str, str, str, str]] = [
    (
        "a key twice in a server",
        f'{{"servers": {{{FINE},\n"bad": {{"command": "a",\n"command": "b"}}}}}}',
        "bad",
        'line 3: "command" stands here twice (servers.bad.command)',
    ),
    (
        "a key twice, deep in a server",
        f'{{"servers": {{{FINE}, "bad": {{"command": "a", "env": {{"K": "1",\n"K": "2"}}}}}}}}',
        "bad",
        'line 2: "K" stands here twice (servers.bad.env.K)',
    ),
    (
        "a key twice in a server of a list",
        '{"servers": [{"name": "fine", "command": "x"},\n{"name": "bad", "command": "a", "command": "b"}]}',
        "bad",
        'line 2: "command" stands here twice (servers.bad.command)',
    ),
    (
        "two servers of a name, each with the same keys",
        f'{{"servers": {{"bad": {{"command": "a"}}, {FINE},\n"bad": {{"command": "b"}}}}}}',
        "bad",
        'line 2: "bad" stands here twice (servers.bad)',
    ),
    (
        "two servers of a name in a list",
        '{"servers": [{"name": "bad", "command": "x"}, {"name": "fine", "command": "x"},\n{"name": "bad"}]}',
        "bad",
        "line 2: the name 'bad' is taken (servers.bad.name)",
    ),
    (
        "no name",
        f'{{"servers": {{{FINE},\n"": {{"command": "a"}}}}}}',
        "",
        'line 2: a server needs a name (servers."")',
    ),
    (
        "a name that is a blank",
        f'{{"servers": {{{FINE},\n" ": {{"command": "a"}}}}}}',
        " ",
        'line 2: a server needs a name (servers." ")',
    ),
    (
        "a name that acts on a terminal",
        f'{{"servers": {{{FINE},\n"a\\u001b]0;x\\u0007": {{"command": "a"}}}}}}',
        "a\x1b]0;x\x07",
        r'line 2: the name of a server must have only visible characters (servers."a\u001b]0;x\u0007")',
    ),
    (
        "no name in a list",
        '{"servers": [{"name": "fine", "command": "x"},\n{"command": "x"}]}',
        "servers[1]",
        "line 2: a server in a list needs a name (servers[1])",
    ),
    (
        "no object in a list",
        '{"servers": [{"name": "fine", "command": "x"},\n7]}',
        "servers[1]",
        "line 2: a server in a list needs a name (servers[1])",
    ),
    (
        "a key that acts on a terminal",
        f'{{"servers": {{{FINE},\n"bad": {{"command": "a", "env": {{"\\u001b[2J": 1}}}}}}}}',
        "bad",
        r'line 2: env."\u001b[2J" must be text, not a number (servers.bad.env."\u001b[2J")',
    ),
]


@pytest.mark.parametrize(("text", "name", "sentence"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_a_mistake_in_one_server_is_named_and_leaves_the_others(text: str, name: str, sentence: str) -> None:
    found = usable(text)
    assert list(found.entries) == ["fine"]
    assert found.mistakes == {name: f"{FILE}, {sentence}"}
    with pytest.raises(RegistryFileInvalid) as wrong:
        read_file(RegistryFileFound(FILE, text.encode()))
    assert str(wrong.value) == f"{FILE}, {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f'{{"servers": {{{FINE}}},\n"servers": {{}}}}', 'line 2: "servers" stands here twice (servers)'),
        (
            f'{{"servers": {{{FINE}}}, "permissions": {{"allow": [],\n"allow": []}}}}',
            'line 2: "allow" stands here twice (permissions.allow)',
        ),
    ],
)
def test_a_key_that_stands_twice_for_all_servers_stops_all(text: str, sentence: str) -> None:
    with pytest.raises(RegistryFileInvalid) as wrong:
        usable(text)
    assert str(wrong.value) == f"{FILE}, {sentence}"


def test_a_key_that_stands_twice_is_told_once_with_its_place() -> None:
    located = parse('{"a": {"b": {"c": 1}},\n"a": {"b": {"c": 1, "c": 2}}}')
    assert [(one.line, one.place) for one in located.repeated] == [(2, ("a",))]


def test_a_file_with_a_key_twice_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "acp.json"
    text = f'{{"servers": {{{FINE}, "bad": {{"command": "a", "command": "b"}}}}}}'
    file.write_text(text)
    with pytest.raises(RegistryFileInvalid, match="stands here twice"):
        add_entry(file, "mine", {"command": "new"})
    assert file.read_text() == text


def test_a_default_that_there_is_not_leaves_the_servers(tmp_path: Path) -> None:
    (tmp_path / "acp.json").write_text(f'{{"servers": {{{FINE}}},\n"defaultServer": "z"}}')
    registry = AgentRegistry.read(tmp_path, environment=os.environ)
    assert registry.entry("fine").command == "x"
    assert registry.default_mistake == (
        f"{tmp_path}/acp.json, line 2: there is no server 'z' in this file (defaultServer)"
    )


def test_an_empty_list_of_servers_is_told(tmp_path: Path) -> None:
    (tmp_path / "acp.json").write_text('{\n"servers": []}')
    registry = AgentRegistry.read(tmp_path, environment=os.environ)
    remark = f"{tmp_path}/acp.json, line 2: the list of servers is empty (servers)"
    assert list(registry.remarks) == [remark]
    with pytest.raises(UsageError) as wrong:
        registry.entry("fine")
    assert str(wrong.value).endswith(f". {remark}")
    (tmp_path / "acp.json").write_text('{"servers": {}}')
    assert list(AgentRegistry.read(tmp_path, environment=os.environ).remarks) == []


def test_the_last_server_that_is_removed_from_a_list_leaves_no_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "acp.json"
    file.write_text('{"servers": [{"name": "a", "command": "x"}], "defaultAgent": "b"}')
    assert remove_entry(file, "a") is True
    assert json.loads(file.read_text()) == {"defaultAgent": "b"}


@pytest.mark.parametrize(
    ("servers", "line", "place"),
    [
        ('{"mine":\n{"command": "x", "env": {"K": "$NOPE"}}}', 1, "env.K"),
        ('[\n{"name": "mine", "command": "x", "args": ["$NOPE"]}]', 2, "args[0]"),
    ],
)
def test_a_missing_variable_is_named_with_the_server_and_the_field(servers: str, line: int, place: str) -> None:
    with pytest.raises(UsageError) as wrong:
        usable(f'{{"servers": {servers}}}').entries["mine"].expanded({})
    assert str(wrong.value) == (f"{FILE}, line {line}: servers.mine.{place} needs the variable NOPE, which is not set")

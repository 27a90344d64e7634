"""Names, configurations and plain text: values in, values out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.coder.mcp import describe, from_config
from dragoman.coder.mcp.config import hide, secrets_of
from dragoman.coder.mcp.definition import TOOLS, deeper_than, read_definitions
from dragoman.coder.mcp.names import labels, tool_name
from dragoman.coder.mcp.server_text import one_line
from dragoman.errors import UsageError
from dragoman.host.text import harmless
from dragoman.vocabulary.requests import EnvVariable, HttpHeader, McpHttp, McpSse, McpStdio

any_text = st.text(st.characters(), max_size=80)


@given(st.lists(any_text, max_size=5), any_text)
def test_every_name_is_one_that_providers_take(servers: list[str], tool: str) -> None:
    found = labels(servers)
    names = {tool_name(label, tool) for label in found}
    assert len(found) == len(set(found)) == len(names)
    assert all(re.fullmatch("mcp__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9_-]+", name) for name in names)
    assert all(len(name) <= 64 for name in names)


@given(any_text, any_text, any_text, any_text)
def test_no_server_can_take_the_name_of_anothers_tool(one: str, two: str, tool: str, other: str) -> None:
    first, second = labels([one, two])
    assert tool_name(first, tool) != tool_name(second, other)


def test_names_stay_as_they_are_where_they_can() -> None:
    assert tool_name("git", "commit_all-1") == "mcp__git__commit_all-1"
    assert labels(["my files", "my_files", "", "__", "x" * 30]) == [
        *("my_files", "my_files-2", "server", "server-2", "x" * 24),
    ]


@given(st.text(st.characters(exclude_categories=[])))
def test_plain_text_can_be_encoded_and_moves_no_cursor(text: str) -> None:
    shown = harmless(text)
    shown.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert len(one_line(text, 20)) <= 20


def test_plain_text_stays_as_it_is() -> None:
    assert harmless("grün\t👩‍👩‍👧\r\nשלום") == "grün\t👩‍👩‍👧\nשלום"


def test_servers_are_read_from_tables() -> None:
    tables = {
        "git": {"command": "git-mcp", "args": ["--all"], "env": {"TOKEN": "${KEY}-$$1", "MODE": "$MODE"}},
        "web": {"url": "https://host/mcp", "headers": {"Authorization": "Bearer $KEY"}},
        "old": {"type": "sse", "url": "http://host/sse"},
    }
    assert from_config(tables, {"KEY": "k", "MODE": "m"}) == [
        McpStdio("git", "git-mcp", ["--all"], [EnvVariable("TOKEN", "k-$1"), EnvVariable("MODE", "m")]),
        McpHttp("web", "https://host/mcp", [HttpHeader("Authorization", "Bearer k")]),
        McpSse("old", "http://host/sse", []),
    ]


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (7, "mcp.x has to be a table, with `command` or `url`."),
        ({}, "mcp.x.command has to be a text."),
        ({"command": ["a"]}, "mcp.x.command has to be a text."),
        ({"command": "a", "args": "b"}, "mcp.x.args has to be a list of texts."),
        ({"command": "a", "args": [1]}, "mcp.x.args has to be a list of texts."),
        ({"command": "a", "env": ["b"]}, "mcp.x.env has to be a table of texts."),
        ({"command": "a", "env": {"B": 1}}, "mcp.x.env.B has to be a text."),
        ({"command": "a", "env": {"B": "$C"}}, "mcp.x.env.B needs the environment variable C, which is not set."),
        ({"command": "a", "url": "b"}, "mcp.x.command is not known; a server of type http has headers, type, url."),
        ({"url": "file:///etc"}, "mcp.x.url has to begin with http:// or https://."),
        (
            {"command": "a", "args": ["\0"]},
            "mcp.x.args has a NUL or half a character in it, which no program can be given.",
        ),
        (
            {"command": "a", "env": {"\ud800": "b"}},
            "mcp.x.env has a NUL or half a character in it, which no program can be given.",
        ),
        ({"type": "pigeon"}, "mcp.x.type has to be stdio, http or sse."),
        ({"type": ["a"]}, "mcp.x.type has to be stdio, http or sse."),
        (
            {"command": "a", "timeout": 3},
            "mcp.x.timeout is not known; a server of type stdio has args, command, env, type.",
        ),
    ],
)
def test_a_mistake_in_a_table_is_named(table: object, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_config({"x": table}, {})
    assert str(caught.value) == complaint


def test_a_description_is_whole_but_for_secrets() -> None:
    variables = [EnvVariable("GITHUB_TOKEN", "ghp_1"), EnvVariable("LD_PRELOAD", "/tmp/x.so")]
    started = McpStdio("a", "npx", ["-y", "pkg", "a b; rm\x1b"], variables)
    assert describe(started) == "GITHUB_TOKEN=[hidden] LD_PRELOAD=/tmp/x.so npx -y pkg 'a b; rm\\x1b'"
    reached = McpHttp("a", "https://me:pass@host:1/mcp?key=k", [HttpHeader("Authorization", "k")])
    assert describe(reached) == "https://host:1/mcp?…"


def test_secrets_are_hidden_in_every_form() -> None:
    config = McpHttp("a", "https://user77:p%40ssword@h/?key=query77", [HttpHeader("Authorization", "Bearer header77")])
    said = "user77:p%40ssword p@ssword query77 Bearer header77 header77 fine"
    assert hide(said, secrets_of(config)) == "[hidden] [hidden] [hidden] [hidden] [hidden] fine"


def test_a_list_of_tools_is_bounded() -> None:
    tools = [{"name": f"t{number}", "inputSchema": {}} for number in range(TOOLS + 5)]
    definitions, left_out = read_definitions(tools, ["server"])
    assert (len(definitions), left_out) == (TOOLS, 5)


@pytest.mark.parametrize(
    "change", [{"description": "b"}, {"title": "b"}, {"annotations": {"readOnlyHint": True}}, {"inputSchema": {"x": 1}}]
)
def test_every_word_about_a_tool_counts_for_its_digest(change: dict[str, object]) -> None:
    tool = {"name": "a", "description": "a" * 10_000, "inputSchema": {"type": "object"}}
    (one,), (same,), (other,), (elsewhere,) = (
        [definition.digest for definition in read_definitions([said], [server]).by_tool.values()]
        for said, server in ((tool, "s"), (dict(reversed(tool.items())), "s"), (tool | change, "s"), (tool, "t"))
    )
    assert one == same
    assert len({one, other, elsewhere}) == 3


def test_depth_is_counted() -> None:
    assert not deeper_than({"a": [1]}, 3)
    assert deeper_than({"a": [[1]]}, 3)

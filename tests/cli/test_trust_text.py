"""What `dragoman trust` shows, value by value: no field of an agent or of a server can be forgotten."""

from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest

from dragoman.cli.trust_text import agent_rows, described_url, server_rows, shown_header, shown_value
from dragoman.client.agent_entry import AgentEntry
from dragoman.client.offered_capabilities import FORMS_ONLY
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.requests import EnvVariable, HttpHeader, McpAcp, McpHttp, McpServer, McpSse, McpStdio

# What is not the file's: the title of the block, where it was read, how to install it, and what trust itself says.
NOT_ROWS = {"name", "source", "install", "built_in", "project", "allowed_secrets"}
OTHER: dict[str, object] = {
    "command": "other",
    "args": ("--other",),
    "env": {"OTHER": "1"},
    "cwd": "/other",
    "dialect": "v1",
    "permission_policy": "deny",
    "non_interactive": "accept_all",
    "rules": (PermissionRule("reject", command="rm"),),
    "auto_start": False,
    "process": "session",
    "description": "other",
    "default_agent": "other",
    "mcp_servers": (McpStdio("x", "y"),),
    "offered": FORMS_ONLY,
    "url": "https://other.test/",
    "token": "$OTHER",
    "token_file": "/other",
    "ca_file": "/other",
    "key_variables": ("OTHER_KEY",),
}
PLAIN = AgentEntry("x", "program")


@pytest.mark.parametrize("name", [field.name for field in fields(AgentEntry) if field.name not in NOT_ROWS])
def test_a_field_of_an_agent_that_is_another_makes_another_text(name: str) -> None:
    value = getattr(PLAIN, name)
    other: Any = value + 1 if type(value) is int else OTHER[name]
    assert list(agent_rows(replace(PLAIN, **{name: other}))) != list(agent_rows(PLAIN))


ENV, HEADERS = [EnvVariable("A", "b")], [HttpHeader("A", "b")]
SERVERS: list[tuple[McpServer, dict[str, object]]] = [
    (McpStdio("x", "y"), {"command": "other", "args": ["other"], "env": ENV}),
    (McpHttp("x", "http://y"), {"url": "http://other", "headers": HEADERS}),
    (McpSse("x", "http://y"), {"url": "http://other", "headers": HEADERS}),
    (McpAcp("x", "y"), {"server_id": "other"}),
]


@pytest.mark.parametrize(
    ("server", "field", "other"),
    [
        (server, field.name, {"meta": {"a": 1}, "extras": {"a": 1}, **others}[field.name])
        for server, others in SERVERS
        for field in msgspec.structs.fields(server)
        if field.name != "name"
    ],
)
def test_a_field_of_a_server_that_is_another_makes_another_text(server: McpServer, field: str, other: object) -> None:
    changed: McpServer = msgspec.structs.replace(server, **{field: other})
    assert list(server_rows(changed)) != list(server_rows(server))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("MODE", "a b", "'a b'"),
        ("API_KEY", "sk-0123456789", "[hidden]"),
        ("API_KEY", "short", "[hidden]"),
        ("API_KEY", "$OTHER", "$OTHER"),
        ("API_KEY", "Bearer ${OTHER}", "Bearer ${OTHER}"),
        ("API_KEY", "sk-0123456789$OTHER", "[hidden]$OTHER"),
        ("DATABASE", "postgres://me:pass@host/", "'[hidden]host/'"),
        ("NODE_OPTIONS", "--require ./evil.js http://a:word@b", "'--require ./evil.js [hidden]b'"),
        ("NODE_OPTIONS", "ghp_0123456789abcdefghij -r ./evil", "'[hidden] -r ./evil'"),
        ("LD_PRELOAD", "token=a:./evil.so", "'[hidden]:./evil.so'"),
        ("LD_PRELOAD", "bearer ./abcdefghijklmnopqrst.so", "'bearer ./abcdefghijklmnopqrst.so'"),
        ("LD_PRELOAD", "-----BEGIN KEY----- ./evil.so", "'[hidden] ./evil.so'"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor", "core.fsmonitor"),
        ("TOKEN_COMMAND", "./evil.sh", "./evil.sh"),
        ("NODE_OPTIONS", "--require $HERE/evil.js", "--require $HERE/evil.js"),
    ],
)
def test_a_value_is_shown_unless_it_is_a_secret(name: str, value: str, shown: str) -> None:
    assert shown_value(name, value) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("X-Stolen", "$ANTHROPIC_API_KEY", "$ANTHROPIC_API_KEY"),
        ("Authorization", "Bearer sk-0123456789", "[hidden]"),
        ("authorization", "Bearer $KEY", "Bearer $KEY"),
        ("X-Api-Key", "abc", "[hidden]"),
        ("Accept", "text/html", "text/html"),
    ],
)
def test_a_header_is_shown_unless_it_is_a_login(name: str, value: str, shown: str) -> None:
    assert shown_header(name, value) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pass@host:1/a?b=c&api_key=d#e", "https://[hidden]@host:1/a?b=c&api_key=[hidden]#e"),
        ("https://$USER@host/?key=$MY_KEY", "https://$USER@host/?key=$MY_KEY"),
        ("$BASE/mcp", "$BASE/mcp"),
        ("http://host/?a%26b&c=%20", "http://host/?a%26b&c=%20"),
        ("http://[", "http://["),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert described_url(url) == shown

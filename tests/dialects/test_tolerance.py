"""Peers that are known to be wrong, and can only have meant one thing. The rows are those of the digest, section 8."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects.contract import Dialect
from dragoman.errors import PeerMistake
from dragoman.vocabulary import requests
from dragoman.vocabulary.content import Text
from tests.dialects.schemas import text
from tests.dialects.speech import agent_of


def heard(dialect: Dialect, method: str, params: Any) -> Any:
    return dialect.hear_request(1, method, Raw(text(params)))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("odd", [{}, {"mcpServers": None}, {"mcpServers": {}}, {"mcpServers": "none"}])
def test_8_5_1_mcp_servers_may_be_missing_or_odd(version: int, odd: Any) -> None:
    request = heard(agent_of(version), "session/new", {"cwd": "/", **odd})
    assert (request.cwd, request.mcp_servers or []) == ("/", [])


@pytest.mark.parametrize("version", [1, 2])
def test_8_5_2_a_prompt_may_be_a_string(version: int) -> None:
    request = heard(agent_of(version), "session/prompt", {"sessionId": "s", "prompt": "hello"})
    assert request == requests.Prompt("s", [Text("hello")])


def test_8_3_6_a_stdio_server_may_have_a_type() -> None:
    server = {"type": "stdio", "name": "n", "command": "c", "args": [], "env": []}
    request = heard(agent_of(1), "session/new", {"cwd": "/", "mcpServers": [server]})
    assert request.mcp_servers == [requests.McpStdio("n", "c", [], [])]


@pytest.mark.parametrize("version", [1, 2])
def test_8_1_12_sessions_list_is_session_list(version: int) -> None:
    assert heard(agent_of(version), "sessions/list", {"cwd": "/x"}) == requests.ListSessions("/x")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", ["big", True, False])
def test_8_1_13_config_set_is_set_config_option(version: int, value: Any) -> None:
    request = heard(agent_of(version), "config/set", {"sessionId": "s", "configId": "c", "value": value})
    assert request == requests.SetOption("s", "c", value)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", [1, None, [], {}])
def test_8_1_13_any_other_value_is_refused(version: int, value: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(version), "config/set", {"sessionId": "s", "configId": "c", "value": value})
    assert caught.value.code == -32602


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"mcpServers": []}),
        ("session/new", {"cwd": 1}),
        ("session/prompt", {"sessionId": "s"}),
        ("session/prompt", {"sessionId": "s", "prompt": 1}),
        ("session/prompt", {"prompt": "hello"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "c"}),
        ("session/set_config_option", {"sessionId": "s", "configId": "c", "type": "id", "value": [1]}),
        ("session/new", []),
        ("session/new", "x"),
    ],
)
def test_what_could_mean_anything_is_refused(version: int, method: str, params: Any) -> None:
    with pytest.raises(PeerMistake) as caught:
        heard(agent_of(version), method, params)
    assert caught.value.code == -32602


@pytest.mark.parametrize("version", [1, 2])
def test_a_value_of_an_unknown_type_is_kept_as_it_is(version: int) -> None:
    request = heard(
        agent_of(version),
        "session/set_config_option",
        {"sessionId": "s", "configId": "c", "type": "_range", "value": [1, 2]},
    )
    assert request == requests.SetOption("s", "c", requests.UnknownValue("_range", [1, 2]))

"""The model on loopback, asked as providers' own clients ask, in each API."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dragoman.conformance.model_server import ANSWER, CheckModelServer, call_for, wish_of

WRITE = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
SCHEMA = {**WRITE, "required": ["path", "content"]}
PROMPT = "Create the file /tmp/a.txt with the word hello."


@pytest.fixture
def server() -> Iterator[CheckModelServer]:
    with CheckModelServer() as server:
        yield server


def asked(server: CheckModelServer, path: str, body: Mapping[str, Any]) -> str:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def bodies(text: str) -> dict[str, dict[str, Any]]:
    """The same prompt in each API, with a tool."""
    function = {"name": "write_file", "parameters": SCHEMA}
    return {
        "/v1/chat/completions": {
            "messages": [{"role": "user", "content": text}],
            "tools": [{"type": "function", "function": function}],
        },
        "/v1/responses": {
            "input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}],
            "tools": [{"type": "function", **function}],
        },
        "/v1/messages": {
            "messages": [{"role": "user", "content": text}],
            "tools": [{"name": "write_file", "input_schema": SCHEMA}],
        },
        "/v1beta/models/m:streamGenerateContent": {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "tools": [{"functionDeclarations": [function]}],
        },
    }


@pytest.mark.parametrize("path", list(bodies("")))
def test_a_prompt_is_answered_in_its_api(server: CheckModelServer, path: str) -> None:
    assert ANSWER in asked(server, path, bodies("hello")[path])
    assert server.asked == 1


@pytest.mark.parametrize("path", list(bodies("")))
def test_a_prompt_for_a_file_calls_the_tool_that_writes_it(server: CheckModelServer, path: str) -> None:
    text = asked(server, path, bodies(PROMPT)[path]).replace("\\", "")
    assert "write_file" in text
    assert '"path": "/tmp/a.txt"' in text


@pytest.mark.parametrize("path", list(bodies("")))
def test_what_is_asked_without_tools_gets_a_word(server: CheckModelServer, path: str) -> None:
    text = asked(server, path, {key: value for key, value in bodies(PROMPT)[path].items() if key != "tools"})
    assert "aside" in text and ANSWER not in text


def test_a_result_of_a_tool_is_answered_with_words() -> None:
    turns = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "tool_calls": []},
        {"role": "tool", "content": ""},
    ]
    assert [wish_of({"messages": turns[:1]}), wish_of({"messages": turns})] == ["write", "answer"]


def test_a_prompt_with_notes_behind_it_is_found() -> None:
    turns = [{"role": "user", "content": "Count slowly from 1 to 400"}, {"role": "user", "content": "<date/>"}]
    assert wish_of({"messages": turns}) == "slow"


def test_an_agent_with_a_shell_only_is_given_a_command() -> None:
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    assert call_for([("bash", shell)], "/tmp/a") == ("bash", {"command": "printf hello > /tmp/a"})
    assert call_for([("think", shell)], "/tmp/a") is None


def test_a_tool_is_known_by_its_whole_name_before_its_end() -> None:
    tools: list[tuple[str, Mapping[str, Any]]] = [
        ("todowrite", SCHEMA),
        ("mcp__fs__write_file", SCHEMA),
        ("write", SCHEMA),
    ]
    found = [call_for(tools[:count], "/tmp/a") for count in (1, 2, 3)]
    assert [None if one is None else one[0] for one in found] == [None, "mcp__fs__write_file", "write"]


def test_variables_name_the_address_in_each_api(server: CheckModelServer) -> None:
    found = server.variables()
    assert found["OPENAI_BASE_URL"] == f"{server.url}/v1"
    assert found["ANTHROPIC_BASE_URL"] == found["GOOGLE_GEMINI_BASE_URL"] == server.url

"""Where servers that speak like OpenAI differ: Mistral's rules, Azure's addresses, the user's headers, options."""

import json
from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult, ContextUserMessage
from dragoman.coder.credentials import Secret
from dragoman.coder.models.contract import ModelFailed, ModelRequest, TextDelta
from dragoman.coder.models.endpoints import Endpoint, ProviderConfig
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.azure import AzureWire
from dragoman.coder.models.wires.openai_chat import OpenAIChatWire
from dragoman.vocabulary.content import Text
from tests.coder.models.asking import CANARY, ask, connected, endpoint, raw_of, said
from tests.coder.models.test_providers import mistral_thinks_says_and_calls
from tests.support.upstream import answers, chat_says, upstream


async def test_what_another_provider_answered_goes_to_mistral_by_its_rules() -> None:
    call = ContextToolCall("toolu_01A09q90qw90lq917835lq9", "read_file", {"path": "x"})
    result = ContextToolResult(call.id, "read_file", "RESULT")
    steering = ContextUserMessage("m2", [Text("And be quick.")])
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up, "mistral", "mistral-large-latest")) as it:
        await ask(it, said("hi"), ContextAssistantMessage("", "", [call], None), result, steering)
        assert up.refusals == []
    messages = up.requests[0].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    [sent] = messages[2]["tool_calls"]
    assert messages[3]["tool_call_id"] == sent["id"] and len(sent["id"]) == 9


async def test_a_thought_goes_back_to_mistral_as_a_block_before_the_words() -> None:
    reply = mistral_thinks_says_and_calls()
    async with upstream(reply) as up, connected(endpoint(up, "mistral", "magistral-medium-latest")) as it:
        raw = json.loads(json.dumps(raw_of(await ask(it))))
        call = ContextToolCall("D681PevKs", "read_file", {"path": "x"})
        answer = ContextAssistantMessage("Reading", "Let me see", [call], raw)
        await ask(it, said("hi"), answer, ContextToolResult(call.id, "read_file", "RESULT"))
        assert up.refusals == []
    assert up.requests[1].body["messages"][2]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see"}]},
        {"type": "text", "text": "Reading"},
    ]


@pytest.mark.parametrize(
    ("url", "version", "path"),
    [
        ("https://r.openai.azure.com", "", "/openai/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/v1", "", "/chat/completions"),
        (
            "https://r.openai.azure.com",
            "2025-04-01-preview",
            "/openai/deployments/my%2Fone/chat/completions?api-version=2025-04-01-preview",
        ),
    ],
)
def test_azure_is_asked_at_the_form_of_its_address(url: str, version: str, path: str) -> None:
    place = Endpoint("azure", "azure", "my/one", url, Secret("k"), ProviderConfig(api_version=version))
    request = AzureWire(place, ModelFacts(max_output=100)).encode(ModelRequest([said("hi")]))
    assert (request.path, request.headers) == (path, {"api-key": "k"})
    assert json.loads(request.body)["max_completion_tokens"] == 100


async def test_headers_of_the_user_are_sent_and_come_before_ours() -> None:
    async with upstream(chat_says("Hello")) as up:
        place = endpoint(up)._replace(headers={"x-team": Secret("tools"), "authorization": Secret("Bearer own")})
        async with connected(place) as it:
            await ask(it)
    sent = {name.lower(): value for name, value in up.requests[0].headers.items()}
    assert (sent["x-team"], sent["authorization"]) == ("tools", "Bearer own")
    assert CANARY not in json.dumps(up.requests[0].headers)


async def test_a_header_that_a_server_repeats_is_not_shown() -> None:
    repeats = answers(400, {"error": {"message": "Unknown team tools-are-secret."}})
    headers = {"x-team": Secret("tools-are-secret")}
    async with upstream(repeats) as up, connected(endpoint(up)._replace(headers=headers)) as it:
        with pytest.raises(ModelFailed) as caught:
            await ask(it)
    assert "tools-are-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("refusal", "left_out"),
    [
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}, "stream_options"),
        (
            {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}},
            "max_tokens",
        ),
    ],
)
async def test_a_server_that_refuses_an_option_is_asked_once_more_without_it(
    refusal: dict[str, Any], left_out: str
) -> None:
    replies = answers(422, refusal), chat_says("Hello")
    async with upstream(*replies) as up, connected(endpoint(up, max_output=100)) as it:
        assert TextDelta("Hello") in await ask(it)
        await ask(it)
    assert [left_out in request.body for request in up.requests] == [True, False, False]
    assert up.requests[1].body.get("max_completion_tokens", up.requests[1].body.get("max_tokens")) == 100


def test_openrouter_is_told_a_level_in_an_object() -> None:
    place = Endpoint("compatible", "openrouter", "anthropic/claude-sonnet-5", "https://openrouter.ai/api/v1", None)
    request = OpenAIChatWire(place, ModelFacts(thought_levels=("off", "low"))).encode(
        ModelRequest([said("hi")], thought_level="off")
    )
    body = json.loads(request.body)
    assert body["reasoning"] == {"effort": "none"} and "reasoning_effort" not in body

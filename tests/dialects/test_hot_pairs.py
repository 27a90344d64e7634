"""A pair of classes that is used often gets functions of its own; they do exactly what the general ones do."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects import dialect_for
from dragoman.dialects.codec import transcriber
from dragoman.dialects.contract import Dialect
from dragoman.vocabulary import options, requests, services
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.tools import ContentItem
from dragoman.vocabulary.word import Extras
from tests.dialects.schemas import text

MODES: list[options.Choice | options.ChoiceGroup] = [
    options.Choice("a", "A"),
    options.Choice("b", "B", description="the second"),
]
OPTIONS = requests.OptionsSet(
    [
        options.Select("mode", "Mode", "b", MODES, category="mode"),
        options.Select("model", "Model", "m", [options.Choice("m", "M", meta={"x": 1})], extras=Extras({"odd": [1]})),
        options.Toggle("fast", "Fast", True),
    ]
)
UPDATES = [
    {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": None, "title": "T"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawInput": {"a": [1]}, "_meta": {"m": 1}, "odd": True},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "content": [{"type": "content", "content": {"type": "text", "text": "t"}}, {"type": "_new", "x": 1}],
        "locations": [{"path": "/a", "line": 3}, {"path": "/b"}],
    },
]


def both(version: int) -> tuple[Dialect, Dialect]:
    client, agent = ClientHello(), AgentHello(None)
    return dialect_for(version, "agent", client, agent), dialect_for(version, "client", client, agent)


@pytest.mark.parametrize("version", [1, 2])
def test_an_encoder_that_is_used_often_encodes_the_same(version: int) -> None:
    agent, _ = both(version)
    request = requests.SetOption("s", "mode", "b")
    said = [agent.encode_reply(1, request, OPTIONS)[-1:] for _ in range(2 * transcriber._HOT)]
    assert all(one == said[0] for one in said)


@pytest.mark.parametrize("version", [1, 2])
def test_a_decoder_that_is_used_often_decodes_the_same(version: int) -> None:
    agent, client = both(version)
    request = requests.SetOption("s", "mode", "b")
    result: Any = agent.encode_reply(1, request, OPTIONS)[-1]
    found = [client.decode_reply(request, Raw(result.result)).reply for _ in range(2 * transcriber._HOT)]
    assert all(one == found[0] for one in found)
    assert isinstance(found[0], requests.OptionsSet)
    assert found[0].config_options[1].extras == Extras({"odd": [1]})


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("version", [1, 2])
def test_updates_decode_the_same_from_the_first_to_the_last(version: int, update: dict[str, Any]) -> None:
    _, client = both(version)
    params = Raw(text({"sessionId": "s", "update": update}))
    found = [client.decode_notification("session/update", params) for _ in range(2 * transcriber._HOT)]
    assert all(one == found[0] for one in found)


def test_a_permission_is_encoded_the_same_from_the_first_to_the_last() -> None:
    for version in (1, 2):
        agent, _ = both(version)
        call = ToolCallUpdate("c", title="Write", status="pending", content=[ContentItem(Text("t"))])
        choices = [services.PermissionOption("y", "Yes", "allow_once")]
        request = services.RequestPermission("s", "Write?", choices, subject=services.ToolCallSubject(call))
        said = [agent.encode_request(request).params for _ in range(2 * transcriber._HOT)]
        assert set(said) == {said[0]}

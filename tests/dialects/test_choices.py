"""The choices of an option are encoded and decoded once, and are what the option has, whatever was sent before."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Dialect, ResultMessage
from dragoman.dialects.v2 import choices as remembered
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.options import Choice, ChoiceGroup, Select
from dragoman.vocabulary.requests import OptionsSet, SetOption
from dragoman.vocabulary.word import Extras

REQUEST = SetOption("s", "model", "a")


def ends() -> tuple[Dialect, Dialect]:
    client, agent = ClientHello(), AgentHello(None)
    return dialect_for(2, "agent", client, agent), dialect_for(2, "client", client, agent)


def encoded(agent: Dialect, option: Select) -> Raw:
    (result,) = agent.encode_reply(1, REQUEST, OptionsSet([option]))
    assert isinstance(result, ResultMessage)
    return Raw(result.result)


def decoded(client: Dialect, result: Raw) -> Select:
    reply = client.decode_reply(REQUEST, result).reply
    assert isinstance(reply, OptionsSet)
    (option,) = reply.config_options
    assert isinstance(option, Select)
    return option


def values(result: Raw) -> list[str]:
    body: Any = msgspec.json.decode(result)
    return [choice["value"] for choice in body["configOptions"][0]["options"]]


def test_an_option_that_is_set_again_and_again_is_the_same_at_the_other_end() -> None:
    agent, client = ends()
    choices: list[Choice | ChoiceGroup] = [Choice("a", "A"), ChoiceGroup("g", "G", [Choice("b", "B", "second")])]
    for value in ("a", "b", "a", "b"):
        option = Select("model", "Model", value, [choices[1]], category="model", meta={"x": 1})
        assert decoded(client, encoded(agent, option)) == option
        option = Select("model", "Model", value, choices[:1], extras=Extras({"odd": [1]}))
        assert decoded(client, encoded(agent, option)) == option


def test_a_list_that_was_changed_is_encoded_anew() -> None:
    agent, _ = ends()
    option = Select("model", "Model", "a", [Choice("a", "A")])
    assert values(encoded(agent, option)) == ["a"]
    option.options.append(Choice("b", "B"))
    assert values(encoded(agent, option)) == ["a", "b"]
    option.options.clear()
    assert values(encoded(agent, option)) == ["a"]  # its value: a list on this wire is not empty


def test_who_changes_a_list_that_was_received_changes_no_other() -> None:
    agent, client = ends()
    result = encoded(agent, Select("model", "Model", "a", [Choice("a", "A")]))
    decoded(client, result).options.clear()
    decoded(client, result).options.clear()
    assert decoded(client, result).options == [Choice("a", "A")]


def test_values_that_python_takes_for_equal_stay_apart() -> None:
    agent, client = ends()
    for value in (True, 1, 1.0):
        option = Select("model", "Model", "a", [Choice("a", "A", meta={"x": value})])
        found = decoded(client, encoded(agent, option)).options[0]
        assert found.meta is not None and type(found.meta["x"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize("size", [1, 100_000])
def test_what_is_remembered_is_bounded(size: int) -> None:
    agent, client = ends()
    for number in range(200):
        option = Select(f"model-{number}", "Model", "a", [Choice("a", "x" * size)])
        assert decoded(client, encoded(agent, option)) == option
    for lists in (remembered._encoded, remembered._decoded):
        assert len(lists) <= 64
        assert len(msgspec.json.encode([choices for choices, _ in lists.values()])) < 2 * 64 * 16 * 1024

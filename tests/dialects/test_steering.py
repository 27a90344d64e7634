"""Steering on the wire: advertised by an agent that has it, and a request of the vocabulary for both sides."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from dragoman.dialects.handshake.initialize import decode_agent, encode_agent
from dragoman.errors import PeerMistake, RequestFailed
from dragoman.vocabulary import events, requests
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientHello, Implementation
from tests.dialects.joined_dialects import AGENT, agent_of, agent_with, client_of, result_of, updates_of
from tests.dialects.schemas import text

versions = pytest.mark.parametrize("version", [1, 2])
HELLO = [{"type": "text", "text": "hello"}]
PARAMS = {"sessionId": "s", "prompt": HELLO}
REQUEST = requests.SteerTurn("s", [Text("hello")])
STEERING = "_session/steering"


def decoded(version: int, params: Any, agent: AgentHello = AGENT) -> Any:
    return agent_of(version, agent=agent).decode_request(1, STEERING, Raw(text(params)))


@pytest.mark.requirement("ED5")
@versions
def test_an_agent_with_steering_advertises_it_and_a_client_reads_that(version: int) -> None:
    info = Implementation("a", "1")
    hello = AgentHello(info, AgentCapabilities(steering=True), meta={"mine": 1})
    encoded = encode_agent(version, hello, ClientHello())
    assert json.loads(encoded)["_meta"] == {"steering": {"supported": True}, "mine": 1}
    found = decode_agent(Raw(encoded)).hello
    assert (found.capabilities.steering, found.meta) == (True, {"mine": 1})


@versions
@pytest.mark.parametrize("meta", [{}, {"steering": True}, {"steering": {}}, {"steering": {"supported": "true"}}])
def test_an_agent_that_does_not_advertise_it_as_the_adapters_do_has_no_steering(version: int, meta: Any) -> None:
    body = {"protocolVersion": version, "info": {"name": "a", "version": "1"}, "capabilities": {}, "_meta": meta}
    assert not decode_agent(Raw(text(body))).hello.capabilities.steering


@versions
def test_the_request_is_one_of_the_vocabulary_in_both_roles(version: int) -> None:
    assert decoded(version, PARAMS) == REQUEST
    sent = client_of(version).encode_request(REQUEST)
    assert (sent.method, json.loads(sent.params)) == (STEERING, PARAMS)


@versions
def test_a_client_does_not_steer_an_agent_that_has_not_advertised_it(version: int) -> None:
    with pytest.raises(RequestFailed, match="does not offer"):
        client_of(version, agent=agent_with()).encode_request(REQUEST)


@versions
def test_without_steering_the_method_stays_an_extension_of_the_author(version: int) -> None:
    assert decoded(version, PARAMS, agent_with()) == Extension(STEERING, PARAMS)


@versions
@pytest.mark.parametrize(
    "params",
    [
        {"sessionId": "s", "prompt": []},
        {"sessionId": "s"},
        {"prompt": HELLO},
        {**PARAMS, "_meta": {"steering": {"idleBehavior": "other"}}},
        {**PARAMS, "_meta": {"steering": {"idleBehavior": None}}},
    ],
)
def test_steering_without_words_or_with_an_unknown_wish_is_refused(version: int, params: Any) -> None:
    with pytest.raises(PeerMistake) as raised:
        decoded(version, params)
    assert raised.value.code == -32602


@versions
@pytest.mark.parametrize(
    ("meta", "needs_turn"),
    [({"steering": {"idleBehavior": "promptRequired"}}, True), ({"steering": {}}, False), ({}, False)],
)
def test_a_client_may_want_no_turn_to_be_begun(version: int, meta: Any, needs_turn: bool) -> None:
    assert decoded(version, {**PARAMS, "_meta": meta}).needs_turn is needs_turn


@pytest.mark.requirement("ED5")
@pytest.mark.parametrize(
    ("version", "sent"), [(1, {"outcome": "injected"}), (2, {"outcome": "injected", "messageId": "m"})]
)
def test_the_outcome_is_what_version_1_is_sent_and_version_2_has_the_message_too(version: int, sent: Any) -> None:
    agent = agent_of(version)
    reply = requests.Steered("injected", message_id="m")
    assert result_of(agent.encode_reply(1, REQUEST, reply)) == sent
    decoded = client_of(version).decode_reply(REQUEST, Raw(text(sent))).reply
    assert decoded == (reply if version == 2 else msgspec.structs.replace(reply, message_id=UNSET))


def test_a_client_of_version_1_is_not_sent_its_own_words_again() -> None:
    agent = agent_of(1)
    agent.encode_reply(1, REQUEST, requests.Steered("injected", message_id="m"))
    assert updates_of(agent, events.UserMessage("m", [Text("hello")])) == []
    assert len(updates_of(agent, events.UserMessage("other", [Text("hello")]))) == 1

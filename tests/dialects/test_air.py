"""JetBrains AIR: what a client that declares names of it is sent, and nothing of it to any other."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Dialect, ErrorMessage, NotificationMessage, ResultMessage
from dragoman.dialects.handshake.air import declared_by, with_air
from dragoman.dialects.handshake.initialize import encode_agent
from dragoman.errors import WireError
from dragoman.vocabulary import events, requests
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientCapabilities, ClientHello, Implementation
from tests.dialects.joined_dialects import AGENT, agent_of, client_with, result_of
from tests.dialects.test_v1_agent import heard, prompted

NAMES = ["sessionFailure", "loadReplayEnd"]


def declaring(air: Any) -> ClientHello:
    return client_with(meta={"jetbrains": {"air": air}})


AIR = declaring({"version": 1, "capabilities": NAMES})
NOT_DECLARED: list[Any] = [
    {},
    [],
    None,
    {"version": 1},
    {"capabilities": NAMES},
    {"version": 0, "capabilities": NAMES},
    {"version": 1.5, "capabilities": NAMES},
    {"version": "1", "capabilities": NAMES},
    {"version": True, "capabilities": NAMES},
    {"version": 1, "capabilities": {"sessionFailure": True}},
    {"version": 1, "capabilities": ["sessionfailure", 1, None]},
]
not_declared = pytest.mark.parametrize("air", NOT_DECLARED, ids=str)


def loaded(agent: Dialect) -> Any:
    request = heard(agent, "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    return agent.encode_reply(1, request, requests.SessionOpened("s"))


def failed(agent: Dialect, failure: Any) -> Any:
    prompted(agent, id=7)
    return agent.encode_event("s", events.Idle(stop_reason="error", error=failure))


@pytest.mark.parametrize("version", [1, 2, 1.0])
def test_a_declaration_of_this_version_or_a_later_one_counts(version: Any) -> None:
    found = declaring({"version": version, "capabilities": [*NAMES, 5]}).capabilities
    assert declared_by(found) == set(NAMES)


@not_declared
def test_a_malformed_declaration_declares_nothing(air: Any) -> None:
    assert not declared_by(declaring(air).capabilities) & set(NAMES)


# -- the hello -------------------------------------------------------------------------------------------------------


def meta_for(client: ClientHello, hello: AgentHello) -> Any:
    return json.loads(encode_agent(1, hello, client)).get("_meta")


def test_air_is_told_what_the_agent_has_and_no_other_client_is() -> None:
    hello = AgentHello(Implementation("a", "1"), meta={"mine": 1})
    names = ["sessionFailure", "diffPatch", "rawInputRendering", "agentFileChangeReport"]
    ours = {"jetbrains": {"air": {"version": 1, "capabilities": names}}, "mine": 1}
    assert meta_for(AIR, hello) == ours
    assert meta_for(declaring({}), hello) == ours
    assert meta_for(ClientHello(ClientCapabilities()), hello) == {"mine": 1}
    assert meta_for(client_with(meta={"jetbrains": {}}), hello) == {"mine": 1}


@pytest.mark.requirement("ED12")
@pytest.mark.parametrize("name", ["sessionIndex", "sessionRename"])
def test_renaming_is_offered_where_it_is_declared_and_the_agent_has_titles(name: str) -> None:
    client = declaring({"version": 1, "capabilities": [name]})
    offered = [meta_for(client, AgentHello(None, AgentCapabilities(title=has)))["jetbrains"] for has in (True, False)]
    assert [air["air"]["capabilities"][4:] for air in offered] == [["sessionRename"], []]


def test_what_an_agent_behind_a_bridge_tells_air_passes_as_it_is() -> None:
    theirs = {"jetbrains": {"air": {"version": 1, "capabilities": ["diffPatch"]}}}
    assert meta_for(AIR, AgentHello(None, meta=theirs)) == theirs


# -- the end of a replay ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("ED8")
def test_the_end_of_a_replay_is_sent_before_the_session_is_open() -> None:
    end, answer = loaded(agent_of(1, AIR))
    assert isinstance(end, NotificationMessage)
    update = {"sessionUpdate": "session_info_update", "_meta": {"jetbrains": {"air": {"version": 1, NAMES[1]: True}}}}
    assert json.loads(end.params) == {"sessionId": "s", "update": update}
    assert isinstance(answer, ResultMessage)


def test_a_session_that_is_opened_without_a_replay_has_no_end_of_one() -> None:
    agent = agent_of(1, AIR)
    request = heard(agent, "session/resume", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    assert len(agent.encode_reply(1, request, requests.SessionOpened("s"))) == 1


@pytest.mark.requirement("ED4")
@not_declared
def test_a_client_that_has_not_declared_it_is_sent_no_end_of_a_replay(air: Any) -> None:
    assert len(loaded(agent_of(1, declaring(air)))) == 1


# -- the failure of a turn -------------------------------------------------------------------------------------------


@pytest.mark.requirement("ED7")
@pytest.mark.parametrize(
    ("failure", "category", "actions"),
    [
        (events.Failure(-32603, "no", {"reason": "rate_limit"}), "limit", ["retry"]),
        (events.Failure(-32603, "no", {"reason": "auth"}), "access", ["login"]),
        (events.Failure(-32000, "no"), "access", ["login"]),
        (events.Failure(-32603, "no", {"reason": "network"}), "connection", ["retry"]),
        (events.Failure(-32603, "no", {"reason": "server"}), "service", ["retry"]),
        (events.Failure(-32603, "no", {"reason": ["odd"]}), "service", ["retry"]),
        (events.Failure(-32603, "no"), "service", ["retry"]),
    ],
)
def test_a_turn_that_failed_has_ended_with_a_record(failure: Any, category: str, actions: list[str]) -> None:
    record = {"id": "u:error", "revision": 1, "category": category, "severity": "error", "title": "no"}
    assert result_of(failed(agent_of(1, AIR), failure)) == {
        "stopReason": "end_turn",
        "_meta": {"jetbrains": {"air": {"version": 1, "sessionFailure": {**record, "actions": actions}}}},
    }


@pytest.mark.parametrize("failure", [UNSET, None, events.Failure(-32603, "")])
def test_a_failure_without_words_has_a_title_all_the_same(failure: Any) -> None:
    meta = result_of(failed(agent_of(1, AIR), failure))["_meta"]
    assert meta["jetbrains"]["air"]["sessionFailure"]["title"] == "The turn has failed."


@pytest.mark.requirement("ED4")
@not_declared
def test_a_client_that_has_not_declared_it_is_sent_the_error(air: Any) -> None:
    failure = events.Failure(-32603, "no")
    assert failed(agent_of(1, declaring(air)), failure) == [ErrorMessage(7, WireError(-32603, "no", None))]


def test_a_vendor_dialect_has_nothing_of_it() -> None:
    agent = dialect_for(1, "agent", AIR, AGENT, "iac-code")
    prompted(agent, id=7)
    failure = events.Failure(-32603, "no")
    assert "jetbrains" not in repr(agent.encode_event("s", events.Idle(stop_reason="error", error=failure)))


def test_other_names_in_meta_stay() -> None:
    meta = {"mine": 1, "jetbrains": {"ide": 2, "air": {"kept": 3}}}
    air = {"kept": 3, "version": 1, "name": True}
    assert with_air(meta, "name", True) == {"mine": 1, "jetbrains": {"ide": 2, "air": air}}

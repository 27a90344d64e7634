"""L1 and L2: what goes through a dialect comes out as it was, or as the loss table says."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.dialects.expected import after
from tests.dialects.schemas import SHARE, assert_valid, meaning, messages, schemas, text, update_tags, updates
from dragoman.dialects.contract import Dialect
from dragoman.vocabulary.requests import NewSession, PromptAccepted
from msgspec import Raw
from tests.dialects.speech import CLIENT, agent_of, answer, ask, client_of, client_with, hear, result_of, say
from dragoman.wire import v1, v2

pytestmark = pytest.mark.usefixtures("schemas")
WIRES = {1: v1, 2: v2}
OUTSIDE = ("initialize", "providers/", "mcp/", "proxy/")


def methods(version: int, side: str) -> list[tuple[int, str, str, str]]:
    table = getattr(WIRES[version], f"{side}_METHODS")
    return [
        (version, method, kinds[0] if isinstance(kinds[0], str) else _name(version, kinds[0]), _name(version, kinds[1]))
        for method, kinds in table.items()
        if not method.startswith(OUTSIDE)
    ]


def _name(version: int, kind: Any) -> str:
    return next(name for name, found in vars(WIRES[version]).items() if found is kind)


AGENT_METHODS = [case for version in WIRES for case in methods(version, "AGENT")]
CLIENT_METHODS = [case for version in WIRES for case in methods(version, "CLIENT")]
UPDATES = [(version, tag) for version in WIRES for tag in update_tags(version)]


def ready(version: int, name: str, message: Any) -> tuple[Dialect, Dialect]:
    """The two sides of a bridge, after what has to come before this message."""
    hello = client_with() if name == "plan" else CLIENT
    agent, client = agent_of(version, hello), client_of(version, hello)
    if name == "tool_call_update" and version == 1:
        call = {"sessionUpdate": "tool_call", "toolCallId": message["update"]["toolCallId"], "title": "t"}
        say(agent, message["sessionId"], *hear(client, {"sessionId": message["sessionId"], "update": call}))
    if name == "SetSessionModeRequest":
        opened = {"sessionId": message["sessionId"], "modes": {"currentModeId": "a", "availableModes": []}}
        answer(client, agent, NewSession("/"), opened)
    return agent, client


@pytest.mark.parametrize(("version", "method", "params", "result"), AGENT_METHODS)
@SHARE
@given(data=st.data())
def test_what_a_client_asks_survives_in_its_own_version(
    version: int, method: str, params: str, result: str, data: Any
) -> None:
    message = data.draw(messages(version, params, foreign=True))
    assume(message.get("prompt") != [])
    agent, client = ready(version, params, message)
    asked = ask(agent, client, method, message)
    assert asked.method == method
    assert meaning(asked.params) == meaning(after(f"{version}{version}", params, message))


@pytest.mark.parametrize(("version", "method", "params", "result"), CLIENT_METHODS)
@SHARE
@given(data=st.data())
def test_what_an_agent_asks_survives_in_its_own_version(
    version: int, method: str, params: str, result: str, data: Any
) -> None:
    message = data.draw(messages(version, params, foreign=True))
    agent, client = ready(version, params, message)
    asked = ask(client, agent, method, message)
    assert asked.method == method
    assert meaning(asked.params) == meaning(after(f"{version}{version}", params, message))


@pytest.mark.parametrize(("version", "tag"), UPDATES)
@SHARE
@given(data=st.data())
def test_updates_survive_in_their_own_version(version: int, tag: str, data: Any) -> None:
    params = data.draw(updates(version, tag, foreign=True))
    agent, client = ready(version, tag, params)
    said = say(agent, params["sessionId"], *hear(client, params))
    assert meaning(said) == meaning([after(f"{version}{version}", tag, params)])


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "method", "params", "result"), AGENT_METHODS + CLIENT_METHODS)
@SHARE
@given(data=st.data())
def test_results_survive_in_their_own_version(version: int, method: str, params: str, result: str, data: Any) -> None:
    question = data.draw(messages(version, params, vendor=False))
    message = data.draw(messages(version, result, foreign=True))
    assume(question.get("prompt") != [])
    agent, client = ready(version, params, question)
    hears, says = (agent, client) if (version, method, params, result) in AGENT_METHODS else (client, agent)
    offer(version, question, message)
    request = ask(hears, says, method, question).request
    if version == 1 and method == "session/prompt":
        agent.reply(1, request, PromptAccepted("m"))
        (told,) = client.hear_reply(request, Raw(text(message))).told
        found = result_of(agent.tell(told.session_id, told.event))
    else:
        found = answer(says, hears, request, message)
    assert meaning(found) == meaning(after(f"{version}{version}", result, message))


def offer(version: int, question: Any, result: Any) -> None:
    """A permission that offers what its answer chooses."""
    chosen = result.get("outcome") if isinstance(result.get("outcome"), dict) else {}
    if "options" in question and chosen.get("outcome") == "selected":
        question["options"] = [{"optionId": chosen["optionId"], "name": "n", "kind": "allow_once"}]


# -- from one version to the other and back --------------------------------------------------------------------------

BOTH_WAYS = {1: "121", 2: "212"}


def translated(version: int, params: str) -> bool:
    """Whether the other version has such a request at all."""
    return (version, params) not in ONLY_IN


ONLY_IN = {
    *((1, f"{name}Request") for name in ("ReadTextFile", "WriteTextFile", "CreateTerminal", "TerminalOutput")),
    *((1, f"{name}Request") for name in ("ReleaseTerminal", "WaitForTerminalExit", "KillTerminal", "SetSessionMode")),
    *((2, f"{name}Request") for name in ("CancelToolCall", "CancelTerminal")),
}


@pytest.mark.parametrize(
    ("version", "method", "params", "result"),
    [case for case in AGENT_METHODS + CLIENT_METHODS if translated(case[0], case[2])],
)
@SHARE
@given(data=st.data())
def test_requests_come_back_from_the_other_version(
    version: int, method: str, params: str, result: str, data: Any
) -> None:
    other = 3 - version
    message = data.draw(messages(version, params))
    assume(message.get("prompt") != [] and message.get("options") != [])
    of_client = (version, method, params, result) in AGENT_METHODS
    near, far = (agent_of, client_of) if of_client else (client_of, agent_of)
    there = ask(near(version), far(other), method, message)
    kinds = (WIRES[other].AGENT_METHODS if of_client else WIRES[other].CLIENT_METHODS)[there.method]
    assert_valid(other, _name(other, kinds[0]), there.params)
    back = ask(near(other), far(version), there.method, there.params)
    assert_valid(version, params, back.params)
    assert (back.method, meaning(back.params)) == (method, meaning(after(BOTH_WAYS[version], params, message)))


@pytest.mark.parametrize(("version", "tag"), UPDATES)
@SHARE
@given(data=st.data())
def test_updates_come_back_from_the_other_version(version: int, tag: str, data: Any) -> None:
    other = 3 - version
    params = data.draw(updates(version, tag))
    carrier = {1: "SessionNotification", 2: "UpdateSessionNotification"}
    there = say(ready(other, tag, params)[0], params["sessionId"], *hear(client_of(version), params))
    for update in there:
        assert_valid(other, carrier[other], update)
    back_agent, _ = ready(version, tag, params)
    heard = [event for update in there for event in hear(client_of(other), update)]
    back = say(back_agent, params["sessionId"], *heard)
    for update in back:
        assert_valid(version, carrier[version], update)
    assert meaning(back) == meaning(after(BOTH_WAYS[version], tag, params))

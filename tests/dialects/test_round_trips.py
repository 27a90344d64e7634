"""What goes through a dialect comes out as it was, or as the loss table says."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.dialects.contract import Dialect
from dragoman.vocabulary.requests import NewSession, PromptAccepted
from dragoman.wire import v1, v2
from tests.dialects.expected import OPAQUE, PERMISSIONS, after
from tests.dialects.joined_dialects import CLIENT, agent_of, answer, ask, client_of, client_with, hear, result_of, say
from tests.dialects.schemas import SHARE, assert_valid, meaning, messages, text, update_tags, updates

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


@pytest.mark.requirement("L1", "L2")
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


@pytest.mark.requirement("L1", "L2")
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


@pytest.mark.requirement("L1", "L2", "8.2.18")
@pytest.mark.parametrize(("version", "tag"), UPDATES)
@SHARE
@given(data=st.data())
def test_updates_survive_in_their_own_version(version: int, tag: str, data: Any) -> None:
    params = data.draw(updates(version, tag, foreign=True))
    agent, client = ready(version, tag, params)
    said = say(agent, params["sessionId"], *hear(client, params))
    assert meaning(said) == meaning(after(f"{version}{version}", tag, params))


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("L1", "L2")
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
        agent.encode_reply(1, request, PromptAccepted("m"))
        (told,) = client.decode_reply(request, Raw(text(message))).events
        found = result_of(agent.encode_event(told.session_id, told.event))
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
CARRIER = {1: "SessionNotification", 2: "UpdateSessionNotification"}
# Requests that the other version does not have; `test_losses.py` shows what comes of them.
ONLY_IN = {
    1: {
        *("fs/read_text_file", "fs/write_text_file", "session/set_mode"),
        *("terminal/create", "terminal/output", "terminal/release", "terminal/wait_for_exit", "terminal/kill"),
    },
    2: {"tool_call/cancel", "terminal/cancel"},
}
TRANSLATED = [case for case in AGENT_METHODS + CLIENT_METHODS if case[1] not in ONLY_IN[case[0]]]


def sayable(version: int, message: Any) -> bool:
    """Whether the other version can be asked this at all; `test_losses.py` shows what comes of the rest."""
    if version == 1:
        return message.get("prompt") != [] and message.get("options") != [] and message.get("requestId", 0) is not None
    known = [option["kind"] in PERMISSIONS for option in message.get("options", [])]
    return any(known or [True]) and (message.get("replayFrom") or {"type": "start"})["type"] == "start"


def is_known(message: Any) -> bool:
    """Whether there is no variant in the message that no schema knows: such a one is said as it came."""
    if isinstance(message, list):
        return all(map(is_known, message))
    if not isinstance(message, dict):
        return True
    return all(
        is_known(inner) and not (key in TAGS and inner in FOREIGN)
        for key, inner in message.items()
        if key not in OPAQUE
    )


TAGS = {"type", "outcome", "operation", "mode", "state", "sessionUpdate", "action"}
FOREIGN = ("_vendor/thing", "hologram", "", "Text", "stateUpdate")


def check(version: int, name: str, said: Any, meant: Any) -> None:
    if is_known(meant):
        assert_valid(version, name, said)


@pytest.mark.requirement("L1", "L2")
@pytest.mark.parametrize(("version", "method", "params", "result"), TRANSLATED)
@SHARE
@given(data=st.data())
def test_requests_come_back_from_the_other_version(
    version: int, method: str, params: str, result: str, data: Any
) -> None:
    other = 3 - version
    message = data.draw(messages(version, params))
    assume(sayable(version, message))
    of_client = (version, method, params, result) in AGENT_METHODS
    near, far = (agent_of, client_of) if of_client else (client_of, agent_of)
    there = ask(near(version), far(other), method, message)
    kinds = (WIRES[other].AGENT_METHODS if of_client else WIRES[other].CLIENT_METHODS)[there.method]
    check(other, _name(other, kinds[0]), there.params, message)
    back = ask(near(other), far(version), there.method, there.params)
    check(version, params, back.params, message)
    assert (back.method, meaning(back.params)) == (method, meaning(after(BOTH_WAYS[version], params, message)))


@pytest.mark.requirement("L1", "L2")
@pytest.mark.parametrize(("version", "method", "params", "result"), TRANSLATED)
@SHARE
@given(data=st.data())
def test_results_come_back_from_the_other_version(
    version: int, method: str, params: str, result: str, data: Any
) -> None:
    if method == "session/prompt":
        return  # an answer in one, an event in the other: `test_losses.py`
    other = 3 - version
    question, message = data.draw(messages(version, params, vendor=False)), data.draw(messages(version, result))
    offer(version, question, message)
    assume(sayable(version, question))
    of_client = (version, method, params, result) in AGENT_METHODS
    near, far = (agent_of, client_of) if of_client else (client_of, agent_of)
    # Four sides: ours, the other version's two, ours again.
    one, two, three, four = near(version), far(other), near(other), far(version)
    there = ask(one, two, method, question)
    back = ask(three, four, there.method, there.params)
    translated = answer(four, three, back.request, message)
    kinds = (WIRES[other].AGENT_METHODS if of_client else WIRES[other].CLIENT_METHODS)[there.method]
    check(other, _name(other, kinds[1]), translated, message)
    found = answer(two, one, there.request, translated)
    check(version, result, found, message)
    assert meaning(found) == meaning(after(BOTH_WAYS[version], result, message))


@pytest.mark.requirement("L1", "L2")
@pytest.mark.parametrize(("version", "tag"), UPDATES)
@SHARE
@given(data=st.data())
def test_updates_come_back_from_the_other_version(version: int, tag: str, data: Any) -> None:
    other = 3 - version
    params = data.draw(updates(version, tag))
    there = say(ready(other, tag, params)[0], params["sessionId"], *hear(client_of(version), params))
    for update in there:
        check(other, CARRIER[other], update, params)
    far = client_of(other)
    heard = [event for update in there for event in hear(far, update)]
    back = say(ready(version, tag, params)[0], params["sessionId"], *heard)
    for update in back:
        check(version, CARRIER[version], update, params)
    assert meaning(back) == meaning(after(BOTH_WAYS[version], tag, params))

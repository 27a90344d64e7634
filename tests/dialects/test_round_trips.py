"""L1 and L2: what goes through a dialect comes out as it was, or as the loss table says."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.dialects.expected import after
from tests.dialects.schemas import SHARE, assert_valid, meaning, messages, schemas, update_tags, updates
from tests.dialects.speech import agent_of, answer, ask_agent, client_of, hear, say
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


@pytest.mark.parametrize(("version", "method", "params", "result"), AGENT_METHODS + CLIENT_METHODS)
@SHARE
@given(data=st.data())
def test_params_survive_in_their_own_version(version: int, method: str, params: str, result: str, data: Any) -> None:
    message = data.draw(messages(version, params, foreign=True))
    assume(message.get("prompt") != [])
    if (version, method, params, result) in AGENT_METHODS:
        asked = ask_agent(agent_of(version), client_of(version), method, message)
    else:
        asked = ask_agent(client_of(version), agent_of(version), method, message)
    assert asked.method == method
    assert meaning(asked.params) == meaning(after(version, version, params, message))


@pytest.mark.parametrize(("version", "tag"), [(version, tag) for version in WIRES for tag in update_tags(version)])
@SHARE
@given(data=st.data())
def test_updates_survive_in_their_own_version(version: int, tag: str, data: Any) -> None:
    params = data.draw(updates(version, tag, foreign=True))
    agent, client = agent_of(version), client_of(version)
    said = say(agent, params["sessionId"], *hear(client, params))
    assert meaning(said) == meaning([after(version, version, tag, params)])

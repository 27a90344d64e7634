"""Whom `check` can pass for: as the schema says, with a source, and in effect."""

import pytest

from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.identities import CheckIdentity, find_identities, load_identities, names_of
from dragoman.conformance.peer.subject import PeerSubject
from dragoman.conformance.schema import SCHEMAS, value_fault
from dragoman.conformance.trial import CheckSettings, Trial

EACH = [pytest.param(one, id=f"{one.name}-v{one.version}") for one in load_identities()]


def test_there_are_the_editors_and_the_agents_that_people_use() -> None:
    assert names_of("client") == ["zed", "jetbrains", "acpx", "agent-shell", "codecompanion", "toad"]
    assert names_of("agent") == ["gemini", "opencode", "claude", "codex", "qwen"]
    assert [one.version for one in find_identities("claude", "agent")] == [1, 2]


@pytest.mark.parametrize("identity", EACH)
def test_what_an_identity_says_is_as_the_schema_says(identity: CheckIdentity) -> None:
    kinds = SCHEMAS[identity.version].AGENT_METHODS["initialize"]
    assert value_fault(dict(identity.params), kinds[0 if identity.role == "client" else 1]) == ""
    assert identity.params["protocolVersion"] == identity.version


@pytest.mark.anyio
@pytest.mark.parametrize("name", names_of("client"))
async def test_an_agent_is_greeted_as_the_editor_does(name: str) -> None:
    identities = find_identities(name, "client")
    settings = CheckSettings("/tmp", CheckLimits(answer=1.0), prompt="hello", identities=identities)
    trial = Trial(PeerSubject(1), 1, settings, {})
    try:
        dialogue, _, end = await trial.played()
        greeting = dialogue.connection.recording.frames[0]
    finally:
        await trial.close()
    assert end.reason == "end_turn"
    assert identities[0].params["clientInfo"]["name"].encode() in greeting.head
    assert greeting.fault == ""

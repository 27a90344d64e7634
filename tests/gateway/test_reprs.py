"""What a person who debugs a gateway sees of its parts: the state of each and its counts; no content, no token."""

from pathlib import Path

import pytest

from tests.support.gateway import counting, gateway, raw_http
from tests.support.messages import prompt

pytestmark = pytest.mark.anyio


async def test_every_long_lived_part_shows_its_state_and_its_counts(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        hub = served.hub
        (client_side,) = hub.connections.values()
        (agent_side,) = hub.agents
        (shared,) = hub.sessions.values()
        await shared.idle.wait()
        name = raw.connection[:8]
        assert repr(agent_side) == "<AgentSide running process=1 sessions=1 in_flight=0 failures=0>"
        assert repr(client_side) == f"<ClientSide {name} connected sessions=1 pending_replies=0 held_events=0>"
        assert repr(client_side.connection).startswith(f"<GatewayConnection {name} http initialized received=")
        assert repr(shared).startswith(f"<SharedSession {session_id[:13]} idle subscribers=1 questions=0 turns=1 ")
        assert repr(client_side.connection.streams).startswith("<SessionStreams sessions=1 ")
        assert repr(client_side.connection.main).startswith("<ReplayBuffer read last=")
        assert repr(hub.agents) == "<AgentPool agents=1 processes=1>"
        assert repr(hub.sessions) == "<SharedSessions open=1 running=0>"
        assert repr(hub.connections) == "<Connections open=1 connected=1>"
        assert repr(hub.monitor) == "<Monitor bugs=0 noise=0 turns=1>"
        whole = repr(served.server._app)
        assert whole.startswith("<Gateway <Hub open ")
        for hidden in (served.token, raw.connection, session_id):
            assert hidden not in whole

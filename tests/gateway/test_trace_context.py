"""W3C trace context goes through the gateway: what a client puts into `_meta` of a prompt, its agent reads there."""

import os
from functools import partial
from pathlib import Path

import msgspec
import pytest

from dragoman.gateway.agent_source import AgentSource, in_process
from tests.support.gateway import RawHttp, counting, gateway, http_client
from tests.support.messages import Message, prompt

pytestmark = pytest.mark.anyio
CONTEXT = {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "vendor=t61rcWkgMzE",
    "baggage": "team=tools",
}


@pytest.mark.parametrize("agent_version", [1, 2])
@pytest.mark.parametrize("version", [1, 2])
async def test_the_trace_context_of_a_client_reaches_its_agent_as_it_is(
    version: int, agent_version: int, tmp_path: Path
) -> None:
    heard: list[Message] = []

    def note(way: str, frame: bytes) -> None:
        if way == "in":
            heard.append(msgspec.json.decode(frame))

    source = AgentSource(in_process(partial(counting(1).serve, trace=note), print), (agent_version,))
    async with gateway(source, tmp_path) as served, http_client() as client:
        raw = RawHttp(served, client)
        await raw.hello(version)
        assert await raw.open() == 200
        new = {"cwd": os.getcwd(), "mcpServers": [], "_meta": CONTEXT}
        await raw.post({"id": 1, "method": "session/new", "params": new})
        session_id = (await raw.answer(1))["result"]["sessionId"]
        assert await raw.open(session_id) == 200
        asked = prompt(2, session_id)
        asked["params"]["_meta"] = CONTEXT
        await raw.post(asked, session_id)
        await raw.answer(2)
        await raw.leave()
    sent = {message["method"]: message["params"].get("_meta", {}) for message in heard if "method" in message}
    for method in ("session/new", "session/prompt"):
        assert {name: sent[method].get(name) for name in CONTEXT} == CONTEXT

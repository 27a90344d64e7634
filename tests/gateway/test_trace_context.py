"""Traces: the context of a client in `_meta` reaches its agent, and spans of OpenTelemetry a collector of our own."""

import gzip
import os
import re
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from starlette.types import Receive, Scope, Send

from dragoman import Agent
from dragoman.gateway.agent_source import AgentSource, in_process
from dragoman.gateway.tracing import Traces, traces_of
from dragoman.vocabulary.requests import PromptRequest
from tests.support.asgi_server import on_loopback
from tests.support.gateway import RawHttp, counting, gateway, http_client
from tests.support.messages import Message, prompt
from tests.support.waiting import until

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


class Collector:
    """A collector that takes what an OTLP exporter sends."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = bytearray()
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        packed = dict(scope["headers"]).get(b"content-encoding") == b"gzip"
        sent = ExportTraceServiceRequest.FromString(gzip.decompress(body) if packed else bytes(body))
        self.spans += [span for one in sent.resource_spans for scoped in one.scope_spans for span in scoped.spans]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def said(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


@pytest.mark.parametrize("version", [1, 2])
async def test_requests_turns_and_tool_calls_are_spans_below_that_of_the_client(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("tools")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        async with session.tool("rm secret-file", kind="execute"):
            await session.say("secret-answer")

    heard: list[Message] = []

    def note(way: str, frame: bytes) -> None:
        if way == "in":
            heard.append(msgspec.json.decode(frame))

    collector, listener = Collector(), socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    source = AgentSource(in_process(partial(agent.serve, trace=note), print), (1, 2))
    async with on_loopback(collector, listener), gateway(source, tmp_path) as served, http_client() as client:
        served.hub.monitor.traces = traces_of(os.environ, print)
        raw = RawHttp(served, client)
        await raw.hello(version)
        assert await raw.open() == 200
        session_id = await raw.session()
        asked = prompt(2, session_id, "secret-prompt")
        asked["params"]["_meta"] = CONTEXT
        await raw.post(asked, session_id)
        await raw.answer(2)
        await until(lambda: not served.hub.monitor.traces._turns, "the end of the turn")  # type: ignore[union-attr]
        await raw.leave()
    spans = {span.name: span for span in collector.spans}
    assert {"session/new", "session/prompt", "turn", "tool_call"} <= spans.keys()
    asking, turn, call = spans["session/prompt"], spans["turn"], spans["tool_call"]
    assert (asking.trace_id.hex(), asking.parent_span_id.hex()) == tuple(CONTEXT["traceparent"].split("-")[1:3])
    assert (turn.parent_span_id, call.parent_span_id) == (asking.span_id, turn.span_id)
    assert said(turn) == {"session.id": session_id, "turn.stop_reason": "end_turn"}
    assert said(call)["tool.kind"] == "execute"
    assert said(call)["tool.status"] == "completed"
    (meta,) = [message["params"]["_meta"] for message in heard if message.get("method") == "session/prompt"]
    assert meta["traceparent"] == f"00-{asking.trace_id.hex()}-{asking.span_id.hex()}-01"
    assert (meta["tracestate"], meta["baggage"]) == (CONTEXT["tracestate"], CONTEXT["baggage"])
    assert b"secret" not in b"".join(span.SerializeToString() for span in collector.spans)


ZEROS = f"00-{'0' * 32}-{'0' * 16}-01"


@pytest.mark.parametrize(
    "parent",
    ["00-zz-00f067aa0ba902b7-01", "x" * 10_000, 7, None, ZEROS],
    ids=["hex", "long", "number", "null", "zeros"],
)
def test_a_trace_context_that_is_none_begins_a_trace_of_its_own(parent: object) -> None:
    traces = Traces(TracerProvider(shutdown_on_exit=False))
    request = PromptRequest(session_id="s", prompt=[], meta={"traceparent": parent, "other": 1})
    with traces.request("session/prompt", request) as traced:
        assert isinstance(traced.meta, dict)
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", traced.meta["traceparent"])
        assert traced.meta["other"] == 1


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
    ],
)
def test_without_the_variables_nothing_is_traced(variables: dict[str, str]) -> None:
    assert traces_of(variables, print) is None


def test_a_gateway_that_traces_nothing_loads_nothing_of_the_library() -> None:
    code = "import sys, dragoman.gateway.server; print(any('opentelemetry' in name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

"""Spans of requests, turns and tool calls, for OpenTelemetry: names, ids, times and outcomes, and never content.

There are none unless the usual variables say where spans go and the library is installed; then nothing of it is
imported, and the trace context in `_meta` goes through as it is. With spans, what a client sends as `traceparent` is
the parent of its request's span, and the agent is sent that span in its place (W3C Trace Context).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from dragoman import limits
from dragoman.errors import how_to_install
from dragoman.vocabulary.events import ToolCallUpdate

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

R = TypeVar("R")
# Spans that are open: of turns and tool calls whose end never comes, the oldest are let go.
_OPEN: Final = 10_000
_STOP_SECONDS: Final = 3.0
# A `tracestate` has at most so many (W3C Trace Context 3.3.1.5), and a `traceparent` 55.
_CHARACTERS: Final = 512
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


def traces_of(environment: Mapping[str, str], tell: Callable[[str], object]) -> "Traces | None":
    """Return where spans go by the variables of OpenTelemetry; None: nowhere. `tell` is called with a sentence where
    they are wanted and cannot be made."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp" if any(map(environment.get, _ENDPOINTS)) else "none")
    if exporter != "otlp" or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        tell(f"no traces are sent: they need an extra ({error.name}): {how_to_install('traces')}")
        return None
    # What is given here would count more than the variable.
    name = {} if environment.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "dragoman"}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(provider)


class Traces:
    """The open spans of one server."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("dragoman.gateway")
        self._propagator = TraceContextTextMapPropagator()
        # By session: what the next turn is asked by, and the turn that runs. By session and call: tools.
        self._asked: dict[str, Context] = {}
        self._turns: dict[str, Span] = {}
        self._calls: dict[tuple[str, str], Span] = {}

    def __repr__(self) -> str:
        return f"<Traces turns={len(self._turns)} calls={len(self._calls)}>"

    @contextmanager
    def request(self, method: str, request: R) -> Iterator[R]:
        """Have a span of a client's request, and yield the request with that span as the trace context of its agent."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        known: Any = request
        meta = known.meta if isinstance(known.meta, Mapping) else {}
        session_id = getattr(known, "session_id", None)
        attributes = {"rpc.system": "jsonrpc", "rpc.method": method}
        if isinstance(session_id, str):
            attributes["session.id"] = session_id
        parent = self._propagator.extract(_carrier(meta))
        span = self._tracer.start_span(method, parent, attributes=attributes)
        try:
            context = set_span_in_context(span)
            sent: dict[str, str] = {}
            self._propagator.inject(sent, context)
            if method == "session/prompt" and isinstance(session_id, str):
                # A prompt that is refused begins no turn: its context stays for the next one, which replaces it, or is
                # evicted.
                self._asked[session_id] = context
                limits.evict_oldest(self._asked, _OPEN)
            yield replace(known, meta={**meta, **sent})
        except BaseException:
            # That it failed, and not why: the text of an error may have a path or an answer in it.
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()

    def begin_turn(self, session_id: str) -> None:
        """Open the span of a turn, below that of the prompt that has begun it."""
        self._turns[session_id] = self._tracer.start_span(
            "turn", self._asked.pop(session_id, None), attributes={"session.id": session_id}
        )
        limits.evict_oldest(self._turns, _OPEN)

    def end_turn(self, session_id: str, stop_reason: object) -> None:
        """Close the span of a turn, and those of its tool calls that have not ended."""
        for key in [key for key in self._calls if key[0] == session_id]:
            self._calls.pop(key).end()
        span = self._turns.pop(session_id, None)
        if span is not None:
            span.set_attribute("turn.stop_reason", stop_reason if isinstance(stop_reason, str) else "none")
            span.end()

    def on_event(self, session_id: str, event: object) -> None:
        """Open or close the span of the tool call that an event is about; other events are none of ours."""
        if not isinstance(event, ToolCallUpdate):
            return
        from opentelemetry.trace import set_span_in_context

        key = (session_id, event.tool_call_id)
        span, turn = self._calls.get(key), self._turns.get(session_id)
        if span is None and turn is not None:
            # Never the title: it has the command or the path.
            attributes = {
                "session.id": session_id,
                "tool.call.id": event.tool_call_id,
                "tool.kind": str(event.kind or ""),
            }
            span = self._tracer.start_span("tool_call", set_span_in_context(turn), attributes=attributes)
            self._calls[key] = span
            limits.evict_oldest(self._calls, _OPEN)
        if span is not None and event.status in _ENDED:
            span.set_attribute("tool.status", str(event.status))
            span.end()
            self._calls.pop(key, None)

    async def close(self) -> None:
        """Send what is left, for a bounded time."""
        # In a thread: the exporter waits for the collector, which may be away.
        sending = asyncio.ensure_future(asyncio.to_thread(self._provider.shutdown))
        await asyncio.wait([sending], timeout=_STOP_SECONDS)


def _carrier(meta: Mapping[str, object]) -> dict[str, str]:
    """Return the trace context of `_meta`, where it can be one; the propagator checks its form."""
    found = {name: meta.get(name) for name in ("traceparent", "tracestate")}
    return {name: text for name, text in found.items() if isinstance(text, str) and len(text) <= _CHARACTERS}

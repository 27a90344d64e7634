"""Two dialects joined back to back: what one hears, the other says. This is a bridge without the links."""

import json
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Dialect, NotificationMessage, Out, ResultMessage, SessionEvent
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import (
    AgentAuth,
    AgentCapabilities,
    AgentHello,
    ClientCapabilities,
    ClientHello,
    Implementation,
)
from tests.dialects.schemas import text

T = TypeVar("T", ClientCapabilities, AgentCapabilities)


def _all_of(kind: type[T]) -> T:
    named = [field.name for field in msgspec.structs.fields(kind) if field.name not in ("meta", "extras")]
    return msgspec.convert(dict.fromkeys(map(_camel, named), True), kind)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


ALL_OF_CLIENT = _all_of(ClientCapabilities)
ALL_OF_AGENT = _all_of(AgentCapabilities)
CLIENT = ClientHello(ALL_OF_CLIENT, Implementation("client", "1"))
AGENT = AgentHello(Implementation("agent", "1"), ALL_OF_AGENT, [AgentAuth("login", "Log in")])


def agent_of(version: int, client: ClientHello = CLIENT, agent: AgentHello = AGENT) -> Dialect:
    return dialect_for(version, "agent", client, agent)


def client_of(version: int, client: ClientHello = CLIENT, agent: AgentHello = AGENT) -> Dialect:
    return dialect_for(version, "client", client, agent)


def client_with(**capabilities: Any) -> ClientHello:
    return ClientHello(ClientCapabilities(**capabilities))


def agent_with(**capabilities: Any) -> AgentHello:
    return AgentHello(None, AgentCapabilities(**capabilities))


class Asked(NamedTuple):
    """A request after the relay."""

    method: str
    params: Any
    request: Request


def ask(hears: Dialect, says: Dialect, method: str, params: Any) -> Asked:
    """A request as one side of a bridge hears it and the other side asks it again."""
    request = hears.decode_request(1, method, Raw(text(params)))
    assert isinstance(request, Request)
    call = says.encode_request(request)
    return Asked(call.method, json.loads(call.params or b"{}"), request)


def answer(hears: Dialect, says: Dialect, request: Request, result: Any) -> Any:
    """The result of a request, heard by the side that asked and said by the side that was asked."""
    replied = hears.decode_reply(request, Raw(text(result)))
    assert replied.reply is not None
    outs = says.encode_reply(1, request, replied.reply)
    (found,) = [out for out in outs if isinstance(out, ResultMessage)]
    return json.loads(found.result)


def hear(dialect: Dialect, params: Any) -> list[AnyEvent]:
    """`session/update` as events."""
    return [
        told.event
        for told in dialect.decode_notification("session/update", Raw(text(params)))
        if isinstance(told, SessionEvent)
    ]


def say(dialect: Dialect, session_id: str, *events: AnyEvent) -> list[Any]:
    """Events as the params of `session/update`."""
    return [_params(out) for event in events for out in dialect.encode_event(session_id, event)]


def updates_of(dialect: Dialect, *events: AnyEvent, session_id: str = "s") -> list[Any]:
    """Events as updates, without what is around them."""
    return [params["update"] for params in say(dialect, session_id, *events)]


def result_of(outs: Any) -> Any:
    (out,) = outs
    assert isinstance(out, ResultMessage), out
    return json.loads(out.result)


def _params(out: Out) -> Any:
    assert isinstance(out, NotificationMessage), out
    assert out.method == "session/update"
    return json.loads(out.params)

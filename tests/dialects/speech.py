"""Two dialects joined back to back: what one hears, the other says. This is a bridge without the links."""

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects import dialect_for
from dragoman.dialects.contract import Answer, AnswerError, Dialect, Notify, Out, Told
from dragoman.vocabulary.asking import Note, Reply, Request
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

ALL_OF_CLIENT = ClientCapabilities(
    **{name: True for name in ClientCapabilities.__struct_fields__ if name not in ("meta", "extras")}
)
ALL_OF_AGENT = AgentCapabilities(
    **{name: True for name in AgentCapabilities.__struct_fields__ if name not in ("meta", "extras")}
)
CLIENT = ClientHello(ALL_OF_CLIENT, Implementation("client", "1"))
AGENT = AgentHello(Implementation("agent", "1"), ALL_OF_AGENT, [AgentAuth("login", "Log in")])


def agent_of(version: int, client: ClientHello = CLIENT, agent: AgentHello = AGENT) -> Dialect:
    return dialect_for(version, "agent", client, agent)


def client_of(version: int, client: ClientHello = CLIENT, agent: AgentHello = AGENT) -> Dialect:
    return dialect_for(version, "client", client, agent)


def client_with(**capabilities: bool) -> ClientHello:
    return ClientHello(ClientCapabilities(**capabilities))


def agent_with(**capabilities: bool) -> AgentHello:
    return AgentHello(None, AgentCapabilities(**capabilities))


class Asked(NamedTuple):
    """A request after the relay."""

    method: str
    params: Any
    request: Request


def ask(hears: Dialect, says: Dialect, method: str, params: Any) -> Asked:
    """A request as one side of a bridge hears it and the other side asks it again."""
    request = hears.hear_request(1, method, Raw(text(params)))
    assert isinstance(request, Request)
    call = says.ask(request)
    return Asked(call.method, json.loads(call.params or b"{}"), request)


def answer(hears: Dialect, says: Dialect, request: Request, result: Any) -> Any:
    """The result of a request, heard by the side that asked and said by the side that was asked."""
    replied = hears.hear_reply(request, Raw(text(result)))
    assert replied.reply is not None
    outs = says.reply(1, request, replied.reply)
    (found,) = [out for out in outs if isinstance(out, Answer)]
    return json.loads(found.result)


def hear(dialect: Dialect, params: Any) -> list[AnyEvent]:
    """`session/update` as events."""
    return [told.event for told in dialect.hear_note("session/update", Raw(text(params))) if isinstance(told, Told)]


def say(dialect: Dialect, session_id: str, *events: AnyEvent) -> list[Any]:
    """Events as the params of `session/update`."""
    return [json.loads(out.params) for event in events for out in dialect.tell(session_id, event) if _is_update(out)]


def updates_of(dialect: Dialect, *events: AnyEvent, session_id: str = "s") -> list[Any]:
    """Events as updates, without what is around them."""
    return [params["update"] for params in say(dialect, session_id, *events)]


def result_of(outs: Any) -> Any:
    (out,) = outs
    assert isinstance(out, Answer), out
    return json.loads(out.result)


def _is_update(out: Out) -> bool:
    assert isinstance(out, Notify), out
    return out.method == "session/update"


__all__ = ["Answer", "AnswerError", "Note", "Reply", "msgspec", "replace"]

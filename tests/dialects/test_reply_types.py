"""Every request class names the class of its reply, and every dialect decodes exactly that one."""

from typing import ForwardRef, get_args

import pytest

from dragoman.dialects import dialect_for
from dragoman.dialects.codec.dialect_base import DialectBase, Route
from dragoman.dialects.handshake.initialize import JUNE
from dragoman.vocabulary import requests, services
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.hello import AgentAuth, AgentHello, ClientHello
from dragoman.wire import types as wire

NAMES = ["v1", "v2", JUNE, "iac-code", "elephant", "agentao", "simse"]


def reply_name(request: type[Request]) -> str:
    (reply,) = get_args(request.__orig_bases__[0])  # type: ignore[attr-defined]
    return reply.__forward_arg__ if isinstance(reply, ForwardRef) else str(reply.__name__)


def routes_of(name: str) -> list[Route]:
    version = 2 if name == "v2" else 1
    agent = AgentHello(None, auth_methods=[AgentAuth("login", "Log in")])
    roles = [
        dialect_for(version, role, ClientHello(), agent, "" if name in ("v1", "v2") else name)
        for role in ("agent", "client")
    ]
    return [route for one in roles if isinstance(one, DialectBase) for route in one._outgoing.values()]


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_has_the_type_that_its_request_names(name: str) -> None:
    routes = routes_of(name)
    assert routes
    # v1 decodes the answer to `session/set_mode` by hand, into the options that it changed.
    named = {route.method: (route.reply.__name__, reply_name(route.request)) for route in routes}
    assert [pair for method, pair in named.items() if method != "session/set_mode" and pair[0] != pair[1]] == []


def test_every_request_of_the_vocabulary_names_its_reply() -> None:
    found = [
        one
        for module in (requests, services)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Request) and one is not Request
    ]
    assert len(found) > 20
    for one in found:
        assert reply_name(one) in {*vars(requests), *vars(services)}


@pytest.mark.parametrize("version", [1, 2])
def test_a_client_can_make_the_decoder_of_updates_before_the_first_one(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[object, object] = {}
    monkeypatch.setattr(wire, "_DECODERS", made)
    monkeypatch.setattr(wire, "_DECODERS_BY_ID", {})
    client = dialect_for(version, "client", ClientHello(), AgentHello(None))
    assert made == {}
    client.prepare()
    assert made != {}

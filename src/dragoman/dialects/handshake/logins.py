"""Login methods, as `initialize` offers them in either version."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from dragoman.dialects.handshake.json_fields import (
    JsonDict,
    extras_of,
    has_texts,
    meta_of,
    optional_field,
    text_or_unset,
    with_unknown_fields,
)
from dragoman.vocabulary.hello import (
    COMMAND_LINE,
    AgentAuth,
    AuthMethod,
    ClientCapabilities,
    TerminalAuth,
    UnknownAuth,
)

# The two versions differ in three things: `id` became `methodId`, `type` became required, and `env` a list of pairs.
_METHOD_1: Final = frozenset({"id", "name", "description", "_meta"})
_METHOD_2: Final = frozenset({"methodId", "name", "description", "_meta"})


def offered_methods(methods: Iterable[AuthMethod], client: ClientCapabilities) -> list[AuthMethod]:
    """Return the login methods that a client can use, as it is to see them.

    The schema forbids to offer a terminal login to a client that has not said that it can run one. One that runs whole
    command lines can run a login that has one.
    """
    runs_command_lines = (client.meta or {}).get(COMMAND_LINE) is True
    shown = list(methods) if runs_command_lines else [_without_command_line(method) for method in methods]
    return [
        method
        for method in shown
        if not isinstance(method, TerminalAuth) or client.auth_terminal or COMMAND_LINE in (method.meta or {})
    ]


def _without_command_line(method: AuthMethod) -> AuthMethod:
    meta = method.meta or {}
    if COMMAND_LINE not in meta:
        return method
    return replace(method, meta={key: value for key, value in meta.items() if key != COMMAND_LINE} or msgspec.UNSET)


def encode_method_1(method: AgentAuth | TerminalAuth) -> JsonDict:
    """Encode a login method for version 1, whose readers would take an unknown type for the agent's own."""
    body: JsonDict = {"id": method.method_id, "name": method.name} | optional_field("description", method.description)
    # Only a terminal login has a type in version 1; without one a method is the agent's own.
    if isinstance(method, TerminalAuth):
        body |= {"type": "terminal"} | optional_field("args", method.args) | optional_field("env", method.env)
    return with_unknown_fields(body, method)


def encode_method_2(method: AuthMethod) -> JsonDict:
    """Encode a login method for version 2, where every type has a name."""
    if isinstance(method, UnknownAuth):
        return {**method.fields, "type": method.kind}
    body: JsonDict = {"methodId": method.method_id, "name": method.name} | optional_field(
        "description", method.description
    )
    body["type"] = "terminal" if isinstance(method, TerminalAuth) else "agent"
    if isinstance(method, TerminalAuth):
        body |= optional_field("args", method.args)
        if isinstance(method.env, dict):
            body["env"] = [{"name": name, "value": value} for name, value in method.env.items()]
    return with_unknown_fields(body, method, _METHOD_2)


def decode_method_1(method: object) -> AuthMethod | None:
    """Decode a login method of version 1; None if it is malformed."""
    method = _renamed(method, "methodId", "id")
    if not isinstance(method, dict) or not has_texts(method, "id", "name"):
        return None
    common = (method["id"], method["name"], text_or_unset(method.get("description")))
    # What of `args` and `env` is no text is dropped: the user runs that command, and must see what it is.
    if method.get("type") == "terminal":
        env = method.get("env")
        pairs = (
            {name: it for name, it in env.items() if isinstance(it, str)} if isinstance(env, dict) else msgspec.UNSET
        )
        known = _METHOD_1 | {"type", "args", "env"}
        return TerminalAuth(*common, _args(method), pairs, meta=meta_of(method), extras=extras_of(method, known))
    # Any other type is the agent's own in this version. Its name stays among the unknown fields, for version 2 readers.
    known = _METHOD_1 | ({"type"} if method.get("type") == "agent" else set())
    return AgentAuth(*common, meta=meta_of(method), extras=extras_of(method, known))


def decode_method_2(method: object) -> AuthMethod | None:
    """Decode a login method; None if it is malformed. An unknown type keeps all its fields."""
    method = _renamed(method, "id", "methodId")
    if not isinstance(method, dict) or not has_texts(method, "type", "methodId", "name"):
        return None
    common = (method["methodId"], method["name"], text_or_unset(method.get("description")))
    if method["type"] == "agent":
        return AgentAuth(*common, meta=meta_of(method), extras=extras_of(method, _METHOD_2 | {"type"}))
    if method["type"] == "terminal":
        env: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
        if isinstance(method.get("env"), list):
            found = [pair for pair in method["env"] if isinstance(pair, dict) and has_texts(pair, "name", "value")]
            env = {pair["name"]: pair["value"] for pair in found}
        known = _METHOD_2 | {"type", "args", "env"}
        return TerminalAuth(*common, _args(method), env, meta=meta_of(method), extras=extras_of(method, known))
    # An unknown type may need fields that only a later client knows; it is kept for it, and offered by no old one.
    return UnknownAuth(method["type"], {key: value for key, value in method.items() if key != "type"})


def _renamed(method: object, theirs: str, ours: str) -> object:
    """Return a method with its id under this version's name: peers of the June draft use the other (row 8.2.3)."""
    if not isinstance(method, dict) or ours in method or theirs not in method:
        return method
    return {(ours if key == theirs else key): value for key, value in method.items()}


def _args(method: JsonDict) -> list[str] | msgspec.UnsetType:
    args = method.get("args")
    return [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else msgspec.UNSET

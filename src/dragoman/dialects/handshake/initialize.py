"""`initialize` in every version, from both sides: name, version and capabilities of each, and which dialect follows.

It is written by hand and loads no generated types, so that an agent answers its first request before it has
imported the tables of the version it is going to speak.
"""

from typing import Final, NamedTuple

import msgspec

from dragoman.dialects.handshake.air import advertised_to
from dragoman.dialects.handshake.json_fields import (
    JsonDict,
    as_object,
    decode_json,
    extras_of,
    has_marker,
    has_texts,
    items,
    meta_of,
    object_field,
    optional_field,
    text_or_unset,
    with_unknown_fields,
    without_none,
)
from dragoman.dialects.handshake.logins import (
    decode_method_1,
    decode_method_2,
    encode_method_1,
    encode_method_2,
    offered_methods,
)
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION, PeerMistake, VersionMismatch
from dragoman.vocabulary.hello import (
    AgentCapabilities,
    AgentHello,
    AuthMethod,
    ClientCapabilities,
    ClientHello,
    Implementation,
    UnknownAuth,
)

SPOKEN: Final = (1, 2)
# The June 2026 draft of version 2. It has the same number as today's, so only the shape of a message tells them apart.
JUNE: Final = "v2-june"
LARGEST_VERSION: Final = 65535  # the schema's type is an unsigned integer of 16 bits


class DecodedClientHello(NamedTuple):
    """A client's `initialize`: the version we will speak, the client, and its dialect if that has a name."""

    version: int
    hello: ClientHello
    name: str = ""


class DecodedAgentHello(NamedTuple):
    """An agent's answer: the version its body is in, the agent, and its dialect if that has a name."""

    version: int
    hello: AgentHello
    name: str = ""


class PlainHandshake:
    """`initialize` where no dialect is named: any of `versions`, and the peer chooses among them.

    It has the attributes of a `NamedDialect` that a link uses, so that the link need not tell the two apart.
    """

    # The code for a request that comes before `initialize`.
    not_initialized: Final = INVALID_REQUEST
    # The protocol itself needs no `WireAdapter`.
    agent_adapter: Final = None
    client_adapter: Final = None

    def __init__(self, versions: tuple[int, ...]) -> None:
        self._versions = versions

    def decode_client(self, params: msgspec.Raw) -> DecodedClientHello:
        """Read `initialize`, and settle the version."""
        return decode_client(params, self._versions)

    def encode_agent(self, agent: AgentHello, client: ClientHello) -> bytes:
        """Encode the agent's answer, in the highest version spoken: once one is settled, it is the only one."""
        return encode_agent(max(self._versions), agent, client)

    def encode_client(self, hello: ClientHello) -> bytes:
        """Encode `initialize`, in the shapes of all versions spoken."""
        return encode_client(hello, self._versions)

    def decode_agent(self, result: msgspec.Raw) -> DecodedAgentHello:
        """Read the agent's answer; raise `VersionMismatch` if its version is none of ours."""
        return decode_agent(result, self._versions)


# -- the agent's side ------------------------------------------------------------------------------------------------


def decode_client(params: msgspec.Raw, versions: tuple[int, ...] = SPOKEN) -> DecodedClientHello:
    """Decode `initialize` and settle the version: the highest of `versions` that is at or below the requested one.

    `PeerMistake` if there is none, or the request is malformed.
    """
    requested, body = requested_version(params)
    candidates = [version for version in versions if version <= requested]
    # Asked for more than we speak, we answer our own highest: the official tests probe with 65535 and fail an agent
    # that echoes it. Asked for less than we speak (0 was a pre-release), there is no version to answer with.
    if not candidates:
        raise PeerMistake(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"requested": requested, "supported": list(versions)},
        )
    version = max(candidates)
    if version == 2 and requested == 2 and not isinstance(body.get("info"), dict):
        # `info` is required today. Without it, this is the June draft, or the body of a version 1 client that asks for
        # the highest number it has heard of: that one has version 1's capabilities.
        if 1 not in versions or not object_field(body, "clientCapabilities"):
            return DecodedClientHello(2, client_hello_june(body), JUNE)
        version = 1
    return DecodedClientHello(version, client_hello_1(body) if version == 1 else _client_hello_2(body))


def check_hello_id(id: int | str | None, decoded: DecodedClientHello) -> None:
    """Raise `PeerMistake` if an `initialize` that settles on version 2 has `"id": null`; the June draft allows it."""
    # The version is known only now, so the JSON-RPC peer could not refuse it.
    if id is None and decoded.version == 2 and not decoded.name:
        raise PeerMistake(INVALID_REQUEST, "Invalid request: `id` must not be null")


def requested_version(params: msgspec.Raw) -> tuple[int, JsonDict]:
    """Return the version that `initialize` asks for, and its whole body; `PeerMistake` if it is none."""
    body = as_object(decode_json(params))
    requested = body.get("protocolVersion")
    # `type`, not `isinstance`: true is an `int` in Python and no version.
    if type(requested) is not int or not 0 <= requested <= LARGEST_VERSION:
        raise PeerMistake(INVALID_PARAMS, "protocolVersion must be an integer from 0 to 65535")
    return requested, body


def spoken_version(requested: int) -> int:
    """Return the version that a peer which asks for `requested` is answered in, as far as its number alone tells; 0
    where it gave none."""
    return min(requested, SPOKEN[-1])


def encode_agent(version: int, hello: AgentHello, client: ClientHello) -> bytes:
    """Encode the result of `initialize`."""
    methods = offered_methods(hello.auth_methods, client.capabilities)
    body = _agent_hello_1(hello, methods) if version == 1 else _agent_hello_2(hello, methods)
    if marks := {name: _SUPPORTED for name in _EXTENSIONS if getattr(hello.capabilities, name)}:
        hello = msgspec.structs.replace(hello, meta={**marks, **(hello.meta or {})})
    if version == 1 and (meta := advertised_to(client.capabilities, hello)):
        hello = msgspec.structs.replace(hello, meta={**meta, **(hello.meta or {})})
    return msgspec.json.encode(with_unknown_fields(body, hello))


def client_hello_1(body: JsonDict) -> ClientHello:
    """Decode a client of version 1. A capability that is malformed counts as absent, as the schema's marks ask."""
    known = object_field(body, "clientCapabilities")
    # Two forms side by side: the older capabilities of version 1 are flags, the newer ones objects whose presence
    # counts. `is True`, because an absent or malformed flag means that the client does not have it.
    fs, auth, session, elicitation = (object_field(known, key) for key in ("fs", "auth", "session", "elicitation"))
    capabilities = ClientCapabilities(
        read_text_file=fs.get("readTextFile") is True,
        write_text_file=fs.get("writeTextFile") is True,
        terminal=known.get("terminal") is True,
        auth_terminal=auth.get("terminal") is True,
        elicitation_form=has_marker(elicitation, "form"),
        elicitation_url=has_marker(elicitation, "url"),
        boolean_options=has_marker(object_field(session, "configOptions"), "boolean"),
        compaction=has_marker(session, "compaction"),
        notices=has_marker(session, "notices"),
        plans=has_marker(known, "plan"),
        subagents=has_marker(known, "subagents"),
        meta=meta_of(known),
        extras=extras_of(known, _CLIENT_1),
    )
    info = implementation(body.get("clientInfo"))
    return ClientHello(capabilities, info, meta=meta_of(body), extras=extras_of(body, _HELLO))


def client_hello_june(body: JsonDict) -> ClientHello:
    """Decode a client of the June draft: it has plans by id, and nothing that is offered by a capability."""
    known = object_field(body, "capabilities")
    # Files, terminals and questions do not exist in the draft; what version 1 gates by a capability, it has without.
    capabilities = ClientCapabilities(plans=True, meta=meta_of(known), extras=extras_of(known, _CLIENT_2))
    info = implementation(body.get("clientInfo"))
    return ClientHello(capabilities, info, meta=meta_of(body), extras=extras_of(body, _HELLO))


def _client_hello_2(body: JsonDict) -> ClientHello:
    info = implementation(body.get("info"))
    # A client of a later version may have moved it; one that asks for 2 must send it.
    if info is None and body.get("protocolVersion") == 2:
        raise PeerMistake(INVALID_PARAMS, "info must have a name and a version", {"path": "$.info"})
    known = object_field(body, "capabilities")
    auth, elicitation = object_field(known, "auth"), object_field(known, "elicitation")
    capabilities = ClientCapabilities(
        auth_terminal=has_marker(auth, "terminal"),
        elicitation_form=has_marker(elicitation, "form"),
        elicitation_url=has_marker(elicitation, "url"),
        # Version 2 has no capabilities for these: every client of it has them.
        boolean_options=True,
        compaction=True,
        notices=True,
        plans=True,
        subagents=True,
        meta=meta_of(known),
        extras=extras_of(known, _CLIENT_2),
    )
    return ClientHello(capabilities, info, meta=meta_of(body), extras=extras_of(body, _HELLO))


def _agent_hello_1(hello: AgentHello, methods: list[AuthMethod]) -> JsonDict:
    can = hello.capabilities
    session: JsonDict = {name: {} for name, there in session_markers(can) if there}
    # In version 2 these come with sessions, in version 1 each is offered by itself.
    session |= {name: {} for name in ("list", "resume", "close") if getattr(can, name)}
    known: JsonDict = {
        "loadSession": can.load,
        "promptCapabilities": {"image": can.image, "audio": can.audio, "embeddedContext": can.embedded_context},
        "mcpCapabilities": {"http": can.mcp_http, "sse": can.mcp_sse} | ({"acp": True} if can.mcp_acp else {}),
        "sessionCapabilities": session,
        "auth": {name: {} for name, there in (("logout", can.logout), ("status", can.auth_status)) if there},
    }
    if can.providers:
        known["providers"] = {}
    # Unknown login methods are left out here: in this version every type but `terminal` is the agent's own.
    body: JsonDict = {
        "protocolVersion": 1,
        "agentCapabilities": with_unknown_fields(known, can, _AGENT_1),
        "authMethods": [encode_method_1(method) for method in methods if not isinstance(method, UnknownAuth)],
    }
    if hello.info is not None:
        body["agentInfo"] = encode_implementation(hello.info)
    return body


def _agent_hello_2(hello: AgentHello, methods: list[AuthMethod]) -> JsonDict:
    can = hello.capabilities
    known: JsonDict = {}
    # A capability is an object here, not a flag: its presence counts, and later versions may put fields into it.
    if can.sessions:
        prompt = (("image", can.image), ("audio", can.audio), ("embeddedContext", can.embedded_context))
        mcp = (("stdio", can.mcp_stdio), ("http", can.mcp_http), ("acp", can.mcp_acp))
        known["session"] = {
            "prompt": {name: {} for name, there in prompt if there},
            "mcp": {name: {} for name, there in mcp if there},
        } | {name: {} for name, there in session_markers(can) if there}
    if can.auth_status:
        known["auth"] = {"status": {}}
    if can.providers:
        known["providers"] = {}
    return {
        "protocolVersion": 2,
        "info": encode_implementation(hello.info or Implementation("unknown", "0")),
        "capabilities": with_unknown_fields(known, can, _AGENT_2),
        "authMethods": [encode_method_2(method) for method in methods],
    }


def session_markers(can: AgentCapabilities) -> list[tuple[str, bool]]:
    """Return the capabilities that both versions mark alike, by an object under the same name."""
    return [
        ("delete", can.delete),
        ("additionalDirectories", can.additional_directories),
        ("fork", can.fork),
        ("archive", can.archive),
        ("status", can.status),
        ("title", can.title),
    ]


# -- the client's side -----------------------------------------------------------------------------------------------


def encode_client(hello: ClientHello, versions: tuple[int, ...] = SPOKEN) -> bytes:
    """Encode `initialize`, in the shapes of both versions at once where both are spoken.

    Every agent that was tried reads the one it knows and ignores the other, so no second handshake is needed.
    """
    info = hello.info or Implementation("dragoman", "0")
    # The number is the latest we speak, as the schema wants it; an agent of version 1 answers 1 and reads its own half.
    body: JsonDict = {"protocolVersion": max(versions)}
    if 1 in versions:
        body["clientCapabilities"] = _client_capabilities_1(hello.capabilities)
        body["clientInfo"] = encode_implementation(info)
    if 2 in versions:
        body["capabilities"] = _client_capabilities_2(hello.capabilities)
        body["info"] = encode_implementation(info)
    return msgspec.json.encode(with_unknown_fields(body, hello))


def decode_agent(result: msgspec.Raw, versions: tuple[int, ...] = SPOKEN) -> DecodedAgentHello:
    """Decode the answer; `VersionMismatch` for a version that is not in `versions`.

    The body's shape decides, not the number: agents exist that echo any number they are sent.
    """
    body = as_object(decode_json(result))
    number = body.get("protocolVersion")
    if type(number) is not int:
        raise PeerMistake(INVALID_PARAMS, "protocolVersion must be an integer")
    if number == 2 and 2 in versions and isinstance(body.get("capabilities"), dict) and "info" not in body:
        # Today's agents have `info`; this one answers in the June draft, and is spoken to in it from now on.
        from dragoman.dialects.v2_june.agent import decode_agent as decode_june_agent

        return decode_june_agent(result)
    # An agent that echoes the number 2 and has no `info` answers in version 1's shape, and is one.
    shape = 2 if number >= 2 and isinstance(body.get("info"), dict) else 1
    # What is echoed is a number that we ask for: a higher one is a version of the agent's own.
    if shape not in versions or not 1 <= number <= SPOKEN[-1]:
        raise VersionMismatch(f"the agent speaks protocol version {number}; we speak {_words(versions)}")
    return DecodedAgentHello(shape, decode_agent_1(body) if shape == 1 else _decode_agent_2(body))


def _client_capabilities_1(can: ClientCapabilities) -> JsonDict:
    known: JsonDict = {
        "fs": {"readTextFile": can.read_text_file, "writeTextFile": can.write_text_file},
        "terminal": can.terminal,
        "auth": {"terminal": can.auth_terminal},
    }
    session: JsonDict = {}
    if can.boolean_options:
        session["configOptions"] = {"boolean": {}}
    session |= {name: {} for name, there in (("compaction", can.compaction), ("notices", can.notices)) if there}
    if session:
        known["session"] = session
    known |= {name: {} for name, there in (("plan", can.plans), ("subagents", can.subagents)) if there}
    return with_unknown_fields(known | _elicitation(can), can, _CLIENT_1)


def _client_capabilities_2(can: ClientCapabilities) -> JsonDict:
    # Files, terminals and the markers of version 1 have no place here: version 2 has none of the former, and implies
    # the latter.
    known: JsonDict = {"auth": {"terminal": {}}} if can.auth_terminal else {}
    return with_unknown_fields(known | _elicitation(can), can, _CLIENT_2)


def _elicitation(can: ClientCapabilities) -> JsonDict:
    # Alike in both versions. Without a mode the key is left out: an empty object would offer nothing, and look as if.
    modes: JsonDict = {
        name: {} for name, there in (("form", can.elicitation_form), ("url", can.elicitation_url)) if there
    }
    return {"elicitation": modes} if modes else {}


def decode_agent_1(body: JsonDict) -> AgentHello:
    """Decode an agent of version 1. A capability that is malformed counts as absent, as the schema's marks ask."""
    known = object_field(body, "agentCapabilities")
    prompt, mcp = object_field(known, "promptCapabilities"), object_field(known, "mcpCapabilities")
    session, auth = object_field(known, "sessionCapabilities"), object_field(known, "auth")
    capabilities = AgentCapabilities(
        load=known.get("loadSession") is True,
        **{name: has_marker(session, name) for name in ("resume", "list", "close", *_COMMON)},
        additional_directories=has_marker(session, "additionalDirectories"),
        image=prompt.get("image") is True,
        audio=prompt.get("audio") is True,
        embedded_context=prompt.get("embeddedContext") is True,
        mcp_http=mcp.get("http") is True,
        mcp_sse=mcp.get("sse") is True,
        mcp_acp=mcp.get("acp") is True,
        logout=has_marker(auth, "logout"),
        auth_status=has_marker(auth, "status"),
        providers=has_marker(known, "providers"),
        **{name: _supports(body, name) for name in _EXTENSIONS},
        meta=meta_of(known),
        extras=extras_of(known, _AGENT_1),
    )
    methods = [decode_method_1(method) for method in items(body.get("authMethods"))]
    info = implementation(body.get("agentInfo"))
    return AgentHello(info, capabilities, without_none(methods), meta=_hello_meta(body), extras=extras_of(body, _HELLO))


def _decode_agent_2(body: JsonDict) -> AgentHello:
    known = object_field(body, "capabilities")
    session, auth = object_field(known, "session"), object_field(known, "auth")
    prompt, mcp = object_field(session, "prompt"), object_field(session, "mcp")
    there = has_marker(known, "session")
    methods: list[AuthMethod] = without_none([decode_method_2(method) for method in items(body.get("authMethods"))])
    capabilities = AgentCapabilities(
        sessions=there,
        # In version 2 these four come with sessions; there is no capability for each.
        load=there,
        resume=there,
        list=there,
        close=there,
        **{name: has_marker(session, name) for name in _COMMON},
        additional_directories=has_marker(session, "additionalDirectories"),
        image=has_marker(prompt, "image"),
        audio=has_marker(prompt, "audio"),
        embedded_context=has_marker(prompt, "embeddedContext"),
        mcp_stdio=has_marker(mcp, "stdio"),
        mcp_http=has_marker(mcp, "http"),
        mcp_acp=has_marker(mcp, "acp"),
        logout=bool(methods),  # required of every agent that has a way to log in
        auth_status=has_marker(auth, "status"),
        providers=has_marker(known, "providers"),
        **{name: _supports(body, name) for name in _EXTENSIONS},
        meta=meta_of(known),
        extras=extras_of(known, _AGENT_2),
    )
    info = implementation(body.get("info"))
    return AgentHello(info, capabilities, methods, meta=_hello_meta(body), extras=extras_of(body, _HELLO))


# Extensions that stand beside the capabilities, each by its capability's own name. Both adapters advertise steering so
# (`codec/steering`); rewinding is ours (`codec/rewinding`).
_EXTENSIONS: Final = ("steering", "rewind")
_SUPPORTED: Final = {"supported": True}


def _supports(body: JsonDict, extension: str) -> bool:
    return object_field(object_field(body, "_meta"), extension).get("supported") is True


def _hello_meta(body: JsonDict) -> JsonDict | msgspec.UnsetType:
    """Return `_meta` of an agent's answer, without what capabilities say."""
    meta = object_field(body, "_meta")
    said = [name for name in _EXTENSIONS if meta.get(name) == _SUPPORTED]
    if not said:
        return meta_of(body)
    return {key: value for key, value in meta.items() if key not in said} or msgspec.UNSET


# Below: the fields that each object is known to have. What is not among them is unknown, and is kept.
_COMMON: Final = ("delete", "fork", "archive", "status", "title")
_CLIENT_1: Final = frozenset({"fs", "terminal", "auth", "session", "elicitation", "plan", "subagents", "_meta"})
_CLIENT_2: Final = frozenset({"auth", "elicitation", "_meta"})
_AGENT_1: Final = frozenset(
    {"loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities", "auth", "providers", "_meta"}
)
_AGENT_2: Final = frozenset({"session", "auth", "providers", "_meta"})
# Of the two messages of `initialize`, in any version: ours has both shapes, and an agent may echo either.
_HELLO: Final = frozenset(
    {
        *("protocolVersion", "capabilities", "info", "authMethods", "_meta"),
        *("clientCapabilities", "clientInfo", "agentCapabilities", "agentInfo"),
    }
)


def implementation(value: object) -> Implementation | None:
    """Decode a program's name and version; None if either is missing."""
    if not isinstance(value, dict) or not has_texts(value, "name", "version"):
        return None
    known = frozenset({"name", "version", "title", "_meta"})
    return Implementation(
        value["name"],
        value["version"],
        text_or_unset(value.get("title")),
        meta=meta_of(value),
        extras=extras_of(value, known),
    )


def encode_implementation(info: Implementation) -> JsonDict:
    """Encode a program's name, title and version."""
    body = {"name": info.name} | optional_field("title", info.title) | {"version": info.version}
    return with_unknown_fields(body, info)


def _words(versions: tuple[int, ...]) -> str:
    return " and ".join(str(version) for version in versions)

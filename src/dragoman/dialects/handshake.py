"""`initialize`, in every version, from both sides: who we are, who they are, and which dialect follows.

It is written by hand and loads no generated types, so that an agent answers its first request before it has
imported the tables of the version it is going to speak.
"""

from typing import Final, NamedTuple, cast

import msgspec

from dragoman.errors import INVALID_PARAMS, UNSUPPORTED_VERSION, PeerMistake, VersionMismatch
from dragoman.vocabulary.hello import (
    AgentAuth,
    AgentCapabilities,
    AgentHello,
    AuthMethod,
    ClientCapabilities,
    ClientHello,
    Implementation,
    TerminalAuth,
    UnknownAuth,
)
from dragoman.vocabulary.word import Extras, Word

SPOKEN: Final = (1, 2)
LARGEST_VERSION: Final = 65535

Json = dict[str, object]


class HeardClient(NamedTuple):
    """A client's `initialize`: the version we will speak, and the client."""

    version: int
    hello: ClientHello


class HeardAgent(NamedTuple):
    """An agent's answer: the version its body is in, and the agent."""

    version: int
    hello: AgentHello


# -- the agent's side ------------------------------------------------------------------------------------------------


def hear_client(params: msgspec.Raw, spoken: tuple[int, ...] = SPOKEN) -> HeardClient:
    """Read `initialize` and settle the version: the highest we speak that is at or below the requested one."""
    body = _object(_decode(params))
    requested = body.get("protocolVersion")
    if type(requested) is not int or not 0 <= requested <= LARGEST_VERSION:
        raise PeerMistake(INVALID_PARAMS, "protocolVersion must be an integer from 0 to 65535")
    candidates = [version for version in spoken if version <= requested]
    if not candidates:
        raise PeerMistake(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"requested": requested, "supported": list(spoken)},
        )
    version = max(candidates)
    if version == 2 and requested == 2 and not isinstance(body.get("info"), dict):
        # A version 2 without `info` is an older draft's, or a version 1 body under a hopeful number.
        if 1 not in spoken:
            raise PeerMistake(INVALID_PARAMS, "info is required", {"path": "$.info"})
        version = 1
    return HeardClient(version, _client_hello_1(body) if version == 1 else _client_hello_2(body))


def say_agent(version: int, hello: AgentHello, client: ClientHello) -> bytes:
    """The result of `initialize`. A terminal login is offered only to a client that can run one."""
    methods = [m for m in hello.auth_methods if client.capabilities.auth_terminal or not isinstance(m, TerminalAuth)]
    body = _agent_hello_1(hello, methods) if version == 1 else _agent_hello_2(hello, methods)
    return msgspec.json.encode(_whole(body, hello))


def _client_hello_1(body: Json) -> ClientHello:
    known = _part(body, "clientCapabilities")
    fs, auth, session, elicitation = (_part(known, key) for key in ("fs", "auth", "session", "elicitation"))
    capabilities = ClientCapabilities(
        read_text_file=fs.get("readTextFile") is True,
        write_text_file=fs.get("writeTextFile") is True,
        terminal=known.get("terminal") is True,
        auth_terminal=auth.get("terminal") is True,
        elicitation_form=_marked(elicitation, "form"),
        elicitation_url=_marked(elicitation, "url"),
        boolean_options=_marked(_part(session, "configOptions"), "boolean"),
        compaction=_marked(session, "compaction"),
        notices=_marked(session, "notices"),
        plans=_marked(known, "plan"),
        subagents=_marked(known, "subagents"),
        meta=_meta(known),
        extras=_extras(known, _CLIENT_1),
    )
    info = _implementation(body.get("clientInfo"))
    return ClientHello(capabilities, info, meta=_meta(body), extras=_extras(body, _HELLO))


def _client_hello_2(body: Json) -> ClientHello:
    info = _implementation(body.get("info"))
    if info is None and body.get("protocolVersion") == 2:
        raise PeerMistake(INVALID_PARAMS, "info must have a name and a version", {"path": "$.info"})
    known = _part(body, "capabilities")
    auth, elicitation = _part(known, "auth"), _part(known, "elicitation")
    capabilities = ClientCapabilities(
        auth_terminal=_marked(auth, "terminal"),
        elicitation_form=_marked(elicitation, "form"),
        elicitation_url=_marked(elicitation, "url"),
        # Version 2 has no switches for these: every client takes them.
        boolean_options=True,
        compaction=True,
        notices=True,
        plans=True,
        subagents=True,
        meta=_meta(known),
        extras=_extras(known, _CLIENT_2),
    )
    return ClientHello(capabilities, info, meta=_meta(body), extras=_extras(body, _HELLO))


def _agent_hello_1(hello: AgentHello, methods: list[AuthMethod]) -> Json:
    can = hello.capabilities
    session: Json = {name: {} for name, there in _session_markers(can) if there}
    session |= {name: {} for name in ("list", "resume", "close") if getattr(can, name)}
    known: Json = {
        "loadSession": can.load,
        "promptCapabilities": {"image": can.image, "audio": can.audio, "embeddedContext": can.embedded_context},
        "mcpCapabilities": {"http": can.mcp_http, "sse": can.mcp_sse} | ({"acp": True} if can.mcp_acp else {}),
        "sessionCapabilities": session,
        "auth": {name: {} for name, there in (("logout", can.logout), ("status", can.auth_status)) if there},
    }
    if can.providers:
        known["providers"] = {}
    body: Json = {
        "protocolVersion": 1,
        "agentCapabilities": _whole(known, can, _AGENT_1),
        "authMethods": [_say_method_1(method) for method in methods if not isinstance(method, UnknownAuth)],
    }
    if hello.info is not None:
        body["agentInfo"] = _say_implementation(hello.info)
    return body


def _agent_hello_2(hello: AgentHello, methods: list[AuthMethod]) -> Json:
    can = hello.capabilities
    known: Json = {}
    if can.sessions:
        prompt = (("image", can.image), ("audio", can.audio), ("embeddedContext", can.embedded_context))
        mcp = (("stdio", can.mcp_stdio), ("http", can.mcp_http), ("acp", can.mcp_acp))
        known["session"] = {
            "prompt": {name: {} for name, there in prompt if there},
            "mcp": {name: {} for name, there in mcp if there},
        } | {name: {} for name, there in _session_markers(can) if there}
    if can.auth_status:
        known["auth"] = {"status": {}}
    if can.providers:
        known["providers"] = {}
    return {
        "protocolVersion": 2,
        "info": _say_implementation(hello.info or Implementation("unknown", "0")),
        "capabilities": _whole(known, can, _AGENT_2),
        "authMethods": [_say_method_2(method) for method in methods],
    }


def _session_markers(can: AgentCapabilities) -> list[tuple[str, bool]]:
    return [
        ("delete", can.delete),
        ("additionalDirectories", can.additional_directories),
        ("fork", can.fork),
        ("archive", can.archive),
        ("status", can.status),
        ("title", can.title),
    ]


# -- the client's side -----------------------------------------------------------------------------------------------


def say_client(hello: ClientHello, spoken: tuple[int, ...] = SPOKEN) -> bytes:
    """`initialize` in both shapes at once: every agent reads the one it knows, and no second handshake is needed."""
    info = hello.info or Implementation("dragoman", "0")
    body: Json = {"protocolVersion": max(spoken)}
    if 1 in spoken:
        body["clientCapabilities"] = _client_capabilities_1(hello.capabilities)
        body["clientInfo"] = _say_implementation(info)
    if 2 in spoken:
        body["capabilities"] = _client_capabilities_2(hello.capabilities)
        body["info"] = _say_implementation(info)
    return msgspec.json.encode(_whole(body, hello))


def hear_agent(result: msgspec.Raw, spoken: tuple[int, ...] = SPOKEN) -> HeardAgent:
    """Read the answer. The body's shape decides, not the number: agents exist that echo any number they are sent."""
    body = _object(_decode(result))
    number = body.get("protocolVersion")
    if type(number) is not int:
        raise PeerMistake(INVALID_PARAMS, "protocolVersion must be an integer")
    shape = 2 if number >= 2 and isinstance(body.get("info"), dict) else 1
    if shape not in spoken or number < 1 or (shape == 2 and number != 2):
        raise VersionMismatch(f"the agent speaks protocol version {number}; we speak {_words(spoken)}")
    return HeardAgent(shape, _hear_agent_1(body) if shape == 1 else _hear_agent_2(body))


def _client_capabilities_1(can: ClientCapabilities) -> Json:
    known: Json = {
        "fs": {"readTextFile": can.read_text_file, "writeTextFile": can.write_text_file},
        "terminal": can.terminal,
        "auth": {"terminal": can.auth_terminal},
    }
    session: Json = {}
    if can.boolean_options:
        session["configOptions"] = {"boolean": {}}
    session |= {name: {} for name, there in (("compaction", can.compaction), ("notices", can.notices)) if there}
    if session:
        known["session"] = session
    known |= {name: {} for name, there in (("plan", can.plans), ("subagents", can.subagents)) if there}
    return _whole(known | _elicitation(can), can, _CLIENT_1)


def _client_capabilities_2(can: ClientCapabilities) -> Json:
    known: Json = {"auth": {"terminal": {}}} if can.auth_terminal else {}
    return _whole(known | _elicitation(can), can, _CLIENT_2)


def _elicitation(can: ClientCapabilities) -> Json:
    modes: Json = {name: {} for name, there in (("form", can.elicitation_form), ("url", can.elicitation_url)) if there}
    return {"elicitation": modes} if modes else {}


def _hear_agent_1(body: Json) -> AgentHello:
    known = _part(body, "agentCapabilities")
    prompt, mcp = _part(known, "promptCapabilities"), _part(known, "mcpCapabilities")
    session, auth = _part(known, "sessionCapabilities"), _part(known, "auth")
    capabilities = AgentCapabilities(
        load=known.get("loadSession") is True,
        **{name: _marked(session, name) for name in ("resume", "list", "close", *_COMMON)},
        additional_directories=_marked(session, "additionalDirectories"),
        image=prompt.get("image") is True,
        audio=prompt.get("audio") is True,
        embedded_context=prompt.get("embeddedContext") is True,
        mcp_http=mcp.get("http") is True,
        mcp_sse=mcp.get("sse") is True,
        mcp_acp=mcp.get("acp") is True,
        logout=_marked(auth, "logout"),
        auth_status=_marked(auth, "status"),
        providers=_marked(known, "providers"),
        meta=_meta(known),
        extras=_extras(known, _AGENT_1),
    )
    methods = [_hear_method_1(method) for method in _list(body.get("authMethods"))]
    info = _implementation(body.get("agentInfo"))
    return AgentHello(info, capabilities, _there(methods), meta=_meta(body), extras=_extras(body, _HELLO))


def _hear_agent_2(body: Json) -> AgentHello:
    known = _part(body, "capabilities")
    session, auth = _part(known, "session"), _part(known, "auth")
    prompt, mcp = _part(session, "prompt"), _part(session, "mcp")
    there = _marked(known, "session")
    methods = _there([_hear_method_2(method) for method in _list(body.get("authMethods"))])
    capabilities = AgentCapabilities(
        sessions=there,
        # Whoever has sessions in version 2 has these.
        load=there,
        resume=there,
        list=there,
        close=there,
        **{name: _marked(session, name) for name in _COMMON},
        additional_directories=_marked(session, "additionalDirectories"),
        image=_marked(prompt, "image"),
        audio=_marked(prompt, "audio"),
        embedded_context=_marked(prompt, "embeddedContext"),
        mcp_stdio=_marked(mcp, "stdio"),
        mcp_http=_marked(mcp, "http"),
        mcp_acp=_marked(mcp, "acp"),
        logout=bool(methods),
        auth_status=_marked(auth, "status"),
        providers=_marked(known, "providers"),
        meta=_meta(known),
        extras=_extras(known, _AGENT_2),
    )
    info = _implementation(body.get("info"))
    return AgentHello(info, capabilities, methods, meta=_meta(body), extras=_extras(body, _HELLO))


# -- login methods ---------------------------------------------------------------------------------------------------


def _say_method_1(method: AgentAuth | TerminalAuth) -> Json:
    """Unknown types have no place here: a reader of version 1 takes every one for the agent's own."""
    body: Json = {"id": method.method_id, "name": method.name} | _set("description", method.description)
    if isinstance(method, TerminalAuth):
        body |= {"type": "terminal"} | _set("args", method.args) | _set("env", method.env)
    return _whole(body, method)


def _say_method_2(method: AuthMethod) -> Json:
    if isinstance(method, UnknownAuth):
        return {**method.fields, "type": method.kind}
    body: Json = {"methodId": method.method_id, "name": method.name} | _set("description", method.description)
    body["type"] = "terminal" if isinstance(method, TerminalAuth) else "agent"
    if isinstance(method, TerminalAuth):
        body |= _set("args", method.args)
        if isinstance(method.env, dict):
            body["env"] = [{"name": name, "value": value} for name, value in method.env.items()]
    return _whole(body, method, _METHOD_2)


def _hear_method_1(method: object) -> AuthMethod | None:
    """Any type but `terminal` is the agent's own here; its name is kept."""
    if not isinstance(method, dict) or not _strings(method, "id", "name"):
        return None
    common = (method["id"], method["name"], _text(method.get("description")))
    if method.get("type") == "terminal":
        env = method.get("env")
        pairs = (
            {name: it for name, it in env.items() if isinstance(it, str)} if isinstance(env, dict) else msgspec.UNSET
        )
        known = _METHOD_1 | {"type", "args", "env"}
        return TerminalAuth(*common, _args(method), pairs, meta=_meta(method), extras=_extras(method, known))
    known = _METHOD_1 | ({"type"} if method.get("type") == "agent" else set())
    return AgentAuth(*common, meta=_meta(method), extras=_extras(method, known))


def _hear_method_2(method: object) -> AuthMethod | None:
    if not isinstance(method, dict) or not _strings(method, "type", "methodId", "name"):
        return None
    common = (method["methodId"], method["name"], _text(method.get("description")))
    if method["type"] == "agent":
        return AgentAuth(*common, meta=_meta(method), extras=_extras(method, _METHOD_2 | {"type"}))
    if method["type"] == "terminal":
        env: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
        if isinstance(method.get("env"), list):
            found = [pair for pair in method["env"] if isinstance(pair, dict) and _strings(pair, "name", "value")]
            env = {pair["name"]: pair["value"] for pair in found}
        known = _METHOD_2 | {"type", "args", "env"}
        return TerminalAuth(*common, _args(method), env, meta=_meta(method), extras=_extras(method, known))
    return UnknownAuth(method["type"], {key: value for key, value in method.items() if key != "type"})


def _args(method: Json) -> list[str] | msgspec.UnsetType:
    args = method.get("args")
    return [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else msgspec.UNSET


# -- small readings of loose JSON: what is malformed here counts as absent, as the schema's marks ask ------------------

_COMMON: Final = ("delete", "fork", "archive", "status", "title")
_CLIENT_1: Final = frozenset({"fs", "terminal", "auth", "session", "elicitation", "plan", "subagents", "_meta"})
_CLIENT_2: Final = frozenset({"auth", "elicitation", "_meta"})
_AGENT_1: Final = frozenset(
    {"loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities", "auth", "providers", "_meta"}
)
_AGENT_2: Final = frozenset({"session", "auth", "providers", "_meta"})
_METHOD_1: Final = frozenset({"id", "name", "description", "_meta"})
_METHOD_2: Final = frozenset({"methodId", "name", "description", "_meta"})
# What the two messages of `initialize` consist of in any version.
_HELLO: Final = frozenset(
    {
        *("protocolVersion", "capabilities", "info", "authMethods", "_meta"),
        *("clientCapabilities", "clientInfo", "agentCapabilities", "agentInfo"),
    }
)


def _decode(params: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(params) if bytes(params) else {}
    except (ValueError, RecursionError, OverflowError):
        raise PeerMistake(INVALID_PARAMS, "Invalid params") from None


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise PeerMistake(INVALID_PARAMS, "initialize needs an object")
    return cast(Json, value)


def _part(body: Json, key: str) -> Json:
    value = body.get(key)
    return cast(Json, value) if isinstance(value, dict) else {}


def _marked(body: Json, key: str) -> bool:
    return isinstance(body.get(key), dict)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _there(methods: list[AuthMethod | None]) -> list[AuthMethod]:
    return [method for method in methods if method is not None]


def _strings(body: Json, *keys: str) -> bool:
    return all(isinstance(body.get(key), str) for key in keys)


def _text(value: object) -> str | msgspec.UnsetType:
    return value if isinstance(value, str) else msgspec.UNSET


def _meta(body: Json) -> dict[str, object] | msgspec.UnsetType:
    value = body.get("_meta")
    return cast(Json, value) if isinstance(value, dict) else msgspec.UNSET


def _extras(body: Json, known: frozenset[str]) -> Extras | msgspec.UnsetType:
    unknown = {key: value for key, value in body.items() if key not in known}
    return Extras(unknown) if unknown else msgspec.UNSET


def _whole(body: Json, word: Word, known: frozenset[str] = frozenset()) -> Json:
    """The object with its `_meta` and what was unknown in it. What has a meaning here was not unknown: it is ours."""
    unknown = word.extras.fields if isinstance(word.extras, Extras) else {}
    return {**{key: it for key, it in unknown.items() if key not in known}, **body, **_set("_meta", word.meta)}


def _set(key: str, value: object) -> Json:
    return {} if value is msgspec.UNSET else {key: value}


def _implementation(value: object) -> Implementation | None:
    if not isinstance(value, dict) or not _strings(value, "name", "version"):
        return None
    known = frozenset({"name", "version", "title", "_meta"})
    return Implementation(
        value["name"], value["version"], _text(value.get("title")), meta=_meta(value), extras=_extras(value, known)
    )


def _say_implementation(info: Implementation) -> Json:
    body = {"name": info.name} | _set("title", info.title) | {"version": info.version}
    return _whole(body, info)


def _words(spoken: tuple[int, ...]) -> str:
    return " and ".join(str(version) for version in spoken)

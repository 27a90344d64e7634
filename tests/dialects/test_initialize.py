"""`initialize` from both sides: which version follows, and who the other side says it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dragoman.dialects.handshake.initialize import (
    DecodedAgentHello,
    DecodedClientHello,
    decode_agent,
    decode_client,
    encode_agent,
    encode_client,
)
from dragoman.errors import PeerMistake, VersionMismatch
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
from dragoman.vocabulary.word import Extras
from tests.dialects.joined_dialects import AGENT, ALL_OF_AGENT, ALL_OF_CLIENT, CLIENT
from tests.dialects.schemas import SHARE, assert_valid, messages, text

INFO = {"name": "editor", "version": "1"}
EDITOR = Implementation("editor", "1")
MARKERS = ("delete", "additionalDirectories", "fork", "archive", "status", "title")
V2_CLIENT = ClientCapabilities(boolean_options=True, compaction=True, notices=True, plans=True, subagents=True)


def client(spoken: tuple[int, ...] = (1, 2), **params: Any) -> DecodedClientHello:
    return decode_client(Raw(text(params)), spoken)


def refusal(spoken: tuple[int, ...] = (1, 2), **params: Any) -> tuple[int, str, object]:
    with pytest.raises(PeerMistake) as caught:
        client(spoken, **params)
    return caught.value.code, caught.value.message, caught.value.data


def agent(spoken: tuple[int, ...] = (1, 2), **result: Any) -> DecodedAgentHello:
    return decode_agent(Raw(text(result)), spoken)


# -- the agent's side: which version ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "spoken", "version"),
    [(1, (1, 2), 1), (2, (1, 2), 2), (3, (1, 2), 2), (65535, (1, 2), 2), (65535, (1,), 1), (2, (1,), 1), (2, (2,), 2)],
)
def test_the_highest_version_at_or_below_the_requested_one_is_spoken(
    requested: int, spoken: tuple[int, ...], version: int
) -> None:
    assert client(spoken, protocolVersion=requested, info=INFO).version == version


@pytest.mark.parametrize(("requested", "spoken"), [(0, (1, 2)), (1, (2,)), (0, (2,))])
def test_a_version_below_all_of_ours_is_refused_with_what_we_speak(requested: int, spoken: tuple[int, ...]) -> None:
    assert refusal(spoken, protocolVersion=requested, info=INFO) == (
        -32022,
        "Unsupported protocol version",
        {"requested": requested, "supported": list(spoken)},
    )


def test_another_initialize_may_follow_a_refused_one() -> None:
    assert refusal(protocolVersion=0)[0] == -32022
    assert client(protocolVersion=1) == DecodedClientHello(1, ClientHello())


@pytest.mark.parametrize("version", [True, False, "1", 1.5, 1.0, None, -1, 65536, [1], {"v": 1}])
def test_a_version_that_is_no_version_is_refused(version: Any) -> None:
    assert refusal(protocolVersion=version) == (-32602, "protocolVersion must be an integer from 0 to 65535", None)


@pytest.mark.parametrize("params", [b"{}", b""])
def test_a_missing_version_is_refused(params: bytes) -> None:
    with pytest.raises(PeerMistake) as caught:
        decode_client(Raw(params))
    assert caught.value.code == -32602


@pytest.mark.parametrize("params", [b"[]", b"1", b"null", b"{", b'"\xff"', b"[" * 100_000])
def test_params_that_are_no_object_are_refused(params: bytes) -> None:
    with pytest.raises(PeerMistake) as caught:
        decode_client(Raw(params))
    assert caught.value.code == -32602


def test_version_2_without_info_is_taken_for_a_version_1_body() -> None:
    heard = client(protocolVersion=2, clientInfo=INFO, clientCapabilities={"terminal": True})
    assert heard == DecodedClientHello(1, ClientHello(ClientCapabilities(terminal=True), EDITOR))


def test_version_2_without_info_is_the_older_draft_where_only_version_2_is_spoken() -> None:
    heard = client((2,), protocolVersion=2, clientCapabilities={"terminal": True})
    assert (heard.version, heard.name, heard.hello.capabilities.terminal) == (2, "v2-june", False)


@pytest.mark.parametrize("info", [{}, {"name": "n"}, {"name": 1, "version": "v"}])
def test_version_2_with_half_an_info_is_refused(info: Any) -> None:
    assert refusal(protocolVersion=2, info=info)[0] == -32602


def test_a_probe_for_the_newest_version_needs_no_info() -> None:
    assert client(protocolVersion=65535) == DecodedClientHello(2, ClientHello(V2_CLIENT))


# -- the agent's side: who the client is -----------------------------------------------------------------------------


def test_one_initialize_may_carry_both_shapes() -> None:
    both: Any = {
        "clientCapabilities": {"fs": {"readTextFile": True}, "elicitation": {"url": {}}},
        "clientInfo": {"name": "old", "version": "0"},
        "capabilities": {"elicitation": {"form": {}}},
        "info": INFO,
    }
    one = ClientCapabilities(read_text_file=True, elicitation_url=True)
    two = ClientCapabilities(
        elicitation_form=True, boolean_options=True, compaction=True, notices=True, plans=True, subagents=True
    )
    assert client(protocolVersion=1, **both) == DecodedClientHello(1, ClientHello(one, Implementation("old", "0")))
    assert client(protocolVersion=2, **both) == DecodedClientHello(2, ClientHello(two, EDITOR))


def test_every_capability_of_a_version_1_client_is_heard() -> None:
    heard = client(
        protocolVersion=1,
        clientCapabilities={
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": True,
            "auth": {"terminal": True},
            "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
            "elicitation": {"form": {}, "url": {}},
            "plan": {},
            "subagents": {},
        },
    )
    assert heard.hello.capabilities == ALL_OF_CLIENT


@pytest.mark.parametrize("malformed", [True, 1, "yes", [], None])
def test_malformed_capabilities_are_absent(malformed: Any) -> None:
    assert client(protocolVersion=1, clientCapabilities=malformed) == DecodedClientHello(1, ClientHello())
    assert client(protocolVersion=2, info=INFO, capabilities=malformed) == DecodedClientHello(
        2, ClientHello(V2_CLIENT, EDITOR)
    )


@pytest.mark.parametrize("malformed", [1, "yes", [], None, {"readTextFile": 1, "form": True, "terminal": {}}])
def test_malformed_parts_of_capabilities_are_absent(malformed: Any) -> None:
    parts = dict.fromkeys(("fs", "terminal", "auth", "session", "elicitation"), malformed)
    assert client(protocolVersion=1, clientCapabilities=parts) == DecodedClientHello(1, ClientHello())


def test_an_empty_elicitation_offers_nothing() -> None:
    assert client(protocolVersion=1, clientCapabilities={"elicitation": {}}).hello.capabilities == ClientCapabilities()


def test_unknown_fields_and_meta_are_kept() -> None:
    heard = client(
        protocolVersion=1,
        clientCapabilities={"nes": {"jump": {}}, "_meta": {"zed.dev": 1}},
        clientInfo={**INFO, "_meta": {"a": 1}, "vendor": 2},
        _meta={"traceparent": "00"},
        vendor=[3],
    )
    assert heard.hello == ClientHello(
        ClientCapabilities(meta={"zed.dev": 1}, extras=Extras({"nes": {"jump": {}}})),
        Implementation("editor", "1", meta={"a": 1}, extras=Extras({"vendor": 2})),
        meta={"traceparent": "00"},
        extras=Extras({"vendor": [3]}),
    )
    assert json.loads(encode_client(heard.hello, (1,))) == {
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "auth": {"terminal": False},
            "nes": {"jump": {}},
            "_meta": {"zed.dev": 1},
        },
        "clientInfo": {**INFO, "_meta": {"a": 1}, "vendor": 2},
        "_meta": {"traceparent": "00"},
        "vendor": [3],
    }


def test_an_unknown_field_never_becomes_a_capability_of_the_other_version() -> None:
    """A version 2 client that happens to send `terminal: true` has not lent its terminal to a version 1 agent."""
    heard = client(protocolVersion=2, info=INFO, capabilities={"terminal": True, "fs": {"writeTextFile": True}, "x": 1})
    said = json.loads(encode_client(heard.hello, (1,)))["clientCapabilities"]
    assert (said["terminal"], said["fs"], said["x"]) == (False, {"readTextFile": False, "writeTextFile": False}, 1)


def test_what_a_version_has_a_meaning_for_is_never_said_as_unknown() -> None:
    names = ("plan", "session", "auth", "elicitation", "subagents", "x")
    forged = Extras({name: {"terminal": True} for name in names})
    said = json.loads(encode_client(ClientHello(ClientCapabilities(extras=forged))))
    assert said["clientCapabilities"].keys() == {"fs", "terminal", "auth", "x"}
    assert said["capabilities"].keys() == {"plan", "session", "subagents", "x"}


def test_an_unknown_field_never_becomes_a_capability_of_an_agent() -> None:
    heard = agent(protocolVersion=1, agentCapabilities={"session": {"delete": {}}, "x": 1})
    said = json.loads(encode_agent(2, heard.hello, CLIENT))["capabilities"]
    assert said == {"x": 1, "session": {"prompt": {}, "mcp": {"stdio": {}}}}


# -- the agent's side: the answer ------------------------------------------------------------------------------------


def test_the_answer_in_version_1() -> None:
    hello = AgentHello(EDITOR, ALL_OF_AGENT, [AgentAuth("a", "A", "how")], meta={"m": 1})
    assert json.loads(encode_agent(1, hello, ClientHello())) == {
        "protocolVersion": 1,
        "agentInfo": INFO,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True, "acp": True},
            "sessionCapabilities": {name: {} for name in ("list", "resume", "close", *MARKERS)},
            "auth": {"logout": {}, "status": {}},
            "providers": {},
        },
        "authMethods": [{"id": "a", "name": "A", "description": "how"}],
        "_meta": {"m": 1, "steering": {"supported": True}, "rewind": {"supported": True}},
    }


def test_the_answer_in_version_2() -> None:
    hello = AgentHello(EDITOR, ALL_OF_AGENT, [AgentAuth("a", "A")])
    assert json.loads(encode_agent(2, hello, ClientHello())) == {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}, "acp": {}},
                **{name: {} for name in MARKERS},
            },
            "auth": {"status": {}},
            "providers": {},
        },
        "authMethods": [{"type": "agent", "methodId": "a", "name": "A"}],
        "_meta": {"steering": {"supported": True}, "rewind": {"supported": True}},
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_login_in_a_terminal_is_offered_only_to_who_can_run_one(version: int) -> None:
    hello = AgentHello(EDITOR, auth_methods=[TerminalAuth("t", "T"), AgentAuth("a", "A")])
    names = [
        [method["name"] for method in json.loads(encode_agent(version, hello, ClientHello(can)))["authMethods"]]
        for can in (ClientCapabilities(), ClientCapabilities(auth_terminal=True))
    ]
    assert names == [["A"], ["T", "A"]]


COMMAND_LINE = {"command": "/bin/agent", "args": ["login"], "label": "Login"}


@pytest.mark.requirement("ED3")
@pytest.mark.parametrize("version", [1, 2])
def test_a_client_that_runs_command_lines_is_sent_those_of_terminal_logins(version: int) -> None:
    """Zed declares `terminal-auth` and no login of the schema."""
    methods: list[AuthMethod] = [
        TerminalAuth("t", "T", meta={"terminal-auth": COMMAND_LINE}),
        TerminalAuth("bare", "Bare"),
    ]
    client = ClientHello(ClientCapabilities(meta={"terminal-auth": True}))
    (offered,) = json.loads(encode_agent(version, AgentHello(EDITOR, auth_methods=methods), client))["authMethods"]
    assert (offered["name"], offered["_meta"]) == ("T", {"terminal-auth": COMMAND_LINE})


@pytest.mark.requirement("ED4")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("declared", [{}, {"terminal-auth": False}, {"terminal-auth": "true"}, {"terminal-auth": {}}])
def test_a_client_that_does_not_declare_it_is_sent_no_command_line(version: int, declared: Any) -> None:
    with_line = {"terminal-auth": COMMAND_LINE}
    methods: list[AuthMethod] = [
        TerminalAuth("t", "T", meta=with_line),
        TerminalAuth("u", "U", meta={**with_line, "mine": 1}),
        AgentAuth("a", "A", meta=with_line),
    ]
    hello = AgentHello(EDITOR, auth_methods=methods)
    found = [
        [(method["name"], method.get("_meta")) for method in json.loads(answer)["authMethods"]]
        for answer in (
            encode_agent(version, hello, ClientHello(ClientCapabilities(meta=declared, auth_terminal=can)))
            for can in (False, True)
        )
    ]
    assert found == [[("A", None)], [("T", None), ("U", {"mine": 1}), ("A", None)]]


METHODS: list[AuthMethod] = [
    AgentAuth("a", "A", "d", meta={"m": 1}, extras=Extras({"x": 1})),
    TerminalAuth("t", "T", UNSET, ["--login"], {"KEY": "value"}),
    TerminalAuth("t", "T"),
]


@pytest.mark.parametrize("version", [1, 2])
def test_login_methods_come_back_as_they_were(version: int) -> None:
    hello = AgentHello(EDITOR, AgentCapabilities(), METHODS)
    assert decode_agent(Raw(encode_agent(version, hello, CLIENT))).hello.auth_methods == METHODS


def test_a_login_of_an_unknown_type_is_kept_in_version_2_and_not_offered_in_version_1() -> None:
    method = {"type": "_oauth", "methodId": "o", "name": "O", "scopes": ["a"]}
    heard = agent(protocolVersion=2, info=INFO, authMethods=[method]).hello
    assert heard.auth_methods == [UnknownAuth("_oauth", {"methodId": "o", "name": "O", "scopes": ["a"]})]
    assert json.loads(encode_agent(2, heard, CLIENT))["authMethods"] == [method]
    assert json.loads(encode_agent(1, heard, CLIENT))["authMethods"] == []


def test_a_login_of_any_type_is_the_agents_own_in_version_1() -> None:
    heard = agent(protocolVersion=1, authMethods=[{"type": "oauth", "id": "o", "name": "O"}]).hello
    assert heard.auth_methods == [AgentAuth("o", "O", extras=Extras({"type": "oauth"}))]
    assert json.loads(encode_agent(1, heard, CLIENT))["authMethods"] == [{"type": "oauth", "id": "o", "name": "O"}]
    assert json.loads(encode_agent(2, heard, CLIENT))["authMethods"] == [
        {"type": "agent", "methodId": "o", "name": "O"}
    ]


@pytest.mark.parametrize("malformed", [1, {}, {"id": "a"}, {"id": 1, "name": "n"}, {"type": "agent", "methodId": "a"}])
@pytest.mark.parametrize("version", [1, 2])
def test_a_malformed_login_method_is_skipped(version: int, malformed: Any) -> None:
    assert agent(protocolVersion=version, info=INFO, authMethods=[malformed]).hello.auth_methods == []


# -- the client's side -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("hello", [CLIENT, ClientHello(), ClientHello(ClientCapabilities(elicitation_form=True))])
def test_one_initialize_is_valid_in_both_versions(hello: ClientHello) -> None:
    said = json.loads(encode_client(hello))
    assert said["protocolVersion"] == 2
    assert_valid(1, "InitializeRequest", said)
    assert_valid(2, "InitializeRequest", said)


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "hello", [AGENT, AgentHello(None), AgentHello(EDITOR, ALL_OF_AGENT, METHODS), AgentHello(EDITOR)]
)
def test_every_answer_is_valid_in_its_version(version: int, hello: AgentHello) -> None:
    assert_valid(version, "InitializeResponse", json.loads(encode_agent(version, hello, CLIENT)))


@pytest.mark.parametrize("spoken", [(1,), (2,), (1, 2)])
def test_a_client_says_only_the_shapes_it_speaks(spoken: tuple[int, ...]) -> None:
    shapes = {1: {"clientCapabilities", "clientInfo"}, 2: {"capabilities", "info"}}
    said = json.loads(encode_client(CLIENT, spoken))
    assert said.keys() == {"protocolVersion"}.union(*(shapes[version] for version in spoken))
    assert said["protocolVersion"] == max(spoken)


@pytest.mark.parametrize("number", [1, 2])
def test_an_agent_that_echoes_our_number_over_a_version_1_body_speaks_version_1(number: int) -> None:
    heard = agent(protocolVersion=number, agentCapabilities={"loadSession": True}, agentInfo=INFO)
    assert heard == DecodedAgentHello(1, AgentHello(EDITOR, AgentCapabilities(load=True)))


def test_an_agent_that_answers_2_with_a_version_2_body_speaks_version_2() -> None:
    heard = agent(protocolVersion=2, info=INFO, capabilities={"session": {}})
    capabilities = AgentCapabilities(load=True, resume=True, list=True, close=True, mcp_stdio=False)
    assert heard == DecodedAgentHello(2, AgentHello(EDITOR, capabilities))


def test_an_agent_without_sessions_has_none() -> None:
    heard = agent(protocolVersion=2, info=INFO)
    assert heard == DecodedAgentHello(2, AgentHello(EDITOR, AgentCapabilities(sessions=False, mcp_stdio=False)))


@pytest.mark.parametrize(
    ("spoken", "result", "words"),
    [
        ((2,), {"protocolVersion": 1}, "the agent speaks protocol version 1; we speak 2"),
        ((1,), {"protocolVersion": 2, "info": INFO}, "the agent speaks protocol version 2; we speak 1"),
        ((1, 2), {"protocolVersion": 0}, "the agent speaks protocol version 0; we speak 1 and 2"),
        ((1, 2), {"protocolVersion": 3, "info": INFO}, "the agent speaks protocol version 3; we speak 1 and 2"),
        (
            (1, 2),
            {"protocolVersion": 65535, "agentInfo": INFO},
            "the agent speaks protocol version 65535; we speak 1 and 2",
        ),
        ((1, 2), {"protocolVersion": -1}, "the agent speaks protocol version -1; we speak 1 and 2"),
    ],
)
def test_a_version_that_we_do_not_speak_is_a_mismatch(spoken: tuple[int, ...], result: Any, words: str) -> None:
    with pytest.raises(VersionMismatch, match=f"^{words}$"):
        agent(spoken, **result)


@pytest.mark.parametrize("number", [True, "1", 1.0, None])
def test_an_answer_without_a_version_is_refused(number: Any) -> None:
    with pytest.raises(PeerMistake):
        agent(protocolVersion=number)


# -- both ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("version", [1, 2])
@SHARE
@given(data=st.data())
def test_what_any_client_says_is_heard_and_said_on_in_every_version(version: int, data: Any) -> None:
    said = {**data.draw(messages(version, "InitializeRequest")), "protocolVersion": version}
    heard = decode_client(Raw(text(said)))
    assert heard.version == version
    for spoken in (1, 2):
        assert_valid(spoken, "InitializeRequest", json.loads(encode_client(heard.hello, (spoken,))))
    assert decode_client(Raw(encode_client(heard.hello, (version,)))) == heard._replace(hello=named(heard.hello))


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("version", [1, 2])
@SHARE
@given(data=st.data())
def test_what_any_agent_says_is_heard_and_said_on_in_every_version(version: int, data: Any) -> None:
    said = {**data.draw(messages(version, "InitializeResponse")), "protocolVersion": version}
    heard = decode_agent(Raw(text(said)))
    for spoken in (1, 2):
        assert_valid(spoken, "InitializeResponse", json.loads(encode_agent(spoken, heard.hello, CLIENT)))
    assert decode_agent(Raw(encode_agent(version, heard.hello, CLIENT))) == heard


def named(hello: ClientHello) -> ClientHello:
    """A client that did not say who it is goes on under our name."""
    if hello.info is not None:
        return hello
    return ClientHello(hello.capabilities, Implementation("dragoman", "0"), meta=hello.meta, extras=hello.extras)

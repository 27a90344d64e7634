"""What was not offered is not there, on either side; and paths are absolute or refused."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects.contract import Dialect
from dragoman.errors import PeerMistake, RequestFailed
from dragoman.limits import PATH_BYTES
from dragoman.vocabulary import requests, services
from dragoman.vocabulary.asking import Extension, ExtensionNote, Request
from dragoman.vocabulary.hello import AgentAuth, AgentCapabilities, AgentHello
from tests.dialects.joined_dialects import CLIENT, agent_of, agent_with, client_of, client_with
from tests.dialects.schemas import text

SESSION = {"sessionId": "s"}
TERMINAL = {"sessionId": "s", "terminalId": "t"}
FORM = {**SESSION, "message": "?", "mode": "form", "requestedSchema": {"type": "object", "properties": {}}}
URL = {**SESSION, "message": "?", "mode": "url", "elicitationId": "e", "url": "u"}

# Method, params, and the request that asks it: of an agent by version, then of a client.
OF_AGENT: list[tuple[int, str, str, Any, Request]] = [
    (1, "logout", "logout", {}, requests.Logout()),
    (
        1,
        "load",
        "session/load",
        {**SESSION, "cwd": "/", "mcpServers": []},
        requests.ResumeSession("s", "/", mcp_servers=[], replay_from=requests.ReplayFromStart()),
    ),
    (1, "resume", "session/resume", {**SESSION, "cwd": "/"}, requests.ResumeSession("s", "/")),
    (1, "list", "session/list", {}, requests.ListSessions()),
    (1, "close", "session/close", SESSION, requests.CloseSession("s")),
    *(
        (version, capability, method, params, request)
        for version in (1, 2)
        for capability, method, params, request in [
            ("auth_status", "auth/status", {}, requests.GetAuthStatus()),
            ("fork", "session/fork", {**SESSION, "cwd": "/"}, requests.ForkSession("s", "/")),
            ("delete", "session/delete", SESSION, requests.DeleteSession("s")),
            ("archive", "session/archive", SESSION, requests.ArchiveSession("s")),
            ("archive", "session/unarchive", SESSION, requests.UnarchiveSession("s")),
            ("status", "session/status", SESSION, requests.GetSessionStatus("s")),
            ("title", "session/set_title", {**SESSION, "title": "t"}, requests.SetTitle("s", "t")),
        ]
    ),
]
OF_CLIENT: list[tuple[str, str, Any, Request]] = [
    ("read_text_file", "fs/read_text_file", {**SESSION, "path": "/x"}, services.ReadTextFile("s", "/x")),
    (
        "write_text_file",
        "fs/write_text_file",
        {**SESSION, "path": "/x", "content": ""},
        services.WriteTextFile("s", "/x", ""),
    ),
    ("terminal", "terminal/create", {**SESSION, "command": "ls"}, services.CreateTerminal("s", "ls")),
    ("terminal", "terminal/output", TERMINAL, services.GetTerminalOutput("s", "t")),
    ("terminal", "terminal/wait_for_exit", TERMINAL, services.WaitForTerminalExit("s", "t")),
    ("terminal", "terminal/kill", TERMINAL, services.KillTerminal("s", "t")),
    ("terminal", "terminal/release", TERMINAL, services.ReleaseTerminal("s", "t")),
]


def heard(dialect: Dialect, method: str, params: Any) -> Any:
    return dialect.decode_request(1, method, Raw(text(params)))


def refusal(dialect: Dialect, method: str, params: Any) -> int:
    with pytest.raises(PeerMistake) as caught:
        heard(dialect, method, params)
    return caught.value.code


def cannot_ask(dialect: Dialect, request: Request) -> int:
    with pytest.raises(RequestFailed) as caught:
        dialect.encode_request(request)
    return caught.value.code


@pytest.mark.parametrize(("version", "capability", "method", "params", "request_"), OF_AGENT)
def test_an_agent_answers_only_what_it_has_offered(
    version: int, capability: str, method: str, params: Any, request_: Request
) -> None:
    assert refusal(agent_of(version, CLIENT, agent_with()), method, params) == -32601
    assert heard(agent_of(version, CLIENT, agent_with(**{capability: True})), method, params) == request_


@pytest.mark.parametrize(("version", "capability", "method", "params", "request_"), OF_AGENT)
def test_a_client_asks_only_what_the_agent_has_offered(
    version: int, capability: str, method: str, params: Any, request_: Request
) -> None:
    assert cannot_ask(client_of(version, CLIENT, agent_with()), request_) == -32601
    assert client_of(version, CLIENT, agent_with(**{capability: True})).encode_request(request_).method == method


@pytest.mark.parametrize(("capability", "method", "params", "request_"), OF_CLIENT)
def test_a_client_answers_only_what_it_has_offered(
    capability: str, method: str, params: Any, request_: Request
) -> None:
    assert refusal(client_of(1, client_with()), method, params) == -32601
    assert refusal(client_of(2), method, params) == -32601
    assert heard(client_of(1, client_with(**{capability: True})), method, params) == request_


@pytest.mark.parametrize(("capability", "method", "params", "request_"), OF_CLIENT)
def test_an_agent_asks_only_what_the_client_has_offered(
    capability: str, method: str, params: Any, request_: Request
) -> None:
    assert cannot_ask(agent_of(1, client_with()), request_) == -32601
    assert cannot_ask(agent_of(2), request_) == -32601
    assert agent_of(1, client_with(**{capability: True})).encode_request(request_).method == method


@pytest.mark.parametrize("version", [1, 2])
def test_a_user_is_asked_only_in_the_ways_that_were_offered(version: int) -> None:
    codes = {
        (form, url): [
            refused(client_of(version, client_with(elicitation_form=form, elicitation_url=url)), params)
            for params in (FORM, URL)
        ]
        for form in (False, True)
        for url in (False, True)
    }
    assert codes == {
        (False, False): [-32601, -32601],
        (False, True): [-32602, None],
        (True, False): [None, -32602],
        (True, True): [None, None],
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_user_is_asked_only_through_clients_that_offer_it(version: int) -> None:
    form = services.Elicit("?", services.Form({}), services.SessionScope("s"))
    assert cannot_ask(agent_of(version, client_with()), form) == -32601
    assert cannot_ask(agent_of(version, client_with(elicitation_url=True)), form) == -32602
    assert agent_of(version, client_with(elicitation_form=True)).encode_request(form).method == "elicitation/create"


def refused(dialect: Dialect, params: Any) -> int | None:
    try:
        heard(dialect, "elicitation/create", params)
    except PeerMistake as mistake:
        return mistake.code
    return None


LOGIN = {1: "authenticate", 2: "auth/login"}


@pytest.mark.parametrize("version", [1, 2])
def test_a_login_is_refused_where_there_is_no_way_to(version: int) -> None:
    params, request = {"methodId": "login"}, requests.Login("login")
    assert refusal(agent_of(version, CLIENT, agent_with()), LOGIN[version], params) == -32601
    assert cannot_ask(client_of(version, CLIENT, agent_with()), request) == -32601
    assert heard(agent_of(version), LOGIN[version], params) == request
    assert client_of(version).encode_request(request).method == LOGIN[version]


def test_version_2_logs_out_wherever_it_logs_in() -> None:
    agent = AgentHello(None, AgentCapabilities(), [AgentAuth("a", "A")])
    assert heard(agent_of(2, CLIENT, agent), "auth/logout", {}) == requests.Logout()
    assert refusal(agent_of(2, CLIENT, agent_with()), "auth/logout", {}) == -32601


def test_an_agent_without_sessions_can_still_be_logged_in_to() -> None:
    agent = AgentHello(None, AgentCapabilities(sessions=False), [AgentAuth("a", "A")])
    assert refusal(agent_of(2, CLIENT, agent), "session/new", {"cwd": "/"}) == -32601
    assert cannot_ask(client_of(2, CLIENT, agent), requests.NewSession("/")) == -32601
    assert heard(agent_of(2, CLIENT, agent), "auth/login", {"methodId": "a"}) == requests.Login("a")


@pytest.mark.requirement("8.1.1", "B8")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "method", ["", "session", "session/nope", "fs/read_text_file", "rpc.discover", "$/x", "session/update"]
)
def test_an_unknown_method_is_not_found(version: int, method: str) -> None:
    assert refusal(agent_of(version), method, {}) == -32601
    with pytest.raises(PeerMistake):
        agent_of(version).decode_notification(method, Raw(b"{}"))


@pytest.mark.parametrize(
    ("version", "method"),
    [(1, "tool_call/cancel"), (2, "session/set_mode"), (2, "terminal/create")],
)
def test_a_method_of_the_other_version_is_not_found(version: int, method: str) -> None:
    assert refusal(agent_of(version), method, {**SESSION, "methodId": "login", "modeId": "m"}) == -32601


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["_vendor/x", "providers/list", "mcp/message", "proxy/successor"])
def test_what_is_outside_the_vocabulary_is_passed_on_as_it_is(version: int, method: str) -> None:
    assert heard(agent_of(version), method, {"a": 1}) == Extension(method, {"a": 1})
    assert agent_of(version).decode_notification(method, Raw(b'{"a":1}')) == [ExtensionNote(method, {"a": 1})]


# -- paths -----------------------------------------------------------------------------------------------------------

BAD = [
    "",
    ".",
    "x",
    "./x",
    "../x",
    "~",
    "~/x",
    "file:///x",
    "/x\0",
    "\0",
    "C:x",
    "C:",
    "1:/x",
    "é:/x",
    "/" + "x" * PATH_BYTES,
    "/" + "é" * (PATH_BYTES // 2),
]
GOOD = ["/", "/x/..", "C:\\x", "c:/x", "\\\\host\\share", "/" + "x" * (PATH_BYTES - 1), "/é\n"]
IN_V1: list[tuple[Any, str, dict[str, Any], str]] = [
    (agent_of, "session/new", {"mcpServers": []}, "cwd"),
    (agent_of, "session/load", {"mcpServers": [], **SESSION}, "cwd"),
    (agent_of, "session/resume", SESSION, "cwd"),
    (agent_of, "session/fork", SESSION, "cwd"),
    (agent_of, "session/list", {}, "cwd"),
    (client_of, "fs/read_text_file", SESSION, "path"),
    (client_of, "fs/write_text_file", {**SESSION, "content": ""}, "path"),
    (client_of, "terminal/create", {**SESSION, "command": "ls"}, "cwd"),
]
IN_V2 = [
    (agent_of, "session/new", {}, "cwd"),
    *(case for case in IN_V1 if case[1] in ("session/resume", "session/list", "session/fork")),
]
PLACES = [(1, *case) for case in IN_V1] + [(2, *case) for case in IN_V2]


@pytest.mark.parametrize(("version", "side", "method", "params", "field"), PLACES)
def test_a_path_is_absolute_or_refused(version: int, side: Any, method: str, params: Any, field: str) -> None:
    for path in BAD:
        assert refusal(side(version), method, {**params, field: path}) == -32602, path
    for path in GOOD:
        assert getattr(heard(side(version), method, {**params, field: path}), field) == path


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["session/new", "session/resume", "session/fork"])
def test_every_root_is_absolute_or_refused(version: int, method: str) -> None:
    params = {**SESSION, "cwd": "/", "mcpServers": [], "additionalDirectories": ["/a", "b"]}
    assert refusal(agent_of(version), method, params) == -32602


def test_the_folder_of_a_command_is_absolute_or_refused() -> None:
    option = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
    params = {**SESSION, "title": "?", "options": [option], "subject": {"type": "command", "command": "ls", "cwd": "x"}}
    assert refusal(client_of(2), "session/request_permission", params) == -32602


def test_what_an_agent_has_no_cwd_for_needs_none() -> None:
    assert heard(agent_of(1), "session/list", {"cwd": None}) == requests.ListSessions(None)
    assert heard(client_of(1), "terminal/create", {**SESSION, "command": "ls"}) == services.CreateTerminal("s", "ls")


@pytest.mark.parametrize("version", [1, 2])
def test_requests_that_end_work_pass_the_limit(version: int) -> None:
    assert agent_of(version).unlimited >= {"session/cancel", "session/close", "session/list"}
    assert agent_of(version).null_ids == (version == 1)

"""`acp.json`: the formats there are, errors that name the line, and changes that lose nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.agent_entry import AgentEntry
from dragoman.client.known_agents import KNOWN
from dragoman.client.located_json import parse
from dragoman.client.offered_capabilities import FORMS_ONLY, OfferedCapabilities
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.registry_edit import add_entry, remove_entry
from dragoman.client.registry_file import (
    RegistryFile,
    RegistryFileFound,
    RegistryFileInvalid,
    find_files,
    nearest,
    read_file,
    read_usable,
    untrusted,
)
from dragoman.client.timeouts import Timeouts
from dragoman.errors import UsageError
from dragoman.host.trust import trust
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.requests import EnvVariable, HttpHeader, McpHttp, McpSse, McpStdio

FILE = Path("/home/me/acp.json")


def read(document: object) -> RegistryFile:
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return read_file(RegistryFileFound(FILE, text.encode()))


def entry(**fields: Any) -> AgentEntry:
    return read({"servers": {"x": {"command": "agent", **fields}}}).entries["x"]


def test_a_server_with_everything() -> None:
    found = entry(
        args=["--acp", "$HERE"],
        env={"KEY": "$SECRET"},
        cwd="sub",
        dialect="agentao",
        startupTimeoutMs=1000,
        requestTimeoutMs=2000,
        timeoutMs=2000,
        promptIdleTimeoutMs=3000,
        permissionPolicy="deny",
        nonInteractivePolicy={"mode": "accept_all"},
        permissions={"allow": [{"kind": "read"}, {"command": "git status"}], "reject": [{"path": "*.key"}], "ask": []},
        autoStart=False,
        maxRecoverableRestarts=0,
        process="session",
        idleTimeoutMs=0,
        description="mine",
        defaultAgent="coder",
        capabilities={"fs": {"readTextFile": False}, "terminal": False, "chat": True},
        mcpServers=[{"name": "m", "command": "mcp", "args": ["a"], "env": [{"name": "A", "value": "b"}]}],
    )
    assert found == AgentEntry(
        "x",
        "agent",
        ("--acp", "$HERE"),
        {"KEY": "$SECRET"},
        "/home/me/sub",
        "agentao",
        1000,
        2000,
        3000,
        "deny",
        "accept_all",
        (
            PermissionRule("allow", "read"),
            PermissionRule("allow", command="git status"),
            PermissionRule("reject", path="*.key"),
        ),
        auto_start=False,
        max_recoverable_restarts=0,
        process="session",
        idle_ms=0,
        description="mine",
        default_agent="coder",
        mcp_servers=(McpStdio("m", "mcp", ["a"], [EnvVariable("A", "b")]),),
        offered=OfferedCapabilities(read=False, terminal=False),
        source="/home/me/acp.json, line 3",
    )
    assert found.timeouts() == Timeouts(1, 2, 3)


def test_what_a_server_is_without_being_told() -> None:
    found = entry()
    assert found.timeouts() == Timeouts(startup=60, request=60, prompt_idle=300)
    assert (found.auto_start, found.max_recoverable_restarts, found.policy()) == (True, 3, PermissionPolicy())


def test_servers_as_a_list_with_what_holds_for_all() -> None:
    read_ = read(
        {
            "servers": [
                {"name": "a", "command": "one", "timeoutMs": 5000, "defaultAgent": "mine"},
                {"name": "b", "command": "two", "permissionPolicy": "deny"},
            ],
            "defaultServer": "b",
            "defaultAgent": "theirs",
            "permissionPolicy": "auto-approve",
            "mcpServers": {"m": {"url": "http://x", "headers": {"A": "b"}}, "s": {"type": "sse", "url": "http://y"}},
        }
    )
    a, b = read_.entries["a"], read_.entries["b"]
    assert read_.default == "b"
    assert (a.default_agent, b.default_agent) == ("mine", "theirs")
    assert (a.permission_policy, b.permission_policy) == ("auto-approve", "deny")
    assert (a.request_ms, b.request_ms) == (5000, 60_000)
    assert (
        a.mcp_servers
        == b.mcp_servers
        == (McpHttp("m", "http://x", [HttpHeader("A", "b")]), McpSse("s", "http://y", []))
    )


@pytest.mark.parametrize(
    ("fields", "level", "policy"),
    [
        ({"permissionPolicy": "auto-approve"}, "", PermissionPolicy("all")),
        ({"permissionPolicy": "prompt"}, "", PermissionPolicy()),
        ({"permissionPolicy": "deny"}, "", PermissionPolicy(deny_all=True)),
        ({"nonInteractivePolicy": {"mode": "accept_all"}}, "", PermissionPolicy(unasked="allow")),
        ({"nonInteractivePolicy": {"mode": "reject_all"}}, "", PermissionPolicy()),
        (
            {"permissionPolicy": "auto-approve", "nonInteractivePolicy": {"mode": "accept_all"}},
            "read",
            PermissionPolicy("read"),
        ),
        (
            {"permissions": {"reject": [{"kind": "fetch"}]}},
            "all",
            PermissionPolicy("all", (PermissionRule("reject", "fetch"),)),
        ),
    ],
)
def test_policies_of_a_file(fields: dict[str, Any], level: Any, policy: PermissionPolicy) -> None:
    assert entry(**fields).policy(level) == policy


@pytest.mark.parametrize(
    ("capabilities", "lent"),
    [
        ({}, OfferedCapabilities()),
        ({"fs": False}, OfferedCapabilities(read=False, write=False)),
        ({"fs": True, "elicitation": False}, OfferedCapabilities(elicitation=False)),
        ({"fs": {"writeTextFile": False}, "terminal": True}, OfferedCapabilities(write=False)),
        ({"fs": {}, "web": True}, OfferedCapabilities()),
    ],
)
def test_what_an_agent_is_lent(capabilities: dict[str, Any], lent: OfferedCapabilities) -> None:
    assert entry(capabilities=capabilities).offered == lent


def test_what_a_known_agent_is_lent_can_be_changed_in_part() -> None:
    fields: tuple[dict[str, Any], ...]
    fields = ({}, {"command": "gemini"}, {"capabilities": {"fs": {"writeTextFile": True}}}, {"command": "other"})
    found = [read({"servers": {"gemini": each}}).entries["gemini"].offered for each in fields]
    none = OfferedCapabilities(read=False, write=False)
    assert found == [none, none, OfferedCapabilities(read=False), OfferedCapabilities()]


def test_an_agent_behind_an_address() -> None:
    servers = {
        "a": {"url": "https://x.example", "tokenFile": "token", "caFile": "own.pem", "description": "far"},
        "b": {"url": "$WHERE", "token": "$TOKEN", "capabilities": {"fs": True}},
    }
    found = read({"servers": servers}).entries
    assert found["a"].command_line() == ["https://x.example"]
    assert (found["a"].token_file, found["a"].offered) == ("/home/me/token", FORMS_ONLY)
    assert found["a"].expanded({}).ca_file == "/home/me/own.pem"
    assert found["b"].offered == OfferedCapabilities(terminal=False)
    filled = found["b"].expanded({"WHERE": "wss://y.example", "TOKEN": "secret"})
    assert (filled.url, filled.token) == ("wss://y.example", "secret")
    assert "secret" not in repr(filled)
    with pytest.raises(UsageError, match="needs the variable TOKEN"):
        found["b"].expanded({"WHERE": "wss://y.example"})


def test_a_known_agent_needs_no_command() -> None:
    found = read({"servers": {"gemini": {"env": {"A": "b"}}, "claude": {"command": "claude-agent-acp"}}}).entries
    assert found["gemini"].command_line() == ["gemini", "--acp"]
    assert found["claude"].install == KNOWN["claude"].install


WRONG: list[tuple[str, str, str]] = [
    ("no JSON", '{\n "servers": {\n  ,', "line 3: this is not JSON"),
    ("two of a name", '{"servers": {"a": {"command": "x"},\n "a": {"command": "y"}}}', 'line 2: "a" stands here twice'),
    ("a list", "[]", "line 1: the file must be an object, not a list"),
    ("an unknown key", '{"servers": {},\n "serverz": {}}', "line 2: unknown key 'serverz'; did you mean servers?"),
    ("no command", '{"servers": {\n "a": {}}}', "line 2: a server needs a command, or a url"),
    (
        "a capability nobody knows",
        '{"servers": {"a": {"command": "x", "capabilities": {\n"terminals": true}}}}',
        "line 2: unknown key 'terminals'; did you mean terminal?",
    ),
    (
        "a file capability nobody knows",
        '{"servers": {"a": {"command": "x", "capabilities": {"fs":\n {"readText": true}}}}}',
        "line 2: unknown key 'readText'; did you mean readTextFile?",
    ),
    (
        "a capability that is no yes or no",
        '{"servers": {"a": {"command": "x", "capabilities": {\n\n"fs": "yes"}}}}',
        "line 3: fs must be true or false, not text",
    ),
    (
        "a file capability that is no yes or no",
        '{"servers": {"a": {"command": "x", "capabilities": {"fs": {"readTextFile": 1}}}}}',
        "line 1: readTextFile must be true or false, not a number",
    ),
    (
        "capabilities",
        '{"servers": {"a": {"command": "x",\n"capabilities": []}}}',
        "line 2: servers.a.capabilities must be",
    ),
    ("no address", '{"servers": {"a": {"url":\n"ftp://x"}}}', "url begins with https://, http://, wss:// or ws://"),
    (
        "url and command",
        '{"servers": {"a": {"url": "ws://x",\n"command": "x"}}}',
        "line 2: command is for an agent that",
    ),
    (
        "a token for a command",
        '{"servers": {"a": {"command": "x",\n"token": "x"}}}',
        "line 2: token is for an agent with",
    ),
    (
        "two tokens",
        '{"servers": {"a": {"url": "ws://x", "token": "x",\n"tokenFile": "x"}}}',
        "line 2: token or tokenFile, not both",
    ),
    ("a typing error", '{"servers": {"a": {"command": "x",\n "arg": []}}}', "line 2: unknown key 'arg'"),
    ("a wrong type", '{"servers": {"a": {"command":\n 7}}}', "line 1: command must be text, not a number"),
    ("a bool as number", '{"servers": {"a": {"command": "x",\n\n"timeoutMs": true}}}', "line 3: timeoutMs must be a"),
    ("a fraction", '{"servers": {"a": {"command": "x", "timeoutMs": 1.5}}}', "line 1: timeoutMs must be a whole"),
    ("nothing at all", '{"servers": {"a": {"command": "x", "timeoutMs": 0}}}', "line 1: timeoutMs must be from 1"),
    (
        "a NUL",
        '{"servers": {"a": {"command": "x", "args": ["\\u0000"]}}}',
        "line 1: args has a NUL or half a character",
    ),
    ("half", '{"servers": {"a": {"url": "http://x", "tokenFile": "\\ud800"}}}', "line 1: tokenFile has a NUL or half"),
    ("a name", '{"servers": {"a": {"command": "x", "env": {"\\u0000": "b"}}}}', "line 1: env has a NUL or half a char"),
    ("null", '{"servers": {"a": {"command": null}}}', "line 1: command must be text, not null"),
    (
        "two timeouts",
        '{"servers": {"a": {"command": "x", "timeoutMs": 1,\n"requestTimeoutMs": 2}}}',
        "line 1: timeoutMs is another name of requestTimeoutMs",
    ),
    ("args", '{"servers": {"a": {"command": "x",\n "args": "y"}}}', "line 2: args must be a list of texts, not text"),
    ("env", '{"servers": {"a": {"command": "x", "env": {\n"K": 1}}}}', "line 2: env.K must be text, not a number"),
    ("dialect", '{"servers": {"a": {"command": "x", "dialect": "v9"}}}', "line 1: dialect is one of v1, v2"),
    ("policy", '{"servers": {"a": {"command": "x", "permissionPolicy": "yes"}}}', "line 1: permissionPolicy is one of"),
    ("mode", '{"servers": {"a": {"command": "x", "nonInteractivePolicy": {"mode": 1}}}}', "line 1: mode must be text"),
    ("no mode", '{"servers": {"a": {"command": "x",\n"nonInteractivePolicy": {}}}}', "line 2: mode is reject_all or"),
    ("rule", '{"servers": {"a": {"command": "x", "permissions": {"allow": [\n{}]}}}}', "line 2: a rule names a kind"),
    ("rule key", '{"permissions": {"allow": [{"tool": "x"}]}}', "line 1: unknown key 'tool'"),
    ("list names", '{"servers": [\n{"command": "x"}]}', "line 2: a server in a list needs a name"),
    (
        "list twice",
        '{"servers": [{"name": "a", "command": "x"},\n{"name": "a", "command": "y"}]}',
        "line 2: the name 'a' is taken",
    ),
    ("default", '{"servers": {},\n"defaultServer": "z"}', "line 2: there is no server 'z'"),
    ("mcp", '{"mcpServers": [\n{"name": "m"}]}', "line 2: an MCP server has a command, or a url"),
    ("NaN", '{"servers": NaN}', "NaN is no number in JSON"),
    ("depth", "[" * 100_000, "line 1: "),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_mistakes_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(RegistryFileInvalid) as wrong:
        read(text)
    assert str(wrong.value).startswith(f"{FILE}, line ")
    assert message in str(wrong.value)


# Rules that can never match, or not what is meant. The field that is wrong comes first.
NEVER: list[tuple[str, dict[str, str], str]] = [
    ("reject", {"kind": "edits"}, "unknown kind 'edits'; there are read, edit, execute, fetch, other"),
    ("ask", {"kind": "edit "}, "unknown kind 'edit '"),
    ("reject", {"kind": "Delete"}, "Delete is edit here"),
    ("reject", {"kind": ""}, "kind is empty; leave it out instead"),
    ("allow", {"path": "", "kind": "edit"}, "path is empty; leave it out instead"),
    ("reject", {"path": " "}, "path is empty; leave it out instead"),
    ("reject", {"command": ""}, "command is empty; leave it out instead"),
    ("reject", {"path": "secrets/** "}, "begins or ends with a blank"),
    ("reject", {"path": "./secrets/**"}, "has a . or .. or // in it"),
    ("reject", {"path": "../other/**"}, "has a . or .. or // in it"),
    ("reject", {"path": "a//b"}, "has a . or .. or // in it"),
    ("reject", {"path": "~root/x"}, "begins with ~; write the whole path"),
    ("reject", {"path": "$HOME/.ssh/**"}, "begins with a variable"),
    ("reject", {"path": "file:///etc/**"}, "is an address"),
    ("reject", {"path": r"^.*\.pem$"}, "looks like a regular expression; a rule has the wildcards"),
    ("reject", {"path": r"C:\secrets\**"}, "looks like a regular expression"),
    ("reject", {"path": "[z"}, "matches no file"),
    ("allow", {"path": "src/"}, "ends with a slash, which no file's name does"),
    ("reject", {"command": "rm.*"}, "looks like a regular expression"),
    ("ask", {"command": "^git push"}, "looks like a regular expression"),
    ("reject", {"command": "curl * | sh"}, "is more than one command"),
    ("allow", {"command": "make a && make b"}, "is more than one command"),
    ("reject", {"command": "A=b rm"}, "begins with a variable"),
    ("reject", {"command": "rm 'x"}, "cannot be read; write its words as in a shell, or *"),
    ("allow", {"command": "touch *"}, "it is for exact words, such as 'touch'"),
    ("allow", {"command": "cd src"}, "can be allowed by no rule"),
    ("allow", {"command": "echo $HOME"}, "can be allowed by no rule"),
    ("allow", {"kind": "edit", "command": "make"}, "a command is of the kind execute and of no other"),
]


@pytest.mark.parametrize(("effect", "rule", "sentence"), NEVER, ids=[f"{row[0]} {row[1]}" for row in NEVER])
def test_a_rule_that_can_never_match_is_refused(effect: str, rule: dict[str, str], sentence: str) -> None:
    with pytest.raises(RegistryFileInvalid) as wrong:
        entry(permissions={effect: [{"kind": "read"}, rule]})
    assert sentence in str(wrong.value)
    assert str(wrong.value).endswith(f"(servers.x.permissions.{effect}[1].{next(iter(rule))})")


def test_a_home_in_a_rule_is_the_users() -> None:
    (rule,) = entry(permissions={"reject": [{"path": "~/.ssh/**"}]}).rules
    assert rule.path == os.path.expanduser("~/.ssh/**")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"servers": {"mine": {"comand": "x"}}}', "servers.mine.comand"),
        ('{"servers": [{"name": "mine", "command": "x", "args": 1}]}', "servers.mine.args"),
        (
            '{"servers": {"mine": {"command": "x", "mcpServers": {"docs": {"ur": "x"}}}}}',
            "servers.mine.mcpServers.docs.ur",
        ),
        ('{"servers": {"mine": {"command": "x", "env": {"K": 1}}}}', "servers.mine.env.K"),
        ('{"permissionPolicy": "yes"}', "permissionPolicy"),
    ],
)
def test_a_mistake_is_named_with_the_entry_and_the_field(text: str, place: str) -> None:
    with pytest.raises(RegistryFileInvalid) as wrong:
        read(text)
    assert str(wrong.value).endswith(f" ({place})")


def test_a_mistake_in_one_entry_leaves_the_others() -> None:
    text = '{"servers": {"good": {"command": "x"},\n"bad": {"comand": "x"}}, "defaultServer": "bad"}'
    found = read_usable(RegistryFileFound(FILE, text.encode()))
    assert list(found.entries) == ["good"]
    sentence = f"{FILE}, line 2: unknown key 'comand'; did you mean command? (servers.bad.comand)"
    assert found.mistakes == {"bad": sentence}


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(RegistryFileInvalid, match="not UTF-8 text"):
        read_file(RegistryFileFound(FILE, b"\xff"))


def test_lines_of_values() -> None:
    located = parse('{"a": [1,\n {"b,}": "\\"x\\n"}],\n\n"c": -1.5e3}')
    assert located.value == {"a": [1, {"b,}": '"x\n'}], "c": -1500.0}
    assert [located.line(path) for path in [(), ("a", 0), ("a", 1, "b,}"), ("c",), ("a", 7, "x")]] == [1, 1, 2, 4, 1]


# -- variables -------------------------------------------------------------------------------------------------------


def test_variables_are_filled_in() -> None:
    found = entry(args=["$A", "${A}b", "$$A", "a$", "$1"], env={"K": "x$A"}, cwd="$A/y").expanded({"A": "1"})
    assert (found.args, found.env, found.cwd) == (("1", "1b", "$A", "a$", "$1"), {"K": "x1"}, "1/y")


def test_a_missing_variable_is_named() -> None:
    sentence = r"acp\.json, line 3: servers\.x\.env\.K needs the variable NOPE, which is not set"
    with pytest.raises(UsageError, match=sentence):
        entry(env={"K": "$NOPE"}).expanded({})


def test_a_known_agent_gets_its_own_keys_and_no_others() -> None:
    ours = {"GEMINI_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "PATH": "p"}
    assert KNOWN["gemini"].expanded(ours).env == {"GEMINI_API_KEY": "g"}
    assert KNOWN["claude"].expanded(ours).env == {"ANTHROPIC_API_KEY": "a"}


@pytest.mark.parametrize("name", ["gemini", "claude", "codex", "opencode", "qwen", "goose", "kimi", "dragoman"])
def test_known_agents_say_how_to_get_them(name: str) -> None:
    assert KNOWN[name].install
    assert KNOWN[name].description
    assert KNOWN[name].command


# -- where -----------------------------------------------------------------------------------------------------------


def names(home: Path, folder: Path) -> list[Path]:
    return [found.path for found in find_files(home, folder)]


def test_a_project_counts_after_trust_and_until_it_changes(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    below = project / "a" / "b"
    for folder in (home, below):
        folder.mkdir(parents=True)
    own, theirs = home / "acp.json", project / "acp.json"
    own.write_text("{}")
    theirs.write_text('{"servers": {}}')
    assert names(home, below) == [own]
    assert untrusted(home, below) == (theirs, "it has not been trusted here")
    trust(home / "trust.json", project)
    assert names(home, below) == [own, theirs]
    assert untrusted(home, below) is None
    theirs.write_text('{"servers": {"evil": {"command": "rm"}}}')
    assert names(home, below) == [own]


def test_the_nearest_folder_counts_and_a_file_may_stand_out_of_the_way(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    (inner / ".dragoman").mkdir(parents=True)
    (tmp_path / "outer" / "acp.json").write_text("{}")
    assert nearest(inner) == tmp_path / "outer" / "acp.json"
    (inner / ".dragoman" / "acp.json").write_text("{}")
    assert nearest(inner / "deeper") == inner / ".dragoman" / "acp.json"
    assert list(find_files(tmp_path / "home", inner)) == []
    trust(tmp_path / "home" / "trust.json", inner)
    assert names(tmp_path / "home", inner) == [inner / ".dragoman" / "acp.json"]


def test_our_own_file_needs_no_trust_although_we_stand_beside_it(tmp_path: Path) -> None:
    (tmp_path / "acp.json").write_text("{}")
    assert names(tmp_path, tmp_path) == [tmp_path / "acp.json"]
    assert untrusted(tmp_path, tmp_path) is None


def test_a_file_that_is_too_long_is_none(tmp_path: Path) -> None:
    (tmp_path / "acp.json").write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(RegistryFileInvalid, match="longer than"):
        list(find_files(tmp_path, None))


# -- changing --------------------------------------------------------------------------------------------------------

NEW: dict[str, object] = {"command": "new", "args": ["-x"]}


def test_adding_and_removing_keep_everything_else(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "acp.json"
    assert add_entry(file, "mine", NEW) is False
    assert json.loads(file.read_text()) == {"servers": {"mine": NEW}}
    assert file.stat().st_mode & 0o777 == 0o600
    before = {
        "$schema": "x",
        "servers": {"a": {"command": "x", "env": {"K": "ü"}}, "mine": {"command": "old", "description": "kept"}},
        "defaultServer": "mine",
    }
    file.write_text(json.dumps(before))
    assert add_entry(file, "mine", NEW) is True
    changed = json.loads(file.read_text())
    assert changed == before | {"servers": {"a": before["servers"]["a"], "mine": {"description": "kept", **NEW}}}  # type: ignore[index]
    assert remove_entry(file, "mine") is True
    assert remove_entry(file, "mine") is False
    left = json.loads(file.read_text())
    assert left == {"$schema": "x", "servers": {"a": before["servers"]["a"]}}  # type: ignore[index]
    assert os.listdir(file.parent) == ["acp.json"]


def test_a_list_stays_a_list(tmp_path: Path) -> None:
    file = tmp_path / "acp.json"
    file.write_text('{"servers": [{"name": "a", "command": "x"}]}')
    add_entry(file, "b", NEW)
    add_entry(file, "a", NEW)
    assert json.loads(file.read_text())["servers"] == [{"name": "a", **NEW}, {"name": "b", **NEW}]
    remove_entry(file, "a")
    assert json.loads(file.read_text())["servers"] == [{"name": "b", **NEW}]


def test_a_file_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "acp.json"
    file.write_text('{"servers": {')
    with pytest.raises(RegistryFileInvalid):
        add_entry(file, "mine", NEW)
    assert file.read_text() == '{"servers": {'

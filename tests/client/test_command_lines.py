"""A command of an agent is judged, shown and run as one and the same."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.client import permission_handler as policy_module
from dragoman.client import terminals as terminals_module
from dragoman.client.command_lines import line_of, terminal_argv, terminal_line
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.requests import EnvVariable
from dragoman.vocabulary.services import CommandSubject, CreateTerminal, RequestPermission, WaitForTerminalExit
from tests.client.raw_agent import connected, new_session

pytestmark = pytest.mark.anyio

RULES = (
    PermissionRule("allow", command="git status"),
    PermissionRule("allow", command="git add"),
    PermissionRule("reject", command="rm"),
)


async def run(folder: Path, request: CreateTerminal, permissions: PermissionHandler | None = None) -> str:
    """Run a command to its end; why it was refused, or nothing."""
    async with Workspace([folder], environment={"PATH": "/usr/bin:/bin"}, permissions=permissions) as workspace:
        try:
            terminal = await workspace.terminals.create(request)
        except RequestFailed as error:
            return error.message
        await workspace.terminals.wait_for_exit(WaitForTerminalExit(request.session_id, terminal))
        return ""


@pytest.mark.parametrize(
    "name",
    ["git status #", "", "1A", "A-B", "A B", "A=B", "A\n", "é", "A\0", "BASH_FUNC_git%%", "$(id)"],
)
async def test_a_variable_whose_name_is_none_is_refused_before_anything_is_judged(name: str, tmp_path: Path) -> None:
    asked: list[Any] = []

    async def ask(request: RequestPermission) -> str:
        asked.append(request)
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(rules=(PermissionRule("allow", command="*"),)), [tmp_path], ask)
    request = CreateTerminal("s", "touch", [str(tmp_path / "made")], [EnvVariable(name, "x")])
    async with Workspace([tmp_path], environment={}, permissions=permissions) as workspace:
        with pytest.raises(RequestFailed, match="the name of a variable is letters") as refused:
            await workspace.terminals.create(request)
    assert (refused.value.code, asked, list(tmp_path.iterdir())) == (INVALID_PARAMS, [], [])


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (CreateTerminal("s", "ls", env=[EnvVariable("A", "x\0y")]), "env: it holds a NUL"),
        (CreateTerminal("s", "ls\0"), "command: it holds a NUL"),
        (CreateTerminal("s", "ls", ["a\0b"]), "args: it holds a NUL"),
        (CreateTerminal("s", "ls", ["\ud800"]), "args: it holds half a character"),
        (CreateTerminal("s", " "), "command: there is no command"),
    ],
)
async def test_what_no_process_can_get_is_refused(request_: CreateTerminal, reason: str, tmp_path: Path) -> None:
    assert reason in await run(tmp_path, request_)


async def test_terminals_of_others_get_no_odd_variables_either() -> None:
    created: list[CreateTerminal] = []

    class Mine:
        async def create(self, request: CreateTerminal) -> str:
            created.append(request)
            return "t"

    async with connected(1, terminals=Mine()) as (client, agent):
        await new_session(client, agent)
        env = [{"name": "git status #", "value": "x"}]
        agent.say({"id": "q", "method": "terminal/create", "params": {"sessionId": "s", "command": "ls", "env": env}})
        error = (await agent.answer("q"))["error"]
    assert (error["code"], created) == (INVALID_PARAMS, [])


@pytest.mark.parametrize(
    ("command", "args", "env"),
    [
        ("touch", ["made"], [EnvVariable("PATH", "/bin")]),
        ("git", ["status"], [EnvVariable("LD_PRELOAD", "./x.so")]),
        ("git status", [], [EnvVariable("BASH_ENV", "./x.sh")]),
        ("git", ["status"], [EnvVariable("HARMLESS", "1")]),
        ("git add &>/dev/null touch made", [], []),
        ("sh", ["-c", "git add &>/dev/null touch made"], []),
        ("dash", ["-c", "git add 12>&1 made"], []),
        ("sh", ["-c", "git status", "x"], []),
        ("bash", ["-c", "git status;touch made"], []),
        ("bash", ["-xc", "git status"], []),
        ("bash", ["--rcfile", "x", "-ic", "git status"], []),
        ("/tmp/bash", ["-c", "git status"], []),
        ("git;status", [], []),
        ("git status\ntouch made", [], []),
    ],
)
async def test_a_rule_for_a_command_is_not_stretched(
    command: str, args: list[str], env: list[EnvVariable], tmp_path: Path
) -> None:
    permissions = PermissionHandler(PermissionPolicy(rules=RULES[:1]), [tmp_path])
    reason = await run(tmp_path, CreateTerminal("s", command, args, env), permissions)
    assert reason == "Not allowed: it runs a command, and there is no user to ask"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("git status", []),
        ("git", ["status"]),
        ("bash", ["-lc", "git status"]),
        ("/bin/bash", ["--noprofile", "--norc", "-c", "git status 2>&1"]),
        ("sh", ["-c", "git status"]),
        ("/bin/sh", ["-ec", "git status 2>/dev/null"]),
    ],
)
async def test_a_rule_for_a_command_covers_it_in_every_spelling(command: str, args: list[str], tmp_path: Path) -> None:
    assert (
        await run(
            tmp_path, CreateTerminal("s", command, args), PermissionHandler(PermissionPolicy(rules=RULES), [tmp_path])
        )
        == ""
    )


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("sh", ["-c", "git add &>/dev/null rm made"]),
        ("zsh", ["-c", "noglob rm made"]),
        ("env", ["sh", "-c", "rm made"]),
    ],
)
async def test_a_rule_against_a_command_holds_in_every_shell(command: str, args: list[str], tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    rules = (PermissionRule("allow", command="*"), *RULES)
    reason = await run(
        tmp_path, CreateTerminal("s", command, args), PermissionHandler(PermissionPolicy("all", rules), [tmp_path])
    )
    assert reason == "Not allowed: the rule reject command rm"
    assert (tmp_path / "made").exists()


async def test_a_line_is_run_by_bash_as_it_was_judged(tmp_path: Path) -> None:
    """Two commands for dash, one for bash."""
    assert await run(tmp_path, CreateTerminal("s", "printf %s &>out touch")) == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out": "touch"}


async def test_a_line_that_dash_would_read_as_two_commands_runs_as_the_one_that_was_allowed(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy(rules=RULES), [tmp_path])
    assert await run(tmp_path, CreateTerminal("s", "git add &>/dev/null touch made"), permissions) == ""
    assert list(tmp_path.iterdir()) == []


async def test_our_own_environment_does_not_change_what_a_line_means(tmp_path: Path) -> None:
    (tmp_path / "evil.sh").write_text("touch made\n")
    environment = {"PATH": "/usr/bin:/bin", "BASH_ENV": "evil.sh", "BASH_FUNC_true%%": "() { touch made; }"}
    async with Workspace([tmp_path], environment=environment) as workspace:
        terminal = await workspace.terminals.create(CreateTerminal("s", "true and more"))
        await workspace.terminals.wait_for_exit(WaitForTerminalExit("s", terminal))
    assert [path.name for path in tmp_path.iterdir()] == ["evil.sh"]


SHOWN: list[tuple[CreateTerminal, str]] = [
    (CreateTerminal("s", "ls"), "ls"),
    (CreateTerminal("s", "ls", ["-l", "a b", "$x"]), "ls -l 'a b' '$x'"),
    (CreateTerminal("s", "a;b"), "'a;b'"),
    (CreateTerminal("s", "A=b", ["c"]), "'A=b' c"),
    (CreateTerminal("s", "ls | wc -l"), "ls | wc -l"),
    (CreateTerminal("s", "ls", env=[EnvVariable("A", "b c")]), "A='b c' ls"),
    (
        CreateTerminal("s", "ls; id", env=[EnvVariable("A", "b")]),
        "A=b /bin/bash --noprofile --norc -c 'ls; id'",
    ),
    (CreateTerminal("s", "sh", ["-c", "ls"]), "sh -c ls"),
]


@pytest.mark.parametrize(("request_", "shown"), SHOWN, ids=[shown for _, shown in SHOWN])
async def test_a_person_is_shown_what_runs(request_: CreateTerminal, shown: str, tmp_path: Path) -> None:
    seen: list[RequestPermission] = []

    async def ask(request: RequestPermission) -> None:
        seen.append(request)

    assert await PermissionHandler(PermissionPolicy(), [tmp_path], ask).permits(request_) == "the user said no"
    assert [(one.title, one.subject) for one in seen] == [(f"Run {shown}", CommandSubject(shown, str(tmp_path)))]


async def test_without_bash_a_line_asks_and_the_question_names_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (policy_module, terminals_module):
        monkeypatch.setattr(module, "line_shell", lambda: "/bin/sh")
    seen: list[Any] = []

    async def ask(request: RequestPermission) -> str:
        seen.append(request.subject)
        return "allow"

    line = CreateTerminal("s", "git status 2>/dev/null")
    reason = await run(tmp_path, line, PermissionHandler(PermissionPolicy(rules=RULES), [tmp_path]))
    why = "there is no bash here, and /bin/sh may read the line in another way"
    assert reason == f"Not allowed: {why}, and there is no user to ask"
    assert await run(tmp_path, line, PermissionHandler(PermissionPolicy(rules=RULES), [tmp_path], ask)) == ""
    assert seen == [CommandSubject("/bin/sh -c 'git status 2>/dev/null'", str(tmp_path))]
    assert terminal_argv(line, "/bin/sh") == ["/bin/sh", "-c", "git status 2>/dev/null"]


def test_words_that_no_shell_reads_are_what_they_are() -> None:
    assert line_of(["git", "status"]) == Action("execute", "git status")
    assert line_of(["fish", "-c", "a b"]) == Action("execute", "fish -c 'a b'")
    assert terminal_line(CreateTerminal("s", "ls", ["~", "*"])) == "ls '~' '*'"


async def test_a_folder_behind_a_link_is_judged_and_shown_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    seen: list[Any] = []

    async def ask(request: RequestPermission) -> str:
        seen.append(request.subject)
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask)
    assert await run(tmp_path, CreateTerminal("s", "touch", ["made"], cwd=str(tmp_path / "link")), permissions) == ""
    assert seen == [CommandSubject("touch made", str(tmp_path / "real"))]
    assert (tmp_path / "real" / "made").exists()

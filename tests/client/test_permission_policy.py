"""What an agent may do without a person: judged by what a request carries, never by what it calls itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.call_facts import call_facts
from dragoman.client.permission_handler import REASON_KEY, Denial, PermissionHandler, allow_option
from dragoman.client.permission_policy import PermissionPolicy, judge
from dragoman.client.workspace import Workspace
from dragoman.errors import RequestCancelled, RequestFailed, UsageError
from dragoman.permissions.decision import PathPosition as W
from dragoman.permissions.facts import Action, CallFacts
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.requests import EnvVariable
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    Dismissed,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    Selected,
    ToolCallSubject,
    UnknownSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ClientTerminalItem, Diff, FileChange, Location, UnknownChange
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

YES = PermissionOption("yes", "Yes", "allow_once")
ALWAYS = PermissionOption("always", "Always", "allow_always")
NO = PermissionOption("no", "No", "reject_once")
OPTIONS = [ALWAYS, YES, NO]
WHERE = W(lambda path: path.startswith(("/w/", "src")), lambda path: (path.removeprefix("/w/"), path))


def asked(call: ToolCallUpdate | None = None, options: list[PermissionOption] = OPTIONS, **fields: Any) -> Any:
    call = call or ToolCallUpdate("c", **fields)
    return RequestPermission("s", "Reading README", options, subject=ToolCallSubject(call))


def at(*paths: str) -> list[Location]:
    return [Location(path) for path in paths]


READ = asked(kind="read", locations=at("/w/a"), raw_input={"path": "/w/a"})
EDIT = asked(kind="edit", content=[Diff.of("/w/a", "x", "y")])

# What `read`, `edit` and `all` say about a request, in this order.
LEVELS: list[tuple[str, Any, str]] = [
    ("a file inside, read", READ, "yyy"),
    ("fs/read inside", ReadTextFile("s", "/w/a"), "yyy"),
    ("fs/read outside", ReadTextFile("s", "/etc/passwd"), "nny"),
    ("fs/write inside", WriteTextFile("s", "/w/a", ""), "nyy"),
    ("fs/write outside", WriteTextFile("s", "/etc/passwd", ""), "nny"),
    ("a diff inside", EDIT, "nyy"),
    ("a diff, called read", asked(kind="read", content=[Diff.of("/w/a", "x", "y")]), "nyy"),
    ("a file inside, of no kind", asked(locations=at("/w/a")), "nny"),
    ("a file inside, of the kind other", asked(kind="other", locations=at("/w/a")), "nny"),
    ("a diff inside, of the kind other", asked(kind="other", content=[Diff.of("/w/a", "x", "y")]), "nyy"),
    ("a file deleted inside", asked(kind="delete", locations=at("/w/a")), "nyy"),
    ("one of two files outside", asked(kind="read", locations=at("/w/a", "/etc/passwd")), "nny"),
    ("a diff outside", asked(kind="edit", content=[Diff.of("/etc/passwd", "x", "y")]), "nny"),
    (
        "a move out of the roots",
        asked(kind="move", content=[Diff([FileChange("move", "/w/b", old_path="/etc/passwd")])]),
        "nny",
    ),
    ("nothing but the label read", asked(kind="read"), "nny"),
    ("rm, labelled read", asked(kind="read", locations=at("/w/a"), raw_input={"command": "rm -rf /w"}), "nny"),
    ("argv, labelled read", asked(kind="read", locations=at("/w/a"), raw_input={"cmd": ["rm", "/w/a"]}), "nny"),
    ("a command deep inside", asked(kind="edit", locations=at("/w/a"), raw_input={"x": [{"Command": "rm"}]}), "nny"),
    ("a command as bare text", asked(kind="read", locations=at("/w/a"), raw_input="rm -rf /w"), "nny"),
    ("a url, labelled read", asked(kind="read", locations=at("/w/a"), raw_input={"u": "https://x.y"}), "nny"),
    ("a host, labelled read", asked(kind="read", locations=at("/w/a"), raw_input={"host": "x.y"}), "nny"),
    ("a path outside in the input", asked(kind="read", locations=at("/w/a"), raw_input={"p": "/etc/x"}), "nny"),
    ("a file url outside", asked(kind="read", locations=at("/w/a"), raw_input={"uri": "file:///etc/x"}), "nny"),
    ("a file url that is none", asked(kind="read", locations=at("/w/a"), raw_input={"uri": "file://[/w/x"}), "nny"),
    ("a file url elsewhere", asked(kind="read", locations=at("/w/a"), raw_input={"uri": "file://host/w/x"}), "nny"),
    ("a file url inside", asked(kind="read", locations=at("/w/a"), raw_input={"uri": "file:///w/x"}), "yyy"),
    ("a home in the input", asked(kind="read", locations=at("/w/a"), raw_input={"p": "~/.ssh/id"}), "nny"),
    ("changes keyed by path", asked(kind="edit", raw_input={"changes": {"/etc/x": {"add": {}}}}), "nny"),
    ("text that looks like a path", asked(kind="edit", locations=at("/w/a"), raw_input={"content": "/etc"}), "nyy"),
    ("labelled execute", asked(kind="execute", locations=at("/w/a")), "nny"),
    ("labelled fetch", asked(kind="fetch", locations=at("/w/a")), "nny"),
    ("a terminal", asked(kind="read", locations=at("/w/a"), content=[ClientTerminalItem("t")]), "nny"),
    ("an unknown change", asked(locations=at("/w/a"), content=[Diff([UnknownChange("warp", {})])]), "nny"),
    ("a command subject", RequestPermission("s", "t", OPTIONS, subject=CommandSubject("ls", "/w/")), "nny"),
    ("an unknown subject", RequestPermission("s", "t", OPTIONS, subject=UnknownSubject("x", {})), "nny"),
    ("no subject", RequestPermission("s", "t", OPTIONS), "nny"),
    ("a terminal to start", CreateTerminal("s", "ls"), "nny"),
    ("input without end", asked(kind="read", locations=at("/w/a"), raw_input={"x": ["a"] * 5_000}), "nny"),
]


@pytest.mark.parametrize(("request_", "expected"), [row[1:] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_levels_judge_by_what_is_carried(request_: Any, expected: str) -> None:
    said = [judge(request_, PermissionPolicy(level), WHERE).verdict for level in ("read", "edit", "all")]
    assert said == ["allow" if letter == "y" else "ask" for letter in expected]


@pytest.mark.parametrize("request_", [row[1] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_without_a_policy_everything_is_asked_and_a_denial_denies_everything(request_: Any) -> None:
    assert judge(request_, PermissionPolicy(), WHERE).verdict == "ask"
    assert judge(request_, PermissionPolicy("all", deny_all=True), WHERE).verdict == "deny"


@pytest.mark.requirement("F3")
def test_title_and_name_are_no_evidence() -> None:
    call = ToolCallUpdate("c", name="read_file", title="Reading https://x.y with rm -rf /", locations=at("/w/a"))
    assert call_facts(asked(call)) == CallFacts((Action("other", "/w/a"),))


def test_a_deep_input_is_not_followed_for_ever() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = {"a": deep}
    assert call_facts(asked(raw_input=deep)).unclear == "its input is too deep to judge"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["command", "url", "path"]), inner),
)


@given(JSON)
def test_no_input_breaks_the_judge_and_none_makes_nothing_of_a_command(given_input: object) -> None:
    request = asked(kind="read", locations=at("/w/a"), raw_input={"x": given_input, "cmd": "rm"})
    rules = (PermissionRule("reject", path="/nowhere/*"), PermissionRule("ask", command="make"))
    assert judge(request, PermissionPolicy("edit", rules), WHERE).verdict == "ask"


# What a rule about a command must not be stretched to.
@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("git status", "allow"),
        ("git  status", "allow"),
        ("git status; rm x", "ask"),
        ("git status && rm x", "ask"),
        ("git status\nrm x", "ask"),
        ("GIT_DIR=/tmp/x git status", "ask"),
        ("git -c core.pager=evil status", "ask"),
        ("git status > /etc/passwd", "ask"),
        ("git status $(rm x)", "ask"),
        ("git push", "ask"),
    ],
)
def test_a_rule_about_a_command_covers_that_command_alone(command: str, effect: str) -> None:
    policy = PermissionPolicy(rules=(PermissionRule("allow", command="git status"),))
    subject = RequestPermission("s", "t", OPTIONS, subject=CommandSubject(command, "/w/"))
    call = asked(kind="execute", raw_input={"command": ["bash", "-lc", command], "cwd": "/w/"})
    for request in (subject, call, CreateTerminal("s", command)):
        assert judge(request, policy, WHERE).verdict == effect


def test_variables_given_to_a_terminal_are_part_of_its_command() -> None:
    policy = PermissionPolicy(rules=(PermissionRule("allow", command="git status"),))
    plain = CreateTerminal("s", "git", ["status"])
    bent = CreateTerminal("s", "git", ["status"], [EnvVariable("GIT_DIR", "/tmp/evil")])
    assert [judge(one, policy, WHERE).verdict for one in (plain, bent)] == ["allow", "ask"]


def test_a_command_in_a_folder_outside_needs_more_than_a_rule_for_it() -> None:
    policy = PermissionPolicy(rules=(PermissionRule("allow", command="*"),))
    assert judge(CreateTerminal("s", "ls", cwd="/w/"), policy, WHERE).verdict == "allow"
    assert judge(CreateTerminal("s", "ls", cwd="/etc"), policy, WHERE).verdict == "ask"


RULED: list[tuple[str, tuple[PermissionRule, ...], Any, str]] = [
    (
        "allowed by path",
        (PermissionRule("allow", path="src/**"),),
        asked(kind="edit", locations=at("/w/src/a/b.py")),
        "allow",
    ),
    ("another path", (PermissionRule("allow", path="src/**"),), asked(kind="edit", locations=at("/w/docs/a")), "ask"),
    (
        "one path too many",
        (PermissionRule("allow", path="src/**"),),
        asked(kind="edit", locations=at("/w/src/a", "/w/b")),
        "ask",
    ),
    (
        "a name anywhere",
        (PermissionRule("allow", path="*.md"),),
        asked(kind="edit", locations=at("/w/docs/a.md")),
        "allow",
    ),
    (
        "a path is not a command",
        (PermissionRule("allow", path="**"),),
        asked(locations=at("/w/a"), raw_input={"cmd": "x"}),
        "ask",
    ),
    (
        "kind and path",
        (PermissionRule("allow", kind="read", path="src/**"),),
        asked(kind="edit", locations=at("/w/src/a")),
        "ask",
    ),
    (
        "kind alone stays inside",
        (PermissionRule("allow", kind="read"),),
        asked(kind="read", locations=at("/etc/a")),
        "ask",
    ),
    ("kind alone, inside", (PermissionRule("allow", kind="read"),), READ, "allow"),
    ("nothing but a kind", (PermissionRule("allow", kind="read"),), asked(kind="read"), "ask"),
    (
        "a terminal",
        (PermissionRule("allow", path="**"),),
        asked(locations=at("/w/a"), content=[ClientTerminalItem("t")]),
        "ask",
    ),
    (
        "a lie about the kind",
        (PermissionRule("allow", kind="read"),),
        asked(kind="read", raw_input={"cmd": "rm /w/a"}),
        "ask",
    ),
    (
        "any address",
        (PermissionRule("allow", kind="fetch"),),
        asked(kind="read", raw_input={"url": "https://x"}),
        "allow",
    ),
    (
        "reject beats allow",
        (PermissionRule("allow", kind="edit"), PermissionRule("reject", path="*.lock")),
        EDIT,
        "allow",
    ),
    (
        "reject beats allow, and any path is enough",
        (PermissionRule("allow", kind="edit"), PermissionRule("reject", path="*.lock")),
        asked(kind="edit", locations=at("/w/a", "/w/x.lock")),
        "deny",
    ),
    ("ask beats allow", (PermissionRule("allow", kind="edit"), PermissionRule("ask", path="a")), EDIT, "ask"),
    ("reject beats ask", (PermissionRule("ask", path="a"), PermissionRule("reject", path="a")), EDIT, "deny"),
    (
        "a denied program in a wrapper",
        (PermissionRule("allow", command="*"), PermissionRule("reject", command="rm")),
        CreateTerminal("s", "env", ["sh", "-c", "rm x"]),
        "deny",
    ),
    ("an absolute rule", (PermissionRule("reject", path="/w/src/**"),), asked(locations=at("/w/src/a")), "deny"),
    (
        "outside by a rule",
        (PermissionRule("allow", path="/etc/*"),),
        asked(kind="read", locations=at("/etc/hosts")),
        "allow",
    ),
    (
        "a relative path",
        (PermissionRule("reject", path="src/secret"),),
        asked(raw_input={"path": "src/secret"}),
        "deny",
    ),
]


@pytest.mark.parametrize(("rules", "request_", "effect"), [r[1:] for r in RULED], ids=[r[0] for r in RULED])
def test_rules(rules: tuple[PermissionRule, ...], request_: Any, effect: str) -> None:
    assert judge(request_, PermissionPolicy(rules=rules), WHERE).verdict == effect


def test_a_reject_rule_holds_although_everything_is_allowed() -> None:
    policy = PermissionPolicy("all", (PermissionRule("reject", command="git push"),))
    assert judge(CreateTerminal("s", "git push --force"), policy, WHERE).verdict == "deny"


@pytest.mark.parametrize(
    ("command", "line", "effect"),
    [
        ("rm *", "rm x", "deny"),
        ("rm *", "rm", "deny"),
        ("rm *", "rm -rf a b", "deny"),
        ("rm *", "sudo /bin/rm x", "deny"),
        ("rm *", "cd a && rm x", "deny"),
        ("rm *", "python3 -c 'os.system(\"rm x\")'", "deny"),
        ("rm *", "rmdir x", "allow"),
        ("rm *", "echo format", "allow"),
        ("git push *", "git push --force", "deny"),
        ("git * --force", "git push origin --force", "deny"),
        ("git push --force*", "git push --force-with-lease", "deny"),
        ("git push --force*", "git push", "allow"),
        ("npm run test:*", "npm run test:unit", "deny"),
        ("npm run test:*", "npm run build", "allow"),
        ("rm:*", "rm x", "deny"),
        ("rm:*", "rmdir x", "allow"),
        ("npm run test:*", "npm run test", "deny"),
        ("python*", "python3.11 x.py", "deny"),
        ("pip?", "pip3 install x", "deny"),
        ("* --no-verify", "git commit --no-verify", "deny"),
        ("touch *", "echo x; touch $(cat names)", "deny"),
    ],
)
def test_a_rule_against_a_command_takes_wildcards(command: str, line: str, effect: str) -> None:
    policy = PermissionPolicy("all", (PermissionRule("reject", command=command),))
    assert judge(CreateTerminal("s", line), policy, WHERE).verdict == effect
    asks = PermissionPolicy("all", (PermissionRule("ask", command=command),))
    assert judge(CreateTerminal("s", line), asks, WHERE).verdict == ("ask" if effect == "deny" else "allow")


@pytest.mark.parametrize(
    ("path", "file", "effect"),
    [
        ("secrets", "/w/secrets/a/key.txt", "deny"),
        ("secrets/", "/w/a/secrets/key.txt", "deny"),
        ("a/secrets", "/w/a/secrets/key.txt", "deny"),
        ("/etc/ssh", "/etc/ssh/sshd_config", "deny"),
        ("secret", "/w/secrets/key.txt", "allow"),
        ("src/*", "/w/src/a/b", "allow"),
        ("/alias/**", "/real/x", "deny"),
    ],
)
def test_a_rule_against_a_folder_is_about_all_that_is_in_it(path: str, file: str, effect: str) -> None:
    where = W(WHERE.inside, WHERE.names, real=lambda given: given.replace("/alias", "/real"))
    policy = PermissionPolicy("all", (PermissionRule("reject", path=path),))
    assert judge(ReadTextFile("s", file), policy, where).verdict == effect
    # A rule to allow is for what it names, as it really is called.
    allows = PermissionPolicy(rules=(PermissionRule("allow", path=path.rstrip("/")),))
    assert judge(ReadTextFile("s", file), allows, where).verdict == "ask"


def test_a_rule_against_a_file_holds_for_a_pattern_that_stands_for_too_many() -> None:
    where = W(WHERE.inside, WHERE.names, matches=lambda path: None if "*" in path else [path])
    policy = PermissionPolicy("all", (PermissionRule("reject", path="keep/x"),))
    told = {path: asked(kind="read", raw_input={"path": path}) for path in ("src/*", "src/a")}
    assert {path: judge(one, policy, where).verdict for path, one in told.items()} == {
        "src/*": "deny",
        "src/a": "allow",
    }


async def test_a_rule_may_name_the_folder_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "given").symlink_to("real")
    rule = PermissionRule("allow", "edit", path=f"{tmp_path}/given/src/**")
    permissions = PermissionHandler(PermissionPolicy(rules=(rule,)), [tmp_path / "given"])
    assert await permissions.permits(WriteTextFile("s", f"{tmp_path}/real/src/a", "x")) is None
    assert await permissions.permits(WriteTextFile("s", f"{tmp_path}/real/b", "x")) is not None


@pytest.mark.parametrize("fields", [{}, {"kind": "reed"}, {"path": "{" * 40}, {"command": "'"}])
def test_a_rule_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PermissionRule("allow", **fields)


# -- deciding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "chosen"),
    [([ALWAYS, YES, NO], YES), ([NO, ALWAYS], ALWAYS), ([NO], None), ([PermissionOption("x", "X", "bless")], None)],
)
def test_yes_is_once_before_always_and_never_another_kind(options: list[PermissionOption], chosen: Any) -> None:
    assert allow_option(asked(locations=at("/w/a"), options=options)) == chosen


@pytest.mark.requirement("F14")
async def test_no_user_to_ask_is_a_no_with_its_reason(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("read"), [tmp_path])
    answer = await permissions(asked(kind="execute", raw_input={"command": "make"}))
    reason = "it runs a command, and there is no user to ask"
    assert answer == PermissionAnswer(Selected("no"), meta={REASON_KEY: reason})
    assert (permissions.denied, permissions.refused, permissions.denials[0].reason) == (1, 0, reason)


async def test_an_agent_that_offers_no_yes_gets_none(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("all"), [tmp_path])
    answer = await permissions(asked(locations=at("/x"), options=[PermissionOption("x", "X", "bless")]))
    assert isinstance(answer, PermissionAnswer)
    assert (answer.outcome, permissions.denied) == (Dismissed(), 1)


async def test_accept_all_counts_only_where_no_user_can_be_asked(tmp_path: Path) -> None:
    request = asked(kind="execute", raw_input={"command": "make"})
    alone = PermissionHandler(PermissionPolicy(unasked="allow"), [tmp_path])
    watched = PermissionHandler(PermissionPolicy(unasked="allow"), [tmp_path], ask=answering(NO))
    assert (await alone(request), await watched(request)) == (YES, NO)
    assert (alone.denied, watched.denied, watched.refused) == (0, 0, 1)


def answering(answer: Any, seen: list[RequestPermission] | None = None) -> Any:
    async def ask(request: RequestPermission) -> Any:
        if seen is not None:
            seen.append(request)
        await asyncio.sleep(0)
        return answer

    return ask


async def test_a_person_is_asked_about_files_and_commands_as_about_everything_else(tmp_path: Path) -> None:
    seen: list[RequestPermission] = []
    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=answering("allow", seen))
    path = str(tmp_path / "a")
    requests: list[Any] = [ReadTextFile("s", path), WriteTextFile("s", path, "new"), CreateTerminal("s", "ls", ["-l"])]
    assert [await permissions.permits(request) for request in requests] == [None, None, None]
    assert [call_facts(request) for request in seen[:2]] == [call_facts(request) for request in requests[:2]]
    assert seen[2].subject == CommandSubject("ls -l", str(tmp_path))
    for no in (None, "reject", "of nobody's"):
        permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=answering(no))
        assert [await permissions.permits(request) for request in requests] == ["the user said no"] * 3


@pytest.mark.requirement("F5", "F12")
async def test_the_same_thing_is_asked_again_after_a_yes_and_not_after_a_no(tmp_path: Path) -> None:
    request = asked(kind="execute", raw_input={"command": "make"})
    for answer, questions in ((YES, 5), (None, 1)):
        seen: list[RequestPermission] = []
        permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=answering(answer, seen))
        said = await asyncio.gather(*(permissions(request) for _ in range(5)))
        assert (said, len(seen)) == ([answer] * 5, questions)
    permissions.new_turn()
    await permissions(request)
    assert len(seen) == 2


@pytest.mark.requirement("F12")
async def test_a_thousand_askings_are_one_question_after_a_no(tmp_path: Path) -> None:
    seen: list[RequestPermission] = []
    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=answering(NO, seen))
    for _ in range(1_000):
        await permissions(asked(kind="execute", raw_input={"command": "make"}))
    assert (len(seen), permissions.refused) == (1, 1_000)


async def test_links_and_look_alikes_do_not_lie_inside(tmp_path: Path) -> None:
    root, other = tmp_path / "app", tmp_path / "app-evil"
    root.mkdir()
    other.mkdir()
    (root / "link").symlink_to(other)
    permissions = PermissionHandler(PermissionPolicy("edit"), [root])
    inside = [str(root / "a"), str(root / "sub" / ".." / "a"), "a"]
    outside = [str(other / "a"), str(root / "link" / "a"), str(root / ".." / "x"), "../x", "~/x", "$HOME/x", "a\0b"]
    for paths, allowed in ((inside, True), (outside, False)):
        for path in paths:
            answer = await permissions(asked(kind="edit", locations=at(path)))
            assert (answer == YES) is allowed, path


async def test_a_path_with_a_variable_is_rejected_by_where_it_may_lead_and_never_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    told = asked(kind="edit", locations=at("$HOME/.ssh/id"))
    reject = PermissionHandler(PermissionPolicy("all", (PermissionRule("reject", path="/home/me/**"),)), [tmp_path])
    await reject(told)
    assert [denial.reason for denial in reject.denials] == ["the rule reject path /home/me/**"]
    allow = PermissionHandler(
        PermissionPolicy(rules=(PermissionRule("allow", path=f"{tmp_path}/**"), PermissionRule("allow", path="**"))),
        [tmp_path],
    )
    assert await allow(told) != YES


@pytest.mark.parametrize("path", ["out.pem", "*.pem", "**/secrets/**", "**/out.pem", "secrets", "**/*.{key,pem}"])
async def test_a_rule_against_a_name_is_about_files_outside_of_the_folder_too(tmp_path: Path, path: str) -> None:
    rule = PermissionRule("reject", path=path)
    permissions = PermissionHandler(PermissionPolicy("all", (rule,)), [tmp_path])
    assert await permissions.permits(ReadTextFile("s", "/nowhere/secrets/out.pem")) == str(rule)
    assert await permissions.permits(ReadTextFile("s", "/nowhere/src/out.txt")) is None


async def test_what_gives_orders_to_tools_is_not_covered_by_edit(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("edit"), [tmp_path])
    hook = str(tmp_path / ".git" / "hooks" / "pre-commit")
    assert await permissions.permits(WriteTextFile("s", hook, "evil")) == (
        f"{hook} is a protected file, and there is no user to ask"
    )
    assert await permissions.permits(ReadTextFile("s", hook)) is None


@pytest.mark.requirement("F7")
async def test_a_file_that_changes_while_it_is_shown_is_shown_again(tmp_path: Path) -> None:
    """A yes is for what was shown."""
    file = tmp_path / "a"
    file.write_text("old")
    shown: list[Any] = []

    async def change_once(request: RequestPermission) -> str:
        assert isinstance(request.subject, ToolCallSubject)
        shown.append(request.subject.tool_call.content)
        if len(shown) == 1:
            file.write_text("changed")
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=change_once)
    async with Workspace([tmp_path], environment={}, permissions=permissions) as workspace:
        await workspace.write_text_file(WriteTextFile("s", str(file), "new"))
    assert shown == [[Diff.of(str(file), "old", "new")], [Diff.of(str(file), "changed", "new")]]
    assert file.read_text() == "new"


@pytest.mark.requirement("F7")
async def test_a_file_that_never_stops_changing_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "a"

    async def change(request: RequestPermission) -> str:
        file.write_text(file.read_text() + "x" if file.exists() else "x")
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=change)
    async with Workspace([tmp_path], environment={}, permissions=permissions) as workspace:
        with pytest.raises(RequestFailed, match="keeps changing"):
            await workspace.write_text_file(WriteTextFile("s", str(file), "new"))
    assert set(file.read_text()) == {"x"}
    reason = "the file keeps changing while the user looks at it"
    assert (permissions.denied, permissions.refused, permissions.denials) == (1, 0, [Denial(f"Write {file}", reason)])


async def test_a_question_that_will_not_be_answered_is_cancelled_and_so_are_those_behind_it(tmp_path: Path) -> None:
    seen: list[RequestPermission] = []

    async def never(request: RequestPermission) -> None:
        seen.append(request)
        await asyncio.get_running_loop().create_future()

    permissions = PermissionHandler(PermissionPolicy(), [tmp_path], ask=never)
    for count in (1, 2):
        # The second waits for the answer to the first: it is the same question.
        asking = [asyncio.ensure_future(permissions.permits(CreateTerminal("s", "ls"))) for _ in range(2)]
        asking.append(asyncio.ensure_future(permissions.permits(CreateTerminal("s", "pwd"))))
        await until(lambda count=count: len(seen) == 2 * count)  # type: ignore[misc]
        permissions.dismiss()
        asking.append(asyncio.ensure_future(permissions.permits(CreateTerminal("s", "id"))))
        ended = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(end) for end in ended] == [RequestCancelled] * 4
        assert (await permissions(EDIT)) == PermissionAnswer(Dismissed())
        assert len(seen) == 2 * count  # nothing was shown after the cancel
        permissions.new_turn()  # and nothing is remembered
    assert permissions.refused == 0


@pytest.mark.parametrize("policy", [PermissionPolicy(), PermissionPolicy("all"), PermissionPolicy(deny_all=True)])
async def test_after_a_cancel_every_question_of_the_turn_is_answered_as_cancelled(
    policy: PermissionPolicy, tmp_path: Path
) -> None:
    permissions = PermissionHandler(policy, [tmp_path])
    permissions.dismiss()
    assert await permissions(EDIT) == PermissionAnswer(Dismissed())
    assert permissions.denied == 0
    permissions.new_turn()
    assert await permissions(EDIT) != PermissionAnswer(Dismissed())


async def test_a_person_is_shown_where_the_links_in_a_path_lead(tmp_path: Path) -> None:
    root, other = tmp_path / "app", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (root / "link").symlink_to(other)
    seen: list[RequestPermission] = []
    permissions = PermissionHandler(PermissionPolicy("edit"), [root], ask=answering(NO, seen))
    await permissions(asked(kind="edit", raw_input={"path": "link/a", "content": "x"}))
    (request,) = seen
    assert isinstance(request.subject, ToolCallSubject)
    assert request.subject.tool_call.locations == at(str(other / "a"))

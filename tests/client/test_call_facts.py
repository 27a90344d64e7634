"""Every form in which a call tells what it touches counts, and the edits of real agents are still plain edits."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy, judge
from dragoman.dialects.v1 import codec as v1
from dragoman.permissions.decision import PathPosition
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.content import BlobResource, Resource, ResourceLink, Text, TextResource, UnknownContent
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Location, Patch
from dragoman.wire import types as wire
from dragoman.wire import v1 as wire_v1

pytestmark = pytest.mark.anyio

YES = PermissionOption("yes", "Yes", "allow_once")
NO = PermissionOption("no", "No", "reject_once")


async def says(root: Path, policy: PermissionPolicy, **fields: Any) -> str:
    """`yes`, or why not."""
    permissions = PermissionHandler(policy, [root])
    request = RequestPermission("s", "Edit", [YES, NO], subject=ToolCallSubject(ToolCallUpdate("c", **fields)))
    answer = await permissions(request)
    return "yes" if answer == YES else permissions.denials[0].reason.removesuffix(", and there is no user to ask")


def patch(text: str, *changes: FileChange) -> Diff:
    return Diff(list(changes), Patch("git_patch", text))


OUT = "/etc/passwd"
OUTSIDE = "/etc/passwd is outside of the workspace"
UNIFIED = f"--- {OUT}\n+++ {OUT}\n@@ -1 +1 @@\n-x\n+y\n"
MARKED = f"*** Begin Patch\n*** Update File: {OUT}\n@@\n-x\n+y\n*** End Patch\n"
COMMAND = "it runs a command"


def unknown(key: str) -> str:
    return f"it is not known what its {key!r} is"


# What stands beside a harmless location, with `--allow edit`.
TELLINGS: list[tuple[str, dict[str, Any], str]] = [
    ("a diff", {"content": [Diff.of(OUT, "x", "y")]}, OUTSIDE),
    ("a patch that names another file", {"content": [patch(UNIFIED, FileChange("modify", "in.txt"))]}, OUTSIDE),
    ("nothing but a patch", {"content": [patch(UNIFIED)]}, OUTSIDE),
    ("nothing but a patch that cannot be read", {"content": [patch("s/x/y/")]}, "it has a diff that names no file"),
    ("an empty diff", {"content": [Diff([])]}, "it has a diff that names no file"),
    (
        "a link",
        {"content": [Diff([FileChange("add", "l", file_type="symlink")])]},
        "it changes something that is not a plain file",
    ),
    ("a patch in a text block", {"content": [ContentItem(Text(f"Look:\n{UNIFIED}"))]}, OUTSIDE),
    ("a marked patch in a text block", {"content": [ContentItem(Text(MARKED))]}, OUTSIDE),
    ("a patch in a resource", {"content": [ContentItem(Resource(TextResource(UNIFIED, "x:y")))]}, OUTSIDE),
    ("a resource", {"content": [ContentItem(Resource(BlobResource("", f"file://{OUT}")))]}, OUTSIDE),
    ("a link to a file", {"content": [ContentItem(ResourceLink("x", f"file://{OUT}"))]}, OUTSIDE),
    (
        "a block nobody knows",
        {"content": [ContentItem(UnknownContent("x", {}))]},
        "it carries content of an unknown kind",
    ),
    ("patch", {"raw_input": {"patch": MARKED}}, OUTSIDE),
    ("input", {"raw_input": {"input": MARKED}}, OUTSIDE),
    ("content", {"raw_input": {"content": UNIFIED}}, OUTSIDE),
    ("any key", {"raw_input": {"payload": {"v": [UNIFIED]}}}, OUTSIDE),
    ("a bare patch", {"raw_input": MARKED}, OUTSIDE),
    ("an unknown key, absolute", {"raw_input": {"where": OUT}}, OUTSIDE),
    ("an unknown key, leaving", {"raw_input": {"where": "sub/../../x"}}, "sub/../../x is outside of the workspace"),
    ("a pattern that leaves", {"raw_input": {"glob": "../**"}}, "../** is outside of the workspace"),
    ("a key that is a path", {"raw_input": {"changes": {"../x": {}}}}, "../x is outside of the workspace"),
    ("a key that is an address of a file", {"raw_input": {f"file://{OUT}": 1}}, OUTSIDE),
    ("a location that is an address of a file", {"locations": [Location(f"file://{OUT}")]}, OUTSIDE),
    ("an address with one slash", {"raw_input": {"x": f"file:{OUT}"}}, OUTSIDE),
    ("an escaped address", {"raw_input": {"uri": "file:///%65tc/passwd"}}, OUTSIDE),
    ("a path as uri", {"raw_input": {"uri": OUT}}, OUTSIDE),
    ("from another folder", {"raw_input": {"cwd": "/etc", "path": "passwd"}}, "/etc is outside of the workspace"),
    ("a variable", {"raw_input": {"x": "$HOME/a"}}, "$HOME/a is outside of the workspace"),
    ("changes that are a text", {"raw_input": {"changes": OUT}}, OUTSIDE),
    ("edits that are texts", {"raw_input": {"edits": ["../x"]}}, "../x is outside of the workspace"),
    ("a pattern that is an address", {"raw_input": {"glob": f"file://{OUT}"}}, OUTSIDE),
    ("two paths in two lines", {"raw_input": {"file": f"a\n{OUT}"}}, "its 'file' may be several paths"),
    ("two paths in one text", {"raw_input": {"files": f"a,{OUT}"}}, "its 'files' may be several paths"),
    ("a text nobody knows", {"raw_input": {"what": "one two"}}, unknown("what")),
    ("lines nobody knows", {"raw_input": {"what": "one\ntwo"}}, unknown("what")),
    ("a script in a folder here", {"raw_input": {"invoke": "./x.sh --all"}}, unknown("invoke")),
    *((key, {"raw_input": {key: "rm x"}}, COMMAND) for key in ("shellCommand", "run", "cmdline", "bash_command")),
    *((key, {"raw_input": {"x": {key: "rm"}}}, COMMAND) for key in ("exec", "shell", "run_command", "stdin", "code")),
    ("a program and its words", {"raw_input": {"program": "rm", "args": ["x"]}}, COMMAND),
    ("variables", {"raw_input": {"env": {"PATH": "."}}}, "it sets variables, which may change what a command means"),
    (
        "too many files",
        {"raw_input": {"paths": [f"f{n}" for n in range(1_500)]}},
        "it names more files than can be judged",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), [row[1:] for row in TELLINGS], ids=[row[0] for row in TELLINGS])
@pytest.mark.parametrize("kind", ["edit", "move", "read"])
async def test_every_form_in_which_a_call_tells_its_paths_counts(
    kind: str, fields: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    beside = {"kind": kind, "locations": [Location(str(tmp_path / "in.txt"))]}
    assert await says(tmp_path, PermissionPolicy("edit"), **{**beside, **fields}) == reason
    assert await says(tmp_path, PermissionPolicy("edit"), **beside) == "yes"


@pytest.mark.parametrize("name", ["content", "new_string", "patch", "edits", "file_text"])
async def test_a_call_that_writes_is_no_reading(name: str, tmp_path: Path) -> None:
    given = {"kind": "read", "raw_input": {"path": "a.txt", name: "x"}}
    assert await says(tmp_path, PermissionPolicy("read"), **given) == "it changes files"
    assert await says(tmp_path, PermissionPolicy("edit"), **given) == "yes"


@pytest.mark.parametrize(
    "more",
    [
        {"operation": "delete"},
        {"action": "remove_file"},
        {"tool": "write_file"},
        {"toolName": "fs.rename"},
        {"mode": "w"},
        {"mode": "a+"},
        {"overwrite": True},
        {"new_path": "b.txt"},
        {"destination": "b.txt"},
        {"output_file": "b.txt"},
    ],
    ids=str,
)
async def test_a_call_that_says_that_it_changes_something_is_no_reading(more: dict[str, Any], tmp_path: Path) -> None:
    given = {"kind": "read", "raw_input": {"path": "a.txt", **more}}
    assert await says(tmp_path, PermissionPolicy("read"), **given) == "it changes files"
    assert await says(tmp_path, PermissionPolicy("edit"), **given) == "yes"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["rm", "-rf", "x"], COMMAND),
        (["reboot"], COMMAND),
        ({"input": '{"command":"reboot"}'}, unknown("input")),
        ({"expression": "os.system('x')"}, unknown("expression")),
        ({"what": "a;b"}, unknown("what")),
        ({"tool": "bash", "input": "reboot"}, unknown("tool")),
        ({"method": "terminal_exec"}, unknown("method")),
    ],
    ids=str,
)
async def test_what_may_be_run_is_no_reading(given: Any, reason: str, tmp_path: Path) -> None:
    told = {"kind": "read", "raw_input": given, "locations": [Location(str(tmp_path / "a.txt"))]}
    assert await says(tmp_path, PermissionPolicy("edit"), **told) == reason


@pytest.mark.parametrize("kind", ["other", "think", "switch_mode", "bless", None])
async def test_edits_are_not_allowed_to_what_is_called_something_else(kind: str | None, tmp_path: Path) -> None:
    beside = {"kind": kind, "locations": [Location(str(tmp_path / "a"))], "raw_input": {"path": "a", "content": "x"}}
    assert (
        await says(tmp_path, PermissionPolicy("edit"), **beside) == "it does not say whether it reads or changes files"
    )
    shown = {**beside, "content": [Diff.of(str(tmp_path / "a"), None, "x")]}
    assert await says(tmp_path, PermissionPolicy("edit"), **shown) == "yes"


DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"
# How real agents tell of an edit: the input of a tool, and what stands in the call. `/w` is the workspace.
HONEST: list[tuple[str, dict[str, Any]]] = [
    (
        "Claude: Edit",
        {
            "raw_input": {
                "file_path": "/w/src/a.py",
                "old_string": "a / b\n",
                "new_string": "rm -rf ../..\n",
                "replace_all": False,
            },
            "content": [Diff.of("/w/src/a.py", "a / b\n", "rm -rf ../..\n")],
            "locations": [Location("/w/src/a.py", 3)],
        },
    ),
    ("Claude: Write", {"raw_input": {"file_path": "/w/n.md", "content": "# Run\n\n    sh -c 'rm -rf /'\n"}}),
    (
        "Claude: MultiEdit",
        {"raw_input": {"file_path": "/w/a", "edits": [{"old_string": "x y", "new_string": "/etc/passwd"}]}},
    ),
    (
        "Claude: NotebookEdit",
        {
            "raw_input": {
                "notebook_path": "/w/a.ipynb",
                "cell_id": "c1",
                "cell_type": "code",
                "edit_mode": "replace",
                "new_source": "print(1)\nx = 2",
            }
        },
    ),
    (
        "Gemini: replace",
        {
            "raw_input": {
                "file_path": "/w/a.py",
                "instruction": "Change the /etc path. Then ../x.",
                "old_string": "a b",
                "new_string": "c d",
                "expected_replacements": 1,
            },
            "content": [Diff.of("/w/a.py", "a b", "c d")],
        },
    ),
    (
        "Gemini: write_file",
        {
            "raw_input": {
                "file_path": "src/a.py",
                "content": "x\n",
                "ai_proposed_content": "x\n",
                "modified_by_user": False,
            },
            "content": [Diff.of("/w/src/a.py", "", "x\n")],
            "locations": [Location("/w/src/a.py")],
        },
    ),
    (
        "Codex: changes by file",
        {
            "raw_input": {
                "call_id": "call_1aB-2",
                "auto_approved": True,
                "reason": "It needs ../x and a b.",
                "changes": {
                    "/w/src/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y\n", "move_path": None},
                    "/w/b": {"type": "add", "content": "one two"},
                },
            },
            "content": [Diff.of("/w/src/a.py", "x", "y")],
        },
    ),
    (
        "Codex: apply_patch",
        {"raw_input": {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@ f\n-x\n+y\n*** End Patch"}},
    ),
    (
        "OpenCode: edit",
        {
            "raw_input": {"filePath": "/w/src/a.py", "oldString": "x y", "newString": "z", "replaceAll": True},
            "content": [Diff.of("/w/src/a.py", "x y", "z")],
        },
    ),
    ("OpenCode: permission with a diff", {"raw_input": {"filepath": "/w/src/a.py", "diff": DIFF}}),
    (
        "OpenCode: the file before and after",
        {
            "raw_input": {
                "filepath": "/w/src/a.py",
                "diff": f"Index: /w/src/a.py\n{'=' * 67}\n{DIFF.replace('a/src', '/w/src').replace('b/src', '/w/src')}",
                "filediff": {"file": "/w/src/a.py", "before": "x y\n", "after": "z\n", "additions": 1, "deletions": 1},
            },
            "locations": [Location("/w/src/a.py")],
        },
    ),
    ("OpenCode: patch", {"raw_input": {"patchText": "*** Begin Patch\n*** Add File: /w/n\n+x\n*** End Patch"}}),
    ("str_replace", {"raw_input": {"command_id": None, "path": "/w/a", "old_str": "a b", "new_str": "c d"}}),
    ("insert", {"raw_input": {"path": "/w/a", "insert_line": 3, "insert_text": "one two"}}),
    (
        "a patch with blocks",
        {"raw_input": {"path": "src/a.py", "diff": "<<<<<<< SEARCH\na b\n=======\nc\n>>>>>>> REPLACE"}},
    ),
    (
        "goose: text_editor",
        {"raw_input": {"command": "str_replace", "path": "/w/a", "old_str": "rm x", "new_str": "c d"}},
    ),
    ("goose: a new file", {"raw_input": {"command": "write", "path": "/w/a", "file_text": "one two\n"}}),
    (
        "an editor with numbered fields",
        {
            "raw_input": {
                "command": "str_replace",
                "path": "src/a.py",
                "instruction_reminder": "ALWAYS BREAK DOWN EDITS.",
                "old_str_1": "a b",
                "new_str_1": "c d",
                "old_str_start_line_number_1": 3,
            }
        },
    ),
    (
        "Kimi: StrReplaceFile",
        {"raw_input": {"path": "/w/a", "edit": {"old": "a b", "new": "c d", "replace_all": True}}},
    ),
    (
        "Qwen: edit",
        {"raw_input": {"file_path": "/w/a.py", "old_string": "", "new_string": "a b", "modified_by_user": 0}},
    ),
    ("a move", {"kind": "move", "raw_input": {"source_path": "/w/a", "destination_path": "/w/b c"}}),
    ("a removal", {"kind": "delete", "raw_input": {"path": "old/file.txt", "recursive": False}}),
    ("version 2", {"content": [Diff([FileChange("modify", "/w/src/a.py")], Patch("git_patch", DIFF))]}),
    ("words beside a diff", {"content": [ContentItem(Text("I will run `rm`.")), Diff.of("/w/a", None, "x")]}),
]


def _placed(value: Any, root: str) -> Any:
    """The same with `/w` replaced by the workspace of the test."""
    if isinstance(value, str):
        return value.replace("/w/", f"{root}/")
    if isinstance(value, dict):
        return {_placed(key, root): _placed(one, root) for key, one in value.items()}
    if isinstance(value, list):
        return [_placed(one, root) for one in value]
    match value:
        case Location(path=path):
            return Location(_placed(path, root))
        case Diff(changes=changes, patch=text):
            return Diff([FileChange(one.operation, _placed(one.path, root)) for one in changes], text)  # type: ignore[union-attr]
        case _:
            return value


@pytest.mark.parametrize("fields", [row[1] for row in HONEST], ids=[row[0] for row in HONEST])
async def test_an_ordinary_edit_of_a_real_agent_is_allowed(fields: dict[str, Any], tmp_path: Path) -> None:
    told = {"kind": "edit", **_placed(fields, str(tmp_path))}
    assert await says(tmp_path, PermissionPolicy("edit"), **told) == "yes"
    assert await says(tmp_path, PermissionPolicy("read"), **told) == "it changes files"


READS: list[dict[str, Any]] = [
    {"file_path": "/w/src/a.py", "offset": 1, "limit": 20},
    {"pattern": "def (a|b)", "path": "/w/src", "include": "*.{py,pyi}", "output_mode": "content", "-n": True},
    {"pattern": "**/*.ts", "path": "/w/"},
    {"absolute_path": "/w/a b.txt"},
    {"query": "where is it?", "dir_path": "src"},
    {"command": "view", "path": "/w/src/a.py", "view_range": [1, 20]},
    {"pattern": "a b", "path": "/w/src", "glob": "**/*.{ts,tsx}", "-A": 3, "type": "ts", "head_limit": 5},
    {"paths": ["src/**/*.py", "README.md"], "exclude": ["node_modules/"], "recursive": True},
    {"path": "/w/src", "ignore": ["*.pyc", "__pycache__"]},
]


@pytest.mark.parametrize("pattern", [".env", "*.pem", "**/.env*", "*.{py,key}", "config/{a,.env}", ".ssh/**"])
@pytest.mark.parametrize("name", ["glob", "include"])
async def test_a_search_through_credentials_is_no_ordinary_search(name: str, pattern: str, tmp_path: Path) -> None:
    given = {"pattern": "KEY", "path": str(tmp_path), name: pattern}
    assert (await says(tmp_path, PermissionPolicy("read"), kind="search", raw_input=given)).endswith(
        "may hold credentials"
    )


def tree(root: Path) -> None:
    """Files, credentials, and links out of the folder and to the credentials."""
    for name in ("src/a.py", "src/b.py", "sub/.env", "sub/b.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x")
    (root / "links").mkdir()
    (root / "links" / "out").symlink_to("/etc")
    (root / "links" / "in").symlink_to(root / "sub")


@pytest.mark.parametrize(
    "given",
    [
        {"path": "sub/.en*"},
        {"path": "sub/*"},
        {"paths": ["src/a.py", "s?b/.[e]nv"]},
        {"path": "sub/{b.txt,.env}"},
        {"path": "*/*"},
        {"path": "**"},
        {"path": "su*"},
        {"path": "links/i*/b.txt"},
        {"include": ["sub/*"]},
        {"glob": "*"},
        {"glob": "!*.md"},
    ],
    ids=str,
)
async def test_a_pattern_that_reaches_credentials_is_asked(given: dict[str, Any], tmp_path: Path) -> None:
    tree(tmp_path)
    told = {"kind": "read", "raw_input": given, "locations": [Location(str(tmp_path / "src/a.py"))]}
    reason = await says(tmp_path, PermissionPolicy("read"), **told)
    assert reason.endswith(("may hold credentials", "links/out is outside of the workspace"))


async def test_a_pattern_is_judged_by_what_it_reaches(tmp_path: Path) -> None:
    tree(tmp_path)

    async def reads(path: str, *rules: PermissionRule) -> str:
        return await says(tmp_path, PermissionPolicy("read", rules), kind="read", raw_input={"path": path})

    assert await reads("links/o*/passwd") == f"{tmp_path}/links/out is outside of the workspace"
    assert await reads("sr*/a.py", PermissionRule("reject", path="src/a.py")) == "the rule reject path src/a.py"
    assert await reads("src/*.py") == "yes"
    (tmp_path / "src" / "python").symlink_to("/usr/bin/python3")
    assert await reads("src/**/*.py") == "yes"
    assert await reads("src/py*") == f"{tmp_path}/src/python is outside of the workspace"
    assert await reads("src/[id]/page.tsx") == "yes"
    (tmp_path / "many").mkdir()
    for number in range(1_001):
        (tmp_path / "many" / str(number)).touch()
    assert await reads("many/*") == "many/* stands for more files than can be judged"


async def test_so_many_patterns_that_looking_would_take_long_are_asked(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.txt").touch()
    for patterns in ([f"**/x{number}" for number in range(900)], ["**/" + "{a,b}" * 8], ["a*/" * 500]):
        told = {"kind": "read", "raw_input": {"paths": patterns}}
        assert (await says(tmp_path, PermissionPolicy("read"), **told)).endswith(
            "stands for more files than can be judged"
        )


@pytest.mark.parametrize("kind", ["edit", "move", "delete"])
async def test_what_is_done_with_a_file_of_credentials_is_asked(kind: str, tmp_path: Path) -> None:
    places = {"kind": kind, "locations": [Location(str(tmp_path / ".env")), Location(str(tmp_path / "a"))]}
    assert await says(tmp_path, PermissionPolicy("edit"), **places) == f"{tmp_path}/.env may hold credentials"
    permissions = PermissionHandler(PermissionPolicy("edit"), [tmp_path])
    assert await permissions.permits(WriteTextFile("s", str(tmp_path / ".env"), "A=1")) is None


EDIT = {"content": [Diff.of("src/a", "x", "y")]}
# A rule that allows something, and a call that is about more than that.
MORE: list[tuple[str, PermissionRule, dict[str, Any]]] = [
    ("a command that is not told", PermissionRule("allow", path="src/**"), {"kind": "execute"}),
    (
        "a command that is not told, and a kind",
        PermissionRule("allow", kind="execute", path="src/**"),
        {"kind": "execute"},
    ),
    ("an address that is not told", PermissionRule("allow", path="src/**"), {"kind": "fetch"}),
    (
        "an edit beside an address",
        PermissionRule("allow", kind="fetch"),
        {"raw_input": {"url": "https://a.test/"}, **EDIT},
    ),
    (
        "a text beside an address",
        PermissionRule("allow", kind="fetch"),
        {"raw_input": {"url": "https://a.test/", "text": "x"}},
    ),
    ("an edit and no command", PermissionRule("allow", kind="execute"), {"kind": "execute", **EDIT}),
]


@pytest.mark.parametrize(("rule", "fields"), [row[1:] for row in MORE], ids=[row[0] for row in MORE])
async def test_a_rule_covers_a_call_only_if_it_is_about_all_of_it(
    rule: PermissionRule, fields: dict[str, Any], tmp_path: Path
) -> None:
    beside = {"kind": "fetch", "locations": [Location(str(tmp_path / "src/a"))]}
    assert await says(tmp_path, PermissionPolicy(rules=(rule,)), **{**beside, **fields}) != "yes"
    plain = {"kind": "fetch", "raw_input": {"url": "https://a.test/", "prompt": "Sum it up."}}
    assert await says(tmp_path, PermissionPolicy(rules=(PermissionRule("allow", kind="fetch"),)), **plain) == "yes"


@pytest.mark.parametrize("given", READS)
async def test_an_ordinary_read_of_a_real_agent_is_allowed(given: dict[str, Any], tmp_path: Path) -> None:
    assert await says(tmp_path, PermissionPolicy("read"), kind="read", raw_input=_placed(given, str(tmp_path))) == "yes"


COMMANDS: list[tuple[str, dict[str, Any], bool]] = [
    ("Claude", {"command": "git status", "description": "Look at it", "timeout": 5, "run_in_background": False}, True),
    ("Gemini", {"command": "git status", "description": "Look", "dir_path": "src"}, True),
    (
        "Codex",
        {
            "call_id": "c_1",
            "command": ["bash", "-lc", "git status"],
            "cwd": "/w/",
            "reason": "To see it.",
            "parsed_cmd": [{"type": "unknown", "cmd": "git status"}],
            "proposed_execpolicy_amendment": ["git"],
            "available_decisions": ["approved", "abort"],
        },
        True,
    ),
    ("OpenCode", {"command": "git status", "description": "Look at it"}, True),
    ("a program and its words", {"command": "git", "args": ["status"]}, True),
    ("for another shell", {"command": ["sh", "-c", "git status &>/dev/null rm x"]}, False),
    ("for a shell that is not named", {"command": "git status &>/dev/null rm x"}, False),
    ("with a variable", {"command": "git status", "env": {"GIT_DIR": "x"}}, False),
    ("with words for its input", {"command": "git status", "stdin": "x"}, False),
    ("and another", {"command": "git status", "then": {"run": "rm x"}}, False),
    ("another program and its words", {"command": "git", "args": ["push"]}, False),
    ("with a text beside it", {"command": "git status", "text": "rm x"}, False),
    ("with something to do later", {"command": "git status", "after": "rm x"}, False),
    ("with a line behind it", {"command": "git", "args": "status; rm x"}, False),
]


@pytest.mark.parametrize(("given", "allowed"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
async def test_a_rule_for_a_command_knows_how_real_agents_tell_it(
    given: dict[str, Any], allowed: bool, tmp_path: Path
) -> None:
    policy = PermissionPolicy(rules=(PermissionRule("allow", command="git status"),))
    assert (await says(tmp_path, policy, kind="execute", raw_input=_placed(given, str(tmp_path))) == "yes") is allowed


@pytest.mark.parametrize(
    "given",
    [
        {"command": "git", "args": ["push"]},
        {"program": "git", "arguments": ["push", "-f"]},
        {"command": "git", "args": "push -f"},
        {"command": "git -C x", "args": ["push"]},
        {"cmd": ["git"], "args": ["push"]},
    ],
)
async def test_a_rule_against_a_command_holds_where_its_words_stand_in_two_fields(given: Any, tmp_path: Path) -> None:
    policy = PermissionPolicy("all", (PermissionRule("reject", command="git push"),))
    assert await says(tmp_path, policy, kind="execute", raw_input=given) == "the rule reject command git push"


@pytest.mark.parametrize("kind", ["execute", "fetch", "other", "bless", "edit"])
async def test_a_rule_against_edits_holds_whatever_an_edit_is_called(kind: str, tmp_path: Path) -> None:
    policy = PermissionPolicy("all", (PermissionRule("reject", kind="edit", path="*.lock"),))
    told = {"kind": kind, "raw_input": {"path": "x.lock", "content": "y"}}
    assert await says(tmp_path, policy, **told) == "the rule reject kind edit, path *.lock"


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", "sub/.vscode/tasks.json", ".github/workflows/ci.yml"])
async def test_protected_files_ask_although_edits_are_allowed(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    told = {"kind": "edit", "content": [Diff.of(path, None, "x")]}
    reason = f"{path} is a protected file"
    assert await says(tmp_path, PermissionPolicy("edit"), **told) == reason
    # A rule for everything else does not mean them either; one that names them does.
    for rule, expected in (
        (PermissionRule("allow", kind="edit"), reason),
        (PermissionRule("allow", path="**"), reason),
        (PermissionRule("allow", path=name), "yes"),
    ):
        assert await says(tmp_path, PermissionPolicy("edit", (rule,)), **told) == expected


async def test_a_folder_with_a_protected_file_in_it_is_not_moved_unasked(tmp_path: Path) -> None:
    permissions = PermissionHandler(
        PermissionPolicy("edit"), [tmp_path], protected_paths=[str(tmp_path / "tools" / "server.sh")]
    )
    for name, allowed in (("tools/server.sh", False), ("tools", False), ("tools/other", True), ("tool", True)):
        moved = ToolCallUpdate("c", kind="move", raw_input={"source_path": name, "destination_path": "old"})
        answer = await permissions(RequestPermission("s", "Move", [YES, NO], subject=ToolCallSubject(moved)))
        assert (answer == YES) is allowed, name


async def test_a_change_that_a_bridge_can_only_describe_is_judged(tmp_path: Path) -> None:
    """Version 1 has no diff without both texts."""
    (item,) = v1.encode_items([Diff([FileChange("move", OUT, old_path=str(tmp_path / "a"))])])
    told = {"kind": "edit", "content": [ContentItem(Text(item.content.text))]}
    assert await says(tmp_path, PermissionPolicy("edit"), **told) == OUTSIDE


async def test_files_that_make_a_git_folder_together_ask(tmp_path: Path) -> None:
    names = ("docs/HEAD", "docs/config", "docs/objects/x", "docs/refs/heads/y")
    for name in names:
        alone = {"kind": "edit", "content": [Diff.of(str(tmp_path / name), None, "x")]}
        assert await says(tmp_path, PermissionPolicy("edit"), **alone) == "yes"
    together = {"kind": "edit", "content": [Diff.of(str(tmp_path / name), None, "x") for name in names]}
    assert await says(tmp_path, PermissionPolicy("edit"), **together) == f"{tmp_path}/docs/objects/x makes a git folder"
    (tmp_path / "docs" / "objects").mkdir(parents=True)
    last = {"kind": "edit", "content": [Diff.of(str(tmp_path / "docs" / "HEAD"), None, "x")]}
    assert await says(tmp_path, PermissionPolicy("edit"), **last) == f"{tmp_path}/docs/HEAD is a protected file"


@pytest.mark.parametrize("name", [".env", ".ssh/id_ed25519", "deploy/server.pem"])
async def test_credentials_ask_although_reading_is_allowed(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    reason = f"{path} may hold credentials"
    told = {"kind": "read", "raw_input": {"path": path}}
    assert await says(tmp_path, PermissionPolicy("read"), **told) == reason
    assert await says(tmp_path, PermissionPolicy("edit", (PermissionRule("allow", kind="read"),)), **told) == reason
    assert await says(tmp_path, PermissionPolicy(rules=(PermissionRule("allow", path=name),)), **told) == "yes"
    assert (
        await PermissionHandler(PermissionPolicy("read"), [tmp_path]).permits(ReadTextFile("s", path))
        == f"{reason}, and there is no user to ask"
    )


FIELDS = st.sampled_from(["x", "path", "files", "what", "url", "command", "args", "changes", "edits", "input", "glob"])
NESTED = st.recursive(
    st.sampled_from([OUT, "sub/../../../x", "~/.ssh/id", "$HOME/x", "../x", "file:///etc/x", "https://x.y/z", UNIFIED]),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.dictionaries(FIELDS, inner, min_size=1, max_size=2),
    max_leaves=4,
)


@given(NESTED, st.sampled_from(["edit", "delete", "move", "read", "search"]))
def test_nothing_outside_is_allowed_wherever_it_stands_in_an_input(given_input: Any, kind: str) -> None:
    call = ToolCallUpdate("c", kind=kind, locations=[Location("/w/a")], raw_input={"x": given_input})
    request = RequestPermission("s", "Edit", [YES, NO], subject=ToolCallSubject(call))
    where = PathPosition(lambda path: path == "/w/a")
    assert judge(request, PermissionPolicy("edit"), where).verdict == "ask"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"input": {"command": "rm x"}}, COMMAND),
        ({"raw_input": {"file_path": OUT}}, OUTSIDE),
        ({"arguments": {"path": OUT}}, "its 'arguments' cannot be judged"),
        ({"target": {"path": OUT}}, OUTSIDE),
        ({"toolName": "edit_file", "agentId": "a-1"}, "yes"),
    ],
)
async def test_what_stands_in_fields_beside_the_input_counts_too(
    fields: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    body = {"toolCallId": "c", "kind": "edit", "rawInput": {"path": str(tmp_path / "in.txt")}, **fields}
    call = v1.decode_call(wire.decode(json.dumps(body).encode(), wire_v1.ToolCallUpdate))
    told = {name: getattr(call, name) for name in ("kind", "raw_input", "extras")}
    assert await says(tmp_path, PermissionPolicy("edit"), **told) == reason


@pytest.mark.parametrize(
    "given",
    [
        {"paths": [*(f"f{number}" for number in range(1_500)), "keep/x"]},
        {**{f"k{number}": "v" for number in range(3_000)}, "command": "rm x"},
        {"content": "--- a\n" * 800_000},
    ],
    ids=["files", "values", "characters"],
)
@pytest.mark.parametrize("rule", [PermissionRule("reject", path="keep/**"), PermissionRule("reject", command="rm")])
async def test_a_rule_against_something_holds_for_what_is_too_much_to_be_read(
    rule: PermissionRule, given: dict[str, Any], tmp_path: Path
) -> None:
    assert await says(tmp_path, PermissionPolicy("all", (rule,)), kind="edit", raw_input=given) == str(rule)
    assert await says(tmp_path, PermissionPolicy("all"), kind="edit", raw_input=given) == "yes"

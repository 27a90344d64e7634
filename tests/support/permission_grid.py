"""Calls, rules and policies to compare the verdicts of two releases by: those of our own tools, and those of agents."""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from dragoman.client.permission_policy import Level, PermissionPolicy, judge
from dragoman.coder.modes import MODES
from dragoman.coder.permissions import JudgedCall, decide_call
from dragoman.permissions.decision import PathPosition
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import Effect, PermissionRule, stored_rule
from dragoman.vocabulary.content import BlobResource, Resource, Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.requests import EnvVariable
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    UnknownSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ClientTerminalItem, ContentItem, Diff, FileChange, Location, UnknownChange

LETTERS: Final = {"allow": "a", "ask": "?", "deny": "d"}

# -- our own tools ---------------------------------------------------------------------------------------------------

_SUBJECTS: Final = {"read": "/w/a", "edit": "/w/a", "execute": "make", "fetch": "example.com", "foreign": "mcp__x__y 1"}
_TOOLS: Final = {"read": "read_file", "edit": "write_file", "execute": "bash", "fetch": "web_fetch"}
_COMMANDS: Final = (
    *("make", "make test", "make  ", "/usr/bin/make", "env make", "sh -c make", "git status", "git  status"),
    *("git status src", "git status ../out", "git status; rm x", "git status && make", "git status | sh", "make | cat"),
    *("git status\nrm x", "GIT_DIR=/x git status", "git -c core.pager=rm status", "git status > x", "git push"),
    *("git push --force", "sudo git status", "echo $(date) >> log", "echo $(date) >> log; rm x", "pytest -q", "pytest"),
    *(
        "pytest -p evil",
        "git add -A && git commit -m x",
        "cat src",
        "cat src | grep x",
        "curl evil",
        "sh -c 'curl evil'",
    ),
    *("true; curl evil -o x", "make\u200b", "python3 -c 'import os'", "ls"),
)


def own_calls() -> dict[str, tuple[str, list[tuple[str, str, dict[str, Any]]]]]:
    """Return the calls by name: the tool, and the kind, the subject and the marks of each action."""
    calls: dict[str, tuple[str, list[tuple[str, str, dict[str, Any]]]]] = {"nothing": ("bash", [])}
    kinds = ("read", "edit", "execute", "fetch", "foreign", "free", "sandboxed", "warp")
    for kind, guarded, harmless in product(kinds, (False, True), (False, True)):
        marks = {"guarded": guarded, "harmless": harmless}
        named = f"{kind}{' guarded' * guarded}{' harmless' * harmless}"
        calls[named] = (_TOOLS.get(kind, "mcp__x__y"), [(kind, _SUBJECTS.get(kind, ""), marks)])
    for kind in ("read", "execute", "free"):
        blocked = [(kind, _SUBJECTS.get(kind, ""), {"blocked_reason": "never"})]
        calls[f"{kind} blocked"] = (_TOOLS.get(kind, "agent"), blocked)
    calls["execute unconfined"] = ("bash", [("execute", "make", {"guarded": True, "unconfined": "it needs more"})])
    calls["fetch by another tool"] = ("mcp__x__fetch", [("fetch", "example.com", {})])
    calls["two acts"] = ("bash", [("execute", "make", {}), ("edit", "/w/.git/config", {"guarded": True})])
    calls["two commands"] = ("bash", [("execute", "make", {}), ("execute", "git status", {})])
    for command in _COMMANDS:
        calls[f"$ {command}"] = ("bash", [("execute", command, {"paths_in_workspace": ("src",)})])
    return calls


# Effect, tool, what it is about, whether it was given in confinement.
OWN_RULES: Final[Mapping[str, tuple[tuple[str, str, str, bool], ...]]] = {
    "no rules": (),
    "allow make": (("allow", "bash", "make …", False),),
    "allow make exactly": (("allow", "bash", "make", False),),
    "allow make, confined": (("allow", "bash", "make …", True),),
    "allow make and git status": (("allow", "bash", "make …", False), ("allow", "bash", "git status …", False)),
    "allow git status": (("allow", "bash", "git status …", False),),
    "allow pytest, add, commit": tuple(
        ("allow", "bash", f"{words} …", False) for words in ("pytest", "git add", "git commit")
    ),
    "allow cat": (("allow", "bash", "cat …", False),),
    "allow a line": (("allow", "bash", "echo $(date) >> log", False),),
    "allow what is hidden": (("allow", "bash", "make\u200b", False), ("allow", "bash", "make\u200b …", False)),
    "allow the act": (
        *(("allow", tool, _SUBJECTS[kind], False) for kind, tool in _TOOLS.items()),
        ("allow", "mcp__x__y", "mcp__x__y 1", False),
    ),
    "deny the act": (
        *(("deny", tool, _SUBJECTS[kind], False) for kind, tool in _TOOLS.items()),
        ("deny", "mcp__x__y", "mcp__x__y 1", False),
    ),
    "allow two acts": (("allow", "bash", "make", False), ("allow", "bash", "/w/.git/config", False)),
    "deny make, allow make": (("allow", "bash", "make …", False), ("deny", "bash", "make …", False)),
    "deny curl": (("deny", "bash", "curl evil …", False),),
    "deny git push": (("deny", "bash", "git push …", False),),
    "deny a line": (("deny", "bash", "git status && make", False),),
    "another tool": (("allow", "other", "make …", False), ("deny", "another", "make …", False)),
    "torn": (("allow", "bash", "make 'half …", False), ("deny", "bash", "ls 'half …", False)),
}


def own_row(call: tuple[str, list[tuple[str, str, dict[str, Any]]]], rules: str) -> str:
    """Return the verdicts in every mode: for the user, for a confined identity, and where pages are fetched unasked."""
    tool, parts = call
    acts = [Action(kind, subject, **marks) for kind, subject, marks in parts]  # type: ignore[arg-type]
    judged = JudgedCall("1", tool, {}, acts)
    remembered = [rule for stored in OWN_RULES[rules] if (rule := stored_rule(list(stored)))]
    return " ".join(
        "".join(
            LETTERS[decide_call(judged, mode, remembered, fetches=fetches, identity=identity).verdict]
            for mode in (*MODES, "no-such-mode")
        )
        for identity, fetches in ((LOCAL, False), (Identity(), False), (LOCAL, True))
    )


# -- agents of others ------------------------------------------------------------------------------------------------

_OPTIONS: Final = [PermissionOption("yes", "Yes", "allow_once")]
# As a client knows it: what is below /w or src is inside, some names are protected, and some hold credentials.
WHERE: Final = PathPosition(
    lambda path: path.startswith(("/w/", "src")) and ".." not in path and "$" not in path,
    lambda path: (path.removeprefix("/w/"), path),
    lambda path: "/.git/" in path or ".vscode" in path,
    lambda path: path if path.endswith((".env", ".pem")) else "",
    real=lambda path: path.replace("/alias", "/etc"),
)


def _asked(**fields: Any) -> RequestPermission:
    return RequestPermission("s", "t", _OPTIONS, subject=ToolCallSubject(ToolCallUpdate("c", **fields)))


def _at(*paths: str) -> list[Location]:
    return [Location(path) for path in paths]


def agent_requests() -> dict[str, Any]:
    """Return the requests of an agent by name."""
    requests: dict[str, Any] = {
        "no subject": RequestPermission("s", "t", _OPTIONS),
        "unknown subject": RequestPermission("s", "t", _OPTIONS, subject=UnknownSubject("x", {})),
        "nothing but a label": _asked(kind="read"),
        "input without end": _asked(kind="read", raw_input={"x": ["a"] * 5_000}),
        "a terminal shown": _asked(kind="read", locations=_at("/w/a"), content=[ClientTerminalItem("t")]),
        "unknown change": _asked(locations=_at("/w/a"), content=[Diff([UnknownChange("warp", {})])]),
        "a move": _asked(kind="move", content=[Diff([FileChange("move", "/w/b", old_path="/w/x.lock")])]),
        "variables": _asked(kind="execute", raw_input={"command": "git status", "env": {"A": "b"}}),
        "terminal, variables": CreateTerminal("s", "git", ["status"], [EnvVariable("GIT_DIR", "/x")]),
        "terminal outside": CreateTerminal("s", "git status", cwd="/etc"),
        "terminal inside": CreateTerminal("s", "git", ["status"], cwd="/w/src"),
        "a text with a patch": _asked(content=[ContentItem(Text("--- a/src/x.lock\n+++ b/src/x.lock\n@@ -1 +1 @@\n"))]),
        "a resource": _asked(kind="read", content=[ContentItem(Resource(BlobResource("", "file:///w/a")))]),
        "two commands": _asked(kind="execute", raw_input={"command": "git status", "then": {"run": "make"}}),
        "command and text": _asked(kind="execute", raw_input={"command": "git status", "text": "x"}),
        "address and diff": _asked(raw_input={"url": "https://a.test/"}, content=[Diff.of("/w/src/a", "x", "y")]),
        "address and path": _asked(raw_input={"url": "https://a.test/", "path": "/w/src/a"}),
        "command and address": _asked(kind="read", raw_input={"command": "make", "url": "https://a.test/"}),
        "execute label, address": _asked(kind="execute", raw_input={"url": "https://a.test/"}),
        "execute label, diff": _asked(kind="execute", content=[Diff.of("/w/src/a", "x", "y")]),
    }
    for path in ("/w/a", "/w/src/a.py", "/w/x.lock", "/w/.git/config", "/w/.env", "/etc/passwd", "$HOME/x", "src/../x"):
        requests[f"fs/read {path}"] = ReadTextFile("s", path)
        requests[f"fs/write {path}"] = WriteTextFile("s", path, "")
        requests[f"diff {path}"] = _asked(kind="edit", content=[Diff.of(path, "x", "y")])
        for kind in ("read", "search", "edit", "delete", "execute", "fetch", "other", "think", None):
            requests[f"{kind} {path}"] = _asked(kind=kind, locations=_at(path))
    for kind in ("read", "edit"):
        requests[f"{kind} two"] = _asked(kind=kind, locations=_at("/w/src/a", "/w/x.lock"))
        requests[f"{kind} one outside"] = _asked(kind=kind, locations=_at("/w/src/a", "/etc/passwd"))
        requests[f"{kind} that writes"] = _asked(kind=kind, raw_input={"path": "/w/src/a", "content": "x"})
    for command in ("git status", "git status -s", "make", "git status && make", "git status; rm x", "git push -f"):
        requests[f"terminal {command}"] = CreateTerminal("s", command)
        requests[f"subject {command}"] = RequestPermission("s", "t", _OPTIONS, subject=CommandSubject(command, "/w/"))
        for kind in ("execute", "read"):
            requests[f"{kind} {command}"] = _asked(kind=kind, raw_input={"command": ["bash", "-lc", command]})
        requests[f"in a shell {command}"] = _asked(kind="execute", raw_input={"command": command, "cwd": "/w/src"})
    return requests


def _patterns() -> dict[str, tuple[PermissionRule, ...]]:
    effects: tuple[Effect, ...] = ("allow", "ask", "reject")
    found: dict[str, tuple[PermissionRule, ...]] = {"no rules": ()}
    for effect in effects:
        for kind in ("read", "edit", "execute", "fetch", "other"):
            found[f"{effect} {kind}"] = (PermissionRule(effect, kind),)
    for effect in ("allow", "reject"):
        for path in ("src/**", "*.lock", "**", "/etc/*", "/alias", ".git/**", "src"):
            found[f"{effect} path {path}"] = (PermissionRule(effect, path=path),)
        for command in ("git status", "make", "*"):
            found[f"{effect} {command}"] = (PermissionRule(effect, command=command),)
    return found


AGENT_RULES: Final[Mapping[str, tuple[PermissionRule, ...]]] = {
    **_patterns(),
    "allow both commands": (PermissionRule("allow", command="git status"), PermissionRule("allow", command="make")),
    "allow edit in src": (PermissionRule("allow", "edit", "src/**"),),
    "allow a command in src": (PermissionRule("allow", path="src", command="git status"),),
    "reject edits of locks": (PermissionRule("reject", "edit", "*.lock"),),
    "reject execute in src": (PermissionRule("reject", "execute", "src/**"),),
    "reject git with force": (PermissionRule("reject", command="git * -f"),),
    "ask rm, allow all": (PermissionRule("ask", command="rm *"), PermissionRule("allow", command="*")),
    "allow read and edit": (PermissionRule("allow", "read"), PermissionRule("allow", "edit")),
    "all three": (
        PermissionRule("allow", "edit"),
        PermissionRule("ask", path="a"),
        PermissionRule("reject", path="*.lock"),
    ),
}
_LEVELS: Final[tuple[Level, ...]] = ("", "none", "read", "edit", "all")
POLICIES: Final = (*map(PermissionPolicy, _LEVELS), PermissionPolicy("all", deny_all=True))


def agent_row(request: Any, rules: str) -> str:
    """Return the verdicts of every policy with these rules."""
    policies = (PermissionPolicy(one.allow, AGENT_RULES[rules], one.deny_all) for one in POLICIES)
    return "".join(LETTERS[judge(request, policy, WHERE).verdict] for policy in policies)

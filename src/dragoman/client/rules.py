"""Rules: what an agent may do without a person, and `judge`, which says so. Pure.

What a request carries (`evidence`) is held against a policy. Reject beats ask beats allow.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from dragoman.client.command_lines import BASH, CommandLine
from dragoman.client.evidence import Evidence, Judged, evidence
from dragoman.errors import UsageError
from dragoman.host import wildcards
from dragoman.host.commands import covers, denies
from dragoman.host.protected import is_protected
from dragoman.host.secrets import is_credential
from dragoman.host.shell import parse
from dragoman.vocabulary.services import WriteTextFile

Effect = Literal["allow", "reject", "ask"]
Level = Literal["", "read", "edit", "all"]

_COVERED: Final[dict[str, frozenset[str]]] = {
    "": frozenset(),
    "read": frozenset({"read"}),
    "edit": frozenset({"read", "edit"}),
}


_NOT_COVERED: Final[dict[str, str]] = {"read": "it reads files", "edit": "it changes files"}


class Verdict(NamedTuple):
    """Yes, no, or ask somebody; and why."""

    effect: Effect
    reason: str


@dataclass(frozen=True)
class Rule:
    """A line of a policy. What it names must all fit: the kind of act, the paths, the commands.

    To allow, it must fit everything a request carries; to reject or to ask, anything of it.
    """

    effect: Effect
    kind: str = ""
    path: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        if not (self.kind or self.path or self.command):
            raise UsageError("a rule names a kind, a path or a command")
        if self.kind and self.kind not in RULE_KINDS:
            raise UsageError(f"unknown kind {self.kind!r}; there are {', '.join(RULE_KINDS)}")
        if self.path:
            try:
                _pattern(self.path)
            except wildcards.PatternRefused as error:
                raise UsageError(str(error)) from None
        if self.command and self.command != "*" and not _words(self.command):
            raise UsageError(f"the command {self.command!r} cannot be read; write its words as in a shell, or *")

    def __str__(self) -> str:
        named = [f"{name} {value}" for name in ("kind", "path", "command") if (value := getattr(self, name))]
        return f"the rule {self.effect} {', '.join(named)}"


RULE_KINDS: Final = ("read", "edit", "execute", "fetch", "other")


@dataclass(frozen=True)
class Policy:
    """What is settled beforehand. Without anything, everything is asked."""

    allow: Level = ""
    rules: tuple[Rule, ...] = ()
    deny_all: bool = False
    # What a question is worth when there is nobody to ask.
    unasked: Literal["allow", "reject"] = "reject"


@dataclass(frozen=True)
class Where:
    """How a path relates to the roots: how it really is called, and whether that is inside."""

    inside: Callable[[str], bool]
    # What it may be called in a rule: absolute, and relative to its root where it is inside.
    names: Callable[[str], Sequence[str]] = field(default=lambda path: (path,))
    # Whether it is what hooks, editors and agents take their orders from.
    protected: Callable[[str], bool] = field(default=lambda path: False)
    # Whether it holds keys or passwords, by its name or place.
    credential: Callable[[str], bool] = field(default=lambda path: False)
    # The path by which several writes make a git folder that none of them makes alone; empty if none does.
    git_folder: Callable[[Sequence[str]], str] = field(default=lambda paths: "")
    # What runs a line of text in a terminal.
    shell: str = BASH


def judge(request: Judged, policy: Policy, where: Where) -> Verdict:
    """What the policy says about a request."""
    found = evidence(request, where.shell)
    if isinstance(request, WriteTextFile):
        where = replace(where, credential=lambda path: False)  # it is told nothing of what was there
    if policy.deny_all:
        return Verdict("reject", "the policy denies everything")
    for effect in ("reject", "ask"):
        for rule in policy.rules:
            if rule.effect == effect and _touches(rule, found, where):
                return Verdict(rule.effect, str(rule))
    for rule in policy.rules:
        if rule.effect == "allow" and _covers(rule, found, where):
            return Verdict("allow", str(rule))
    if policy.allow == "all":
        return Verdict("allow", "everything is allowed")
    return _by_level(policy.allow, found, where)


def _by_level(level: Level, found: Evidence, where: Where) -> Verdict:
    if found.unclear:
        return Verdict("ask", found.unclear)
    if found.commands:
        return Verdict("ask", "it runs a command")
    if found.addresses:
        return Verdict("ask", "it reaches for an address")
    if found.kind not in ("read", "edit", "other"):
        return Verdict("ask", f"it is of the kind {found.kind}")
    outside = [path for path in found.paths if not where.inside(path)]
    if outside:
        return Verdict("ask", f"{_short(outside[0])} is outside of the workspace")
    if found.kind not in _COVERED[level]:
        return Verdict("ask", _NOT_COVERED.get(found.kind, "it does not say whether it reads or changes files"))
    guarded = _guarded(found, where)
    if guarded:
        return Verdict("ask", guarded)
    return Verdict("allow", f"{'reading' if found.kind == 'read' else 'editing'} in the workspace is allowed")


def _guarded(found: Evidence, where: Where) -> str:
    """Why a path needs a yes of its own; empty if none does."""
    if found.kind != "read" and "edit" not in found.kinds:
        return ""
    for path in found.paths:
        if found.kind != "read" and where.protected(path):
            return f"{_short(path)} is a protected file"
        if where.credential(path):  # an edit or a move shows, or takes along, what was in it
            return f"{_short(path)} may hold credentials"
    made = "" if found.kind == "read" else where.git_folder(found.paths)
    return f"{_short(made)} makes a git folder" if made else ""


# -- rules -----------------------------------------------------------------------------------------------------------


def _covers(rule: Rule, found: Evidence, where: Where) -> bool:
    """Whether an allow rule is about everything a request carries."""
    if found.unclear or (rule.kind and rule.kind != found.kind):
        return False
    if rule.kind and found.also - {rule.kind, "read"}:
        return False  # it changes or reaches for something beside that
    if (found.kind == "execute" and not found.commands) or (found.kind == "fetch" and not found.addresses):
        return rule.kind == found.kind and not (rule.command or rule.path)  # what it runs or fetches is not told
    if found.commands and not (rule.command or rule.kind == "execute"):
        return False
    if found.addresses and rule.kind != "fetch":
        return False
    if rule.command and not (found.commands and all(_runs_only(rule.command, line) for line in found.commands)):
        return False
    if any("$" in path for path in found.paths):
        return False  # a shell may take it elsewhere
    if rule.path and not (found.paths and all(_fits(rule.path, path, where) for path in found.paths)):
        return False
    if not rule.path and not all(where.inside(path) for path in found.paths):
        return False
    # What asks although edits are allowed is covered by a rule that names it, and by no other.
    return _names_guarded(rule.path) or not _guarded(found, where)


def _names_guarded(pattern: str) -> bool:
    """Whether a pattern is about protected or credential files by its own words: `.github/workflows/**`, `*.pem`."""
    parts = [part for part in pattern.split("/") if part]
    return is_protected(parts) or (bool(parts) and is_credential(f"/{'/'.join(parts)}", ""))


def _touches(rule: Rule, found: Evidence, where: Where) -> bool:
    """Whether a reject or ask rule may be about anything a request carries."""
    if found.is_cut:
        return True
    if rule.kind and rule.kind not in found.kinds:
        return False
    if rule.command and not any(_may_run(rule.command, line) for line in found.commands):
        return False
    return not rule.path or any(_fits(rule.path, path, where) for path in found.paths)


def _runs_only(pattern: str, line: CommandLine) -> bool:
    return pattern == "*" or covers({_words(pattern)}, parse(line.text, portable=not line.is_bash))


def _may_run(pattern: str, line: CommandLine) -> bool:
    return pattern == "*" or denies(_words(pattern), line.text, portable=not line.is_bash)


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def _fits(pattern: str, path: str, where: Where) -> bool:
    names = where.names(path)
    return any(one.fullmatch(name) for one in _pattern(pattern) for name in names)


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> tuple[re.Pattern[str], ...]:
    """A pattern without a slash means the name, wherever the file is."""
    found = []
    for one in wildcards.expand_braces(pattern):
        found.append(re.compile(wildcards.path(one if "/" in one else f"**/{one}"), re.DOTALL))
    return tuple(found)


def _short(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"

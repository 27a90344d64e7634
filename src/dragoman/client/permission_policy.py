"""`PermissionPolicy`: what an agent may do without a question, and `judge`, which decides by it. Pure.

What a request carries (`CallFacts`) is compared with a policy. Reject beats ask beats allow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, get_args

from dragoman.client.call_facts import CallFacts, GuardedRequest, call_facts
from dragoman.client.command_lines import BASH, CommandLine
from dragoman.client.permission_rule import (
    RULE_KINDS,
    Effect,
    PermissionRule,
    RuleRefused,
    names_folder,
    path_patterns,
    wild_words_of,
    words_of,
)
from dragoman.errors import UsageError
from dragoman.host.command_rules import covers, denies
from dragoman.host.protected_names import is_protected
from dragoman.host.secrets import is_credential
from dragoman.host.shell import parse
from dragoman.vocabulary.services import RequestPermission, WriteTextFile

__all__ = [
    "RULE_KINDS",
    "Effect",
    "Level",
    "PathPosition",
    "PermissionPolicy",
    "PermissionRule",
    "RuleRefused",
    "Verdict",
    "judge",
]

# "": nothing is said; "none": nothing is allowed, and that is said.
Level = Literal["", "none", "read", "edit", "all"]

_COVERED: Final[dict[str, frozenset[str]]] = {
    "": frozenset(),
    "none": frozenset(),
    "read": frozenset({"read"}),
    "edit": frozenset({"read", "edit"}),
}


# Each is looked up in the file system.
_PATHS: Final = 2_000
_NOT_COVERED: Final[dict[str, str]] = {"read": "it reads files", "edit": "it changes files"}


class Verdict(NamedTuple):
    """Yes, no, or ask; and why. `rule` is the rule that says so, if one does.

    `basis` says why in a few words without content, for the record, where effect, rule and policy do not say it.
    """

    effect: Effect
    reason: str
    rule: PermissionRule | None = None
    basis: str = ""


@dataclass(frozen=True)
class PermissionPolicy:
    """What is allowed and denied without a question; `PermissionPolicy()` asks about everything.

    `allow` is what needs no question: "read" or "edit" inside of the workspace, "all" anything. `rules` come before
    it, and reject beats ask beats allow. `deny_all` denies everything. `unasked` counts where no user can be asked.
    Raises `UsageError` for a word that is no level and no answer.
    """

    allow: Level = ""
    rules: tuple[PermissionRule, ...] = ()
    deny_all: bool = False
    unasked: Literal["allow", "reject"] = "reject"

    def __post_init__(self) -> None:
        """Raise `UsageError` for words that are no level and no answer: a misspelt one must not pass for another."""
        levels = get_args(Level)
        if self.allow not in levels:
            raise UsageError(
                f"there is no level {self.allow!r}; write PermissionPolicy(allow=...) with one of {levels}"
            )
        if self.unasked not in ("allow", "reject"):
            raise UsageError(f'unasked is "allow" or "reject", and not {self.unasked!r}')


@dataclass(frozen=True)
class PathPosition:
    """How a path relates to the roots: how it really is called, and whether that is inside."""

    inside: Callable[[str], bool]
    # What it may be called in a rule: absolute, and relative to its root where it is inside.
    names: Callable[[str], Sequence[str]] = field(default=lambda path: (path,))
    # Whether it is what hooks, editors and agents take their orders from.
    protected: Callable[[str], bool] = field(default=lambda path: False)
    # The file that holds keys or passwords, by its name or place: it, or one in it; empty if none does.
    credential: Callable[[str], str] = field(default=lambda path: "")
    # The path by which several writes make a git folder that none of them makes alone; empty if none does.
    git_folder: Callable[[Sequence[str]], str] = field(default=lambda paths: "")
    # The paths that one in a call may mean: itself, and those that it is a pattern for; None if they are too many.
    matches: Callable[[str], Sequence[str] | None] = field(default=lambda path: (path,))
    # Where an absolute path leads, links and all.
    real: Callable[[str], str] = field(default=lambda path: path)
    # What runs a line of text in a terminal.
    shell: str = BASH


def judge(request: GuardedRequest, policy: PermissionPolicy, where: PathPosition) -> Verdict:
    """Return what a policy decides about a request."""
    found = call_facts(request, where.shell)
    if isinstance(request, RequestPermission):
        found = _with_matches(found, where)
    if isinstance(request, WriteTextFile):
        where = replace(where, credential=lambda path: "")  # a write shows nothing of what was there
    if policy.deny_all:
        return Verdict("reject", "the policy denies everything")
    for effect in ("reject", "ask"):
        for rule in policy.rules:
            if rule.effect == effect and _touches(rule, found, where):
                return Verdict(rule.effect, str(rule), rule)
    for rule in policy.rules:
        if rule.effect == "allow" and _covers(rule, found, where):
            return Verdict("allow", str(rule), rule)
    if policy.allow == "all":
        return Verdict("allow", "everything is allowed")
    return _by_level(policy.allow, found, where)


def _with_matches(found: CallFacts, where: PathPosition) -> CallFacts:
    """Return the facts with each path replaced by everything that it may match."""
    paths: dict[str, None] = {}
    for path in found.paths:
        meant = where.matches(path)
        if meant is None or len(paths) + len(meant) > _PATHS:
            reason = found.unclear or f"{_short(path)} stands for more files than can be judged"
            return found._replace(unclear=reason, is_cut=True)
        paths |= dict.fromkeys(meant)
    return found._replace(paths=tuple(paths))


def _by_level(level: Level, found: CallFacts, where: PathPosition) -> Verdict:
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
    guard_reason = _guard_reason(found, where)
    if guard_reason:
        return Verdict("ask", guard_reason)
    return Verdict("allow", f"{'reading' if found.kind == 'read' else 'editing'} in the workspace is allowed")


def _guard_reason(found: CallFacts, where: PathPosition) -> str:
    """Return why a path needs a yes of its own; empty if none does."""
    if found.kind != "read" and "edit" not in found.kinds:
        return ""
    for path in found.paths:
        if found.kind != "read" and where.protected(path):
            return f"{_short(path)} is a protected file"
        held = where.credential(path)  # an edit or a move shows, or takes along, what was in it
        if held:
            return f"{_short(held)} may hold credentials"
    made = "" if found.kind == "read" else where.git_folder(found.paths)
    return f"{_short(made)} makes a git folder" if made else ""


# -- rules -----------------------------------------------------------------------------------------------------------


def _covers(rule: PermissionRule, found: CallFacts, where: PathPosition) -> bool:
    """Return whether an allow rule is about everything that a request carries."""
    if found.unclear or (rule.kind and rule.kind != found.kind):
        return False
    if rule.kind and found.also - {rule.kind, "read"}:
        return False  # it changes or reaches for something beside that
    if (found.kind == "execute" and not found.commands) or (found.kind == "fetch" and not found.addresses):
        return rule.kind == found.kind and not (rule.command or rule.path)  # what it runs or fetches is not known
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
    return _names_guarded_files(rule.path) or not _guard_reason(found, where)


def _names_guarded_files(pattern: str) -> bool:
    """Return whether a pattern names protected or credential files itself: `.github/workflows/**`, `*.pem`."""
    parts = [part for part in pattern.split("/") if part]
    return is_protected(parts) or (bool(parts) and is_credential(f"/{'/'.join(parts)}", ""))


def _touches(rule: PermissionRule, found: CallFacts, where: PathPosition) -> bool:
    """Return whether a reject or ask rule may be about anything that a request carries."""
    if found.is_cut:
        return True
    if rule.kind and rule.kind not in found.kinds:
        return False
    if rule.command and not any(_may_run(rule.command, line) for line in found.commands):
        return False
    return not rule.path or any(_may_mean(rule.path, path, where) for path in found.paths)


def _runs_only(pattern: str, line: CommandLine) -> bool:
    return pattern == "*" or covers({words_of(pattern)}, parse(line.text, portable=not line.is_bash))


def _may_run(pattern: str, line: CommandLine) -> bool:
    return pattern == "*" or denies(wild_words_of(pattern), line.text, portable=not line.is_bash, wild=True)


def _fits(pattern: str, path: str, where: PathPosition) -> bool:
    names = where.names(path)
    return any(one.fullmatch(name) for one in path_patterns(pattern) for name in names)


def _may_mean(pattern: str, path: str, where: PathPosition) -> bool:
    """Return whether a rule against a path may be about this one, or a folder around it, by any of their names."""
    pattern = pattern.rstrip("/")
    spellings = dict.fromkeys((pattern, _resolved(pattern, where)))
    names = [name for one in where.names(path) for name in (_folders(one) if names_folder(pattern) else [one])]
    if "/" not in pattern or pattern.startswith("**/"):  # then it is about files of that name outside of the roots too
        names += [name.lstrip("/") for name in names if name.startswith("/")]
    return any(one.fullmatch(name) for each in spellings for one in path_patterns(each) for name in names)


def _resolved(pattern: str, where: PathPosition) -> str:
    """Return an absolute pattern with its beginning, up to the first wildcard, resolved to the real path."""
    if not pattern.startswith("/"):
        return pattern
    parts = pattern.split("/")
    wild = next((at for at, part in enumerate(parts) if any(sign in part for sign in "*?[{\\")), len(parts))
    return "/".join([where.real("/".join(parts[:wild]) or "/").rstrip("/"), *parts[wild:]])


def _folders(name: str) -> Iterator[str]:
    """Yield a path, and those of the folders around it."""
    while name.strip("/"):
        yield name
        name = name.rpartition("/")[0]


def _short(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"

"""What an agent may do without a person, and who is asked about the rest. Fails closed.

`judge` is pure: what a request carries (`evidence`) against a policy. Reject beats ask beats allow. `Decider` is the
callback made of it: it answers what the policy settles, asks where there is somebody to ask, and refuses elsewhere.

A client can only judge what an agent asks. One that does not ask is not confined by this.
"""

import asyncio
import os
import re
import shlex
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from dragoman.client.evidence import Evidence, Judged, command_line, evidence
from dragoman.client.face import rejection
from dragoman.errors import UsageError
from dragoman.host import wildcards
from dragoman.host.commands import covers, denies
from dragoman.host.paths import PathRefused, Roots
from dragoman.host.protected import is_protected
from dragoman.host.shell import parse
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    Selected,
    ToolCallSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ContentItem, Diff, Location

Effect = Literal["allow", "reject", "ask"]
Level = Literal["", "read", "edit", "all"]
Ask = Callable[[RequestPermission], Awaitable["PermissionOption | str | None"]]

# Where an answer has room for the reason of a no.
REASON_KEY: Final = "dragoman/reason"
# A person's no is remembered for the turn; an agent that asks for so many different things has had its answer.
_REMEMBERED: Final = 1_000
# Reasons kept for whoever reports them.
_DENIALS: Final = 100
_COVERED: Final[dict[str, frozenset[str]]] = {
    "": frozenset(),
    "read": frozenset({"read"}),
    "edit": frozenset({"read", "edit", "other"}),
}


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
    # Relative to a root where it is inside, else absolute.
    name: Callable[[str], str] = field(default=lambda path: path)
    # Whether it is what hooks, editors and agents take their orders from.
    protected: Callable[[str], bool] = field(default=lambda path: False)


def judge(request: Judged, policy: Policy, where: Where) -> Verdict:
    """What the policy says about a request."""
    found = evidence(request)
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
        return Verdict("ask", {"read": "it reads files"}.get(found.kind, "it changes files"))
    orders = [] if found.kind == "read" else [path for path in found.paths if where.protected(path)]
    if orders:
        return Verdict("ask", f"{_short(orders[0])} is a protected file")
    return Verdict("allow", f"{'reading' if found.kind == 'read' else 'editing'} in the workspace is allowed")


# -- rules -----------------------------------------------------------------------------------------------------------


def _covers(rule: Rule, found: Evidence, where: Where) -> bool:
    """Whether an allow rule is about everything a request carries."""
    if found.unclear or (rule.kind and rule.kind != found.kind):
        return False
    if found.commands and not (rule.command or rule.kind == "execute"):
        return False
    if found.addresses and rule.kind != "fetch":
        return False
    if rule.command and not (found.commands and all(_runs_only(rule.command, line) for line in found.commands)):
        return False
    if rule.path:
        return bool(found.paths) and all(_fits(rule.path, path, where) for path in found.paths)
    return all(where.inside(path) for path in found.paths)


def _touches(rule: Rule, found: Evidence, where: Where) -> bool:
    """Whether a reject or ask rule may be about anything a request carries."""
    if rule.kind and rule.kind != found.kind:
        return False
    if rule.command and not any(rule.command == "*" or denies(_words(rule.command), line) for line in found.commands):
        return False
    return not rule.path or any(_fits(rule.path, path, where) for path in found.paths)


def _runs_only(pattern: str, line: str) -> bool:
    return pattern == "*" or covers({_words(pattern)}, parse(line))


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def _fits(pattern: str, path: str, where: Where) -> bool:
    return any(one.fullmatch(where.name(path)) for one in _pattern(pattern))


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> tuple[re.Pattern[str], ...]:
    """A pattern without a slash means the name, wherever the file is."""
    found = []
    for one in wildcards.expand_braces(pattern):
        found.append(re.compile(wildcards.path(one if "/" in one else f"**/{one}"), re.DOTALL))
    return tuple(found)


# -- deciding --------------------------------------------------------------------------------------------------------


class Denial(NamedTuple):
    """A request that the policy refused, and why."""

    what: str
    reason: str


class Decider:
    """A policy at work: the `permission` callback of `connect`, and the gate of a `Workspace`.

    `denied` counts what the policy refused, and what was refused because there was nobody to ask; what a person refused
    is in `refused`.
    """

    def __init__(self, policy: Policy, roots: Sequence[str | os.PathLike[str]], ask: Ask | None = None) -> None:
        self.policy: Final = policy
        self.denied = 0
        self.refused = 0
        self.denials: list[Denial] = []
        self._ask = ask
        self._roots = Roots([os.path.abspath(root) for root in roots])
        self._where = Where(self._inside, self._name, self._protected)
        self._said_no: OrderedDict[tuple[str, Evidence], None] = OrderedDict()
        self._asking: dict[tuple[str, Evidence], asyncio.Future[bool]] = {}

    async def __call__(self, request: RequestPermission) -> "PermissionOption | PermissionAnswer | None":
        """The option to choose; a rejection with its reason where the answer has room for it."""
        verdict = judge(request, self.policy, self._where)
        if verdict.effect == "ask" and self._ask is not None:
            return await self._asked(request, self._ask)
        if self._allows(verdict):
            option = allowing(request)
            if option is not None:
                return option
            verdict = Verdict("reject", "the agent offers no way to say yes")
        reason = self._deny(request.title, verdict)
        return PermissionAnswer(rejection(request), meta={REASON_KEY: reason})

    async def permits(self, request: ReadTextFile | WriteTextFile | CreateTerminal) -> str | None:
        """Why a file or a command is not for this agent; None if it is."""
        verdict = judge(request, self.policy, self._where)
        if verdict.effect == "ask" and self._ask is not None:
            asked = _as_question(request)
            answer = await self._asked(asked, self._ask)
            chosen = isinstance(answer, PermissionOption) and answer.kind.startswith("allow")
            return None if chosen else "the user said no"
        if self._allows(verdict):
            return None
        return self._deny(type(request).__name__, verdict)

    def new_turn(self) -> None:
        """A person's no was for the turn that is over."""
        self._said_no.clear()

    def _allows(self, verdict: Verdict) -> bool:
        return verdict.effect == "allow" or (verdict.effect == "ask" and self.policy.unasked == "allow")

    def _deny(self, what: str, verdict: Verdict) -> str:
        reason = verdict.reason
        if verdict.effect == "ask":
            reason = f"{reason}, and there is nobody to ask"
        self.denied += 1
        if len(self.denials) < _DENIALS:
            self.denials.append(Denial(what, reason))
        return reason

    async def _asked(self, request: RequestPermission, ask: Ask) -> PermissionOption | None:
        """What a person says. The same thing asked again while they think, or after a no, is the same question."""
        key = (request.session_id, evidence(request))
        while key in self._asking:
            await asyncio.wait([self._asking[key]])
        if key in self._said_no:
            self.refused += 1
            return None
        over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asking[key] = over
        try:
            option = _chosen(request, await ask(request))
        finally:
            del self._asking[key]
            over.set_result(True)
        if option is None or not option.kind.startswith("allow"):
            self.refused += 1
            self._said_no[key] = None
            if len(self._said_no) > _REMEMBERED:
                self._said_no.popitem(last=False)
        return option

    def _inside(self, path: str) -> bool:
        return self._parts(path) is not None

    def _name(self, path: str) -> str:
        parts = self._parts(path)
        if parts is not None:
            return "/".join(parts)
        return path if "\0" in path else os.path.realpath(os.path.join(self._roots.cwd, path))

    def _protected(self, path: str) -> bool:
        parts = self._parts(path)
        return parts is None or is_protected(parts)

    def _parts(self, path: str) -> tuple[str, ...] | None:
        """The way to a path from its root; None if it is outside, or if an agent's shell may take it elsewhere."""
        if path.startswith("~") or "$" in path:
            return None
        try:
            return self._roots.place(path).parts
        except (PathRefused, OSError, ValueError):
            return None


def allowing(request: RequestPermission) -> PermissionOption | None:
    """The option that says yes, once before always; never one of another kind."""
    for kind in ("allow_once", "allow_always"):
        for option in request.options:
            if option.kind == kind:
                return option
    return None


def _chosen(request: RequestPermission, answer: PermissionOption | str | None) -> PermissionOption | None:
    wanted = answer.option_id if isinstance(answer, PermissionOption) else answer
    return next((option for option in request.options if option.option_id == wanted), None)


_OPTIONS: Final = [
    PermissionOption("allow", "Allow", "allow_once"),
    PermissionOption("reject", "Reject", "reject_once"),
]


def _as_question(request: ReadTextFile | WriteTextFile | CreateTerminal) -> RequestPermission:
    """A file or a command, asked for as a permission: a person sees one kind of question."""
    match request:
        case CreateTerminal():
            line = command_line(request)
            cwd = request.cwd if isinstance(request.cwd, str) else ""
            subject: ToolCallSubject | CommandSubject = CommandSubject(line, cwd)
            return RequestPermission(request.session_id, f"Run {line}", _OPTIONS, subject=subject)
        case WriteTextFile(path=path):
            call = ToolCallUpdate(
                "fs/write_text_file",
                kind="edit",
                locations=[Location(path)],
                content=[Diff.of(path, None, request.content)],
            )
            return RequestPermission(request.session_id, f"Write {path}", _OPTIONS, subject=ToolCallSubject(call))
        case ReadTextFile(path=path):
            call = ToolCallUpdate(
                "fs/read_text_file", kind="read", locations=[Location(path)], content=[ContentItem(Text(path))]
            )
            return RequestPermission(request.session_id, f"Read {path}", _OPTIONS, subject=ToolCallSubject(call))


def _short(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"


__all__ = ["Decider", "Denial", "Policy", "Rule", "Selected", "Verdict", "Where", "allowing", "judge"]

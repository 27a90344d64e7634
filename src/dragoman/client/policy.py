"""A policy at work: it answers what is settled, asks where there is somebody to ask, and refuses elsewhere.

A client can only judge what an agent asks. One that does not ask is not confined by this.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dragoman.client.decision import By, OnDecision, PermissionDecision, method_of, title_of
from dragoman.client.evidence import CallFacts, Judged, evidence
from dragoman.client.file_questions import question_about
from dragoman.client.granted_writes import GrantedWrites
from dragoman.client.questions import Questions
from dragoman.client.rules import Effect, Level, PathPosition, Policy, Rule, Verdict, judge
from dragoman.errors import CANCELLED, RequestCancelled
from dragoman.host.credential_files import credential_files
from dragoman.host.paths import PathRefused, Place, Roots, is_inside
from dragoman.host.programs import line_shell
from dragoman.host.protected import FolderFacts, is_git_folder, is_protected_write, look_in, plain
from dragoman.host.secrets import home_for, is_credential
from dragoman.host.wild_paths import PatternSearch, TooManyFiles, is_wild
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.services import (
    CreateTerminal,
    Dismissed,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    WriteTextFile,
    rejection,
)
from dragoman.vocabulary.tools import Location

__all__ = ["Decider", "Denial", "Effect", "Level", "PathPosition", "Policy", "Rule", "Verdict", "allowing", "judge"]

Ask = Callable[[RequestPermission], Awaitable["PermissionOption | str | None"]]
# A file as it is now; None if there is none.
Look = Callable[[], Awaitable[bytes | None]]

# Where an answer has room for the reason of a no.
REASON_KEY: Final = "dragoman/reason"
# A person's no is remembered for the turn; an agent that asks for so many different things has had its answer.
_REMEMBERED: Final = 1_000
# How often a question is shown because what it is about has changed.
_SHOWN_AGAIN: Final = 3
# Reasons kept for whoever reports them.
_DENIALS: Final = 100


class Denial(NamedTuple):
    """A request that the policy refused, and why."""

    what: str
    reason: str
    # Whether a level that allows more would have allowed it.
    by_level: bool = True

    def as_json(self) -> dict[str, str]:
        """Return it as the result of `dragoman run` tells it."""
        return {"what": self.what, "reason": self.reason}


class Decider:
    """A policy at work: the `permission` callback of `connect`, and the gate of a `Workspace`.

    `denied` counts what the policy refused, and what was refused because there was nobody to ask; what a person refused
    is in `refused`.
    """

    def __init__(
        self,
        policy: Policy,
        roots: Sequence[str | os.PathLike[str]],
        ask: Ask | None = None,
        *,
        protected_paths: Sequence[str] = (),
        on_decision: OnDecision | None = None,
    ) -> None:
        """`protected_paths` are real paths of files that are protected beside those with a protected name.

        `on_decision` is told of every decision; a question that was called off is none.
        """
        self.policy: Final = policy
        self._protected_paths: Final = frozenset(protected_paths)
        self.denied = 0
        self.refused = 0
        self.denials: list[Denial] = []
        self._ask = ask
        self._roots = Roots([os.path.abspath(root) for root in roots])
        self._home = home_for(self._roots.real, os.path.realpath(os.path.expanduser("~")))
        self._where = PathPosition(
            self._inside,
            self._names,
            self._protected,
            self._credential,
            self._git_folder,
            self._meant,
            real=os.path.realpath,
            shell=line_shell(),
        )
        self._looked_into: dict[str, FolderFacts] = {}
        self._held: dict[str, str] = {}
        self._patterns = PatternSearch()
        self._said_no: OrderedDict[tuple[str, CallFacts], None] = OrderedDict()
        self._asking: dict[tuple[str, CallFacts], asyncio.Future[None]] = {}
        self._questions = Questions()
        self._granted = GrantedWrites(self._roots)
        self._on_decision = on_decision
        self._dismissed = False

    async def __call__(self, request: RequestPermission) -> "PermissionOption | PermissionAnswer | None":
        """The option to choose; a rejection with its reason where the answer has room for it."""
        verdict = self._judge(request)
        if verdict.effect == "ask" and self._ask is not None:
            return await self._ask_user(request, verdict, self._ask)
        option = allowing(request) if self._allows(verdict) else None
        if option is not None:
            self._record(request, verdict, is_allowed=True, option=option)
            return option
        has_no_yes = self._allows(verdict)
        if has_no_yes:
            verdict = Verdict("reject", "the agent offers no way to say yes")
        reason = self._deny(request, request.title, verdict, by_level=not has_no_yes)
        return PermissionAnswer(rejection(request), meta={REASON_KEY: reason})

    async def _ask_user(
        self, request: RequestPermission, verdict: Verdict, ask: Ask
    ) -> "PermissionOption | PermissionAnswer | None":
        shown = self._with_real_places(request)
        writes = await asyncio.to_thread(self._granted.shown_by, shown)
        try:
            option = await self._asked(shown, ask)
        except RequestCancelled:
            return PermissionAnswer(Dismissed())
        is_allowed = option is not None and option.kind.startswith("allow")
        if is_allowed:
            self._granted.add(writes)
        self._record(request, verdict, is_allowed=is_allowed, by="user", option=option)
        return option

    async def permits(
        self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: Look | None = None
    ) -> str | None:
        """Why a file or a command is not for this agent; None if it is. `look` gives the file as it is now.

        `RequestCancelled` if nobody will say, because of `dismiss`.
        """
        verdict = self._judge(request)
        if verdict.effect == "ask" and self._ask is not None:
            if isinstance(request, WriteTextFile) and await self._is_granted(request, look or _nothing):
                self._record(request, verdict, is_allowed=True, by="user")  # just now, when it was asked for an edit
                return None
            reason = await self._shown(request, look or _nothing, self._ask)
            self._record(request, verdict, is_allowed=reason is None, by="user")
            return reason
        if self._allows(verdict):
            self._record(request, verdict, is_allowed=True)
            return None
        return self._deny(request, type(request).__name__, verdict)

    async def _is_granted(self, request: WriteTextFile, look: Look) -> bool:
        return self._granted.is_open(request) and self._granted.take(request, await look())

    def _judge(self, request: Judged) -> Verdict:
        self._looked_into.clear()
        self._held.clear()
        self._patterns = PatternSearch()
        return judge(request, self.policy, self._where)

    async def _shown(self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: Look, ask: Ask) -> str | None:
        """A yes is for what was shown: a file that has changed meanwhile is shown again."""
        for _ in range(_SHOWN_AGAIN):
            before = await look()
            question = question_about(request, before, shell=self._where.shell, cwd=self._roots.cwd)
            answer = await self._asked(question, ask)
            if answer is None or not answer.kind.startswith("allow"):
                return "the user said no"
            if await look() == before:
                return None
        return "the file keeps changing while the user looks at it"

    def new_turn(self) -> None:
        """A person's no was for the turn that is over, and so was a yes."""
        self._said_no.clear()
        self._granted.clear()
        self._dismissed = False

    def dismiss(self) -> None:
        """The turn is cancelled: nobody will answer what is asked now, nor what is asked before `new_turn`."""
        self._dismissed = True
        self._granted.clear()
        self._questions.dismiss_all()

    def _allows(self, verdict: Verdict) -> bool:
        return verdict.effect == "allow" or (verdict.effect == "ask" and self.policy.unasked == "allow")

    def _deny(self, request: Judged, what: str, verdict: Verdict, *, by_level: bool = True) -> str:
        reason = verdict.reason
        if verdict.effect == "ask":
            reason = f"{reason}, and there is nobody to ask"
        self._record(request, verdict._replace(reason=reason), is_allowed=False)
        self.denied += 1
        if len(self.denials) < _DENIALS:
            self.denials.append(Denial(what, reason, by_level and verdict.rule is None))
        return reason

    def _record(
        self,
        request: Judged,
        verdict: Verdict,
        *,
        is_allowed: bool,
        by: By | None = None,
        option: PermissionOption | None = None,
    ) -> None:
        if self._on_decision is not None:
            self._on_decision(
                PermissionDecision(
                    request.session_id,
                    method_of(request),
                    evidence(request, self._where.shell).kind,
                    title_of(request),
                    is_allowed,
                    by or ("policy" if verdict.rule is None else "rule"),
                    "" if option is None else option.kind,
                    "" if by == "user" else self._basis(verdict, is_allowed=is_allowed),
                    verdict.rule,
                    verdict.reason,
                )
            )

    def _basis(self, verdict: Verdict, *, is_allowed: bool) -> str:
        if verdict.effect == "ask":
            return "accept_all" if is_allowed else "no user to ask"
        if verdict.rule is not None:
            return verdict.rule.effect
        if is_allowed:
            return f"allow {self.policy.allow}"
        return "deny" if self.policy.deny_all else "no option to allow"

    async def _asked(self, request: RequestPermission, ask: Ask) -> PermissionOption | None:
        """What a person says. The same thing asked again while they think, or after a no, is the same question."""
        key = (request.session_id, evidence(request, self._where.shell))
        while key in self._asking:
            await asyncio.wait([self._asking[key]])
        if key in self._said_no:
            self.refused += 1
            return None
        if self._dismissed:
            raise _cancelled()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking[key] = over
        try:
            reply = await self._questions.ask(request.session_id, _ask_for_reply(request, ask), _DISMISSED)
        finally:
            del self._asking[key]
            over.set_result(None)
        if not isinstance(reply, _Chosen):
            raise _cancelled()
        option = reply.option
        if option is None or not option.kind.startswith("allow"):
            self.refused += 1
            self._said_no[key] = None
            if len(self._said_no) > _REMEMBERED:
                self._said_no.popitem(last=False)
        return option

    def _inside(self, path: str) -> bool:
        return self._parts(path) is not None

    def _names(self, path: str) -> list[str]:
        """What a file may be called in a rule: as it really is, from its root, and from the root as it was given."""
        if "\0" in path:
            return [path]
        meant = os.path.expanduser(os.path.expandvars(path))  # as an agent's shell may take it
        whole = os.path.realpath(os.path.join(self._roots.cwd, meant))
        place = self._place(path)
        if place is None:
            return [whole]
        given = self._roots.given[self._roots.real.index(place.root)]
        return [*dict.fromkeys(("/".join(place.parts), os.path.join(given, *place.parts), whole))]

    def _protected(self, path: str) -> bool:
        place = self._place(path)
        if place is None or any(is_inside(known, place.path) for known in self._protected_paths):
            return True  # the file itself, or a folder that it is in: that can be moved away, and another put there
        return is_protected_write(place.root, place.parts, look=self._look_into)

    def _look_into(self, folder: str) -> FolderFacts:
        """What matters of a folder, found once for each judgement: a call may name many files in it."""
        if folder not in self._looked_into:
            self._looked_into[folder] = look_in(folder)
        return self._looked_into[folder]

    def _credential(self, path: str) -> str:
        """Return the file with credentials that reading a path would show: itself, or one inside a folder."""
        place = self._place(path)
        if place is None:
            return path
        if is_credential(place.path, self._home):
            return path
        if place.path not in self._held:
            found = credential_files([place.path], self._home) if os.path.isdir(place.path) else []
            self._held[place.path] = found[0] if found else ""
        return self._held[place.path]

    def _meant(self, path: str) -> list[str] | None:
        """Return a path, and the files that it means where an agent takes it for a pattern; None: too many."""
        if not is_wild(path) or not self._inside(path):
            return [path]
        try:
            return [path, *self._patterns.paths_meant(os.path.join(self._roots.cwd, path))]
        except TooManyFiles:
            return None

    def _git_folder(self, paths: Sequence[str]) -> str:
        names: dict[tuple[str, ...], set[str]] = {}
        for path in paths:
            place = self._place(path)
            for at, part in enumerate(() if place is None else place.parts):
                assert place is not None
                here = names.setdefault((place.root, *place.parts[:at]), set())
                here.add(plain(part))
                if is_git_folder(here):
                    return path
        return ""

    def _parts(self, path: str) -> tuple[str, ...] | None:
        """The way to a path from its root; None if it is outside, or if an agent's shell may take it elsewhere."""
        place = self._place(path)
        return None if place is None else place.parts

    def _place(self, path: str) -> Place | None:
        if path.startswith("~") or "$" in path:
            return None
        try:
            return self._roots.place(path)
        except (PathRefused, OSError, ValueError):
            return None

    def _with_real_places(self, request: RequestPermission) -> RequestPermission:
        """The question with the files that links in its paths lead to, which were judged and are not told."""
        if not isinstance(request.subject, ToolCallSubject):
            return request
        leads = []
        for path in evidence(request, self._where.shell).paths:
            real = self._names(path)[-1]
            if real != os.path.normpath(os.path.join(self._roots.cwd, path)):
                leads.append(Location(real))
        call = request.subject.tool_call
        new = [place for place in dict.fromkeys(leads) if place not in (call.locations or ())]
        if not new:
            return request
        call = replace(call, locations=[*(call.locations or ()), *new])
        return replace(request, subject=replace(request.subject, tool_call=call))


def allowing(request: RequestPermission) -> PermissionOption | None:
    """The option that says yes, once before always; never one of another kind."""
    for kind in ("allow_once", "allow_always"):
        for option in request.options:
            if option.kind == kind:
                return option
    return None


class _Chosen(Reply, frozen=True, gc=False):
    """What a person has chosen of what was offered."""

    option: PermissionOption | None = None


_DISMISSED: Final = Done()


def _cancelled() -> RequestCancelled:
    return RequestCancelled(CANCELLED, "Cancelled: the turn was cancelled before anybody had answered")


async def _ask_for_reply(request: RequestPermission, ask: Ask) -> Reply:
    answer = await ask(request)
    wanted = answer.option_id if isinstance(answer, PermissionOption) else answer
    return _Chosen(next((option for option in request.options if option.option_id == wanted), None))


async def _nothing() -> bytes | None:
    return None

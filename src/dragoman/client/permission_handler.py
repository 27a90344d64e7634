"""`PermissionHandler`: answers what the policy decides, asks the user where there is one, and denies the rest.

A client can only judge what an agent asks. One that does not ask is not confined by this.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dragoman import limits
from dragoman.client.call_facts import GuardedRequest, call_facts
from dragoman.client.decision import By, OnDecision, PermissionDecision, method_of, title_of
from dragoman.client.file_questions import question_about, title_for_user
from dragoman.client.granted_writes import GrantedWrites
from dragoman.client.permission_policy import Level, PermissionPolicy, judge
from dragoman.client.questions import Questions
from dragoman.errors import CANCELLED, RequestCancelled
from dragoman.host.credential_files import credential_files
from dragoman.host.paths import PathRefused, Place, Roots, is_inside
from dragoman.host.programs import line_shell
from dragoman.host.protected_names import FolderFacts, is_git_folder, is_protected_write, look_in, plain
from dragoman.host.secrets import home_for, is_credential
from dragoman.host.wild_paths import PatternSearch, TooManyFiles, is_wild
from dragoman.permissions.decision import Decision, PathPosition
from dragoman.permissions.facts import CallFacts
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.services import (
    FEEDBACK,
    CreateTerminal,
    Dismissed,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    Selected,
    ToolCallSubject,
    WriteTextFile,
    rejection,
)
from dragoman.vocabulary.tools import Location

# The chosen option or its id, or an answer with the user's words beside it; None is a no.
Ask = Callable[[RequestPermission], Awaitable["PermissionOption | PermissionAnswer | str | None"]]
# A file as it is now; None if there is none.
Look = Callable[[], Awaitable[bytes | None]]

# Where an answer has room for the reason of a no.
REASON_KEY: Final = "dragoman/reason"
# A person's no is remembered for the turn; an agent that asks for so many different things has had its answer.
_REMEMBERED: Final = 1_000
# How often a question is shown again because what it is about has changed.
_SHOWN_AGAIN: Final = 3
# Denials that are kept with their reasons, for a report.
_DENIALS: Final = 100
# What the record says of a denial because of where a file lies.
_OUTSIDE: Final = "outside of the workspace"


class Denial(NamedTuple):
    """A request that the policy refused, and why."""

    what: str
    reason: str
    # The least level that would have allowed it; empty: none does.
    level: Level = ""
    # Whether a file or a working folder outside of the roots was wanted from the client, which lends none at any level.
    is_outside: bool = False

    def as_json(self) -> dict[str, str]:
        """Return it as it stands in the result of `dragoman run`."""
        return {"what": self.what, "reason": self.reason}


class PermissionHandler:
    """Answers permission requests by a policy: the `permission` callback of `connect`, and the gate of a `Workspace`.

    `denied` counts requests that the policy denied, also those denied because there was no user to ask; `refused`
    counts requests that the user refused.
    """

    def __init__(
        self,
        policy: PermissionPolicy,
        roots: Sequence[str | os.PathLike[str]],
        ask: Ask | None = None,
        *,
        protected_paths: Sequence[str] = (),
        private_folders: Sequence[str] = (),
        on_decision: OnDecision | None = None,
    ) -> None:
        """Judge by `policy` what is inside of the folders `roots`, and ask `ask` where the policy says so.

        Without `ask` such a request is decided by `policy.unasked`. `protected_paths` are real paths of files that are
        protected beside those with a protected name. `private_folders` hold what is the user's alone, such as our own
        folders: reading there is judged as reading credentials is, and writing as writing protected files.
        `on_decision` is called with every decision; a question that was cancelled is none.
        """
        self.policy: Final = policy
        self._protected_paths: Final = frozenset(protected_paths)
        self.denied = 0
        self.refused = 0
        self.denials: list[Denial] = []
        self._ask = ask
        self._roots = Roots([os.path.abspath(root) for root in roots])
        self._private: Final = tuple(dict.fromkeys(os.path.realpath(folder) for folder in private_folders))
        self._home = home_for(self._roots.real, os.path.realpath(os.path.expanduser("~")))
        self._where = PathPosition(
            self._inside,
            self._names,
            self._protected,
            self._credential,
            self._git_folder,
            self._expand,
            os.path.realpath,
        )
        self._shell = line_shell()
        self._folder_facts: dict[str, FolderFacts] = {}
        self._credentials_found: dict[str, str] = {}
        self._patterns = PatternSearch()
        self._refusals: OrderedDict[tuple[str, CallFacts], None] = OrderedDict()
        self._asking: dict[tuple[str, CallFacts], asyncio.Future[None]] = {}
        self._questions = Questions()
        self._granted_writes = GrantedWrites(self._roots)
        self._on_decision = on_decision
        self._is_dismissed = False

    def __repr__(self) -> str:
        asking, denied, refused = len(self._asking), self.denied, self.refused
        return f"<PermissionHandler allow={self.policy.allow!r} asking={asking} denied={denied} refused={refused}>"

    async def __call__(self, request: RequestPermission) -> "PermissionOption | PermissionAnswer | None":
        """Return the option to choose; a rejection with its reason where the answer has room for it. After a cancel
        it is neither, whatever the policy says: the turn is over for the user."""
        if self._is_dismissed:
            return PermissionAnswer(Dismissed())
        decision = self._decide(request)
        if decision.verdict == "ask" and self._ask is not None:
            return await self._ask_user(request, decision, self._ask)
        option, basis = allow_option(request) if self._allows(decision) else None, ""
        if option is not None:
            self._record(request, decision, is_allowed=True, option=option)
            return option
        if self._allows(decision):
            decision, basis = Decision("deny", "the agent offers no way to say yes"), "no option to allow"
        reason = self._deny(request, decision, basis)
        return PermissionAnswer(rejection(request), meta={REASON_KEY: reason})

    async def _ask_user(
        self, request: RequestPermission, decision: Decision, ask: Ask
    ) -> "PermissionOption | PermissionAnswer | None":
        shown = self._with_real_places(request)
        writes = await asyncio.to_thread(self._granted_writes.shown_by, shown)
        try:
            chosen = await self._ask_person(shown, ask)
        except RequestCancelled:
            return PermissionAnswer(Dismissed())
        option, feedback = chosen.option, chosen.feedback
        is_allowed = option is not None and option.allows
        if is_allowed:
            self._granted_writes.add(writes)
        self._record(request, decision, is_allowed=is_allowed, by="user", option=option)
        if feedback and not is_allowed:
            outcome = rejection(request) if option is None else Selected(option.option_id)
            return PermissionAnswer(outcome, meta={FEEDBACK: feedback})
        return option

    async def permits(
        self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: Look | None = None
    ) -> str | None:
        """Return why a file or command is denied, or None if it is allowed. Wait for the user where the policy asks.

        `look` returns the file as it is now. Raise `RequestCancelled` if `dismiss` is called before the user answers.
        """
        decision = self._decide(request)
        if decision.verdict == "ask" and self._ask is not None:
            if isinstance(request, WriteTextFile) and await self._is_granted(request, look or _nothing):
                self._record(request, decision, is_allowed=True, by="user")  # just now, when it was asked for an edit
                return None
            return await self._ask_to_lend(request, decision, look or _nothing, self._ask)
        if self._allows(decision):
            self._record(request, decision, is_allowed=True)
            return None
        return self._deny(request, decision)

    def denied_by_rule(self, request: ReadTextFile | WriteTextFile | CreateTerminal) -> str | None:
        """Return why a file or command is denied by a rule, without asking; None if another may decide."""
        decision = self._decide(request)
        return self._deny(request, decision) if decision.verdict == "deny" else None

    def deny_outside(self, request: ReadTextFile | WriteTextFile | CreateTerminal, path: str) -> str:
        """Deny what a client lends inside of its roots only, at any level: `path` leads out of them. Returns why."""
        decision = self._decide(request)
        if decision.verdict == "deny" and decision.rules:
            return self._deny(request, decision)
        reason = f"{path} is outside of the workspace, and a client lends nothing there"
        return self._deny(request, Decision("deny", reason), _OUTSIDE)

    async def _is_granted(self, request: WriteTextFile, look: Look) -> bool:
        return self._granted_writes.is_open(request) and self._granted_writes.consume(request, await look())

    def _decide(self, request: GuardedRequest) -> Decision:
        self._folder_facts.clear()
        self._credentials_found.clear()
        self._patterns = PatternSearch()
        return judge(request, self.policy, self._where, shell=self._shell)

    async def _ask_to_lend(
        self, request: ReadTextFile | WriteTextFile | CreateTerminal, decision: Decision, look: Look, ask: Ask
    ) -> str | None:
        """Return why the user does not allow it; None if the user does.

        A yes is for what was shown: a file that has changed meanwhile is shown again.
        """
        for _ in range(_SHOWN_AGAIN):
            before = await look()
            question = question_about(request, before, shell=self._shell, cwd=self._roots.cwd)
            chosen = await self._ask_person(question, ask)
            option, feedback = chosen.option, chosen.feedback
            if option is None or not option.allows:
                self._record(request, decision, is_allowed=False, by="user", option=option)
                return f"the user said no: {feedback}" if feedback else "the user said no"
            if await look() == before:
                self._record(request, decision, is_allowed=True, by="user", option=option)
                return None
        reason = "the file keeps changing while the user looks at it"
        return self._deny(request, Decision("deny", reason), "changed while it was shown")

    def new_turn(self) -> None:
        """Forget the answers of the last turn: a no, and a yes to an edit, count until its end."""
        self._refusals.clear()
        self._granted_writes.clear()
        self._is_dismissed = False

    def dismiss(self) -> None:
        """Cancel the open questions, and every question until `new_turn`: the turn was cancelled."""
        self._is_dismissed = True
        self._granted_writes.clear()
        self._questions.dismiss_all()

    def _allows(self, decision: Decision) -> bool:
        is_asked = decision.verdict == "ask" and decision.by != "managed"
        return decision.verdict == "allow" or (is_asked and self.policy.unasked == "allow")

    def _deny(self, request: GuardedRequest, decision: Decision, basis: str = "") -> str:
        """Deny a request; return why. `basis` says so without content, for the record, where no policy does."""
        reason = decision.reason
        if decision.verdict == "ask":
            reason = f"{reason}, and there is no user to ask"
        self._record(request, decision._replace(reason=reason), is_allowed=False, basis=basis)
        self.denied += 1
        if len(self.denials) < _DENIALS:
            level: Level = "" if basis else self._least_level(request)
            self.denials.append(Denial(self._title(request), reason, level, is_outside=basis == _OUTSIDE))
        return reason

    def _least_level(self, request: GuardedRequest) -> Level:
        """Return the least level at which the user need not be asked; empty: a rule stands against it at every one."""
        levels: tuple[Level, ...] = ("read", "edit", "all")
        for level in levels:
            policy = PermissionPolicy(level, self.policy.rules, fixed=self.policy.fixed)
            if judge(request, policy, self._where, shell=self._shell).verdict == "allow":
                return level
        return ""

    def _title(self, request: GuardedRequest) -> str:
        if isinstance(request, RequestPermission):
            return request.title
        return title_for_user(request, shell=self._shell)

    def _record(
        self,
        request: GuardedRequest,
        decision: Decision,
        *,
        is_allowed: bool,
        by: By | None = None,
        option: PermissionOption | None = None,
        basis: str = "",
    ) -> None:
        if self._on_decision is not None:
            self._on_decision(
                PermissionDecision(
                    request.session_id,
                    method_of(request),
                    call_facts(request, self._shell).kind,
                    title_of(request, self._shell),
                    is_allowed,
                    by or ("rule" if decision.rules else "policy"),
                    "" if option is None else option.kind,
                    "" if by == "user" else basis or self._basis(decision, is_allowed=is_allowed),
                    decision.rules[0] if decision.rules else None,
                    decision.reason,
                )
            )

    def _basis(self, decision: Decision, *, is_allowed: bool) -> str:
        if decision.verdict == "ask":
            return "accept_all" if is_allowed else "no user to ask"
        if decision.rules:
            return decision.rules[0].effect
        if is_allowed:
            return f"allow {self.policy.allow}"
        return "deny"

    async def _ask_person(self, request: RequestPermission, ask: Ask) -> "_Chosen":
        """Return what the user chooses. A question that is repeated meanwhile, or after a no, gets that answer."""
        key = (request.session_id, call_facts(request, self._shell))
        while key in self._asking:
            await asyncio.wait([self._asking[key]])
        if key in self._refusals:
            self.refused += 1
            return _Chosen()
        if self._is_dismissed:
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
        if option is None or not option.allows:
            self.refused += 1
            self._refusals[key] = None
            limits.evict_oldest(self._refusals, _REMEMBERED)
        return reply

    def _inside(self, path: str) -> bool:
        return self._place(path) is not None

    def _names(self, path: str) -> list[str]:
        """Return the names of a file in a rule: its real path, from its root, and from the root as it was given."""
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
        if place is None or any(is_inside(known, place.path) for known in (*self._protected_paths, *self._private)):
            return True  # the file itself, or a folder that it is in: that can be moved away, and another put there
        if any(is_inside(place.path, folder) for folder in self._private):
            return True
        return is_protected_write(place.root, place.parts, look=self._look_into)

    def _look_into(self, folder: str) -> FolderFacts:
        """Return the facts of a folder, found once for each judgement: a call may name many files in it."""
        if folder not in self._folder_facts:
            self._folder_facts[folder] = look_in(folder)
        return self._folder_facts[folder]

    def _credential(self, path: str) -> str:
        """Return the file with credentials that reading a path would show: itself, or one inside a folder."""
        place = self._place(path)
        if place is None:
            return path
        is_folder = os.path.isdir(place.path)
        if is_credential(place.path, self._home, is_folder=is_folder) or self._is_private(place):
            return path
        if place.path not in self._credentials_found:
            found = credential_files([place.path], self._home) if is_folder else []
            self._credentials_found[place.path] = found[0] if found else ""
        return self._credentials_found[place.path]

    def _is_private(self, place: Place) -> bool:
        """Return whether reading a place shows a private folder, unless the workspace itself lies in that."""
        closed = [folder for folder in self._private if not is_inside(place.root, folder)]
        return any(
            is_inside(place.path, folder) or (is_inside(folder, place.path) and os.path.lexists(folder))
            for folder in closed
        )

    def _expand(self, path: str) -> list[str] | None:
        """Return a path, and the files that it means where an agent takes it for a pattern; None: too many."""
        if not is_wild(path) or not self._inside(path):
            return [path]
        try:
            return [path, *self._patterns.paths_meant(os.path.join(self._roots.cwd, path))]
        except TooManyFiles:
            return None

    def _git_folder(self, paths: Sequence[str]) -> str:
        names: dict[tuple[str, ...], set[str]] = {}
        for path, place in ((path, place) for path in paths if (place := self._place(path))):
            for at, part in enumerate(place.parts):
                here = names.setdefault((place.root, *place.parts[:at]), set())
                here.add(plain(part))
                if is_git_folder(here):
                    return path
        return ""

    def _place(self, path: str) -> Place | None:
        """Return where a path leads; None if it is outside, or if a shell may lead it elsewhere."""
        if path.startswith("~") or "$" in path:
            return None
        try:
            return self._roots.place(path)
        except (PathRefused, OSError, ValueError):
            return None

    def _with_real_places(self, request: RequestPermission) -> RequestPermission:
        """Return the question with the files that links in its paths lead to: they are judged, so they are shown."""
        if not isinstance(request.subject, ToolCallSubject):
            return request
        leads = []
        for path in call_facts(request, self._shell).paths:
            real = self._names(path)[-1]
            if real != os.path.normpath(os.path.join(self._roots.cwd, path)):
                leads.append(Location(real))
        call = request.subject.tool_call
        new = [place for place in dict.fromkeys(leads) if place not in (call.locations or ())]
        if not new:
            return request
        call = replace(call, locations=[*(call.locations or ()), *new])
        return replace(request, subject=replace(request.subject, tool_call=call))


def allow_option(request: RequestPermission) -> PermissionOption | None:
    """Return the option that allows, once before always; None if there is none."""
    for kind in ("allow_once", "allow_always"):
        for option in request.options:
            if option.kind == kind:
                return option
    return None


class _Chosen(Reply, frozen=True, gc=False):
    """What a person has chosen of what was offered, and wrote to a no."""

    option: PermissionOption | None = None
    feedback: str = ""


_DISMISSED: Final = Done()


def _cancelled() -> RequestCancelled:
    return RequestCancelled(CANCELLED, "Cancelled: the turn was cancelled before the user had answered")


async def _ask_for_reply(request: RequestPermission, ask: Ask) -> Reply:
    answer = await ask(request)
    feedback = ""
    if isinstance(answer, PermissionAnswer):
        feedback = answer.feedback
        answer = answer.outcome.option_id if isinstance(answer.outcome, Selected) else None
    wanted = answer.option_id if isinstance(answer, PermissionOption) else answer
    return _Chosen(next((option for option in request.options if option.option_id == wanted), None), feedback)


async def _nothing() -> bytes | None:
    return None

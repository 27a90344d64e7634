"""A policy at work: it answers what is settled, asks where there is somebody to ask, and refuses elsewhere.

A client can only judge what an agent asks. One that does not ask is not confined by this.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dragoman.client.command_lines import terminal_line
from dragoman.client.evidence import Evidence, Judged, evidence
from dragoman.client.questions import Questions
from dragoman.client.rules import Effect, Level, Policy, Rule, Verdict, Where, judge
from dragoman.errors import CANCELLED, RequestCancelled
from dragoman.host.paths import PathRefused, Place, Roots, is_inside
from dragoman.host.programs import line_shell
from dragoman.host.protected import FolderFacts, is_git_folder, is_protected_write, look_in, plain
from dragoman.host.secrets import home_for, is_credential
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
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
from dragoman.vocabulary.tools import ContentItem, Diff, Location

__all__ = ["Decider", "Denial", "Effect", "Level", "Policy", "Rule", "Verdict", "Where", "allowing", "judge"]

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
    ) -> None:
        """`protected_paths` are real paths of files that are protected beside those with a protected name."""
        self.policy: Final = policy
        self._protected_paths: Final = frozenset(protected_paths)
        self.denied = 0
        self.refused = 0
        self.denials: list[Denial] = []
        self._ask = ask
        self._roots = Roots([os.path.abspath(root) for root in roots])
        self._home = home_for(self._roots.real, os.path.realpath(os.path.expanduser("~")))
        self._where = Where(
            self._inside, self._names, self._protected, self._credential, self._git_folder, shell=line_shell()
        )
        self._looked_into: dict[str, FolderFacts] = {}
        self._said_no: OrderedDict[tuple[str, Evidence], None] = OrderedDict()
        self._asking: dict[tuple[str, Evidence], asyncio.Future[None]] = {}
        self._questions = Questions()
        self._dismissed = False

    async def __call__(self, request: RequestPermission) -> "PermissionOption | PermissionAnswer | None":
        """The option to choose; a rejection with its reason where the answer has room for it."""
        verdict = self._judge(request)
        if verdict.effect == "ask" and self._ask is not None:
            try:
                return await self._asked(self._with_real_places(request), self._ask)
            except RequestCancelled:
                return PermissionAnswer(Dismissed())
        if self._allows(verdict):
            option = allowing(request)
            if option is not None:
                return option
            verdict = Verdict("reject", "the agent offers no way to say yes")
        reason = self._deny(request.title, verdict)
        return PermissionAnswer(rejection(request), meta={REASON_KEY: reason})

    async def permits(
        self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: Look | None = None
    ) -> str | None:
        """Why a file or a command is not for this agent; None if it is. `look` gives the file as it is now.

        `RequestCancelled` if nobody will say, because of `dismiss`.
        """
        verdict = self._judge(request)
        if verdict.effect == "ask" and self._ask is not None:
            return await self._shown(request, look or _nothing, self._ask)
        if self._allows(verdict):
            return None
        return self._deny(type(request).__name__, verdict)

    def _judge(self, request: Judged) -> Verdict:
        self._looked_into.clear()
        return judge(request, self.policy, self._where)

    async def _shown(self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: Look, ask: Ask) -> str | None:
        """A yes is for what was shown: a file that has changed meanwhile is shown again."""
        for _ in range(_SHOWN_AGAIN):
            before = await look()
            answer = await self._asked(self._as_question(request, before), ask)
            if answer is None or not answer.kind.startswith("allow"):
                return "the user said no"
            if await look() == before:
                return None
        return "the file keeps changing while the user looks at it"

    def new_turn(self) -> None:
        """A person's no was for the turn that is over."""
        self._said_no.clear()
        self._dismissed = False

    def dismiss(self) -> None:
        """The turn is cancelled: nobody will answer what is asked now, nor what is asked before `new_turn`."""
        self._dismissed = True
        self._questions.dismiss_all()

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
        parts = self._parts(path)
        if "\0" in path:
            return [path]
        meant = os.path.expanduser(os.path.expandvars(path))  # as an agent's shell may take it
        whole = os.path.realpath(os.path.join(self._roots.cwd, meant))
        return [whole] if parts is None else ["/".join(parts), whole]

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

    def _credential(self, path: str) -> bool:
        place = self._place(path)
        return place is None or is_credential(place.path, self._home)

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

    def _as_question(
        self, request: ReadTextFile | WriteTextFile | CreateTerminal, before: bytes | None
    ) -> RequestPermission:
        """A file or a command, asked for as a permission: a person sees one kind of question."""
        match request:
            case CreateTerminal():
                line = terminal_line(request, self._where.shell).text
                cwd = request.cwd if isinstance(request.cwd, str) and request.cwd else self._roots.cwd
                subject: ToolCallSubject | CommandSubject = CommandSubject(line, cwd)
                return RequestPermission(request.session_id, f"Run {line}", _OPTIONS, subject=subject)
            case WriteTextFile(path=path):
                text = None if before is None else before.decode(errors="replace")
                call = ToolCallUpdate(
                    "fs/write_text_file",
                    kind="edit",
                    locations=[Location(path)],
                    content=[Diff.of(path, text, request.content)],
                )
                return RequestPermission(request.session_id, f"Write {path}", _OPTIONS, subject=ToolCallSubject(call))
            case ReadTextFile(path=path):
                call = ToolCallUpdate(
                    "fs/read_text_file", kind="read", locations=[Location(path)], content=[ContentItem(Text(path))]
                )
                return RequestPermission(request.session_id, f"Read {path}", _OPTIONS, subject=ToolCallSubject(call))


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


_OPTIONS: Final = [
    PermissionOption("allow", "Allow", "allow_once"),
    PermissionOption("reject", "Reject", "reject_once"),
]

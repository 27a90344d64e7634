"""Rewind a session: find out what would happen, show it, do it, and take it back.

Files first, then the conversation: a kill between the two leaves files that are back, and the same rewind again does
the rest. Each file is verified in the moment before it changes (`restoring`); what was there is kept before that, so
nothing is lost by a rewind. What is done is what was shown: a file that is another by then is left alone.
"""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from dragoman.coder.checkpoints.areas import Areas, failures_named
from dragoman.coder.checkpoints.checkpoints import Checkpoints, SessionLog
from dragoman.coder.checkpoints.plan import (
    CHANGED_SINCE,
    FileTarget,
    Trouble,
    left_out_since,
    targets_of,
    targets_since,
)
from dragoman.coder.checkpoints.prompts import (
    PromptPlace,
    RewindPlace,
    prompts_in,
    rewinds_in,
    undoable,
)
from dragoman.coder.checkpoints.records import PlacedStep, step_in
from dragoman.coder.checkpoints.restoring import Restoring
from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, RequestFailed
from dragoman.host.git_images import ImageChange
from dragoman.host.git_run import ShadowFailed
from dragoman.host.text import visible_line
from dragoman.store.contract import Record
from dragoman.store.log_places import Rewind, Scope, rewind_note

# Files whose content is shown, and bytes of one: of more only the name is.
SHOWN_FILES: Final = 200
SHOWN_BYTES: Final = 256 * 1024
# Files whose contents are in memory at once.
_AT_ONCE: Final = 256

# Why a file must be left alone beyond what the log says: it is protected, or open and unsaved.
Refusal = Callable[[FileTarget], Awaitable[Trouble | None]]


class ShownFile(NamedTuple):
    """A file of a rewind as a user sees it: the text before and after, None where there is no file.

    `is_text` False: its content is not shown.
    """

    target: FileTarget
    before: str | None
    after: str | None
    is_text: bool

    def diff(self) -> str:
        """Return a unified diff; a line that says what happens where the content is not shown."""
        # A name that ends a line could say of its own what is done to another file.
        path = visible_line(self.target.path)
        if not self.is_text:
            return f"{path}: content not shown\n"
        old, new = (text.splitlines(keepends=True) if text else [] for text in (self.before, self.after))
        source, result = ("/dev/null" if text is None else path for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, source, result)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class RewindPlan(NamedTuple):
    """What a rewind would do. `files` are changed; `troubled` are left alone, each with the reason."""

    id: str
    scope: Scope
    to: int
    prompt: PromptPlace | None
    undoes: str
    # Prompts that do not count any more.
    dropped: Sequence[PromptPlace]
    files: Sequence[ShownFile]
    troubled: Sequence[FileTarget]
    left_out: Sequence[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return not self.files and (self.scope == "files" or not (self.dropped or self.undoes))


class RewindOutcome(NamedTuple):
    """What a rewind has done."""

    changed: Sequence[FileTarget]
    left_alone: Sequence[FileTarget]


class Rewinder:
    """Rewinds one session, which nothing else changes meanwhile."""

    def __init__(
        self,
        log: SessionLog,
        checkpoints: Checkpoints,
        roots: Sequence[str],
        refusal: Refusal,
        new_id: Callable[[], str],
        running: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`running`: a line for each command of the session that goes on, and may change files again."""
        self._running = running
        self._log = log
        self._checkpoints = checkpoints
        self._roots = roots
        self._refusal = refusal
        self._new_id = new_id

    def __repr__(self) -> str:
        return f"<Rewinder {self._checkpoints!r}>"

    async def prompts(self) -> list[PromptPlace]:
        """Return the prompts that the session can go back before."""
        return prompts_in(await self._log.read())

    async def plan(self, scope: Scope, *, message_id: str = "", number: int | None = None) -> RewindPlan:
        """Return what going back before a prompt would do: the one with this id, or number; else the last one.

        Raises `RequestFailed` for a prompt that is not there, `ShadowFailed` where files cannot be looked at.
        """
        areas = await self._settle(scope)
        records = await self._log.read()
        prompts = prompts_in(records)
        prompt = _find_prompt(prompts, message_id, number)
        steps = _steps(records)
        targets = targets_since(steps, prompt.turn) if areas is not None else []
        files, troubled = await self._look(areas, targets)
        return RewindPlan(
            self._new_id(),
            scope,
            prompt.turn - 1,
            prompt,
            "",
            [] if scope == "files" else [one for one in prompts if one.sequence >= prompt.turn],
            files,
            troubled,
            self._left_out(left_out_since(steps, prompt.turn)) if areas is not None else [],
        )

    async def plan_undo(self, scope: Scope | None = None) -> RewindPlan:
        """Return what taking back the last rewind would do; `scope` None: all of what it did.

        Raises `RequestFailed` where there is none, or where the conversation has gone on since.
        """
        place = undoable(rewinds_in(await self._log.read()))
        if place is None:
            raise RequestFailed(INVALID_PARAMS, "There is no rewind to undo", {"reason": "nothing"})
        scope = scope or place.rewind.scope
        areas = await self._settle("conversation" if place.rewind.scope == "conversation" else scope)
        records = await self._log.read()
        _check_no_prompt_since(records, place, scope)
        targets = targets_of(_steps(records), place.rewind.id) if areas is not None else []
        files, troubled = await self._look(areas, targets)
        return RewindPlan(self._new_id(), scope, place.sequence - 1, None, place.rewind.id, (), files, troubled, ())

    async def apply(self, plan: RewindPlan) -> RewindOutcome:
        """Do what a plan says. Raises `ShadowFailed` where files cannot be put back, `StoreFailed` of the log."""
        failed: list[FileTarget] = []
        targets = [shown.target for shown in plan.files]
        if targets:
            changes = {target.path: ImageChange(target.now, target.target) for target in targets}
            # Not settled anew: what has changed since the plan is found file by file, and left alone.
            areas = await self._checkpoints.begin_rewind(plan.id, changes)
            failed = await asyncio.to_thread(self._restore, areas, plan.id, targets)
            # Where that raises, the rewind stays open, and the next look finds what it has done.
            lost = {target.path for target in failed}
            await self._checkpoints.end_rewind({one.path: one.now for one in targets if one.path not in lost})
        lost = {target.path for target in failed}
        changed = [target for target in targets if target.path not in lost]
        message_id = plan.prompt.message_id if plan.prompt is not None else ""
        rewind = Rewind(plan.id, plan.to, plan.scope, message_id, plan.undoes, len(changed))
        await self._log.write([rewind_note(rewind)])
        return RewindOutcome(changed, [*plan.troubled, *failed])

    def restoring(self, areas: Areas, rewind_id: str) -> Restoring:
        """Return what restores files; a test puts a kill into it."""
        return Restoring(areas, self._roots, rewind_id)

    def _left_out(self, sentences: Sequence[str]) -> list[str]:
        return [*sentences, *(f"{line} still runs, and may change files again" for line in self._running())]

    async def _settle(self, scope: Scope) -> Areas | None:
        return None if scope == "conversation" else await self._checkpoints.settle()

    def _restore(self, areas: Areas, rewind_id: str, targets: Sequence[FileTarget]) -> list[FileTarget]:
        restoring = self.restoring(areas, rewind_id)
        failed: list[FileTarget] = []
        # What is deleted makes room for what is restored.
        targets = sorted(targets, key=lambda target: target.target is not None)
        for at in range(0, len(targets), _AT_ONCE):
            some = targets[at : at + _AT_ONCE]
            with failures_named():
                failed += restoring.restore(some, _contents(areas, some, now=False))
        return failed

    async def _look(
        self, areas: Areas | None, targets: Sequence[FileTarget]
    ) -> tuple[list[ShownFile], list[FileTarget]]:
        """Return the files that can be put back as they are shown, and the others."""
        if areas is None:
            return [], []
        looked = await asyncio.to_thread(self._look_at, areas, targets)
        files: list[ShownFile] = []
        troubled: list[FileTarget] = []
        for shown in looked:
            trouble = shown.target.trouble
            if not trouble:
                trouble = await self._refusal(shown.target) or ""
            if trouble:
                troubled.append(shown.target._replace(trouble=trouble))
            else:
                files.append(shown)
        return files, troubled

    def _look_at(self, areas: Areas, targets: Sequence[FileTarget]) -> list[ShownFile]:
        restoring = self.restoring(areas, "")
        found: list[ShownFile] = []
        for at in range(0, len(targets), _AT_ONCE):
            some = targets[at : at + _AT_ONCE]
            with failures_named():
                contents = {**_contents(areas, some, now=False), **_contents(areas, some, now=True)}
            for target in some:
                found.append(_shown(restoring, target, contents, with_content=len(found) < SHOWN_FILES))
        return found


def _shown(restoring: Restoring, target: FileTarget, contents: Mapping[str, bytes], *, with_content: bool) -> ShownFile:
    """Return a file as it is shown, with the trouble that can be seen before anything is done."""
    trouble = target.trouble
    try:
        if not trouble and restoring.place(target.path) is None:
            trouble = "out of reach"
        if not trouble and restoring.image_now(target) != target.now:
            trouble = CHANGED_SINCE
    except OSError:
        trouble = "in the way"
    if not trouble and target.target is not None and target.target.id not in contents:
        trouble = "not kept"
    old, new = (None if image is None else contents.get(image.id) for image in (target.now, target.target))
    before, after = _text(old), _text(new)
    is_text = with_content and (target.now is None) == (before is None) and (target.target is None) == (after is None)
    return ShownFile(target._replace(trouble=trouble), before if is_text else None, after if is_text else None, is_text)


def _text(data: bytes | None) -> str | None:
    if data is None or len(data) > SHOWN_BYTES or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _contents(areas: Areas, targets: Sequence[FileTarget], *, now: bool) -> dict[str, bytes]:
    """Return the contents of the targets, or those of what stands there now, as far as they are kept."""
    found: dict[str, bytes] = {}
    for top in {target.area for target in targets}:
        area = areas.of(top)
        images = (target.now if now else target.target for target in targets if target.area == top)
        if area is not None:
            found |= area.read([image.id for image in images if image is not None and image.is_kept])
    return found


def _steps(records: Sequence[Record]) -> list[PlacedStep]:
    found = ((record.sequence, step_in(record)) for record in records)
    return [PlacedStep(sequence, step) for sequence, step in found if step is not None]


def _find_prompt(prompts: Sequence[PromptPlace], message_id: str, number: int | None) -> PromptPlace:
    if not prompts:
        raise RequestFailed(INVALID_PARAMS, "There is no prompt to go back before", {"reason": "nothing"})
    if message_id:
        found = next((prompt for prompt in prompts if prompt.message_id == message_id), None)
        if found is None:
            raise RequestFailed(INVALID_PARAMS, "The session has no such prompt", {"messageId": message_id[:200]})
        return found
    if number is None:
        return prompts[-1]
    if not 1 <= number <= len(prompts):
        raise RequestFailed(
            INVALID_PARAMS, f"There is no prompt {number}: prompts are counted from 1 to {len(prompts)}"
        )
    return prompts[number - 1]


def _check_no_prompt_since(records: Sequence[Record], place: RewindPlace, scope: Scope) -> None:
    if scope == "files" or not place.rewind.rewinds_conversation:
        return
    prompts = prompts_in(records)
    if any(prompt.sequence > place.sequence for prompt in prompts):
        raise RequestFailed(
            INVALID_PARAMS,
            "The conversation has gone on since the rewind, so it stays; its files alone can be put back",
            {"reason": "prompted"},
        )


def not_stored() -> RequestFailed:
    """Return the refusal of a session that has no log."""
    return RequestFailed(INVALID_PARAMS, "This session is not stored, so it cannot be rewound", {"reason": "store"})


@contextmanager
def failures_answered() -> Iterator[None]:
    """Raise `RequestFailed` where files cannot be looked at or put back."""
    try:
        yield
    except ShadowFailed as failed:
        message = f"The files cannot be rewound: {failed}"
        raise RequestFailed(INTERNAL_ERROR, message, {"reason": "files"}) from None

"""The hooks of one session: which run at an event, what they are told, and what becomes of their answers.

Imported where there are hooks, and nowhere else. Hooks of an event run together, each command once; their answers count
in the order administrator, user, project. They are read anew with every prompt (`refresh`), and a project's are
looked at again, with the files that they start, before each run.

A hook can hold back and add, never widen: what it says about a call goes to the permission gate (`hook_verdict`).
`hook_calls` is the part about tool calls.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from dragoman.agent.session import Session, new_id, session_core
from dragoman.coder.context import NOT_THE_USER, ContextUserMessage
from dragoman.coder.hook_files import Hook
from dragoman.coder.hook_input import permission_mode
from dragoman.coder.hook_output import HookAnswer, context_of, read_answer
from dragoman.coder.hook_process import run_hook
from dragoman.coder.hook_sources import FoundHooks, HookSources
from dragoman.coder.hook_starts import HookStarts
from dragoman.coder.setup import Setup
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.coder.tools.bash import command_environment
from dragoman.errors import DragomanError
from dragoman.host.environment import child_environment
from dragoman.host.text import visible_line
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Notice

# How the context names what hooks add to it.
HOOK: Final = "hook"
# So often hooks may let a turn go on that would end; then it ends, whatever they say.
MOST_CONTINUED: Final = 8
# Hooks that nothing waits for, at the same time.
MOST_BESIDE: Final = 16
# In which an exit code of 2 holds nothing back, as there is nothing left to hold: the user is shown what it said.
_CANNOT_BLOCK: Final = frozenset({"SessionStart", "SessionEnd", "Notification", "PreCompact"})
_MESSAGE: Final = 2_000

StartSource = Literal["startup", "resume", "clear", "compact"]
EndReason = Literal["clear", "other"]

_log = logging.getLogger(__name__)


class SessionHooks:
    """Runs the hooks of one session. `mode` returns the mode that counts now."""

    def __init__(self, session: Session, setup: Setup, mode: Callable[[], str]) -> None:
        self.session: Final = session
        self.folder: Final = os.path.realpath(session.cwd)
        self._setup: Final = setup
        self._mode = mode
        self._environment: Final = command_environment(child_environment(setup.environment))
        self._found = FoundHooks()
        # Where hooks are looked for, as the roots of the session are now.
        self._starts = self._starts_in(())
        self._sources = self._sources_by(self._starts)
        # The files that each hook of the user started when this session saw it first: a later one may be the model's.
        self._first_started: dict[Hook, frozenset[str]] = {}
        self._protected: Sequence[str] = ()
        # Why nothing more is to be done in this turn, by the word of a hook; empty: go on.
        self.stopped = ""
        self._told: list[str] = []
        self._remarks_made: set[object] = set()
        self._logged: set[Hook] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<SessionHooks {len(self._found.running())} hooks, {len(self._beside)} run beside>"

    async def refresh(self, projects: Sequence[str]) -> None:
        """Read the hooks again. `projects` are the folders whose hooks may count, nearest first."""
        self._starts = self._starts_in(projects)
        self._sources = self._sources_by(self._starts)
        self._found, self._protected = await asyncio.to_thread(self._look, projects)
        for hook in (one.hook for one in self._found.hooks if one.refusal):
            if hook not in self._logged:
                self._logged.add(hook)
                _log.warning("hook of %s at %s is skipped: it is not trusted, or not allowed", hook.whose, hook.event)

    def _starts_in(self, projects: Sequence[str]) -> HookStarts:
        # What stands above the session's folder in its repository is of the same strangers.
        folders = dict.fromkeys(os.path.realpath(one) for one in (*self.session.roots, *projects))
        setup = self._setup
        return HookStarts(list(folders), self._environment, user_home=setup.user_home, user_file=setup.hooks)

    def _sources_by(self, starts: HookStarts) -> HookSources:
        return HookSources(self._setup.hooks, self._setup.trust, self._setup.managed, starts)

    def _look(self, projects: Sequence[str]) -> tuple[FoundHooks, list[str]]:
        found = self._sources.find(projects)
        started: dict[str, None] = {}
        for hook in (one.hook for one in found.hooks if one.hook.origin != "project"):
            files = self._starts.files_of(hook)
            self._first_started.setdefault(hook, frozenset(files))
            started |= dict.fromkeys(files)
        return found, list(started)

    async def begin_turn(self) -> None:
        """Wait for the hooks of the session's start, and tell the user, once, of hooks that do not run."""
        self.stopped = ""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        for remark in self._found.remarks:
            await self._say_once(remark, remark)

    @property
    def protected(self) -> Sequence[str]:
        """The files of the workspace that hooks of the user or the administrator start."""
        return self._protected

    # -- events ------------------------------------------------------------------------------------------------------

    def start(self, source: StartSource) -> None:
        """Run the hooks of a session's start; the first prompt waits for them."""
        self._starting = asyncio.get_running_loop().create_task(self._start(source))

    async def _start(self, source: StartSource) -> None:
        answers = await self.run("SessionStart", {"source": source, "model": self.session.option("model")}, (source,))
        self._tell_model("SessionStart", answers)

    async def restart(self, source: StartSource) -> None:
        """Run them again, because the model has forgotten what it was told: `clear`, `compact`."""
        await self._start(source)

    async def end(self, reason: EndReason) -> None:
        """Run the hooks of a session's end, within their short time."""
        await self.run("SessionEnd", {"reason": reason}, (reason,))

    async def close(self) -> None:
        """Run the hooks of the session's end, and end those that still run beside it."""
        if self._starting is not None:
            self._starting.cancel()
        with suppress(DragomanError):  # the client that would be told is gone
            await self.end("other")
        running = [*self._beside, *([self._starting] if self._starting is not None else [])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def on_prompt(self, prompt: str) -> str:
        """Return why a prompt does not go to the model; empty: it does."""
        answers = await self.run("UserPromptSubmit", {"prompt": prompt})
        refusals = [sentence for one in answers if (sentence := _refusal(one))]
        if not refusals:
            self._tell_model("UserPromptSubmit", answers)
        self.stopped = ""  # there is nothing to stop yet
        return refusals[0] if refusals else ""

    async def notify(self, kind: str, message: str) -> None:
        """Tell hooks, beside the turn, that the user is wanted."""
        for hook in self.matching("Notification", (kind,)):
            self._run_beside(hook, self._message("Notification", {"message": message, "notification_type": kind}))

    async def compacting(self, stage: Literal["before", "after"], *, is_asked: bool, focus: str) -> None:
        """Tell hooks that a summary is about to be made, and run those of a start when it is there."""
        if stage == "after":
            await self.restart("compact")
            return
        trigger = "manual" if is_asked else "auto"
        await self.run("PreCompact", {"trigger": trigger, "custom_instructions": focus}, (trigger,))

    def take_items(self) -> list[ContextUserMessage]:
        """Return what the model has to be told before its next request, once."""
        told, self._told = self._told, []
        return [hook_item(text) for text in told]

    def _tell_model(self, event: str, answers: Sequence[HookAnswer]) -> None:
        if text := context_of(answers):
            self._told.append(f"Hooks at {event} have added this.\n{wrap_in_tag('hook', text)}")

    # -- running -----------------------------------------------------------------------------------------------------

    def matching(
        self, event: str, subjects: Sequence[str] = (), is_meant: Callable[[Hook], bool] = lambda hook: True
    ) -> list[Hook]:
        """Return the hooks that run at an event, each command once."""
        found: dict[object, Hook] = {}
        for hook in self._found.running():
            if hook.event == event and (not subjects or hook.is_for(subjects)) and is_meant(hook):
                found.setdefault((hook.command, hook.args, hook.folder or self.folder, hook.waits), hook)
        return list(found.values())

    async def run(
        self,
        event: str,
        fields: Mapping[str, Any],
        subjects: Sequence[str] = (),
        is_meant: Callable[[Hook], bool] = lambda hook: True,
    ) -> list[HookAnswer]:
        """Run the hooks of an event together, and return their answers in the order in which they count.

        `subjects` are what matchers are about; none: the event has no matcher. A cancel ends them all.
        """
        hooks = self.matching(event, subjects, is_meant)
        if not hooks:
            return []
        message = self._message(event, fields)
        for hook in hooks:
            if not hook.waits:
                self._run_beside(hook, message)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run_one(hook, message)) for hook in hooks if hook.waits]
        answers = [task.result() for task in tasks]
        for answer in answers:
            await self._tell_user(answer)
        stopping = next((one for one in answers if one.stops), None)
        if stopping is not None and event not in _CANNOT_BLOCK:
            why = f": {stopping.stop_reason}" if stopping.stop_reason else ""
            self.stopped = f"A hook of {stopping.hook.whose} has stopped the turn{why}"
        return answers

    def _message(self, event: str, fields: Mapping[str, Any]) -> bytes:
        """Return what hooks are given on stdin."""
        mode = self._mode()
        common = {
            "session_id": self.session.id,
            "transcript_path": "",
            "cwd": self.folder,
            "permission_mode": permission_mode(mode),
            "mode": mode,
            "hook_event_name": event,
        }
        # Half of a surrogate pair, which a model can send, is no UTF-8.
        return json.dumps({**common, **fields}, ensure_ascii=True, default=str).encode()

    def _run_beside(self, hook: Hook, message: bytes) -> None:
        if len(self._beside) >= MOST_BESIDE:
            _log.warning("hook of %s at %s was not run: %d others run", hook.whose, hook.event, MOST_BESIDE)
            return
        task = asyncio.get_running_loop().create_task(self._run_unawaited(hook, message))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _run_unawaited(self, hook: Hook, message: bytes) -> None:
        """Run a hook whose answer changes nothing; the user is told what it has for the user."""
        answer = await self._run_one(hook, message)
        with suppress(DragomanError):  # the client is gone
            await self._tell_user(answer)

    async def _run_one(self, hook: Hook, message: bytes) -> HookAnswer:
        try:
            if why := await asyncio.to_thread(self._refusal, hook):
                return HookAnswer(hook, failure=why, is_missing=True)
            began = time.monotonic()
            guardian = self._setup.guardian()
            run = await run_hook(hook, message, folder=self.folder, environment=self._environment, guardian=guardian)
            answer = read_answer(hook, run)
        except Exception as error:
            # A bug of ours must not let a call through that a hook would have refused.
            _log.exception("hook of %s at %s could not be run", hook.whose, hook.event)
            return HookAnswer(hook, failure=f"it could not be run ({type(error).__name__})", is_missing=True)
        # No content: neither the command nor what it said.
        end = "no end" if run.exit_code is None else f"exit code {run.exit_code}"
        _log.info(
            *("hook of %s at %s: %s after %.2f s, %s", hook.whose, hook.event, end, time.monotonic() - began),
            "failed" if answer.failure else answer.word or "went on",
        )
        return answer

    def _refusal(self, hook: Hook) -> str:
        """Return why a hook is not run now that was to run when the turn began; empty: it is. Blocks."""
        if hook.origin == "project":
            is_same = self._sources.is_as_trusted(hook)
            return "" if is_same else "it, or a file that it starts, has changed since it was trusted"
        if hook.origin == "managed":
            return ""
        if refusal := self._sources.start_refusal(hook):
            return f"it starts files of the workspace, and {refusal}"
        new = [one for one in self._starts.files_of(hook) if one not in self._first_started.get(hook, ())]
        return f"{visible_line(new[0])}, which it starts, is newer than this session" if new else ""

    # -- what the user is told ---------------------------------------------------------------------------------------

    async def _tell_user(self, answer: HookAnswer) -> None:
        hook = answer.hook
        if answer.failure:
            text = f"A hook of {hook.whose} at {hook.event} failed, in {visible_line(hook.file)}: {answer.failure}"
            await self._say_once(hook, text)
        if answer.message:
            await self._say(f"A hook of {hook.whose} says: {answer.message}", "info")
        if answer.word == "deny" and hook.event in _CANNOT_BLOCK:
            await self._say(f"A hook of {hook.whose} at {hook.event} says: {answer.reason}", "warning")

    async def _say_once(self, key: object, text: str) -> None:
        if key not in self._remarks_made:
            self._remarks_made.add(key)
            await self._say(text, "warning")

    async def _say(self, text: str, severity: str) -> None:
        await session_core(self.session).record(Notice(severity, text[:_MESSAGE]))


class TurnHooks:
    """The hooks at the end of a turn, or of a helper's work: whether it goes on, and with which words."""

    def __init__(self, hooks: SessionHooks, helper: str = "") -> None:
        """`helper`: the kind of the helper; empty: it is the turn itself."""
        self._hooks: Final = hooks
        self._helper: Final = helper
        self._reasons: list[str] = []
        self._continued = 0

    @property
    def stopped(self) -> str:
        """Why nothing more is to be done, in words for the user; empty: go on."""
        return self._hooks.stopped

    async def goes_on(self, said: str) -> bool:
        """Return whether hooks want the model to go on that has ended with these words. Then it is told why."""
        fields: dict[str, Any] = {"stop_hook_active": self._continued > 0, "last_assistant_message": said}
        event, subjects = "Stop", []
        if self._helper:
            event, subjects = "SubagentStop", [self._helper]
            fields["agent_type"] = self._helper
        answers = await self._hooks.run(event, fields, subjects)
        blocking = [one for one in answers if one.word == "deny"]
        if self._hooks.stopped:
            await self._hooks.session.notice(self._hooks.stopped, severity="warning")
        if not blocking or self._hooks.stopped:
            return False
        if self._continued >= MOST_CONTINUED:
            await self._hooks.session.notice(
                f"Hooks have let this go on {MOST_CONTINUED} times; it ends although they want more.",
                severity="warning",
            )
            return False
        self._continued += 1
        text = "\n".join(one.reason for one in blocking)
        self._reasons.append(f"It is not over: hooks want you to go on, for this reason.\n{wrap_in_tag('hook', text)}")
        return True

    def take_items(self) -> list[ContextUserMessage]:
        """Return what the model has to be told before its next request, once."""
        reasons, self._reasons = self._reasons, []
        return [*([] if self._helper else self._hooks.take_items()), *map(hook_item, reasons)]


def hook_item(text: str) -> ContextUserMessage:
    """Return words of hooks as an item of the context: told by the agent, and not by the user."""
    return ContextUserMessage(new_id("told"), [Text(f"{NOT_THE_USER} {text}")], HOOK)


def _refusal(answer: HookAnswer) -> str:
    """Return why an answer holds a prompt back; empty: it does not."""
    whose = f"A hook of {answer.hook.whose}"
    if answer.is_missing and answer.hook.origin == "managed":
        return f"{whose} gave no answer: {answer.failure}"
    if answer.stops or answer.word == "deny":
        reason = (answer.stop_reason if answer.stops else "") or answer.reason
        return f"{whose} has held this prompt back{f': {reason}' if reason else ''}"
    return ""

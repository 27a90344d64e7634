"""`dragoman sessions rewind`: show what going back would do, ask, and do it. The session must not be open elsewhere."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.agent.history import read_settings
from dragoman.agent.session import new_id
from dragoman.cli.errors import CommandError, can_ask_user, discard_typed_input, print_error
from dragoman.cli.home import data_folder, own_folders
from dragoman.cli.text_width import harmless, in_diff_colour
from dragoman.coder.checkpoints.areas import Areas
from dragoman.coder.checkpoints.checkpoints import Checkpoints
from dragoman.coder.checkpoints.plan import FileTarget, Trouble
from dragoman.coder.checkpoints.rewinding import Rewinder, RewindOutcome, RewindPlan, failures_answered
from dragoman.coder.checkpoints.texts import heading, outcome_lines, plan_lines, prompt_lines
from dragoman.errors import RequestFailed
from dragoman.host.environment import child_environment
from dragoman.store.contract import Log, Record, SessionHeld, Store
from dragoman.store.entries import Entry
from dragoman.store.log_places import Scope

if TYPE_CHECKING:
    from dragoman.cli.output import Output
    from dragoman.cli.progress import Progress


class StoredLog:
    """The log of a session whose lease this process holds."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def read(self) -> list[Record]:
        return [record async for records in self._log.read() for record in records]

    async def write(self, entries: Sequence[Entry]) -> None:
        self._log.append(entries, lambda error: None)
        await self._log.flush()


async def rewind(
    store: Store, session_id: str, arguments: argparse.Namespace, output: "Output", progress: "Progress"
) -> int:
    """Do what the command line says; the exit code. Raises `CommandError`, and `StoreFailed` for a session in use."""
    try:
        log = await store.open(session_id)
    except SessionHeld as held:
        raise SessionHeld(f"{held}; say /rewind there, or close it there first") from None
    try:
        # A turn that was cut off gets its end first, as when the session is opened.
        if repairs := (await read_settings(log)).history.repairs():
            log.append(repairs, lambda error: None)
            await log.flush()
        rewinder = _rewinder(log)
        try:
            with failures_answered():
                return await _rewind(rewinder, arguments, output, progress)
        except RequestFailed as failed:
            listed = prompt_lines(await rewinder.prompts())
            raise CommandError("\n".join([failed.message, *(f"  {line}" for line in listed)])) from None
    finally:
        await log.release()


def _rewinder(log: Log) -> Rewinder:
    meta, home = log.meta, data_folder()
    roots = list(dict.fromkeys(os.path.realpath(root) for root in (meta.cwd, *meta.directories)))
    missing = next((root for root in roots if not os.path.isdir(root)), None)
    if missing is not None:
        raise CommandError(f"the folder of the session is not there: {missing}")
    own = [os.path.realpath(folder) for folder in own_folders()]
    environment = child_environment(os.environ)

    async def warn(sentence: str) -> None:
        print(f"dragoman: {harmless(sentence)}", file=sys.stderr)

    async def refusal(target: FileTarget) -> Trouble | None:
        return None

    stored = StoredLog(log)
    checkpoints = Checkpoints(stored, lambda: Areas.find(home, meta.id, roots, environment, own), warn)
    return Rewinder(stored, checkpoints, roots, refusal, lambda: new_id("rw"))


async def _rewind(rewinder: Rewinder, arguments: argparse.Namespace, output: "Output", progress: "Progress") -> int:
    scope: Scope | None = arguments.scope
    progress.at("Looking at the files", 0, 0)
    if arguments.undo:
        plan = await rewinder.plan_undo(scope)
    else:
        plan = await rewinder.plan(scope or "both", number=arguments.to)
    progress.hide()
    if not arguments.json:
        output.write(_shown(plan, coloured=output.coloured))
    if plan.is_empty:
        if arguments.json:
            output.line(_as_json(plan, None))
        return 0
    if not arguments.yes:
        if not can_ask_user():
            return print_error("nothing was rewound: there is no terminal to ask at; add --yes to do it")
        if not await _is_confirmed():
            return print_error("nothing was rewound", 1)
    outcome = await rewinder.apply(plan)
    if arguments.json:
        output.line(_as_json(plan, outcome))
    else:
        output.write("".join(f"{line}\n" for line in outcome_lines(plan, outcome)))
    return 1 if any(target not in plan.troubled for target in outcome.left_alone) else 0


def _shown(plan: RewindPlan, *, coloured: bool) -> str:
    lines = plan_lines(plan) or ["there is nothing to do"]
    text = "".join([f"{heading(plan)}\n", *(f"  {line}\n" for line in lines)])
    for file in plan.files:
        if file.is_text:
            lines = harmless(file.diff()).splitlines()
            text += "\n" + "".join(f"{in_diff_colour(line, line[:1]) if coloured else line}\n" for line in lines)
    return text + "\n"


def _as_json(plan: RewindPlan, outcome: RewindOutcome | None) -> bytes:
    changed = [] if outcome is None else outcome.changed
    left_alone = plan.troubled if outcome is None else outcome.left_alone
    return msgspec.json.encode(
        {
            "applied": outcome is not None,
            "scope": plan.scope,
            "messageId": plan.prompt.message_id if plan.prompt is not None else None,
            "number": plan.prompt.number if plan.prompt is not None else None,
            "prompts": len(plan.dropped),
            "files": [{"path": harmless(one.path), "action": one.deed} for one in changed],
            "leftAlone": [{"path": harmless(one.path), "trouble": one.trouble} for one in left_alone],
            "notCovered": list(plan.left_out),
        }
    )


async def _is_confirmed() -> bool:
    from dragoman.cli.session_actions import read_line

    discard_typed_input()
    print("Do this? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = await read_line()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")

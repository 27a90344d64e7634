"""One attempt at one task: a fresh workspace, an agent process, one turn by a client, a grade.

Promise: whatever the agent does, the attempt ends, within the task's seconds and a bounded clean-up, with nothing of it
left running, and with a verdict. `error` says that the agent could not be run or its work not be read; `not run` that
the language of the task is not installed here.
"""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from dragoman import Timeouts, Turn, connect
from dragoman.cli.settings import SettingsError
from dragoman.coder.credentials import CredentialsError
from dragoman.errors import DragomanError
from evals.agents import AgentChoice, launch
from evals.confinement import bubblewrap
from evals.grading import TurnFacts, grade
from evals.languages import lacking
from evals.pages import serving
from evals.results import Attempt
from evals.task import Task
from evals.transcript import Transcript
from evals.user import SimulatedUser
from evals.workspace import TooLarge, changed, diff, make_workspace, read_tree

_CANCEL_SECONDS: Final = 10.0
_ANSWER: Final = 20_000


T = TypeVar("T")


async def _in_thread(work: Callable[..., T], *given: Any) -> T:
    """Wait for work in a thread, also when cancelled: its files are about to be deleted."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def attempt(task: Task, choice: AgentChoice, number: int = 1, *, area: Path | None = None) -> Attempt:
    """Try a task once and return what it came to. `area` is an existing folder for its files."""
    with tempfile.TemporaryDirectory(prefix="dragoman-eval-", dir=area, ignore_cleanup_errors=True) as folder:
        return await _Attempt(task, choice, number, Path(folder).resolve()).run()


class _Attempt:
    def __init__(self, task: Task, choice: AgentChoice, number: int, area: Path) -> None:
        self._task = task
        self._choice = choice
        self._area = area
        self._workspace = area / "project"
        self._transcript = Transcript()
        self._user = SimulatedUser(task.user, self._transcript)
        self._fetched: list[str] = []
        self._result = Attempt(
            *(task.name, task.digest, task.kind, task.language, number, choice.name, choice.model, "error"),
            isolated=bubblewrap() is not None,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def run(self) -> Attempt:
        if reason := lacking(self._task.language):
            self._result.verdict, self._result.reason = "not run", reason
            return self._result
        try:
            await _in_thread(make_workspace, self._task, self._workspace)
        except (OSError, subprocess.SubprocessError) as error:
            self._result.reason = f"the workspace cannot be made: {error}"
            return self._result
        before = await _in_thread(read_tree, self._workspace)
        began = time.monotonic()
        failure = await self._converse()
        self._result.seconds = round(time.monotonic() - began, 2)
        self._describe()
        try:
            after = await _in_thread(read_tree, self._workspace)
        except (TooLarge, OSError) as error:
            self._result.reason = f"the workspace cannot be read: {error}"
            self._result.verdict = "fail"
            return self._result
        self._result.changed, self._result.diff = changed(before, after), diff(before, after)
        if failure:
            self._result.reason = failure
            return self._result
        facts = TurnFacts(self._transcript.answer(), self._transcript.commands, self._fetched)
        reason = await _in_thread(grade, self._task, before, after, self._workspace, facts)
        self._result.verdict = "fail" if reason else "pass"
        self._result.reason = self._result.reason or reason
        return self._result

    async def _converse(self) -> str:
        """Have the turn; return why it cannot be graded, or nothing."""
        with serving(self._task.folder / "pages") as pages:
            extra = {} if pages is None else pages.environment()
            try:
                start = launch(self._choice, self._task, self._area, self._workspace, extra)
            except (OSError, ValueError, SettingsError, CredentialsError) as error:
                return f"the agent cannot be started: {error}"
            client = connect(
                start.command,
                cwd=str(self._workspace),
                env=start.environment,
                permission=self._user.permission,
                elicitation=self._user.elicitation,
                ask_user=self._user.ask_user,
                timeouts=Timeouts(startup=60, prompt_idle=float(self._task.seconds)),
            )
            try:
                async with client:
                    session = await client.new_session(self._workspace)
                    await self._turn(session.prompt(self._task.prompt))
            except DragomanError as error:
                said = client.stderr_tail().strip()[-500:]
                return f"the agent failed: {error}" + (f" ({said})" if said else "")
            finally:
                self._fetched = [] if pages is None else list(pages.fetched)
        return ""

    async def _turn(self, turn: Turn) -> None:
        """Read the turn to its end, or cancel it when its time is over: then what is there is graded."""
        reading = asyncio.ensure_future(self._read(turn))
        try:
            await asyncio.wait([reading], timeout=self._task.seconds)
            if not reading.done():
                self._result.reason = f"cancelled after {self._task.seconds} s"
                await turn.cancel()
                await asyncio.wait([reading], timeout=_CANCEL_SECONDS)
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        self._result.stop_reason = turn.stop_reason
        if turn.usage is not None:
            self._result.input_tokens = turn.usage.input_tokens
            self._result.output_tokens = turn.usage.output_tokens
            cached = turn.usage.cached_read_tokens
            self._result.cached_tokens = cached if isinstance(cached, int) else None

    async def _read(self, turn: Turn) -> None:
        async for event in turn:
            self._transcript.apply(event)

    def _describe(self) -> None:
        result, transcript = self._result, self._transcript
        result.cost, result.requests, result.tool_calls = transcript.cost, transcript.requests, transcript.tool_calls
        result.asked, result.denied, result.questions = self._user.asked, self._user.denied, self._user.questions
        result.answer, result.transcript = transcript.answer()[:_ANSWER], transcript.entries
